"""Transpilers: programs in, programs out."""

from typing import TYPE_CHECKING, Any

from fluidnb.absent import TRANSPILERS, absent
from fluidnb.errors import near
from fluidnb.transpiler import memory_optimization_transpiler
from fluidnb.transpiler.inference_transpiler import InferenceTranspiler
from fluidnb.transpiler.memory_optimization_transpiler import memory_optimize, release_memory

__all__ = ["InferenceTranspiler", "memory_optimization_transpiler", "memory_optimize", "release_memory"]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name in TRANSPILERS:
            return absent(f"transpiler.{name}")
        raise AttributeError(f"fluid.transpiler has no {name}. {near(name, __all__)}".rstrip())
