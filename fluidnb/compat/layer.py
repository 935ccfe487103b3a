"""``pd.layer`` and ``pd.operator`` of the design documents: their own words first, then every layer of Fluid."""

from typing import Any

from fluidnb import layers
from fluidnb.compat.words import WORDS

__all__ = sorted({*WORDS, *layers.__all__})


def __getattr__(name: str) -> Any:
    return WORDS[name] if name in WORDS else getattr(layers, name)


def __dir__() -> list[str]:
    return __all__
