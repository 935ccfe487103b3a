"""Small samples of large tensors as plain data: a line, a matrix, or an image."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from fluidnb.values.array_stats import stats_of
from fluidnb.values.copies import is_on_device

#: A plane of a preview: rows of numbers.
Plane = tuple[tuple[float, ...], ...]
#: Elements of a line, cells of a field and pixels of an image along a side, at most.
_LINE, _FIELD, _IMAGE = 64, 32, 96
#: Minimum height and width of an image.
_SMALLEST = 8
#: Tensors of up to so many elements are shown whole as text, so that they need no preview.
_FEW = 8


@dataclass(frozen=True, slots=True)
class Preview:
    """Evenly spaced elements of a tensor."""

    kind: str  # ``line`` of one row, ``field`` of rows and columns, or ``image`` of one plane (grey) or three (RGB)
    planes: tuple[Plane, ...]  # the elements; NaN and infinities as they are
    what: str = ""  # which part of the tensor it is; empty for all of it

    @property
    def size(self) -> tuple[int, int]:
        """Rows and columns."""
        return len(self.planes[0]), len(self.planes[0][0])

    @property
    def range(self) -> tuple[float, float]:
        """Smallest and largest finite element shown; (0, 0) when there is none."""
        fine = [v for plane in self.planes for row in plane for v in row if math.isfinite(v)]
        return min(fine, default=0.0), max(fine, default=0.0)


def read_preview(array: Any, side: int = _FIELD) -> Preview | None:
    """A sample of an array of the host or of a device; None without numbers, or for 8 elements or fewer.

    [N, 1 or 3, H, W] and [1 or 3, H, W] with sides from 8 up are images; of other arrays with more than two dimensions,
    the first matrix is shown, with up to ``side`` rows and columns.
    """
    if not (isinstance(array, np.ndarray) or is_on_device(array)) or array.size <= _FEW:
        return None
    if array.dtype.kind not in "fiub" and array.dtype.name != "bfloat16":
        return None
    if array.ndim in (3, 4) and array.shape[-3] in (1, 3) and min(array.shape[-2:]) >= _SMALLEST:
        first = array if array.ndim == 3 else array[0]
        planes = tuple(_sampled(first[i], _IMAGE, _IMAGE) for i in range(len(first)))
        count = array.shape[0] if array.ndim == 4 else 1
        return Preview("image", planes, f"first of {count}" if count > 1 else "")
    flat = array.reshape(array.shape or (1,))
    if max(flat.shape) == flat.size:
        return Preview("line", (_sampled(flat.reshape(1, -1), 1, _LINE),), _some(flat.size, _LINE, "elements"))
    matrix = flat[(0,) * (flat.ndim - 2)]
    rows, wide = matrix.shape
    words = [f"first of {flat.size // matrix.size} matrices"] if matrix.size < flat.size else []
    words += [_some(rows, side, "rows"), _some(wide, side, "columns")]
    return Preview("field", (_sampled(matrix, side, side),), ", ".join(filter(None, words)))


def _sampled(matrix: Any, rows: int, wide: int) -> Plane:
    indices = (even_indices(n, most) for n, most in zip(matrix.shape, (rows, wide), strict=True))
    picked = stats_of(matrix).picked(matrix, *indices)
    return tuple(tuple(row) for row in picked.astype(np.float64).tolist())


def even_indices(n: int, most: int) -> np.ndarray[Any, Any]:
    """Evenly spaced indices, with the first and the last."""
    return np.linspace(0, n - 1, min(n, most)).round().astype(np.int64)


def _some(n: int, most: int, what: str) -> str:
    return f"{most} of {n:,} {what}" if n > most else ""
