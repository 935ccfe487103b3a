"""``fluid.contrib``: the parts of it that old scripts train with; a call of another part raises and names the reason.

Example:
    >>> fluid.contrib.slim.Compressor()
    Traceback (most recent call last):
    fluidnb.errors.NotBuiltYet: fluid.contrib.slim.Compressor is not part of fluidnb yet: it makes trained ...
      ...
"""

from typing import Any

from fluidnb.absent import CONTRIB, AbsentModule
from fluidnb.contrib import decoder, inferencer, memory_usage_calc, op_frequence, trainer
from fluidnb.contrib.decoder import BeamSearchDecoder, InitState, StateCell, TrainingDecoder
from fluidnb.contrib.memory_usage_calc import memory_usage
from fluidnb.contrib.op_frequence import op_freq_statistic
from fluidnb.errors import near

__all__ = [
    "BeamSearchDecoder", "InitState", "StateCell", "TrainingDecoder", "decoder", "inferencer", "memory_usage",
    "memory_usage_calc", "op_freq_statistic", "op_frequence", "trainer",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in CONTRIB:
        return AbsentModule(f"contrib.{name}", CONTRIB[name])
    raise AttributeError(f"fluid.contrib has no {name}. {near(name, [*__all__, *CONTRIB])}".rstrip())
