"""Arrays of tensors."""
