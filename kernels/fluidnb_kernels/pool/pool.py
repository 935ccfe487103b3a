"""pool2d, pool3d and spp: the largest elements or the means of windows."""

import math
from collections.abc import Iterator, Sequence

import numpy as np

from fluidnb.op import Array, Attr, Binder, Context, aliases, default_grad, grad_op, kernel, op, second_grad
from fluidnb.op.c_code import Constant, c_code
from fluidnb_kernels.cuda import of_dtype, wide_dtype, writing_as, written_as
from fluidnb_kernels.emit import FLOATS
from fluidnb_kernels.onednn import library as onednn
from fluidnb_kernels.pool import emit
from fluidnb_kernels.pool.emit import emit_pool, emit_pool_grad
from fluidnb_kernels.pool.launch import ADD, ALWAYS, EXCLUSIVE, largest, largest_grad, mean, mean_grad, shared, taken
from fluidnb_kernels.pool.rules import (
    adaptive_bins,
    clipped_bins,
    counts_along,
    lowest,
    pool_attrs,
    pool_axes,
    pool_cost,
    pool_infer,
    shares_out,
)
from fluidnb_kernels.sliding import CHANNEL_LAST, Axis, channel_first, split_shape, steps_in
from fluidnb_kernels.tensor.strided_copy import layout_of, move

#: type -> (axes of the image, default layout)
ROWS = {"pool2d": (2, "NCHW"), "pool3d": (3, "NCDHW")}

#: Inputs, incoming gradients and outputs of the gradient's gradient.
AGAIN = {"X": "X", "Out@GRAD": "Out@GRAD"}, {"grad_x@GRAD": "X@GRAD"}, {"grad_out@GRAD": "Out@GRAD"}

_DOC = """Out[n, c, …] = the largest element, or the mean, of each window of X[n, c].

    Along each axis there are ``(size + padding before and behind - window) / stride + 1`` windows, rounded down, or up
    with ``ceil_mode``. With ``adaptive`` there are ``ksize`` of them; for means, window i then goes from
    ``floor(i · size / ksize)`` to before ``ceil((i + 1) · size / ksize)``. A mean is of the elements of the image
    alone, unless ``exclusive`` is False.

    Example:
        >>> from fluidnb.testing import run_op
        >>> x, attrs = np.arange({n}.0).reshape({shape}), {{"ksize": {ksize}, "strides": {ksize}}}
        >>> run_op("{type}", {{"X": x}}, {{"pooling_type": "max", **attrs}})["Out"].ravel()
        array([{largest}.])
        >>> run_op("{type}", {{"X": x}}, {{"pooling_type": "avg", **attrs}})["Out"].ravel()
        array([{mean}])

    Source: Fluid's pool_op.
    """


def _define(type: str, rank: int, layout: str) -> None:
    sizes = ", ".join("dhw"[-rank:])

    @op(
        type,
        inputs={f"X: float[n, c, {sizes}]": f"images; [n, {sizes}, c] with channels last"},
        outputs={"Out": "the pooled images, in the layout of X"},
        attrs=pool_attrs(rank, layout),
        cost=pool_cost,
        infer=pool_infer,
        grad=default_grad("X", "Out", "Out@GRAD"),
        doc=_DOC.format(
            type=type,
            n=2**rank,
            shape=(1, 1) + (2,) * rank,
            ksize=[2] * rank,
            largest=2**rank - 1,
            mean=(2**rank - 1) / 2,
        ),  # fmt: skip
    )
    def pool(b: Binder) -> None:
        layout, largest = b.attr("data_format", "NCHW"), b.attr("pooling_type") == "max"
        x, out = channel_first(b["X"], layout), channel_first(b["Out"], layout)
        axes, bins = emit.axes_and_bins(b, x, largest)
        if not largest and emit.takes_all(x, bins):
            return emit.emit_mean(b, x, out)
        return b(emit.pool_bins, x, out, bins, largest) if bins else emit.emit_pool(b, x, out, axes, largest)

    @grad_op(type + "_grad", grad=second_grad(type + "_double_grad", *AGAIN))
    def pool_grad(b: Binder) -> None:
        """dX = dOut where an element was the first largest one of its window, or its share of it."""
        layout, largest = b.attr("data_format", "NCHW"), b.attr("pooling_type") == "max"
        x, out, g, dx = (channel_first(b[slot], layout) for slot in ("X", "Out", "Out@GRAD", "X@GRAD"))
        axes, bins = emit.axes_and_bins(b, x, largest)
        if not largest and emit.takes_all(x, bins):
            return emit.emit_mean_grad(b, g, dx)
        if bins:
            return b(emit.pool_bins_grad, x, out, g, dx, bins, largest)
        return emit.emit_pool_grad(b, x, out, g, dx, axes, largest)

    @grad_op(type + "_double_grad", infer=aliases({"grad_out@GRAD": "Out@GRAD"}), dtype_slot="X")
    def pool_double_grad(b: Binder) -> None:
        """d(dOut) = the element of ddX where X has the first largest one of its window, or the mean of the window."""
        layout, largest = b.attr("data_format", "NCHW"), b.attr("pooling_type") == "max"
        x, ddx, out = (channel_first(b[slot], layout) for slot in ("X", "grad_x@GRAD", "grad_out@GRAD"))
        axes, bins = emit.axes_and_bins(b, x, largest)
        if largest:
            return b(emit.pool_bins_taken, x, ddx, out, bins) if bins else emit.emit_taken(b, x, ddx, out, axes)
        return b(emit.pool_bins, ddx, out, bins, False) if bins else emit.emit_pool(b, ddx, out, axes, False)

    if onednn.path() is not None:
        from fluidnb_kernels.onednn import pooling

        @kernel(type, dtypes=["float32"], library="MKLDNN")
        def pool_by_onednn(b: Binder) -> None:
            layout, largest = b.attr("data_format", "NCHW"), b.attr("pooling_type") == "max"
            x, out = channel_first(b["X"], layout), channel_first(b["Out"], layout)
            axes = pool_axes(b, x.shape[2:])
            inside = all(a.low == 0 and a.reach == a.size for a in axes)  # windows that are part of the image
            simple = not shares_out(b) and (largest or b.attr("exclusive", True) or inside)
            if not simple or not pooling.pool(b, x, out, axes, largest):
                pool(b)

    _define_on_cuda(type)


# ---- on a GPU


def _windows(b: Binder, x: Array) -> tuple[Sequence[Axis], int]:
    """The windows, and the number of innermost channels of each element."""
    layout = b.attr("data_format", "NCHW")
    _, channels, sizes = split_shape(x.shape, layout)
    inner = channels if layout in CHANNEL_LAST else 1
    axes = pool_axes(b, sizes)
    return ([shared(axis.size, axis.out) for axis in axes] if shares_out(b) else axes), inner


def _always(axes: Sequence[Axis]) -> int:
    """The flag of windows that the host pools one by one: they begin with the lowest number."""
    return ALWAYS if emit.in_turn(axes) else 0


def _exclusive(b: Binder) -> int:
    return EXCLUSIVE if b.attr("exclusive", True) or shares_out(b) else 0


def _define_on_cuda(type: str) -> None:
    @kernel(type, place="cuda", dtypes=FLOATS)
    def pool(b: Binder) -> None:
        axes, inner = _windows(b, b["X"])
        if b.attr("pooling_type") == "max":
            largest(b, b["X"], b["Out"], None, axes, inner, _always(axes))
        else:
            mean(b, b["X"], b["Out"], axes, inner, _exclusive(b))

    @kernel(type + "_grad", place="cuda", dtypes=FLOATS)
    def pool_grad(b: Binder) -> None:
        x, g, dx = b["X"], b["Out@GRAD"], b["X@GRAD"]
        axes, inner = _windows(b, x)
        if b.attr("pooling_type") != "max":
            return mean_grad(b, g, dx, axes, inner, _exclusive(b))
        where = b.tmp(g.shape, np.int32)
        largest(b, x, None, where, axes, inner, _always(axes))
        return largest_grad(b, g, where, dx, axes, inner)

    @kernel(type + "_double_grad", place="cuda", dtypes=FLOATS)
    def pool_double_grad(b: Binder) -> None:
        x, ddx, out = b["X"], b["grad_x@GRAD"], b["grad_out@GRAD"]
        axes, inner = _windows(b, x)
        if b.attr("pooling_type") != "max":
            return mean(b, ddx, out, axes, inner, _exclusive(b))
        where = b.tmp(out.shape, np.int32)
        largest(b, x, None, where, axes, inner, _always(axes))
        return taken(b, ddx, where, out, axes, inner)


for _type, (_rank, _layout) in ROWS.items():
    _define(_type, _rank, _layout)


@c_code(*ROWS, function="pool")
@c_code(*(f"{type}_grad" for type in ROWS), function="pool_grad")
def _pool_in_c(c: Context) -> dict[str, Constant]:
    layout, x, out = c.attr("data_format", "NCHW"), c["X"].shape, c["Out"].shape
    n, channels, sizes = split_shape(x, layout)
    found: dict[str, Constant] = {"N": n, "C": channels, "COUNT": math.prod(x), "LOWEST": lowest(c["X"].dtype)}
    found["LARGEST"] = c.attr("pooling_type") == "max"
    axes = pool_axes(c, sizes)
    for axis, name in zip((*[Axis(1, 1, 1, 1, 0, 1)] * (3 - len(axes)), *axes), "DHW", strict=True):
        bins = adaptive_bins(axis.size, axis.out) if shares_out(c) else clipped_bins(axis)
        counts = counts_along(axis, shares_out(c) or c.attr("exclusive", True), bins)
        found |= {"O" + name: axis.out, name + "_FROM": bins.starts, name + "_TO": bins.ends, name + "_COUNT": counts}
    for letter, shape in (("X", x), ("Y", out)):
        names = "NCHW" if len(axes) == 2 else "NCDHW"
        found |= {f"{letter}_D": 0} | {f"{letter}_{n}": s for n, s in zip(names, steps_in(layout, shape), strict=True)}
    return found


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
            part, to = b.tmp(shape, x.dtype), layout_of(out)[:, columns]
            if b.attr("pooling_type") == "max":
                largest(b, x, part, None, axes)
            else:
                mean(b, x, part, axes)
            move(b, out, part, to=to, of=layout_of(part, to.shape))
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
            share, of, again = b.tmp(shape, wide), layout_of(g)[:, columns], ADD * bool(k)
            move(b, share, g, to=layout_of(share, of.shape), of=of)
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
