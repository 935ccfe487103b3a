"""Summaries of objects that are a few facts: executors, optimizers, metrics, places."""
