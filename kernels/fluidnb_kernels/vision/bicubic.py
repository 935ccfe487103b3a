"""bicubic_interp_v2: images made larger or smaller, by sixteen elements around each place."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from fluidnb.op import Array, Attr, Binder, Context, default_grad, grad_op, op, values_of
from fluidnb.op.c_code import Constant, c_code
from fluidnb_kernels.cuda import Source, by_rows, ctype, typed, wide_dtype
from fluidnb_kernels.emit import FLOATS
from fluidnb_kernels.rules import require_fixed
from fluidnb_kernels.sliding import channel_first, split_shape, steps_in
from fluidnb_kernels.vision.interp import infer, planes_of, scales

CUDA = Source(__file__, "bicubic.cu", typed(("bicubic bicubic_grad", FLOATS)))

#: How far beyond the second neighbour the curve swings, as in Paddle.
_A = -0.75
_VARIABLES = values_of("OutSize", "SizeTensor", "Scale")

#: Numbers of the four neighbours of each element, and their shares.
Neighbours = tuple[Array, Array]


def neighbours(size: int, out: int, corners: bool, scale: float, dtype: Any) -> Neighbours:
    """The four neighbours of each element of a resized axis, [4, out], and their shares."""
    ratio = np.float32(0)
    if out > 1:
        ratio = np.float32(size - 1) / np.float32(out - 1) if corners else np.float32(size) / np.float32(out)
        if scale > 0 and not corners:
            ratio = np.float32(1 / scale)
    steps = np.arange(out, dtype=np.float32)
    at = ratio * steps if corners else ratio * (steps + np.float32(0.5)) - np.float32(0.5)
    low = np.floor(at).astype(np.int64)
    t = (at - low).astype(dtype)
    index = np.clip(low + np.arange(-1, 3)[:, None], 0, size - 1)

    def near(d: Array) -> Array:
        return ((_A + 2) * d - (_A + 3)) * d * d + 1

    def far(d: Array) -> Array:
        return ((_A * d - 5 * _A) * d + 8 * _A) * d - 4 * _A

    return index, np.stack([far(t + 1), near(t), near(1 - t), far(2 - t)]).astype(dtype)


def resample(x: Array, axes: list[Neighbours], out: Array) -> None:
    """Write an image with its axes resized one after the other."""
    for axis, (index, share) in reversed(list(enumerate(axes, 2))):
        shape = [-1 if i == axis else 1 for i in range(x.ndim)]
        x = sum(x.take(i, axis) * s.reshape(shape) for i, s in zip(index, share, strict=True))
    out[...] = x


def resample_grad(g: Array, axes: list[Neighbours], dx: Array) -> None:
    """Write the gradient of `resample`."""
    for axis, (index, share) in enumerate(axes, 2):
        total = np.zeros((*g.shape[:axis], dx.shape[axis], *g.shape[axis + 1 :]), g.dtype)
        shape = [-1 if i == axis else 1 for i in range(g.ndim)]
        for i, s in zip(index, share, strict=True):
            np.add.at(total, (slice(None),) * axis + (i,), g * s.reshape(shape))
        g = total
    dx[...] = g


def _axes(b: Context, sizes: Sequence[int], new: Sequence[int], dtype: Any) -> list[Neighbours]:
    given = [0.0, 0.0] if b.has("OutSize") or b.has("SizeTensor") else scales(b)
    corners = b.attr("align_corners", True)
    return [neighbours(m, n, corners, scale, dtype) for m, n, scale in zip(sizes, new, given, strict=True)]


def _on_cuda(b: Binder, x: Array, out: Array, back: bool = False) -> None:
    """Emit the images of x in the size of out, or what they get from a gradient there."""
    (planes, old, inner), (_, new, _) = planes_of(b, x), planes_of(b, out)
    axes = _axes(b, old, new, wide_dtype(x.dtype))
    near = b.table(np.concatenate([index.ravel() for index, _ in axes]).astype(np.int32))
    share = b.table(np.concatenate([share.ravel() for _, share in axes]))
    numbers = [np.int64(n) for n in (*old, *new, inner)]
    if not back:
        kernel = f"bicubic<{ctype(x.dtype)}>"
        return by_rows(b, CUDA, kernel, planes * new[0], new[1] * inner, x, near, share, out, *numbers)
    pairs = [(index, np.arange(size)) for (index, _), size in zip(axes, old, strict=True)]
    first = [np.searchsorted(index[3], elements, "left") for index, elements in pairs]
    last = [np.searchsorted(index[0], elements, "right") for index, elements in pairs]
    ends = [b.table(np.concatenate(each).astype(np.int32)) for each in (first, last)]
    kernel = f"bicubic_grad<{ctype(x.dtype)}>"
    return by_rows(b, CUDA, kernel, planes * old[0], old[1] * inner, out, near, *ends, share, x, *numbers)


@op(
    "bicubic_interp_v2",
    inputs={
        "X: float[n, c, h, w]": "images; [n, h, w, c] with data_layout NHWC",
        "OutSize?: int[2]": "height and width as a variable; they win over scale and attributes",
        "SizeTensor*?": "height and width as a variable each",
        "Scale?: float[1] | float[2]": "scale as a variable",
    },
    outputs={"Out": "the images in their new size"},
    attrs={
        "data_layout": Attr("string", "NCHW", "where the channels are", enum=("NCHW", "NHWC")),
        "out_d": Attr("int", 0, "ignored (compatibility)"),
        "out_h": Attr("int", 0, "the new height"),
        "out_w": Attr("int", 0, "the new width"),
        "scale": Attr("floats", [], "by how much height and width grow; empty for out_h and out_w"),
        "interp_method": Attr("string", "bicubic", "the operator's method again"),
        "align_corners": Attr("bool", True, "whether the corners stay where they are"),
        "align_mode": Attr("int", 1, "ignored (compatibility)"),
    },
    infer=infer,
    grad=default_grad("X", "OutSize", "SizeTensor", "Scale", "Out@GRAD", wrt=["X"]),
    guard=_VARIABLES,
    dtype_slot="X",
    cuda=FLOATS,
)  # fmt: skip
def bicubic_interp_v2(b: Binder) -> None:
    """Out[n, c] = X[n, c] in another size: each element by a cubic curve through four elements along each axis.

    With ``align_corners`` element k of n is at ``k · (size - 1) / (n - 1)``, without at ``(k + 1/2) · size / n - 1/2``.

    Example:
        >>> from fluidnb.testing import run_op
        >>> x = np.array([1.0, 3.0]).reshape(1, 1, 1, 2)
        >>> run_op("bicubic_interp_v2", {"X": x}, {"out_h": 1, "out_w": 3})["Out"].ravel()
        array([1., 2., 3.])

    Source: Paddle's interpolate_v2_op; Keys, Cubic convolution interpolation for digital image processing, 1981.
    """
    x, out, layout = b["X"], b["Out"], b.attr("data_layout", "NCHW")
    if b.on_cuda:
        return _on_cuda(b, x, out)
    x, out = channel_first(x, layout), channel_first(out, layout)
    return b(resample, x, _axes(b, x.shape[2:], out.shape[2:], x.dtype), out)


@grad_op("bicubic_interp_v2_grad", guard=_VARIABLES, dtype_slot="Out@GRAD", cuda=FLOATS)
def bicubic_interp_v2_grad(b: Binder) -> None:
    """dX = the sum of what each element of X has given, by its share."""
    g, dx, layout = b["Out@GRAD"], b["X@GRAD"], b.attr("data_layout", "NCHW")
    if b.on_cuda:
        return _on_cuda(b, dx, g, back=True)
    g, dx = channel_first(g, layout), channel_first(dx, layout)
    return b(resample_grad, g, _axes(b, dx.shape[2:], g.shape[2:], dx.dtype), dx)


@c_code("bicubic_interp_v2", function="bicubic")
def _bicubic_in_c(c: Context) -> dict[str, Constant]:
    require_fixed(c, "Scale")
    layout, x, out = c.attr("data_layout", "NCHW"), c["X"].shape, c["Out"].shape
    (n, channels, sizes), new = split_shape(x, layout), split_shape(out, layout)[2]
    found: dict[str, Constant] = {"N": n, "C": channels, "OH": new[0], "OW": new[1]}
    for letter, (index, share) in zip("HW", _axes(c, sizes, new, np.float64), strict=True):
        found[letter + "_NEAR"] = index.T.ravel().tolist()
        found[letter + "_SHARE"] = np.round(share.T.ravel() * 2**30).astype(np.int64).tolist()
    for letter, shape in (("X", x), ("Y", out)):
        found |= {f"{letter}_{name}": step for name, step in zip("NCHW", steps_in(layout, shape), strict=True)}
    return found
