"""Initializers that draw from a distribution, some with a spread that keeps the scale of what flows through a layer."""

import math
from typing import Any

from fluidnb.errors import OpValueError
from fluidnb.initializer.base import Initializer


class UniformInitializer(Initializer):
    """Independent draws from the uniform distribution on [low, high).

    Args:
        low: lower bound.
        high: upper bound.
        seed: fixes this parameter's draws; 0 takes the program's ``random_seed``, where that is not 0.

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


def fans(shape: tuple[int, ...]) -> tuple[int, int]:
    """Fan-in and fan-out of a weight [in, out], or [out, in, height, width, …] of a convolution."""
    if len(shape) < 2:
        n = shape[0] if shape else 1
        return n, n
    if len(shape) == 2:
        return shape[0], shape[1]
    field = math.prod(shape[2:])
    return shape[1] * field, shape[0] * field


class _Scaled(Initializer):
    """Draws whose spread depends on the weight's fans: variance ``gain / fan``."""

    def __init__(self, uniform: bool, fan_in: float | None, fan_out: float | None, seed: int) -> None:
        self._uniform, self._fan_in, self._fan_out, self._seed = bool(uniform), fan_in, fan_out, int(seed)

    def variance(self, shape: tuple[int, ...]) -> float:
        """The variance of a draw for a weight of this shape."""
        raise NotImplementedError

    def operator(self, shape: tuple[int, ...], dtype: Any = "float32") -> tuple[str, dict[str, Any]]:
        if self._uniform:
            limit = math.sqrt(3.0 * self.variance(shape))
            return "uniform_random", {"min": -limit, "max": limit, "seed": self._seed}
        return "gaussian_random", {"mean": 0.0, "std": math.sqrt(self.variance(shape)), "seed": self._seed}

    def _fans(self, shape: tuple[int, ...]) -> tuple[float, float]:
        fan_in, fan_out = fans(shape)
        numbers = self._fan_in or fan_in, self._fan_out or fan_out
        if not all(n > 0 for n in numbers):
            raise OpValueError(
                f"{type(self).__name__} has no spread for these sizes.", expected="sizes and fans that are positive",
                received=f"shape {list(shape)}, fan in {numbers[0]}, fan out {numbers[1]}",
            )  # fmt: skip
        return numbers


class XavierInitializer(_Scaled):
    """Draws with variance 2 / (fan in + fan out): activations and gradients keep their scale (Glorot, Bengio 2010).

    Args:
        uniform: a uniform distribution (bound sqrt(6 / (fan in + fan out))) or else a normal one.
        fan_in: replaces the fan in that the shape says.
        fan_out: replaces the fan out that the shape says.
        seed: fixes this parameter's draws; 0 takes the program's ``random_seed``, where that is not 0.

    Example:
        >>> op, attrs = Xavier().operator((13, 1))
        >>> op, round(attrs["max"], 7)
        ('uniform_random', 0.6546537)
    """

    def __init__(
        self, uniform: bool = True, fan_in: float | None = None, fan_out: float | None = None, seed: int = 0
    ) -> None:
        super().__init__(uniform, fan_in, fan_out, seed)

    def variance(self, shape: tuple[int, ...]) -> float:
        fan_in, fan_out = self._fans(shape)
        return 2.0 / (fan_in + fan_out)


class MSRAInitializer(_Scaled):
    """Draws with variance 2 / fan in, for layers with a rectifier (He et al. 2015).

    Args:
        uniform: a uniform distribution (bound sqrt(6 / fan in)) or else a normal one.
        fan_in: replaces the fan in that the shape says.
        seed: fixes this parameter's draws; 0 takes the program's ``random_seed``, where that is not 0.

    Example:
        >>> op, attrs = MSRA(uniform=False).operator((8, 3, 5, 5))
        >>> op, round(attrs["std"], 4)
        ('gaussian_random', 0.1633)
    """

    def __init__(self, uniform: bool = True, fan_in: float | None = None, seed: int = 0) -> None:
        super().__init__(uniform, fan_in, None, seed)

    def variance(self, shape: tuple[int, ...]) -> float:
        return 2.0 / self._fans(shape)[0]


Xavier = XavierInitializer
MSRA = MSRAInitializer
