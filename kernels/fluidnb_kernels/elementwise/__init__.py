"""Operators on two tensors, element by element, with Fluid's broadcast."""
