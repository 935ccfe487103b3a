"""Tools for testing operators: run one by itself, compare its results and gradients with numbers."""

from fluidnb.testing.eager import run_op
from fluidnb.testing.fluid_op_test import FluidOpTest
from fluidnb.testing.op_test import OpTest

__all__ = ["FluidOpTest", "OpTest", "run_op"]
