"""Gradients of the gradients of convolutions: one row for each operator.

A convolution is linear in Input and in Filter. So each result is a product that the convolution or its gradient has
already, of a gradient that arrives and one of the operands.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fluidnb.op import Binder, aliases, grad_op, kernel, second_grad
from fluidnb.op.grad import GradMaker
from fluidnb_kernels import verbs
from fluidnb_kernels.conv.products import Product, products
from fluidnb_kernels.conv.rules import conv_axes, layout_of, transposed_axes
from fluidnb_kernels.emit import FLOATS

Array = Any

#: type -> whether it is a transposed convolution
ROWS = {
    "conv2d": False, "depthwise_conv2d": False, "conv3d": False,
    "conv2d_transpose": True, "depthwise_conv2d_transpose": True, "conv3d_transpose": True,
}  # fmt: skip


def second_maker(type: str) -> GradMaker:
    """Maker of the gradient of a convolution's gradient, with the slots that Paddle's has."""
    reads = {"Input": "Input", "Filter": "Filter", "grad_out": "Output@GRAD"}
    arriving = {"grad_input@GRAD": "Input@GRAD", "grad_filter@GRAD": "Filter@GRAD"}
    gives = {"grad_out@GRAD": "Output@GRAD", "Input@GRAD": "Input", "Filter@GRAD": "Filter"}
    return second_grad(type + "_grad_grad", reads, arriving, gives)


def _second_gradient(b: Binder, transposed: bool) -> None:
    """Emit the gradients of a convolution's gradient.

    Args:
        transposed: whether it is a transposed convolution.
    """
    on = products(b)
    layout, groups = layout_of(b), b.attr("groups", 1) or 1
    x, g = on.read(b, b["Input"], layout), on.read(b, b["grad_out"], layout)
    w, ddw = b["Filter"], b["grad_filter@GRAD"]
    ddx = None if b["grad_input@GRAD"] is None else on.read(b, b["grad_input@GRAD"], layout)
    axes = (transposed_axes if transposed else conv_axes)(b, x.shape[2:], w.shape[2:])
    forward, backward = on.convolve, on.image_gradient
    if transposed:
        forward, backward = backward, forward

    def total(product: Product, pairs: Sequence[tuple[Array | None, Array | None]], out: Array) -> None:
        given = [pair for pair in pairs if pair[0] is not None and pair[1] is not None]
        if not given:
            verbs.fill(b, out)
        for i, (one, other) in enumerate(given):
            target = b.like(out) if i else out
            product(b, one, other, target, axes, groups)
            if i:
                on.add(b, out, target)

    if b.wants("grad_out@GRAD"):
        out = on.write(b, b["grad_out@GRAD"], layout)
        total(forward, [(ddx, w), (x, ddw)], out)
        on.written(b, b["grad_out@GRAD"], out)
    if b.wants("Input@GRAD"):
        dx = on.write(b, b["Input@GRAD"], layout)
        total(backward, [(g, ddw)], dx)
        on.written(b, b["Input@GRAD"], dx)
    if b.wants("Filter@GRAD"):
        total(on.filter_gradient, [(g, ddx) if transposed else (ddx, g)], b["Filter@GRAD"])


def _define(type: str, transposed: bool) -> None:
    pairs = {"grad_out@GRAD": "grad_out", "Input@GRAD": "Input", "Filter@GRAD": "Filter"}

    @kernel(type + "_grad_grad", place="cuda", dtypes=FLOATS)
    @grad_op(type + "_grad_grad", infer=aliases(pairs), dtype_slot="Input")
    def conv_grad_grad(b: Binder) -> None:
        """d(dOutput) = ddInput with Filter + Input with ddFilter; dInput is of ddFilter, and dFilter of ddInput."""
        _second_gradient(b, transposed)


for _type, _transposed in ROWS.items():
    _define(_type, _transposed)
