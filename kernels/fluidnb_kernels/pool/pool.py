"""Pooling of images and volumes: one row for each operator."""

from __future__ import annotations

from typing import Any

from fluidnb.op import Binder, default_grad, grad_op, op
from fluidnb_kernels.pool.emit import bins_of, emit_pool, emit_pool_grad, in_turn, pool_bins, pool_bins_grad
from fluidnb_kernels.pool.rules import adaptive_bins, pool_attrs, pool_axes, pool_infer, shares_out
from fluidnb_kernels.sliding import channel_first

Array = Any

#: type -> (axes of the image, default layout)
ROWS = {"pool2d": (2, "NCHW"), "pool3d": (3, "NCDHW")}

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
    @op(
        type,
        inputs={"X": "images [n, c, …], or [n, …, c]"},
        outputs={"Out": "the pooled images, in the layout of X"},
        attrs=pool_attrs(rank, layout),
        infer=pool_infer,
        grad=default_grad("X", "Out", "Out@GRAD"),
        doc=_DOC.format(
            type=type, n=2**rank, shape=(1, 1) + (2,) * rank, ksize=[2] * rank, largest=2**rank - 1,
            mean=(2**rank - 1) / 2,
        ),  # fmt: skip
    )
    def pool(b: Binder) -> None:
        layout, largest = b.attr("data_format", "NCHW"), b.attr("pooling_type") == "max"
        x, out = channel_first(b["X"], layout), channel_first(b["Out"], layout)
        if shares_out(b):
            return b(pool_bins, x, out, _shared(b, x), largest)
        axes = pool_axes(b, x.shape[2:])
        if _whole(b, largest) and in_turn(axes):
            return b(pool_bins, x, out, bins_of(axes), largest)
        return emit_pool(b, x, out, axes, largest)

    @grad_op(type + "_grad")
    def pool_grad(b: Binder) -> None:
        """dX = dOut where an element was the first largest one of its window, or its share of it."""
        layout, largest = b.attr("data_format", "NCHW"), b.attr("pooling_type") == "max"
        x, out, g, dx = (channel_first(b[slot], layout) for slot in ("X", "Out", "Out@GRAD", "X@GRAD"))
        if shares_out(b):
            return b(pool_bins_grad, x, out, g, dx, _shared(b, x), largest)
        axes = pool_axes(b, x.shape[2:])
        if _whole(b, largest) and in_turn(axes):
            return b(pool_bins_grad, x, out, g, dx, bins_of(axes), largest)
        return emit_pool_grad(b, x, out, g, dx, axes, largest)


def _shared(b: Binder, x: Array) -> list[Any]:
    return [adaptive_bins(size, count) for size, count in zip(x.shape[2:], b.attr("ksize"), strict=True)]


def _whole(b: Binder, largest: bool) -> bool:
    """Whether a mean is of the elements of the window within the image."""
    return largest or b.attr("exclusive", True) or b.attr("global_pooling", False)


for _type, (_rank, _layout) in ROWS.items():
    _define(_type, _rank, _layout)
