"""Updates of parameters, in place."""
