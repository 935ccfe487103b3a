"""Layers: functions that append operators to the program and return their outputs.

They are Fluid's, with their arguments. A wrong argument raises OpTypeError, OpValueError or RuleError, and leaves the
program as it was. The module of a layer is imported at its first use.
"""

# ruff: noqa: F403

import importlib
import sys
from typing import TYPE_CHECKING, Any

from fluidnb.absent import LAYERS, absent
from fluidnb.errors import near
from fluidnb.initializer import set_defaults as set_defaults
from fluidnb.layers import index
from fluidnb.program import hooks

# What type checkers and editors see; at run time `__getattr__` imports the same at its first use.
if TYPE_CHECKING:
    from fluidnb.layers.activation import *
    from fluidnb.layers.array import *
    from fluidnb.layers.boxes import *
    from fluidnb.layers.compare import *
    from fluidnb.layers.control_flow import ConditionalBlock as ConditionalBlock
    from fluidnb.layers.control_flow import DynamicRNN as DynamicRNN
    from fluidnb.layers.control_flow import IfElse as IfElse
    from fluidnb.layers.control_flow import StaticRNN as StaticRNN
    from fluidnb.layers.control_flow import Switch as Switch
    from fluidnb.layers.control_flow import While as While
    from fluidnb.layers.conv import *
    from fluidnb.layers.creation import *
    from fluidnb.layers.embedding import *
    from fluidnb.layers.embedding import embedding as embedding
    from fluidnb.layers.fc import *
    from fluidnb.layers.fc import fc as fc
    from fluidnb.layers.images import *
    from fluidnb.layers.io import *
    from fluidnb.layers.learning_rate_scheduler import *
    from fluidnb.layers.losses import *
    from fluidnb.layers.math import *
    from fluidnb.layers.metric import *
    from fluidnb.layers.norm import *
    from fluidnb.layers.parallel_do import *
    from fluidnb.layers.prior_boxes import *
    from fluidnb.layers.proposals import *
    from fluidnb.layers.readers import *
    from fluidnb.layers.recurrent import *
    from fluidnb.layers.roi import *
    from fluidnb.layers.rows import *
    from fluidnb.layers.sequence import *
    from fluidnb.layers.sequence_labels import *
    from fluidnb.layers.shape import *
    from fluidnb.layers.shape import shape as shape
    from fluidnb.layers.ssd import *
    from fluidnb.layers.yolo import *

else:  # their modules have the same names, which importing these later would put in their place
    from fluidnb.layers.embedding import embedding as embedding
    from fluidnb.layers.fc import fc as fc
    from fluidnb.layers.shape import shape as shape


def _normalized_weight(*args: Any) -> Any:
    from fluidnb.layers.weight_norm import normalized

    return normalized(*args)


hooks.normalized_weight = _normalized_weight

__all__ = sorted([*index.MODULES, "set_defaults"])

#: Fluid's modules of layers; all layers are in each of them here, as scripts write ``layers.nn.fc`` for ``layers.fc``.
_MODULES = ("detection", "device", "metric_op", "nn", "ops", "tensor")

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name in index.MODULES:
            value = globals()[name] = getattr(importlib.import_module(f"fluidnb.layers.{index.MODULES[name]}"), name)
            return value
        if name in index.NAMES:
            return importlib.import_module(f"fluidnb.layers.{name}")
        if name in _MODULES:
            return sys.modules[__name__]
        if name in LAYERS:
            return absent(f"layers.{name}")
        raise AttributeError(f"fluid.layers has no {name}. {near(name, __all__)}".rstrip())


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *index.NAMES})
