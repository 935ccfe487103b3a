"""Tools for testing operators: run one by itself, hold its results and its gradients against numbers.

Example:
    >>> from fluidnb.testing import run_op
    >>> run_op("relu", {"X": [-1.0, 2.0]})["Out"]
    array([0., 2.])
"""

from fluidnb.testing.eager import run_op
from fluidnb.testing.fluid_op_test import FluidOpTest
from fluidnb.testing.op_test import OpTest

__all__ = ["FluidOpTest", "OpTest", "run_op"]
