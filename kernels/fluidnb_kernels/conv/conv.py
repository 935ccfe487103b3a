"""Convolutions: one row for each operator."""

from __future__ import annotations

from fluidnb.op import Binder, default_grad, grad_op, kernel, op
from fluidnb_kernels.conv.products import products
from fluidnb_kernels.conv.rules import conv_attrs, conv_axes, conv_infer, layout_of
from fluidnb_kernels.conv.second_gradients import second_maker
from fluidnb_kernels.emit import FLOATS

#: type -> (axes of the image, default layout, what is special)
ROWS = {
    "conv2d": (2, "NCHW", ""),
    "depthwise_conv2d": (2, "NCHW", "\n\n    As a rule each channel is a group and has separate filters."),
    "conv3d": (3, "NCDHW", ""),
}

_DOC = """Output[n, f, …] = sum of Input · Filter[f] over the channels and elements of each window.

    Along each axis there are ``(size + padding before and behind - (dilation · (window - 1) + 1)) / stride + 1``
    windows, rounded down. With ``groups`` > 1 the channels and the filters fall into groups, each filter seeing the
    channels of that group alone.{special}

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("{type}", {{"Input": np.ones({image}), "Filter": np.ones({filter})}})["Output"].ravel()
        array([{size}.])

    Source: Fluid's conv_op.
    """


def _define(type: str, rank: int, layout: str, special: str) -> None:
    sizes = ", ".join("dhw"[-rank:])

    @kernel(type, place="cuda", dtypes=FLOATS)
    @op(
        type,
        inputs={
            f"Input: float[n, c, {sizes}]": f"images; [n, {sizes}, c] with channels last",
            f"Filter: float[f, c / groups, {sizes}]": "windows",
        },
        outputs={"Output": "[n, f, …], in the layout of Input"},
        attrs=conv_attrs(rank, layout),
        cost="Output * Filter[1:]",
        infer=conv_infer,
        grad=default_grad("Input", "Filter", "Output@GRAD"),
        doc=_DOC.format(
            type=type, special=special, image=(1, 1) + (3,) * rank, filter=(1, 1) + (3,) * rank, size=3**rank
        ),
    )
    def conv(b: Binder) -> None:
        on, w, layout = products(b), b["Filter"], layout_of(b)
        x, out = on.read(b, b["Input"], layout), on.write(b, b["Output"], layout)
        on.convolve(b, x, w, out, conv_axes(b, x.shape[2:], w.shape[2:]), b.attr("groups", 1) or 1)
        on.written(b, b["Output"], out)

    @kernel(type + "_grad", place="cuda", dtypes=FLOATS)
    @grad_op(type + "_grad", grad=second_maker(type))
    def conv_grad(b: Binder) -> None:
        """dInput = dOutput spread over the windows by Filter; dFilter = dOutput · Input summed over all windows."""
        on, w, layout, groups = products(b), b["Filter"], layout_of(b), b.attr("groups", 1) or 1
        x, g = on.read(b, b["Input"], layout), on.read(b, b["Output@GRAD"], layout)
        axes = conv_axes(b, x.shape[2:], w.shape[2:])
        if b.wants("Filter@GRAD"):
            on.filter_gradient(b, x, g, b["Filter@GRAD"], axes, groups)
        if b.wants("Input@GRAD"):
            dx = on.write(b, b["Input@GRAD"], layout)
            on.image_gradient(b, g, w, dx, axes, groups)
            on.written(b, b["Input@GRAD"], dx)


for _type, (_rank, _layout, _special) in ROWS.items():
    _define(_type, _rank, _layout, _special)
