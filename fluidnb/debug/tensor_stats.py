"""Statistics of a tensor, for reports."""

from dataclasses import dataclass
from typing import Any

from fluidnb.values.array_stats import stats_of
from fluidnb.values.selected_rows import SelectedRows
from fluidnb.values.tensor import array_of


@dataclass(frozen=True, slots=True)
class TensorStats:
    """Statistics of a variable's tensor."""

    name: str  # the variable
    dtype: str = ""  # its dtype's name; empty if it is not a tensor
    shape: tuple[int, ...] = ()
    nan: int = 0  # number of elements that are NaN
    inf: int = 0  # number of infinite elements
    low: float | None = None  # the smallest finite element, or None
    high: float | None = None  # the largest finite element, or None
    norm: float = 0.0  # the L2 norm of the finite elements
    zeros: int = 0  # number of elements that are 0

    @property
    def text(self) -> str:
        """Name, dtype, shape, bad elements and range, in one line."""
        parts = [self.name, f"{self.dtype}[{', '.join(map(str, self.shape))}]" if self.dtype else "not a tensor"]
        parts += [f"{count} {what}" for count, what in ((self.nan, "NaN"), (self.inf, "infinite")) if count]
        if self.low is not None:
            parts.append(f"{self.low:.4g} … {self.high:.4g}" if self.low != self.high else f"{self.low:.4g}")
        return "  ".join(parts)


def tensor_stats(name: str, value: Any) -> TensorStats:
    """The statistics of a variable; of SelectedRows those of their values."""
    if isinstance(value, SelectedRows):
        value = value.value
    array = array_of(value)
    if array is None:
        return TensorStats(name)
    dtype, shape = str(array.dtype), tuple(array.shape)
    if array.dtype.kind not in "biuf" or not array.size:
        return TensorStats(name, dtype, shape)
    return TensorStats(name, dtype, shape, *stats_of(array).numbers(array))
