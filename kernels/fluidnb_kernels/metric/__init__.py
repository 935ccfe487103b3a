"""Measures of how well a model does."""
