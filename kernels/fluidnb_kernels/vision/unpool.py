"""unpool: the largest elements of windows back where they came from."""

import numpy as np

from fluidnb.errors import EnforceNotMet
from fluidnb.op import Array, Attr, Binder, Context, default_grad, grad_op, op
from fluidnb_kernels.cuda import ctype, each
from fluidnb_kernels.tensor.row_indexing import along, numbers, word
from fluidnb_kernels.tensor.strided_copy import fill
from fluidnb_kernels.vision.launch import CUDA


def _infer(c: Context) -> None:
    x = c["X"]
    c.check_inputs()
    given = c.attr("output_size", [0, 0])
    for name in ("ksize", "strides", "paddings"):
        c.require(
            len(c.attr(name)) == 2, f"Attr({name}) of unpool must have 2 numbers.", expected="2 numbers",
            received=c.attr(name),
        )  # fmt: skip
    steps = zip(x.shape[2:], c.attr("ksize"), c.attr("strides"), c.attr("paddings"), strict=True)
    sizes = [(n - 1) * s - 2 * p + k if n >= 0 else -1 for n, k, s, p in steps]
    if len(given) == 2 and min(given) > 0:
        sizes = given
    c.set("Out", (*x.shape[:2], *sizes), x.dtype, c.lod("X"))


def put_back(x: Array, index: Array, out: Array) -> None:
    """Write zeros, and each element at its index in its plane."""
    planes = np.zeros((*out.shape[:2], out.shape[2] * out.shape[3]), out.dtype)
    found = index.reshape(*x.shape[:2], -1)
    wrong = found[(found < 0) | (found >= planes.shape[2])]
    if wrong.size:
        raise EnforceNotMet(
            "Input(Indices) of unpool points outside the image that is made.",
            expected=f"0 to {planes.shape[2] - 1}", received=int(wrong[0]),
            hint="ksize, strides and paddings must be those of the pooling that gave the indices.",
        )  # fmt: skip
    np.put_along_axis(planes, found.astype(np.int64), x.reshape(found.shape), 2)
    out[...] = planes.reshape(out.shape)


def take_back(g: Array, index: Array, dx: Array) -> None:
    """Write for each index the element of its plane."""
    found = index.reshape(*index.shape[:2], -1).astype(np.int64)
    dx[...] = np.take_along_axis(g.reshape(*g.shape[:2], -1), found, 2).reshape(dx.shape)


@op(
    "unpool",
    inputs={"X: float[n, c, h, w]": "pooled images", "Indices: int[n, c, h, w]": "where in its plane each belongs"},
    outputs={"Out": "[n, c, H, W]"},
    attrs={
        "ksize": Attr("ints", doc="height and width of a window of the pooling", gt=0),
        "strides": Attr("ints", [1, 1], "stride of the window", gt=0),
        "paddings": Attr("ints", [0, 0], "padding of the pooling", ge=0),
        "unpooling_type": Attr("string", doc="max", enum=("max",)),
        "output_size": Attr("ints", [0, 0], "H and W; 0 for (h - 1) · stride - 2 · padding + ksize"),
        "data_format": Attr("string", "NCHW", "where the channels are", enum=("NCHW",)),
    },
    infer=_infer,
    grad=default_grad("X", "Indices", "Out", "Out@GRAD", wrt=["X"]),
    cuda=True,
)
def unpool(b: Binder) -> None:
    """Out[n, c] = 0, but X[n, c, h, w] at position Indices[n, c, h, w] of the plane, counted row by row.

    Example:
        >>> from fluidnb.testing import run_op
        >>> x, where = np.full((1, 1, 1, 1), 5.0), np.full((1, 1, 1, 1), 2)
        >>> run_op("unpool", {"X": x, "Indices": where}, {"ksize": [2, 2], "unpooling_type": "max"})["Out"][0, 0]
        array([[0., 0.],
               [5., 0.]])

    Source: Zeiler et al., "Adaptive Deconvolutional Networks" (2011); Fluid's unpool_op.
    """
    if not b.on_cuda:
        return b(put_back, b["X"], b["Indices"], b["Out"])
    x, out, index = b["X"], b["Out"], numbers(b, b["Indices"])
    last = b.tmp(out.shape, np.int64)
    fill(b, last, -1)
    sizes = np.int64(x.shape[2] * x.shape[3]), np.int64(out.shape[2] * out.shape[3])
    each(b, CUDA, f"claimed_place<{ctype(index.dtype)}>", index.size, index, last, *sizes)
    return each(b, CUDA, f"put_back<{word(x)}>", out.size, x, last, out)


@grad_op("unpool_grad", cuda=True)
def unpool_grad(b: Binder) -> None:
    """dX[n, c, h, w] = dOut[n, c] at position Indices[n, c, h, w]."""
    if not b.on_cuda:
        return b(take_back, b["Out@GRAD"], b["Indices"], b["X@GRAD"])
    g, index, dx = b["Out@GRAD"], b["Indices"], b["X@GRAD"]
    planes = g.shape[0] * g.shape[1]
    g, index, dx = (v.reshape(planes, v.shape[2] * v.shape[3]) for v in (g, index, dx))
    return along(b, "taken", g, index, dx, g, 1)
