"""Products of matrices, sums, scaling and norms."""
