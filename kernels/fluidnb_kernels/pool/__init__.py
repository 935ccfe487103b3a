"""Pooling: the largest element or the mean of each window of an image."""
