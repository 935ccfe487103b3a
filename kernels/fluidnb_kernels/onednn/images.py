"""Images for oneDNN, which computes them fastest with the channels innermost in memory."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from fluidnb.op import Array, Binder
from fluidnb_kernels.onednn.library import Call, integers
from fluidnb_kernels.sliding import Axis, image


def channels_last(shape: Sequence[int]) -> list[int]:
    """The strides, in bytes, of float32 images [n, c, …] whose channels are innermost in memory."""
    n, c, *inner = shape
    steps = np.empty((n, *inner, c), np.float32).strides
    return [steps[0], steps[-1], *steps[1:-1]]


def windows_of(axes: Sequence[Axis]) -> list[Any]:
    """Strides, dilations less 1, and the padding before and behind the image, for oneDNN."""
    ends = [(a.out - 1) * a.stride + (a.window - 1) * a.dilation + 1 - a.size - a.low for a in axes]
    rows = [a.stride for a in axes], [a.dilation - 1 for a in axes], [a.low for a in axes], [max(n, 0) for n in ends]
    return [integers(row) for row in rows]


def dense(b: Binder, x: Array, copied: bool) -> Array:
    """Images with their channels innermost: themselves, or a workspace (into which they are copied)."""
    if np.moveaxis(x, 1, -1).flags.c_contiguous:
        return x
    whole = image(b, x.shape, x.dtype, 1)
    if copied:
        b(np.copyto, whole, x)
    return whole


def run(b: Binder, call: Call, *arrays: Array) -> None:
    """Emit a call of a primitive, with its workspace."""
    b(call, *arrays, b.tmp((max(call.primitive.workspace, 1),), np.uint8))
