"""Making, copying, casting and reshaping tensors."""
