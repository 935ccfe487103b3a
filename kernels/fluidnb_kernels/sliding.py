"""Windows that slide along the axes of an image: what convolution and pooling share."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from fluidnb.op import Array, Attr, Binder

#: Layouts whose last axis is the channel.
CHANNEL_LAST = ("NHWC", "NDHWC")
#: All layouts of Paddle; AnyLayout has the channels second.
LAYOUTS = ("NCHW", "NHWC", "NCDHW", "NDHWC", "AnyLayout")


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis of an image with the windows along it."""

    size: int  # the image's size, -1 unknown
    window: int  # elements in a window
    stride: int  # from one window to the next
    dilation: int  # from one element of a window to the next
    low: int  # padding before the image
    out: int  # how many windows there are, -1 unknown

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
    """The padding before and after the image along each axis, from one number for each axis, or two."""
    if len(paddings) == rank:
        return [(p, p) for p in paddings]
    return [(paddings[2 * i], paddings[2 * i + 1]) for i in range(rank)]


def same_padding(size: int, window: int, stride: int) -> tuple[int, int]:
    """The padding that gives one window for each ``stride`` elements; an odd element goes behind the image."""
    total = max((-(-size // stride) - 1) * stride + window - size, 0)
    return total // 2, total - total // 2


def slide(
    sizes: Sequence[int], windows: Sequence[int], strides: Sequence[int], paddings: Sequence[int],
    dilations: Sequence[int] | None = None, algorithm: str = "EXPLICIT", ceil: bool = False, cut: bool = True,
) -> tuple[Axis, ...]:  # fmt: skip
    """The windows along each axis of an image.

    Args:
        paddings: one number for each axis, or a pair.
        dilations: from element to element in a window; default 1.
        algorithm: ``EXPLICIT``; ``SAME`` and ``VALID`` choose the paddings themselves, SAME also dilations of 1.
        cut: whether a padded image that is less than a stride smaller than the window has one window, as Fluid's
            convolutions and poolings have, whose division in C truncates; what the window lacks counts as padding.
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
    """An array [n, c, …] as a view, whatever its layout."""
    return np.moveaxis(x, -1, 1) if layout in CHANNEL_LAST else x


def shape_in(layout: str, n: int, c: int, sizes: Sequence[int]) -> tuple[int, ...]:
    """The shape of an image in a layout."""
    return (n, *sizes, c) if layout in CHANNEL_LAST else (n, c, *sizes)


def split_shape(shape: Sequence[int], layout: str) -> tuple[int, int, tuple[int, ...]]:
    """Batch size, channels and sizes of an image of a layout."""
    n, *rest = shape
    return (n, rest[-1], tuple(rest[:-1])) if layout in CHANNEL_LAST else (n, rest[0], tuple(rest[1:]))


def steps_in(layout: str, shape: Sequence[int]) -> tuple[int, ...]:
    """The distances of images, channels and elements along each axis of an array in a layout.

    Example:
        >>> steps_in("NCHW", (2, 3, 4, 5)), steps_in("NHWC", (2, 4, 5, 3))
        ((60, 20, 5, 1), (60, 1, 15, 3))
    """
    steps = [prod(shape[i + 1 :]) for i in range(len(shape))]
    return (steps[0], steps[-1], *steps[1:-1]) if layout in CHANNEL_LAST else tuple(steps)


def batch_inner(x: Array) -> bool:
    """Whether the batch is the innermost axis in memory of an array [n, c, …]."""
    return x.ndim > 2 and x.shape[0] > 1 and not x.flags.c_contiguous and np.moveaxis(x, 0, -1).flags.c_contiguous


def innermost(x: Array) -> int | None:
    """The axis that is innermost in memory of images [n, c, …]: 0 for the batch, 1 for channels, None for C order."""
    if batch_inner(x):
        return 0
    channels = x.ndim > 2 and not x.flags.c_contiguous and np.moveaxis(x, 1, -1).flags.c_contiguous
    return 1 if channels else None


def image(b: Binder, shape: Sequence[int], dtype: Any, inner: int | None) -> Array:
    """A workspace [n, c, …] with an axis innermost in memory, or in C order."""
    if inner is None:
        return b.tmp(shape, dtype)
    return np.moveaxis(b.tmp((*shape[:inner], *shape[inner + 1 :], shape[inner]), dtype), -1, inner)


def padded(
    b: Binder, x: Array, axes: Sequence[Axis], fill: float | None, inner: int | None
) -> tuple[Array, Array | None]:
    """An image [n, c, …] with padding: itself and None without, else a workspace and its part for the image."""
    shape = (*x.shape[:2], *(axis.reach for axis in axes))
    if shape == x.shape:
        return x, None
    whole = image(b, shape, x.dtype, inner)
    if fill is not None:
        b(np.copyto, whole, b.const(fill, x.dtype))
    return whole, whole[(..., *(axis.inside for axis in axes))]


def window_attrs(rank: int, layout: str) -> dict[str, Attr]:
    """The attributes that convolution and pooling share, with a default layout."""
    return {
        "strides": Attr("ints", [1] * rank, "stride of the window, one for each axis", gt=0),
        "paddings": Attr("ints", [0] * rank, "zeros around the image: one for each axis, or a pair", ge=0),
        "padding_algorithm": Attr(
            "string", "EXPLICIT", "SAME and VALID choose the paddings", enum=("EXPLICIT", "SAME", "VALID")
        ),
        "data_format": Attr(
            "string", layout, "where the channels are: " + ", ".join((layout, *_last(rank))), enum=LAYOUTS
        ),
        "is_test": Attr("bool", False, "ignored (compatibility)"),
    }


def _last(rank: int) -> list[str]:
    return [layout for layout in CHANNEL_LAST if len(layout) == rank + 2]
