"""max_pool2d_with_index, max_pool3d_with_index: the largest element of each window, and where it was."""

from collections.abc import Sequence
from itertools import product
from math import prod

import numpy as np

from fluidnb.errors import EnforceNotMet
from fluidnb.op import Array, Attr, Binder, Context, default_grad, grad_op, op, second_grad
from fluidnb.op.c_code import Constant, c_code
from fluidnb_kernels.cuda import of_dtype
from fluidnb_kernels.emit import FLOATS, store
from fluidnb_kernels.pool import launch
from fluidnb_kernels.pool.rules import adaptive_bins, clipped_bins, lowest, pool_axes, pool_cost
from fluidnb_kernels.rules import image_rank
from fluidnb_kernels.sliding import Axis


def _infer(c: Context) -> None:
    name, x = c.definition.type, c["X"]
    rank = image_rank(c, x, name)
    for attr in ("ksize", "strides", "paddings"):
        given = c.attr(attr)
        c.require(
            len(given) == rank and min(given) >= (attr != "paddings"),
            f"Attr({attr}) of {name} must have one number for each axis of the image.",
            expected=f"{rank} {'numbers' if attr == 'paddings' else 'positive numbers'}", received=given,
        )  # fmt: skip
    whole, shared = c.attr("global_pooling"), c.attr("adaptive")
    c.require(
        whole or shared or all(p < k for p, k in zip(c.attr("paddings"), c.attr("ksize"), strict=True)),
        f"Attr(paddings) of {name} must be smaller than the window, or there are windows without an element.",
        expected=f"less than {c.attr('ksize')}", received=c.attr("paddings"),
    )  # fmt: skip
    out = [axis.out for axis in pool_axes(c, x.shape[2:])]
    c.require(
        all(n == -1 or n > 0 for n in out), f"The window of {name} is larger than the padded image.",
        expected="at least one window along each axis", received=list(x.shape[2:]),
    )  # fmt: skip
    shape = (*x.shape[:2], *out)
    c.set("Out", shape, x.dtype, c.lod("X"))
    c.set("Mask", shape, np.int32)


def _shares_out(b: Binder) -> bool:
    return bool(b.attr("adaptive", False))


def _windows(b: Binder, x: Array) -> Sequence[Axis]:
    """The windows as launches take them."""
    axes = pool_axes(b, x.shape[2:])
    return [launch.shared(a.size, a.out) for a in axes] if _shares_out(b) else axes


def _tables(b: Binder, sizes: Sequence[int]) -> list[Array]:
    """For each axis the elements of every window: [elements, windows]; a short window repeats its last one."""
    tables = []
    for i, axis in enumerate(pool_axes(b, sizes)):
        bins = adaptive_bins(sizes[i], axis.out) if _shares_out(b) else clipped_bins(axis)
        starts, ends = np.array(bins.starts), np.array(bins.ends)
        tables.append(np.minimum(starts + np.arange((ends - starts).max()).reshape(-1, 1), ends - 1))
    return tables


def largest(x: Array, tables: Sequence[Array], out: Array | None, mask: Array | None) -> None:
    """Write the first largest element of each window, and its index in the plane; either may be None.

    ``tables`` have for each axis the elements of every window, [elements, windows].
    """
    shape = (*x.shape[:2], *(t.shape[1] for t in tables))
    best, where = np.full(shape, lowest(x.dtype), x.dtype), np.full(shape, -1, np.int64)
    for rows in product(*tables):
        spots = np.ix_(*rows)
        element = x[(slice(None), slice(None), *spots)]
        better = element > best
        np.copyto(best, element, where=better)
        np.copyto(where, np.ravel_multi_index(spots, x.shape[2:]), where=better)
    store((out, mask), (best, where))


def spread(g: Array, mask: Array, dx: Array) -> None:
    """Write the gradients of windows, each at the index of its largest element; -1 for none."""
    planes = dx.shape[0] * dx.shape[1]
    total = np.zeros((planes, dx.size // max(planes, 1)), dx.dtype)
    spots, shares = mask.reshape(planes, -1), g.reshape(planes, -1)
    plane, window = np.nonzero(spots >= 0)
    np.add.at(total, (plane, spots[plane, window]), shares[plane, window])
    dx[...] = total.reshape(dx.shape)


_DOC = """Out = the largest element of each window of X; Mask = its place in the plane, counted row by row.

    The first of several largest elements counts. Windows are those of pool{rank}d; with ``adaptive`` there are
    ``ksize`` of them along each axis, and window i goes from ``floor(i · size / ksize)`` to before
    ``ceil((i + 1) · size / ksize)``.

    Example:
        >>> from fluidnb.testing import run_op
        >>> x, two = np.arange({n}.0).reshape({shape}), {ksize}
        >>> out = run_op("{type}", {{"X": x}}, {{"ksize": two, "strides": two}})
        >>> out["Out"].ravel(), out["Mask"].ravel()
        (array([{last}.]), array([{last}], dtype=int32))

    Source: Fluid's pool_with_index_op.
    """


def _again_infer(c: Context) -> None:
    mask, ddx = c["Mask"], c["DDX"]
    c.require(
        mask.shape[:2] == ddx.shape[:2] or -1 in (*mask.shape[:2], *ddx.shape[:2]),
        f"Input(Mask) of {c.definition.type} must have the images and channels of DDX.",
        expected=list(ddx.shape[:2]), received=list(mask.shape[:2]),
    )  # fmt: skip
    c.set("DDOut", mask.shape, ddx.dtype)


def gather(x: Array, mask: Array, out: Array) -> None:
    """Take the elements of each plane that a mask names; -1 gives 0."""
    size = prod(x.shape[2:])
    if mask.size and not -1 <= mask.min() <= mask.max() < size:
        raise EnforceNotMet(
            "An element of Mask is outside its image.", expected=f"-1 to {size - 1}",
            received=f"{mask.min()} to {mask.max()}",
        )  # fmt: skip
    found = mask.reshape(*mask.shape[:2], -1).astype(np.int64)
    taken = np.take_along_axis(x.reshape(*x.shape[:2], -1), np.maximum(found, 0), 2) if size else np.zeros_like(found)
    out[...] = np.where(found < 0, 0, taken).reshape(out.shape)


def _define(type: str, rank: int) -> None:
    @op(
        type,
        inputs={f"X: float[n, c, {', '.join('dhw'[-rank:])}]": "images"},
        outputs={"Out": "the pooled images", "Mask": "int32: where each element was in its plane"},
        attrs={
            "ksize": Attr("ints", doc="sizes of a window; with adaptive, of Out", gt=0),
            "strides": Attr("ints", [1] * rank, "stride of the window, one for each axis", gt=0),
            "paddings": Attr("ints", [0] * rank, "padding around the image, one for each axis", ge=0),
            "global_pooling": Attr("bool", False, "one window that is the whole image"),
            "adaptive": Attr("bool", False, "windows that share out the image, as many as ksize says"),
        },
        cost=pool_cost,
        infer=_infer,
        grad=default_grad("X", "Mask", "Out@GRAD"),
        cuda=FLOATS,
        doc=_DOC.format(
            type=type, rank=rank, n=2**rank, shape=(1, 1) + (2,) * rank, ksize=[2] * rank, last=2**rank - 1
        ),
    )
    def pool(b: Binder) -> None:
        if b.on_cuda:
            x, flags = b["X"], launch.STRICT | launch.ALWAYS
            return launch.largest(b, x, b["Out"], b["Mask"], _windows(b, x), flags=flags)
        b(largest, b["X"], _tables(b, b["X"].shape[2:]), b["Out"], b["Mask"])

    again = second_grad(type + "_grad_grad", {"Mask": "Mask"}, {"DDX": "X@GRAD"}, {"DDOut": "Out@GRAD"})

    @grad_op(type + "_grad", dtype_slot="Out@GRAD", grad=again, cuda=FLOATS)
    def pool_grad(b: Binder) -> None:
        """dX = the sum of dOut over the windows whose largest element it was."""
        if b.on_cuda:
            dx, mask = b["X@GRAD"], of_dtype(b, b["Mask"], np.dtype(np.int32))
            return launch.largest_grad(b, b["Out@GRAD"], mask, dx, _windows(b, dx))
        b(spread, b["Out@GRAD"], b["Mask"], b["X@GRAD"])

    @grad_op(type + "_grad_grad", infer=_again_infer, dtype_slot="DDX", cuda=FLOATS)
    def pool_grad_grad(b: Binder) -> None:
        """DDOut = the element of DDX where the largest one of the window was."""
        if b.on_cuda:
            ddx, mask = b["DDX"], of_dtype(b, b["Mask"], np.dtype(np.int32))
            return launch.taken(b, ddx, mask, b["DDOut"], _windows(b, ddx))
        b(gather, b["DDX"], b["Mask"], b["DDOut"])


for _rank in (2, 3):
    _define(f"max_pool{_rank}d_with_index", _rank)


@c_code("max_pool2d_with_index", "max_pool3d_with_index", function="pool_with_index", file="pool.c")
def _pool_with_index_in_c(c: Context) -> dict[str, Constant]:
    n, channels, *sizes = c["X"].shape
    axes = pool_axes(c, sizes)
    found: dict[str, Constant] = {"PLANES": n * channels, "PLANE": prod(sizes), "LOWEST": lowest(c["X"].dtype)}
    for axis, name in zip((*[Axis(1, 1, 1, 1, 0, 1)] * (3 - len(axes)), *axes), "DHW", strict=True):
        bins = adaptive_bins(axis.size, axis.out) if c.attr("adaptive", False) else clipped_bins(axis)
        found |= {name: axis.size, "O" + name: axis.out, name + "_FROM": bins.starts, name + "_TO": bins.ends}
    return found
