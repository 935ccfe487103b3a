"""Windows that slide along the axes of an image: what convolution and pooling share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fluidnb.op import Attr, Binder

Array = Any

#: Layouts whose last axis is the channel.
CHANNEL_LAST = ("NHWC", "NDHWC")


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis of an image with the windows along it.

    Args:
        size: the image's size, -1 unknown.
        window: elements in a window.
        stride: from one window to the next.
        dilation: from one element of a window to the next.
        low: padding before the image.
        out: how many windows there are, -1 unknown.

    Example:
        >>> Axis(size=7, window=3, stride=2, dilation=1, low=1, out=4).tap(2)
        slice(2, 9, 2)
    """

    size: int
    window: int
    stride: int
    dilation: int
    low: int
    out: int

    @property
    def reach(self) -> int:
        """The size of the padded image that the windows need."""
        return max((self.out - 1) * self.stride + (self.window - 1) * self.dilation + 1, self.low + self.size)

    @property
    def inside(self) -> slice:
        """The image within the padded one."""
        return slice(self.low, self.low + self.size)

    def tap(self, i: int, first: int = 0, last: int | None = None) -> slice:
        """Element ``i`` of the windows from ``first`` to before ``last``, in the padded image."""
        end = self.out if last is None else last
        start = i * self.dilation + self.stride * first
        return slice(start, start + self.stride * (end - 1 - first) + 1, self.stride)


def padding_pairs(paddings: Sequence[int], rank: int) -> list[tuple[int, int]]:
    """The padding before and after the image along each axis.

    Args:
        paddings: one number for each axis, or two.

    Example:
        >>> padding_pairs([1, 2], 2), padding_pairs([0, 1, 2, 3], 2)
        ([(1, 1), (2, 2)], [(0, 1), (2, 3)])
    """
    if len(paddings) == rank:
        return [(p, p) for p in paddings]
    return [(paddings[2 * i], paddings[2 * i + 1]) for i in range(rank)]


def same_padding(size: int, window: int, stride: int) -> tuple[int, int]:
    """The padding that gives one window for each ``stride`` elements; an odd element goes behind the image.

    Example:
        >>> same_padding(5, 3, 2), same_padding(4, 2, 1)
        ((1, 1), (0, 1))
    """
    total = max((-(-size // stride) - 1) * stride + window - size, 0)
    return total // 2, total - total // 2


def slide(
    sizes: Sequence[int],
    windows: Sequence[int],
    strides: Sequence[int],
    paddings: Sequence[int],
    dilations: Sequence[int] | None = None,
    algorithm: str = "EXPLICIT",
    ceil: bool = False,
    cut: bool = True,
) -> tuple[Axis, ...]:
    """The windows along each axis of an image.

    Args:
        sizes: the image's sizes, -1 unknown.
        paddings: one number for each axis, or a pair.
        dilations: from element to element in a window; default 1.
        algorithm: ``EXPLICIT``; ``SAME`` and ``VALID`` choose the paddings themselves, SAME also dilations of 1.
        ceil: whether a window that hangs over the end counts.
        cut: whether a padded image that is less than a stride smaller than the window has one window, as Fluid's
            convolutions and poolings have, whose division in C truncates; what the window lacks counts as padding.

    Returns:
        The axes.

    Example:
        >>> [axis.out for axis in slide([28, -1], [5, 5], [1, 1], [2, 2])]
        [28, -1]
        >>> [axis.out for axis in slide([6, 6], [7, 7], [7, 1], [0, 0])]  # (6 - 7) / 7 + 1 and (6 - 7) / 1 + 1
        [1, 0]
    """
    rank = len(sizes)
    pairs = [(0, 0)] * rank if algorithm == "VALID" else padding_pairs(paddings, rank)
    axes = []
    for i, size in enumerate(sizes):
        window, stride = windows[i], strides[i]
        dilation = 1 if dilations is None or algorithm == "SAME" else dilations[i]
        low, high = same_padding(size, window, stride) if algorithm == "SAME" and size >= 0 else pairs[i]
        over = size + low + high - (dilation * (window - 1) + 1)
        over += stride - 1 if ceil else 0
        steps = -(-over // stride) if cut and over < 0 else over // stride
        out = -1 if size < 0 or window < 0 else max(steps + 1, 0)
        axes.append(Axis(size, window, stride, dilation, low, out))
    return tuple(axes)


def channel_first(x: Array, layout: str) -> Array:
    """An array [n, c, …] as a view, whatever its layout.

    Args:
        layout: ``NCHW``, ``NHWC`` and so on.

    Example:
        >>> channel_first(np.zeros((2, 5, 6, 3)), "NHWC").shape
        (2, 3, 5, 6)
    """
    return np.moveaxis(x, -1, 1) if layout in CHANNEL_LAST else x


def shape_in(layout: str, n: int, c: int, sizes: Sequence[int]) -> tuple[int, ...]:
    """The shape of an image in a layout.

    Example:
        >>> shape_in("NHWC", 2, 3, [5, 6]), shape_in("NCHW", 2, 3, [5, 6])
        ((2, 5, 6, 3), (2, 3, 5, 6))
    """
    return (n, *sizes, c) if layout in CHANNEL_LAST else (n, c, *sizes)


def split_shape(shape: Sequence[int], layout: str) -> tuple[int, int, tuple[int, ...]]:
    """Batch size, channels and sizes of an image of a layout.

    Example:
        >>> split_shape((2, 5, 6, 3), "NHWC")
        (2, 3, (5, 6))
    """
    n, *rest = shape
    return (n, rest[-1], tuple(rest[:-1])) if layout in CHANNEL_LAST else (n, rest[0], tuple(rest[1:]))


def batch_inner(x: Array) -> bool:
    """Whether the batch is the innermost axis in memory of an array [n, c, …].

    Example:
        >>> a = np.zeros((3, 5, 6, 2)); batch_inner(a), batch_inner(a.transpose(3, 0, 1, 2))
        (False, True)
    """
    return x.ndim > 2 and x.shape[0] > 1 and not x.flags.c_contiguous and np.moveaxis(x, 0, -1).flags.c_contiguous


def image(b: Binder, shape: Sequence[int], dtype: Any, inner: bool) -> Array:
    """A workspace [n, c, …] with the batch innermost in memory, or in C order.

    Args:
        dtype: numpy dtype.
        inner: whether the batch is innermost.
    """
    if not inner:
        return b.tmp(shape, dtype)
    return np.moveaxis(b.tmp((*shape[1:], shape[0]), dtype), -1, 0)


def padded(b: Binder, x: Array, axes: Sequence[Axis], fill: float | None, inner: bool) -> tuple[Array, Array | None]:
    """An image with its padding: itself where it needs none, else a workspace that is filled but lacks the image.

    Args:
        x: the image [n, c, …].
        fill: the value of the padding; None leaves it as it is.
        inner: whether the workspace has the batch innermost.

    Returns:
        The padded image, and its part where the image goes (None where it is the image itself).
    """
    shape = (*x.shape[:2], *(axis.reach for axis in axes))
    if shape == x.shape:
        return x, None
    whole = image(b, shape, x.dtype, inner)
    if fill is not None:
        b(np.copyto, whole, b.const(fill, x.dtype))
    return whole, whole[(..., *(axis.inside for axis in axes))]


def window_attrs(rank: int, layout: str) -> dict[str, Attr]:
    """The attributes that convolution and pooling share.

    Args:
        layout: the default layout.

    Returns:
        Attributes by name.
    """
    return {
        "strides": Attr("ints", [1] * rank, "stride of the window, one for each axis", gt=0),
        "paddings": Attr("ints", [0] * rank, "zeros around the image: one for each axis, or a pair", ge=0),
        "padding_algorithm": Attr(
            "string", "EXPLICIT", "SAME and VALID choose the paddings", enum=("EXPLICIT", "SAME", "VALID")
        ),
        "data_format": Attr("string", layout, "where the channels are: " + ", ".join((layout, *_last(rank)))),
        "is_test": Attr("bool", False, "ignored (compatibility)"),
    }


def _last(rank: int) -> list[str]:
    return [layout for layout in CHANNEL_LAST if len(layout) == rank + 2]
