"""Data transforms between the layout, dtype and place of a variable and those of a kernel, in that order."""

from typing import Any

import numpy as np

from fluidnb.values.copies import Copy, copy, copy_between
from fluidnb.values.selected_rows import SelectedRows

__all__ = ["LANES", "LAYOUT_COPIES", "copy", "copy_between", "cross", "layout_shape"]

#: The block of channels in the layout nChw8c.
LANES = 8


def cross(source: SelectedRows, target: SelectedRows, place: Any) -> None:
    """Copies rows to another place; their row numbers are on the host everywhere."""
    target.height_, target.rows_ = source.height_, source.rows_
    if source.value.array is not None:
        if place.kind != "cpu" and isinstance(target.value.array, np.ndarray):
            target.value.array = None  # a shape and a dtype so far, which `Binder.put` stores
        target.value.set(np.asarray(source.value), place)


def layout_shape(shape: tuple[int, ...], layout: str) -> tuple[int, ...]:
    """The shape in another layout of an NCHW tensor; tensors that are not 4-D keep theirs."""
    if len(shape) != 4 or layout in ("ANY_LAYOUT", "NCHW"):
        return shape
    n, c, h, w = shape
    return (n, h, w, c) if layout == "NHWC" else (n, -(-c // LANES), h, w, LANES)


def to_nhwc(src: Any, dst: Any) -> None:
    """NCHW to NHWC."""
    np.copyto(dst, src.transpose(0, 2, 3, 1))


def from_nhwc(src: Any, dst: Any) -> None:
    """NHWC to NCHW."""
    np.copyto(dst, src.transpose(0, 3, 1, 2))


def to_blocked(src: Any, dst: Any) -> None:
    """NCHW to nChw8c; channels beyond the last are zero.

    Example:
        >>> a = np.ones((1, 1, 1, 1, 8)); to_blocked(np.full((1, 3, 1, 1), 2.0), a); a.ravel()
        array([2., 2., 2., 0., 0., 0., 0., 0.])
    """
    channels = src.shape[1]
    for block in range(dst.shape[1]):
        part = src[:, block * LANES : (block + 1) * LANES]
        dst[:, block, :, :, : part.shape[1]] = part.transpose(0, 2, 3, 1)
        if part.shape[1] < LANES:
            dst[:, block, :, :, channels - block * LANES :] = 0


def from_blocked(src: Any, dst: Any) -> None:
    """nChw8c to NCHW.

    Example:
        >>> a = np.zeros((1, 3, 1, 1)); from_blocked(np.arange(8.0).reshape(1, 1, 1, 1, 8), a); a.ravel()
        array([0., 1., 2.])
    """
    for block in range(src.shape[1]):
        part = dst[:, block * LANES : (block + 1) * LANES]
        part[...] = src[:, block, :, :, : part.shape[1]].transpose(0, 3, 1, 2)


#: layout -> (from NCHW, to NCHW)
LAYOUT_COPIES: dict[str, tuple[Copy, Copy]] = {"NHWC": (to_nhwc, from_nhwc), "nChw8c": (to_blocked, from_blocked)}
