"""What there is to know about a tensor's numbers at a glance, for reports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fluidnb.values.array_stats import stats_of
from fluidnb.values.selected_rows import SelectedRows
from fluidnb.values.tensor import array_of


@dataclass(frozen=True, slots=True)
class Numbers:
    """A tensor in a few numbers.

    Args:
        name: the variable.
        dtype: its dtype's name; empty if it is no tensor.
        shape: its sizes.
        nan: how many elements are NaN.
        inf: how many are infinite.
        low: the smallest finite one, or None.
        high: the largest finite one, or None.
        norm: square root of the sum of squares of the finite ones.
        zeros: how many are 0.

    Example:
        >>> tensor = fluid.LoDTensor(); tensor.set(np.array([3.0, -4.0, np.nan]))
        >>> numbers_of("x", tensor).text
        'x  float64[3]  1 NaN  -4 … 3'
    """

    name: str
    dtype: str = ""
    shape: tuple[int, ...] = ()
    nan: int = 0
    inf: int = 0
    low: float | None = None
    high: float | None = None
    norm: float = 0.0
    zeros: int = 0

    @property
    def text(self) -> str:
        """It in one line."""
        parts = [self.name, f"{self.dtype}[{', '.join(map(str, self.shape))}]" if self.dtype else "no tensor"]
        parts += [f"{count} {what}" for count, what in ((self.nan, "NaN"), (self.inf, "infinite")) if count]
        if self.low is not None:
            parts.append(f"{self.low:.4g} … {self.high:.4g}" if self.low != self.high else f"{self.low:.4g}")
        return "  ".join(parts)


def numbers_of(name: str, value: Any) -> Numbers:
    """Look at what a variable holds.

    Args:
        name: its name.
        value: a LoDTensor, SelectedRows (their values are looked at), or something else.

    Returns:
        Its numbers.
    """
    if isinstance(value, SelectedRows):
        value = value.value
    array = array_of(value)
    if array is None:
        return Numbers(name)
    dtype, shape = str(array.dtype), tuple(array.shape)
    if array.dtype.kind not in "biuf" or not array.size:
        return Numbers(name, dtype, shape)
    return Numbers(name, dtype, shape, *stats_of(array).numbers(array))
