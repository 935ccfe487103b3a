"""Attributes, shape rule and windows of pooling."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from fluidnb.op import Attr, Context
from fluidnb_kernels.rules import image_rank, per_axis
from fluidnb_kernels.sliding import Axis, shape_in, slide, split_shape, window_attrs


def pool_attrs(rank: int, layout: str) -> dict[str, Attr]:
    """The attributes of pooling."""
    return {
        "pooling_type": Attr("string", doc="max or avg", enum=("max", "avg")),
        "ksize": Attr("ints", doc="sizes of a window; with adaptive, of Out"),
        **window_attrs(rank, layout),
        "global_pooling": Attr("bool", False, "one window that is the whole image"),
        "ceil_mode": Attr("bool", False, "whether a window that hangs over the end counts"),
        "exclusive": Attr("bool", True, "whether a mean is of the image's own elements, without the padding"),
        "adaptive": Attr("bool", False, "as many windows as ksize says; for avg of sizes that share out the image"),
        "use_cudnn": Attr("bool", False, "chooses a library where one is registered"),
    }


@dataclass(frozen=True, slots=True)
class Bins:
    """The windows along one axis, where they are not all alike."""

    starts: tuple[int, ...]  # first elements
    ends: tuple[int, ...]  # behind the last elements

    def slices(self) -> list[slice]:
        """The windows."""
        return [slice(a, b) for a, b in zip(self.starts, self.ends, strict=True)]


def adaptive_bins(size: int, count: int) -> Bins:
    """Windows that share out an axis.

    Example:
        >>> adaptive_bins(5, 3)
        Bins(starts=(0, 1, 3), ends=(2, 4, 5))
    """
    starts = tuple(i * size // count for i in range(count))
    return Bins(starts, tuple(-(-(i + 1) * size // count) for i in range(count)))


def clipped_bins(axis: Axis) -> Bins:
    """The windows along an axis, without their parts in the padding.

    Example:
        >>> clipped_bins(Axis(2, 2, 4, 1, 1, 2))  # the second one is behind the image
        Bins(starts=(0, 3), ends=(1, 3))
    """
    raw = [i * axis.stride - axis.low for i in range(axis.out)]
    starts = tuple(max(s, 0) for s in raw)
    ends = (min(s + axis.window, axis.size) for s in raw)
    return Bins(starts, tuple(map(max, starts, ends)))


#: dtypes that do not reach as low as float32
_LOWEST = {"float16": -65504.0, "bfloat16": -(2.0**127) * (2 - 2.0**-7)}


def lowest(dtype: Any) -> float:
    """The result of a window without elements."""
    return _LOWEST.get(str(dtype), float(np.finfo(np.float32).min))


def pool_axes(c: Context, sizes: Sequence[int]) -> tuple[Axis, ...]:
    """The windows of a pooling along each axis, unless they share out the image."""
    rank = len(sizes)
    whole = c.attr("global_pooling", False)
    if c.attr("adaptive", False):
        rows = zip(sizes, sizes if whole else c.attr("ksize"), c.attr("strides", [1] * rank), strict=True)
        return tuple(Axis(n, k, s, 1, 0, k) for n, k, s in rows)
    if whole:
        return tuple(Axis(n, n, 1, 1, 0, 1) for n in sizes)
    return slide(
        sizes, c.attr("ksize"), c.attr("strides", [1] * rank), c.attr("paddings", [0] * rank),
        algorithm=c.attr("padding_algorithm", "EXPLICIT"), ceil=c.attr("ceil_mode", False),
    )  # fmt: skip


def shares_out(c: Context) -> bool:
    """Whether windows share out the image; the largest element is always taken of windows of the size ksize.

    Source: Paddle's pool2d kernel, which knows adaptive windows for means alone.
    """
    return bool(c.attr("adaptive", False)) and c.attr("pooling_type") == "avg"


def counts_along(axis: Axis, exclusive: bool, bins: Bins) -> list[int]:
    """The number of elements that each window along an axis counts as, without those behind the padding."""
    if exclusive:
        return [end - start for start, end in zip(bins.starts, bins.ends, strict=True)]
    starts = [i * axis.stride - axis.low for i in range(axis.out)]
    return [min(start + axis.window, axis.size + axis.low) - start for start in starts]


def divisors(c: Context, axes: Sequence[Axis], dtype: Any) -> np.ndarray[Any, Any]:
    """The divisor of each mean, an array of the sizes of the output image; 0 for a window entirely in the padding."""
    total = np.ones((), np.int64)
    for i, axis in enumerate(axes):
        count = counts_along(axis, c.attr("exclusive", True), clipped_bins(axis))
        total = total * np.asarray(count).reshape([-1 if k == i else 1 for k in range(len(axes))])
    return total.astype(dtype)


def pool_infer(c: Context) -> None:
    """Rule of pooling: an image of as many elements as there are windows."""
    name, x, layout = c.definition.type, c["X"], c.attr("data_format", "NCHW")
    rank = image_rank(c, x, name)
    for attr, allowed in (("ksize", (rank,)), ("strides", (rank,)), ("paddings", (rank, 2 * rank))):
        per_axis(c, name, attr, rank, allowed)
    c.require(
        c.attr("global_pooling", False) or min(c.attr("ksize")) > 0, f"Attr(ksize) of {name} must be positive.",
        expected="> 0", received=c.attr("ksize"), hint="global_pooling=True takes the whole image for a window.",
    )  # fmt: skip
    n, channels, sizes = split_shape(x.shape, layout)
    out = [a.out for a in pool_axes(c, sizes)]
    c.require(
        all(n == -1 or n > 0 for n in out), f"The window of {name} is larger than the padded image.",
        expected="at least one window along each axis",
        received=f"an image {list(sizes)} with windows {list(c.attr('ksize'))}",
    )  # fmt: skip
    c.set("Out", shape_in(layout, n, channels, out), x.dtype, c.lod("X"))


def pool_cost(c: Context) -> int:
    """Multiply-adds: the elements of all windows."""
    if c.attr("global_pooling", False) or c.attr("adaptive", False):
        return prod(c["X"].shape)
    return prod(c["Out"].shape) * prod(c.attr("ksize"))
