"""Reductions over axes, and the mean of everything."""
