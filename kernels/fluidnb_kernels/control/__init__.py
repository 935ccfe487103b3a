"""Operators that run a block."""
