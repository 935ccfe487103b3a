"""Transpilers: programs in, programs out."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from fluidnb.absent import TRANSPILERS, absent
from fluidnb.errors import near
from fluidnb.transpiler import memory_optimization_transpiler
from fluidnb.transpiler.distribute import DistributeTranspiler, DistributeTranspilerConfig, HashName, RoundRobin
from fluidnb.transpiler.inference_transpiler import InferenceTranspiler
from fluidnb.transpiler.memory_optimization_transpiler import memory_optimize, release_memory

__all__ = [
    "DistributeTranspiler", "DistributeTranspilerConfig", "HashName", "InferenceTranspiler", "RoundRobin",
    "memory_optimization_transpiler", "memory_optimize", "release_memory",
]  # fmt: skip

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name == "CodeGenerator":  # its package runs programs, and is above this one
            return import_module("fluidnb.code_generator").CodeGenerator
        if name in TRANSPILERS:
            return absent(f"transpiler.{name}")
        raise AttributeError(f"fluid.transpiler has no {name}. {near(name, __all__)}".rstrip())
