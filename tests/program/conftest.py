"""Fixtures of the toy operators."""

from tests.program.toy_operators import operators, programs

__all__ = ["operators", "programs"]
