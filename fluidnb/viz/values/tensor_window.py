"""A window into a tensor of any size: two axes as rows and columns, the others fixed."""

from dataclasses import dataclass, replace
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
    """A plane of a tensor and the visible part of it."""

    axes: tuple[int, int] | None = None  # the axes that are rows and columns; None for the last two
    at: tuple[int, ...] = ()  # an index for each axis, 0 by default; those of ``axes`` are ignored
    row: int = 0  # the first visible row
    column: int = 0  # the first visible column
    rows: int = 24  # number of visible rows
    columns: int = 10  # number of visible columns


@dataclass(frozen=True, slots=True)
class ValuePage:
    """The visible elements."""

    view: View  # the requested view, clipped to the tensor
    shape: tuple[int, int]  # rows and columns of the plane
    cells: tuple[tuple[str, ...], ...]  # the visible elements as text
    wraps: bool = False  # whether the rows are consecutive pieces of one axis


def read_page(array: Any, view: View | None = None) -> ValuePage:
    """Reads a window of a tensor, by default the upper left corner of the first plane."""
    plane, view = _plane(array, view or View())
    wraps = array.ndim < 2
    height, width = (-(-plane.size // _WRAP), min(plane.size, _WRAP)) if wraps else plane.shape
    row = max(0, min(view.row, height - 1))
    column = max(0, min(view.column, width - 1))
    rows = max(0, min(view.rows, _MOST, height - row))
    columns = max(0, min(view.columns, _MOST, width - column))
    seen = replace(view, row=row, column=column, rows=rows, columns=columns)
    if wraps:
        span = range(row * _WRAP, min((row + rows) * _WRAP, plane.size))
        flat = stats_of(plane).picked(plane, span)
        lines = [flat[r * _WRAP : (r + 1) * _WRAP][column : column + columns] for r in range(rows)]
    else:
        lines = list(stats_of(plane).picked(plane, range(row, row + rows), range(column, column + columns)))
    cells = tuple(tuple(element_text(v) for v in line.tolist()) for line in lines)
    return ValuePage(seen, (height, width), cells, wraps)


def plane_picture(array: Any, view: View | None = None) -> Preview | None:
    """A preview of the plane of a view, None as for `read_preview`."""
    plane, _ = _plane(array, view or View())
    return read_preview(plane, _SIDE)


def plane_image(array: Any, view: View | None = None) -> Preview | None:
    """The image, grey or RGB, that has the plane of a view as a channel; None without one."""
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
        return array.reshape(-1), replace(view, axes=None, at=())
    axes = (array.ndim - 2, array.ndim - 1) if view.axes is None else view.axes
    if len(set(axes)) != 2 or not all(0 <= axis < array.ndim for axis in axes):
        raise OpValueError(
            "A view needs two different axes of the tensor.", expected=f"two different ones of 0 to {array.ndim - 1}",
            received=axes,
        )  # fmt: skip
    indices = [*view.at[: array.ndim], *[0] * (array.ndim - len(view.at))]
    at = tuple(max(0, min(i, n - 1)) for i, n in zip(indices, array.shape, strict=True))
    key = tuple(slice(None) if axis in axes else i for axis, i in enumerate(at))
    plane = array[key] if array.size else np.empty([array.shape[a] for a in sorted(axes)], array.dtype)
    return plane if axes[0] < axes[1] else plane.T, replace(view, axes=axes, at=at)


def element_text(value: Any) -> str:
    """An element with five digits."""
    return f"{value:.5g}" if isinstance(value, float) else str(value)
