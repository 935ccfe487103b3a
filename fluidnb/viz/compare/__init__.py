"""Renderings of the difference of two runs."""
