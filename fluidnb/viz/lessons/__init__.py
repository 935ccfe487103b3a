"""Interactive lessons: backward, LoD batches, optimizers."""
