"""Optimizers: they append backward and the operators that update parameters."""

from fluidnb.optimizer.adagrad import AdagradOptimizer, DecayedAdagradOptimizer
from fluidnb.optimizer.adam import AdamOptimizer
from fluidnb.optimizer.adaptive import AdadeltaOptimizer, AdamaxOptimizer, RMSPropOptimizer
from fluidnb.optimizer.base import Optimizer
from fluidnb.optimizer.ftrl import FtrlOptimizer
from fluidnb.optimizer.layerwise import LambOptimizer, LarsMomentumOptimizer
from fluidnb.optimizer.moving_average import ExponentialMovingAverage
from fluidnb.optimizer.sgd import MomentumOptimizer, SGDOptimizer

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
    "AdamaxOptimizer", "DecayedAdagrad", "DecayedAdagradOptimizer", "ExponentialMovingAverage", "Ftrl",
    "FtrlOptimizer", "Lamb", "LambOptimizer", "LarsMomentum", "LarsMomentumOptimizer", "Momentum", "MomentumOptimizer",
    "Optimizer", "RMSProp", "RMSPropOptimizer", "SGDOptimizer",
]  # fmt: skip
