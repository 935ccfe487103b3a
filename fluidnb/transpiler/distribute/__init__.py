"""DistributeTranspiler: one program becomes the programs of trainers and parameter servers."""

from fluidnb.transpiler.distribute.config import DistributeTranspilerConfig
from fluidnb.transpiler.distribute.dispatchers import HashName, PSDispatcher, RoundRobin
from fluidnb.transpiler.distribute.slices import slice_variable
from fluidnb.transpiler.distribute.transpiler import DistributeTranspiler

__all__ = [
    "DistributeTranspiler", "DistributeTranspilerConfig", "HashName", "PSDispatcher", "RoundRobin", "slice_variable",
]  # fmt: skip
