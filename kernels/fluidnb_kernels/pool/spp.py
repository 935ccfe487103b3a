"""spp: an image pooled into 1, 4, 16, … parts, side by side."""

from collections.abc import Iterator

import numpy as np

from fluidnb.op import Array, Attr, Binder, Context, default_grad, grad_op, op
from fluidnb_kernels.cuda import of_dtype, wide_dtype, writing_as, written_as
from fluidnb_kernels.emit import FLOATS
from fluidnb_kernels.pool.emit import emit_pool, emit_pool_grad
from fluidnb_kernels.pool.launch import ADD, EXCLUSIVE, largest, largest_grad, mean, mean_grad
from fluidnb_kernels.sliding import Axis
from fluidnb_kernels.tensor.strided_copy import lay, move


def _infer(c: Context) -> None:
    x = c["X"]
    c.check_inputs()
    height, smallest = c.attr("pyramid_height"), min(x.shape[2:])
    c.require(
        0 < height <= 16 and (smallest < 0 or 2 ** (height - 1) <= smallest),
        "Attr(pyramid_height) of spp needs more parts than an image has pixels.",
        expected=f"2 ^ (pyramid_height - 1) <= {smallest}", received=height,
    )  # fmt: skip
    parts = sum(4**level for level in range(height))
    c.set("Out", (x.shape[0], x.shape[1] * parts if x.shape[1] >= 0 else -1), x.dtype, c.lod("X"))


def _levels(b: Binder, x: Array) -> Iterator[tuple[slice, tuple[int, ...], tuple[Axis, ...]]]:
    """For each level its columns of Out, the shape of its pooled images, and its windows."""
    first = 0
    for level in range(b.attr("pyramid_height")):
        bins = 2**level
        axes = []
        for size in x.shape[2:]:
            window = -(-size // bins)
            axes.append(Axis(size, window, window, 1, (window * bins - size + 1) // 2, bins))
        shape = (*x.shape[:2], bins, bins)
        columns = shape[1] * bins * bins
        yield slice(first, first + columns), shape, tuple(axes)
        first += columns


@op(
    "spp",
    inputs={"X: float[n, c, h, w]": "images"},
    outputs={"Out": "[n, c · (1 + 4 + … + 4^(pyramid_height - 1))]"},
    attrs={
        "pyramid_height": Attr("int", doc="how many levels there are", gt=0),
        "pooling_type": Attr("string", doc="max or avg", enum=("max", "avg")),
    },
    cost="X * pyramid_height",
    infer=_infer,
    grad=default_grad("X", "Out", "Out@GRAD"),
    cuda=FLOATS,
)
def spp(b: Binder) -> None:
    """Out = X pooled into 2^k times 2^k parts for level k = 0, 1, …, each level flattened, side by side.

    A window of level k is ``ceil(size / 2^k)`` wide, and the padding is what it takes for 2^k of them, half of it
    before the image.

    Example:
        >>> from fluidnb.testing import run_op
        >>> x = np.arange(4.0).reshape(1, 1, 2, 2)
        >>> run_op("spp", {"X": x}, {"pyramid_height": 2, "pooling_type": "max"})["Out"]
        array([[3., 0., 1., 2., 3.]])

    Source: He et al., "Spatial Pyramid Pooling in Deep Convolutional Networks" (2014); Fluid's spp_op.
    """
    x, out = b["X"], b["Out"]
    if b.on_cuda:
        for columns, shape, axes in _levels(b, x):
            part, to = b.tmp(shape, x.dtype), lay(out)[:, columns]
            if b.attr("pooling_type") == "max":
                largest(b, x, part, None, axes)
            else:
                mean(b, x, part, axes)
            move(b, out, part, to=to, of=lay(part, to.shape))
        return
    for columns, shape, axes in _levels(b, x):
        part = b.tmp(shape, x.dtype)
        emit_pool(b, x, part, axes, b.attr("pooling_type") == "max")
        b(np.copyto, out[:, columns], part.reshape(len(x), -1))


@grad_op("spp_grad", cuda=FLOATS)
def spp_grad(b: Binder) -> None:
    """dX = the sum over the levels of the gradients of their poolings."""
    if b.on_cuda:
        x, dx = b["X"], b["X@GRAD"]
        wide = wide_dtype(x.dtype)  # the levels are added up in it
        g, total = of_dtype(b, b["Out@GRAD"], wide), writing_as(b, dx, wide)
        for k, (columns, shape, axes) in enumerate(_levels(b, x)):
            share, of, again = b.tmp(shape, wide), lay(g)[:, columns], ADD * bool(k)
            move(b, share, g, to=lay(share, of.shape), of=of)
            if b.attr("pooling_type") == "max":
                where = b.tmp(shape, np.int32)
                largest(b, x, None, where, axes)
                largest_grad(b, share, where, total, axes, flags=again)
            else:
                mean_grad(b, share, total, axes, flags=EXCLUSIVE | again)
        return written_as(b, dx, total)
    x, out, g, dx = b["X"], b["Out"], b["Out@GRAD"], b["X@GRAD"]
    for k, (columns, shape, axes) in enumerate(_levels(b, x)):
        pooled, share = (_level(b, v[:, columns], shape) for v in (out, g))
        target = b.like(dx) if k else dx
        emit_pool_grad(b, x, pooled, share, target, axes, b.attr("pooling_type") == "max")
        if k:
            b(np.add, dx, target, out=dx)


def _level(b: Binder, columns: Array, shape: tuple[int, ...]) -> Array:
    """The images of a level."""
    part = b.tmp(columns.shape, columns.dtype)
    b(np.copyto, part, columns)
    return part.reshape(shape)
