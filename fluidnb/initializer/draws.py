"""Initializers that draw from a distribution."""

from __future__ import annotations

from typing import Any

from fluidnb.errors import OpValueError
from fluidnb.initializer.base import Initializer


class UniformInitializer(Initializer):
    """Independent draws from the uniform distribution on [low, high).

    Args:
        low: lower bound.
        high: upper bound.
        seed: fixes this parameter's draws; 0 takes the program's ``random_seed``, where that is not 0.

    Raises:
        OpValueError: low is above high.

    Example:
        >>> Uniform(-0.5, 0.5).operator((3,))
        ('uniform_random', {'min': -0.5, 'max': 0.5, 'seed': 0})
    """

    def __init__(self, low: float = -1.0, high: float = 1.0, seed: int = 0) -> None:
        if low > high:
            raise OpValueError("The bounds of a uniform distribution are swapped.", attrs={"low": low, "high": high})
        self._low, self._high, self._seed = float(low), float(high), int(seed)

    def operator(self, shape: tuple[int, ...], dtype: Any = "float32") -> tuple[str, dict[str, Any]]:
        return "uniform_random", {"min": self._low, "max": self._high, "seed": self._seed}


class NormalInitializer(Initializer):
    """Independent draws from a normal distribution.

    Args:
        loc: its mean.
        scale: its standard deviation.
        seed: fixes this parameter's draws; 0 takes the program's ``random_seed``, where that is not 0.

    Example:
        >>> Normal(0.0, 0.02).operator((3,))
        ('gaussian_random', {'mean': 0.0, 'std': 0.02, 'seed': 0})
    """

    def __init__(self, loc: float = 0.0, scale: float = 1.0, seed: int = 0) -> None:
        self._loc, self._scale, self._seed = float(loc), float(scale), int(seed)

    def operator(self, shape: tuple[int, ...], dtype: Any = "float32") -> tuple[str, dict[str, Any]]:
        return "gaussian_random", {"mean": self._loc, "std": self._scale, "seed": self._seed}


class TruncatedNormalInitializer(Initializer):
    """Independent draws from a normal distribution, those further than two deviations from its mean drawn again.

    Args:
        loc: the mean.
        scale: the standard deviation before the far draws are left out.
        seed: fixes this parameter's draws; 0 takes the program's ``random_seed``, where that is not 0.

    Example:
        >>> TruncatedNormal(0.0, 0.02).operator((3,))
        ('truncated_gaussian_random', {'mean': 0.0, 'std': 0.02, 'seed': 0})
    """

    def __init__(self, loc: float = 0.0, scale: float = 1.0, seed: int = 0) -> None:
        self._loc, self._scale, self._seed = float(loc), float(scale), int(seed)

    def operator(self, shape: tuple[int, ...], dtype: Any = "float32") -> tuple[str, dict[str, Any]]:
        return "truncated_gaussian_random", {"mean": self._loc, "std": self._scale, "seed": self._seed}


Uniform = UniformInitializer
Normal = NormalInitializer
TruncatedNormal = TruncatedNormalInitializer
