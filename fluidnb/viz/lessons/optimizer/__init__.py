"""The lesson on optimizers."""
