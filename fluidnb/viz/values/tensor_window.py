"""A window into a tensor of any size: two axes as rows and columns, the others fixed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fluidnb.errors import OpValueError
from fluidnb.values.array_stats import stats_of
from fluidnb.viz.values.preview import Preview, read_preview

#: Elements of a row of a tensor with one axis.
_WRAP = 10
#: Rows and columns of a window at most.
_MOST = 200
#: Rows and columns of the picture of a plane.
_SIDE = 96


@dataclass(frozen=True, slots=True)
class View:
    """A plane of a tensor and the visible part of it.

    Args:
        axes: the axes that are rows and columns; None for the last two.
        at: an index for each axis, 0 by default; those of ``axes`` are ignored.
        row: the first visible row.
        column: the first visible column.
        rows: number of visible rows.
        columns: number of visible columns.
    """

    axes: tuple[int, int] | None = None
    at: tuple[int, ...] = ()
    row: int = 0
    column: int = 0
    rows: int = 24
    columns: int = 10


@dataclass(frozen=True, slots=True)
class ValuePage:
    """The visible elements.

    Args:
        view: the requested view, clipped to the tensor.
        shape: rows and columns of the plane.
        cells: the visible elements as text.
        wraps: whether the rows are consecutive pieces of one axis.
    """

    view: View
    shape: tuple[int, int]
    cells: tuple[tuple[str, ...], ...]
    wraps: bool = False


def read_page(array: Any, view: View | None = None) -> ValuePage:
    """Reads a window of a tensor.

    Args:
        view: the requested view; default the upper left corner of the first plane.

    Raises:
        OpValueError: the tensor has no such axes.

    Example:
        >>> x = np.arange(24.0).reshape(2, 3, 4)
        >>> page = read_page(x, View(at=(1,), row=1, rows=9, columns=2))
        >>> page.shape, page.cells
        ((3, 4), (('16', '17'), ('20', '21')))
        >>> read_page(x, View((2, 0), columns=2)).cells[3]
        ('3', '15')
    """
    plane, view = _plane(array, view or View())
    wraps = array.ndim < 2
    height, width = (-(-plane.size // _WRAP), min(plane.size, _WRAP)) if wraps else plane.shape
    row = max(0, min(view.row, height - 1))
    column = max(0, min(view.column, width - 1))
    rows = max(0, min(view.rows, _MOST, height - row))
    columns = max(0, min(view.columns, _MOST, width - column))
    seen = View(view.axes, view.at, row, column, rows, columns)
    if wraps:
        indices = range(row * _WRAP, min((row + rows) * _WRAP, plane.size))
        flat = stats_of(plane).picked(plane, indices)
        lines = [flat[r * _WRAP : (r + 1) * _WRAP][column : column + columns] for r in range(rows)]
    else:
        lines = list(stats_of(plane).picked(plane, range(row, row + rows), range(column, column + columns)))
    cells = tuple(tuple(_text(v) for v in line.tolist()) for line in lines)
    return ValuePage(seen, (height, width), cells, wraps)


def plane_picture(array: Any, view: View | None = None) -> Preview | None:
    """A preview of the plane of a view.

    Returns:
        The preview, or None as for `read_preview`.

    Raises:
        OpValueError: the tensor has no such axes.

    Example:
        >>> plane_picture(np.zeros((2, 3, 4, 5))).size
        (4, 5)
    """
    plane, _ = _plane(array, view or View())
    return read_preview(plane, _SIDE)


def plane_image(array: Any, view: View | None = None) -> Preview | None:
    """The image that has the plane of a view as a channel.

    Returns:
        The image, grey or RGB; None when the tensor has no shape of images, or the view has other axes.

    Example:
        >>> plane_image(np.zeros((5, 3, 8, 8)), View(at=(4, 1))).kind, plane_image(np.zeros((8, 8)))
        ('image', None)
    """
    if array.ndim not in (3, 4):
        return None
    _, view = _plane(array, view or View())
    if view.axes != (array.ndim - 2, array.ndim - 1):
        return None
    preview = read_preview(array[view.at[0]] if array.ndim == 4 else array)
    return preview if preview is not None and preview.kind == "image" else None


def _plane(array: Any, view: View) -> tuple[Any, View]:
    """The plane, and the view with explicit axes and indices."""
    if array.ndim < 2:
        return array.reshape(-1), View(None, (), view.row, view.column, view.rows, view.columns)
    axes = (array.ndim - 2, array.ndim - 1) if view.axes is None else view.axes
    if len(set(axes)) != 2 or not all(0 <= axis < array.ndim for axis in axes):
        raise OpValueError(
            "A view needs two different axes of the tensor.", expected=f"two different ones of 0 to {array.ndim - 1}",
            received=axes,
        )  # fmt: skip
    at = tuple(max(0, min(i, n - 1)) for i, n in zip(_padded(view.at, array.ndim), array.shape, strict=True))
    key = tuple(slice(None) if axis in axes else i for axis, i in enumerate(at))
    plane = array[key] if array.size else np.empty([array.shape[a] for a in sorted(axes)], array.dtype)
    return plane if axes[0] < axes[1] else plane.T, View(axes, at, view.row, view.column, view.rows, view.columns)


def _padded(at: Sequence[int], count: int) -> list[int]:
    return [*at[:count], *[0] * (count - len(at))]


def _text(value: Any) -> str:
    return f"{value:.5g}" if isinstance(value, float) else str(value)
