"""Lowering of a program: operators bound to kernels, data layout, memory placement, saved iterations."""
