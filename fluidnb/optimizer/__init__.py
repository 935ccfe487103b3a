"""Optimizers: they append backward and the operators that update parameters."""

from typing import TYPE_CHECKING, Any

from fluidnb.absent import OPTIMIZERS, absent
from fluidnb.backward import append_backward as append_backward
from fluidnb.clip import append_gradient_clip_ops as append_gradient_clip_ops
from fluidnb.clip import error_clip_callback as error_clip_callback
from fluidnb.errors import near
from fluidnb.optimizer.algorithms import (
    AdadeltaOptimizer,
    AdagradOptimizer,
    AdamaxOptimizer,
    AdamOptimizer,
    DecayedAdagradOptimizer,
    FtrlOptimizer,
    LambOptimizer,
    LarsMomentumOptimizer,
    MomentumOptimizer,
    RMSPropOptimizer,
    SGDOptimizer,
)
from fluidnb.optimizer.averages import ExponentialMovingAverage, ModelAverage
from fluidnb.optimizer.base import Optimizer

# append_backward and the like are here for old tests, which take them from this module since Fluid's uses them.
from fluidnb.regularizer import append_regularization_ops as append_regularization_ops

Adadelta = AdadeltaOptimizer
Adagrad = AdagradOptimizer
Adam = AdamOptimizer
Adamax = AdamaxOptimizer
DecayedAdagrad = DecayedAdagradOptimizer
Ftrl = FtrlOptimizer
Lamb = LambOptimizer
LarsMomentum = LarsMomentumOptimizer
Momentum = MomentumOptimizer
RMSProp = RMSPropOptimizer
SGD = SGDOptimizer

__all__ = [
    "SGD", "Adadelta", "AdadeltaOptimizer", "Adagrad", "AdagradOptimizer", "Adam", "AdamOptimizer", "Adamax",
    "AdamaxOptimizer", "DecayedAdagrad", "DecayedAdagradOptimizer", "ExponentialMovingAverage", "Ftrl", "FtrlOptimizer",
    "Lamb", "LambOptimizer", "LarsMomentum", "LarsMomentumOptimizer", "ModelAverage", "Momentum", "MomentumOptimizer",
    "Optimizer", "RMSProp", "RMSPropOptimizer", "SGDOptimizer",
]  # fmt: skip

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name in OPTIMIZERS:
            return absent(f"optimizer.{name}")
        raise AttributeError(f"fluid.optimizer has no {name}. {near(name, __all__)}".rstrip())
