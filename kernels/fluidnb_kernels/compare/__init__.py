"""Comparisons and logic; the results are bool and have no gradient."""
