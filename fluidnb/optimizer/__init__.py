"""Optimizers: they append backward and the operators that update parameters."""

# ruff: noqa: F403

from typing import TYPE_CHECKING, Any

from fluidnb.absent import OPTIMIZERS, absent
from fluidnb.backward import append_backward as append_backward
from fluidnb.clip import append_gradient_clip_ops as append_gradient_clip_ops
from fluidnb.clip import error_clip_callback as error_clip_callback
from fluidnb.errors import near
from fluidnb.optimizer.algorithms import *
from fluidnb.optimizer.averages import ExponentialMovingAverage as ExponentialMovingAverage
from fluidnb.optimizer.averages import ModelAverage as ModelAverage
from fluidnb.optimizer.base import Optimizer as Optimizer
from fluidnb.optimizer.recompute import RecomputeOptimizer as RecomputeOptimizer

# append_backward and the like are here for old tests, which take them from this module since Fluid's uses them.
from fluidnb.regularizer import append_regularization_ops as append_regularization_ops

#: The optimizers, each under the name of its class and the short one, and averages of parameters.
__all__ = sorted(n for n, v in globals().items() if getattr(v, "__module__", "").startswith("fluidnb.optimizer."))
#: The short names of optimizers.
SHORT = [name for name in __all__ if f"{name}Optimizer" in __all__]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name in OPTIMIZERS:
            return absent(f"optimizer.{name}")
        raise AttributeError(f"fluid.optimizer has no {name}. {near(name, __all__)}".rstrip())
