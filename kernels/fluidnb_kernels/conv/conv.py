"""Convolutions and transposed convolutions with their gradients: one row for each operator.

A convolution is linear in Input and in Filter, so the gradients of its gradient are products that it or its gradient
has already, of a gradient that arrives and one of the operands. A transposed convolution is the gradient of a
convolution's images.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

from fluidnb.op import Array, Attr, Binder, Context, aliases, default_grad, grad_op, kernel, op, second_grad
from fluidnb.op.c_code import Constant, c_code
from fluidnb_kernels import verbs
from fluidnb_kernels.conv import device_products, host_products
from fluidnb_kernels.conv.rules import conv_attrs, conv_axes, conv_infer, layout_of, transposed_axes, transposed_infer
from fluidnb_kernels.emit import FLOATS
from fluidnb_kernels.onednn import library as onednn
from fluidnb_kernels.sliding import CHANNEL_LAST, channel_first, split_shape, steps_in

#: Emits a product of a convolution: ``product(one, other, out)``.
Product = Callable[[Array, Array, Array], None]

#: type -> (whether it is a transposed convolution, axes of the image, default layout, what is special)
ROWS = {
    "conv2d": (False, 2, "NCHW", ""),
    "depthwise_conv2d": (False, 2, "NCHW", "\n\n    As a rule each channel is a group and has separate filters."),
    "conv3d": (False, 3, "NCDHW", ""),
    "conv2d_transpose": (True, 2, "NCHW", ""),
    "depthwise_conv2d_transpose": (True, 2, "NCHW", ""),
    "conv3d_transpose": (True, 3, "NCHW", ""),
}

_DOC = """Output[n, f, …] = sum of Input · Filter[f] over the channels and elements of each window.

    Along each axis there are ``(size + padding before and behind - (dilation · (window - 1) + 1)) / stride + 1``
    windows, rounded down. With ``groups`` > 1 the channels and the filters fall into groups, each filter seeing the
    channels of that group alone.{special}

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("{type}", {{"Input": np.ones({filter}), "Filter": np.ones({filter})}})["Output"].ravel()
        array([{size}.])

    Source: Fluid's conv_op.
    """

_BACK = """Output = the gradient that a convolution with Filter would give to its image, with Input for its result's.

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


def _read(b: Binder, slot: str) -> Array:
    """An input as images [n, c, …]: a view, or on a GPU a copy where the channels are last; None if it is missing."""
    x, layout = b[slot], layout_of(b)
    if x is None or not b.on_cuda or layout not in CHANNEL_LAST:
        return x if x is None else channel_first(x, layout)
    first = b.tmp((len(x), x.shape[-1], *x.shape[1:-1]), x.dtype)
    verbs.copy(b, first, x, of=lambda v: np.moveaxis(v, -1, 1))
    return first


@contextmanager
def _writing(b: Binder, slot: str) -> Iterator[Array]:
    """An output as images [n, c, …]: a view, or on a GPU a workspace that is copied where the channels are last."""
    out, layout = b[slot], layout_of(b)
    if not b.on_cuda or layout not in CHANNEL_LAST:
        yield channel_first(out, layout)
    else:
        first = b.tmp((len(out), out.shape[-1], *out.shape[1:-1]), out.dtype)
        yield first
        verbs.copy(b, out, first, of=lambda v: np.moveaxis(v, 1, -1))


def _products(b: Binder, transposed: bool, host: Any) -> tuple[Product, Product, Product]:
    """Products of images with the filter, of a gradient with the filter, and of images with a gradient."""
    on: Any = device_products if b.on_cuda else host
    axes = (transposed_axes if transposed else conv_axes)(
        b, split_shape(b["Input"].shape, layout_of(b))[2], b["Filter"].shape[2:]
    )
    operands = axes, b.attr("groups", 1) or 1

    def forward(x: Array, w: Array, out: Array) -> None:
        (on.image_gradient if transposed else on.convolve)(b, x, w, out, *operands)

    def image_gradient(g: Array, w: Array, dx: Array) -> None:
        (on.convolve if transposed else on.image_gradient)(b, g, w, dx, *operands)

    def filter_gradient(x: Array, g: Array, dw: Array) -> None:
        on.filter_gradient(b, *((g, x) if transposed else (x, g)), dw, *operands)

    return forward, image_gradient, filter_gradient


def _sum_of(b: Binder, product: Product, pairs: Sequence[tuple[Array | None, Array | None]], out: Array) -> None:
    """Emit the sum of the products of those pairs that are complete."""
    pairs = [pair for pair in pairs if pair[0] is not None and pair[1] is not None]
    if not pairs:
        verbs.fill(b, out)
    for i, pair in enumerate(pairs):
        term = b.like(out) if i else out
        product(*pair, term)
        if i and b.on_cuda:
            device_products.add(b, out, term)
        elif i:
            b(np.add, out, term, out=out)


def _define(type: str, transposed: bool, rank: int, layout: str, special: str) -> None:
    sizes = ", ".join("dhw"[-rank:])
    image, window = (1, 1) + (2,) * rank, (1, 1) + (3,) * rank
    more = {
        "output_size": Attr("ints", [], "sizes of Output where several are possible"),
        "output_padding": Attr("ints", [], "how much larger than the smallest Output is along each axis", ge=0),
    }
    doc = _BACK if transposed else _DOC

    @op(
        type,
        inputs={
            f"Input: float[n, c, {sizes}]": f"images; [n, {sizes}, c] with channels last",
            f"Filter: float[{'c, f' if transposed else 'f, c'} / groups, {sizes}]": "windows",
            **({"Bias?": "for other libraries; not taken here"} if transposed else {}),
        },
        outputs={"Output": "[n, f, …], in the layout of Input"},
        attrs={**conv_attrs(rank, layout), **(more if transposed else {})},
        cost="Input * Filter[1:]" if transposed else "Output * Filter[1:]",
        infer=transposed_infer if transposed else conv_infer,
        grad=default_grad("Input", "Filter", "Output@GRAD", wrt=["Input", "Filter"]),
        cuda=FLOATS,
        doc=doc.format(
            type=type, special=special, image=image, filter=window, size=3**rank, shape=(1, 1) + (4,) * rank,
            sum=6**rank,
        ),
    )  # fmt: skip
    def conv(b: Binder, host: Any = host_products) -> None:
        x = _read(b, "Input")
        with _writing(b, "Output") as out:
            _products(b, transposed, host)[0](x, b["Filter"], out)

    second = second_grad(
        type + "_grad_grad", {"Input": "Input", "Filter": "Filter", "grad_out": "Output@GRAD"},
        {"grad_input@GRAD": "Input@GRAD", "grad_filter@GRAD": "Filter@GRAD"},
        {"grad_out@GRAD": "Output@GRAD", "Input@GRAD": "Input", "Filter@GRAD": "Filter"},
    )  # fmt: skip

    @grad_op(type + "_grad", grad=second, cuda=FLOATS)
    def conv_grad(b: Binder, host: Any = host_products) -> None:
        """dInput = dOutput with Filter by the other kind of convolution; dFilter = Input · dOutput over all windows."""
        _, image_gradient, filter_gradient = _products(b, transposed, host)
        x, g = _read(b, "Input"), _read(b, "Output@GRAD")
        if b.wants("Filter@GRAD"):
            filter_gradient(x, g, b["Filter@GRAD"])
        if b.wants("Input@GRAD"):
            with _writing(b, "Input@GRAD") as dx:
                image_gradient(g, b["Filter"], dx)

    like = aliases({"grad_out@GRAD": "grad_out", "Input@GRAD": "Input", "Filter@GRAD": "Filter"})

    @grad_op(type + "_grad_grad", infer=like, dtype_slot="Input", cuda=FLOATS)
    def conv_grad_grad(b: Binder, host: Any = host_products) -> None:
        """d(dOutput) = ddInput with Filter + Input with ddFilter; dInput is of ddFilter, and dFilter of ddInput."""
        forward, image_gradient, filter_gradient = _products(b, transposed, host)
        x, g, ddx = (_read(b, slot) for slot in ("Input", "grad_out", "grad_input@GRAD"))
        w, ddw = b["Filter"], b["grad_filter@GRAD"]
        if b.wants("grad_out@GRAD"):
            with _writing(b, "grad_out@GRAD") as out:
                _sum_of(b, forward, [(ddx, w), (x, ddw)], out)
        if b.wants("Input@GRAD"):
            with _writing(b, "Input@GRAD") as dx:
                _sum_of(b, image_gradient, [(g, ddw)], dx)
        if b.wants("Filter@GRAD"):
            _sum_of(b, filter_gradient, [(ddx, g)], b["Filter@GRAD"])

    if onednn.path() is not None:
        from fluidnb_kernels.onednn import convolution

        kernels: dict[str, Any] = {type: conv, type + "_grad": conv_grad, type + "_grad_grad": conv_grad_grad}
        for name, function in kernels.items():
            kernel(name, dtypes=["float32"], library="MKLDNN")(partial(function, host=convolution))


for _type, _row in ROWS.items():
    _define(_type, *_row)


def _define_in_c(type: str, transposed: bool) -> None:
    """Register C code of a convolution of images and its gradient."""

    def constants(c: Context) -> dict[str, Constant]:
        layout, w = layout_of(c), c["Filter"].shape
        outside = "Output" if c["Output"] is not None else "Output@GRAD"
        shapes = c["Input"].shape, c[outside].shape
        image, windows = reversed(shapes) if transposed else shapes
        axes = (transposed_axes if transposed else conv_axes)(c, split_shape(shapes[0], layout)[2], w[2:])
        found: dict[str, Constant] = {"N": image[0], "F": w[0], "C": w[1], "GROUPS": c.attr("groups", 1) or 1}
        for axis, name in zip(axes, "HW", strict=True):
            found |= {name: axis.size, "O" + name: axis.out, "K" + name: axis.window}
            found |= {"S" + name: axis.stride, "D" + name: axis.dilation, "P" + name: axis.low}
        for letter, shape in (("X", image), ("Y", windows)):
            found |= {f"{letter}_{name}": n for name, n in zip("NCHW", steps_in(layout, shape), strict=True)}
        if layout not in CHANNEL_LAST and all((a.window, a.stride, a.low, a.out) == (1, 1, 0, a.size) for a in axes):
            size = math.prod(a.size for a in axes)  # windows of one element: the image as one row
            found |= {"H": 1, "OH": 1, "W": size, "OW": size}
        return found

    base = "conv2d_transpose" if transposed else "conv2d"
    # where each channel has separate filters, products would have one row
    c_code(type, function="conv2d_by_products" if type == "conv2d" else base)(constants)
    c_code(type + "_grad", function=base + "_grad")(constants)


for _type, _row in ROWS.items():
    if _row[1] == 2:
        _define_in_c(_type, _row[0])
