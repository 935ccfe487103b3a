"""The lesson on LoD batches."""
