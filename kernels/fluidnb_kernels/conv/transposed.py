"""Transposed convolutions: one row for each operator."""

from __future__ import annotations

from fluidnb.op import Attr, Binder, default_grad, grad_op, kernel, op
from fluidnb_kernels.conv.products import products
from fluidnb_kernels.conv.rules import conv_attrs, layout_of, transposed_axes, transposed_infer
from fluidnb_kernels.conv.second_gradients import second_maker
from fluidnb_kernels.emit import FLOATS

#: type -> (axes of the image, default layout)
ROWS = {
    "conv2d_transpose": (2, "NCHW"),
    "depthwise_conv2d_transpose": (2, "NCHW"),
    "conv3d_transpose": (3, "NCHW"),
}

_DOC = """Output = the gradient that a convolution with Filter would give to its image, with Input for its result's.

    Each element of Input adds the filter, times itself, to a window of Output. Along each axis Output has
    ``(size - 1) · stride - padding before and behind + dilation · (window - 1) + 1`` elements, or ``output_size``
    where that is given (up to stride - 1 more).

    Example:
        >>> from fluidnb.testing import run_op
        >>> out = run_op("{type}", {{"Input": np.ones({image}), "Filter": np.ones({filter})}})["Output"]
        >>> out.shape, float(out.sum())
        ({shape}, {sum}.0)

    Source: Fluid's conv_transpose_op.
    """


def _define(type: str, rank: int, layout: str) -> None:
    sizes = ", ".join("dhw"[-rank:])
    image, window = (1, 1) + (2,) * rank, (1, 1) + (3,) * rank

    @kernel(type, place="cuda", dtypes=FLOATS)
    @op(
        type,
        inputs={
            f"Input: float[n, c, {sizes}]": f"images; [n, {sizes}, c] with channels last",
            f"Filter: float[c, f / groups, {sizes}]": "windows",
            "Bias?": "for other libraries; not taken here",
        },
        outputs={"Output": "[n, f, …], in the layout of Input"},
        attrs={
            **conv_attrs(rank, layout),
            "output_size": Attr("ints", [], "sizes of Output where several are possible"),
            "output_padding": Attr("ints", [], "how much larger than the smallest Output is along each axis", ge=0),
        },
        cost="Input * Filter[1:]",
        infer=transposed_infer,
        grad=default_grad("Input", "Filter", "Output@GRAD", wrt=["Input", "Filter"]),
        doc=_DOC.format(type=type, image=image, filter=window, shape=(1, 1) + (4,) * rank, sum=6**rank),
    )
    def transposed(b: Binder) -> None:
        on, w, layout = products(b), b["Filter"], layout_of(b)
        x, out = on.read(b, b["Input"], layout), on.write(b, b["Output"], layout)
        on.image_gradient(b, x, w, out, transposed_axes(b, x.shape[2:], w.shape[2:]), b.attr("groups", 1) or 1)
        on.written(b, b["Output"], out)

    @kernel(type + "_grad", place="cuda", dtypes=FLOATS)
    @grad_op(type + "_grad", grad=second_maker(type))
    def transposed_grad(b: Binder) -> None:
        """dInput = the convolution of dOutput with Filter; dFilter = Input · dOutput summed over all windows."""
        on, w, layout, groups = products(b), b["Filter"], layout_of(b), b.attr("groups", 1) or 1
        x, g = on.read(b, b["Input"], layout), on.read(b, b["Output@GRAD"], layout)
        axes = transposed_axes(b, x.shape[2:], w.shape[2:])
        if b.wants("Filter@GRAD"):
            on.filter_gradient(b, g, x, b["Filter@GRAD"], axes, groups)
        if b.wants("Input@GRAD"):
            dx = on.write(b, b["Input@GRAD"], layout)
            on.convolve(b, g, w, dx, axes, groups)
            on.written(b, b["Input@GRAD"], dx)


for _type, (_rank, _layout) in ROWS.items():
    _define(_type, _rank, _layout)
