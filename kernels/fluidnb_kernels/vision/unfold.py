"""unfold: the windows of images as columns."""

import numpy as np

from fluidnb.op import Array, Attr, Binder, Context, default_grad, grad_op, op, product
from fluidnb.op.c_code import Constant, c_code
from fluidnb_kernels.conv.host_products import to_columns, to_images
from fluidnb_kernels.emit import FLOATS, reading, writing, written, zeros
from fluidnb_kernels.sliding import Axis, padded, slide


def _axes(c: Context, sizes: tuple[int, ...]) -> tuple[Axis, ...]:
    up, left, down, right = c.attr("paddings")
    return slide(sizes, c.attr("kernel_sizes"), c.attr("strides"), [up, down, left, right], c.attr("dilations"))


def _infer(c: Context) -> None:
    x = c["X"]
    c.check_inputs()
    for attr, count in (("kernel_sizes", 2), ("strides", 2), ("dilations", 2), ("paddings", 4)):
        c.require(
            len(c.attr(attr)) == count and (attr == "paddings" or min(c.attr(attr)) > 0),
            f"Attr({attr}) of unfold must have {count} numbers{' > 0' * (attr != 'paddings')}.",
            expected=f"{count} numbers", received=c.attr(attr),
        )  # fmt: skip
    counts = [axis.out for axis in _axes(c, x.shape[2:])]
    c.require(
        all(n != 0 for n in counts), "The window of unfold is larger than the padded image.",
        expected="at least one window along each axis", received=f"an image {list(x.shape[2:])}",
    )  # fmt: skip
    c.set("Y", (x.shape[0], product((x.shape[1], *c.attr("kernel_sizes"))), product(counts)), x.dtype, c.lod("X"))


def _pairs(b: Binder, columns: Array, whole: Array, axes: tuple[Axis, ...]) -> list[tuple[Array, Array]]:
    """For each element of a window: its rows of the columns, and the elements of the padded images."""
    high, wide = axes
    parts = columns.reshape(*whole.shape[:2], high.window, wide.window, high.out, wide.out)
    return [
        (parts[:, :, i, j], whole[:, :, high.tap(i), wide.tap(j)])
        for i in range(high.window) for j in range(wide.window)
    ]  # fmt: skip


@op(
    "unfold",
    inputs={"X: float[n, c, h, w]": "images"},
    outputs={"Y": "[n, c · kernel height · kernel width, windows]"},
    attrs={
        "kernel_sizes": Attr("ints", doc="height and width of a window", gt=0),
        "strides": Attr("ints", doc="stride of the window, down and across", gt=0),
        "paddings": Attr("ints", doc="zeros above, left, below, right", ge=0),
        "dilations": Attr("ints", doc="from element to element in a window, down and across", gt=0),
    },
    infer=_infer,
    grad=default_grad("X", "Y@GRAD"),
    cuda=FLOATS,
)
def unfold(b: Binder) -> None:
    """Y[n, :, k] = window k of X[n], flattened; windows go from left to right and from top to bottom.

    Example:
        >>> from fluidnb.testing import run_op
        >>> one = {"strides": [1, 1], "paddings": [0, 0, 0, 0], "dilations": [1, 1]}
        >>> run_op("unfold", {"X": np.arange(4.0).reshape(1, 1, 2, 2)}, {"kernel_sizes": [1, 2], **one})["Y"]
        array([[[0., 2.],
                [1., 3.]]])

    Source: Fluid's unfold_op (im2col).
    """
    x = b["X"]
    axes = _axes(b, x.shape[2:])
    if b.on_cuda:
        return to_columns(b, x, b["Y"], axes)
    whole, inside = padded(b, x, axes, 0, None)
    if inside is not None:
        b(np.copyto, inside, x)
    columns = writing(b, b["Y"], b["Y"].shape)
    for target, source in _pairs(b, columns, whole, axes):
        b(np.copyto, target, source)
    return written(b, b["Y"], columns)


@grad_op("unfold_grad", cuda=FLOATS)
def unfold_grad(b: Binder) -> None:
    """dX = the sum of the gradients of all windows that see an element."""
    dx, g = b["X@GRAD"], b["Y@GRAD"]
    axes = _axes(b, dx.shape[2:])
    if b.on_cuda:
        return to_images(b, g, dx, axes)
    whole, inside = padded(b, dx, axes, None, None)
    zeros(b, whole)
    for source, target in _pairs(b, reading(b, g, (g.size,)), whole, axes):
        b(np.add, target, source, out=target)
    return None if inside is None else b(np.copyto, dx, inside)


@c_code("unfold", "unfold_grad")
def _unfold_in_c(c: Context) -> dict[str, Constant]:
    n, channels, *sizes = c["X"].shape
    found: dict[str, Constant] = {"PLANES": n * channels}
    for letter, axis in zip("HW", _axes(c, (sizes[0], sizes[1])), strict=True):
        found |= {letter: axis.size, "K" + letter: axis.window, "O" + letter: axis.out}
        found |= {f"{letter}_STRIDE": axis.stride, f"{letter}_DILATION": axis.dilation, f"{letter}_LOW": axis.low}
    return found
