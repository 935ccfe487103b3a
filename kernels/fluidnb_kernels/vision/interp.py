"""bilinear_interp, nearest_interp and the second versions, of one to three axes: images made larger or smaller."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fluidnb.op import Array, Attr, Binder, Context, default_grad, grad_op, kernel, op, values_of
from fluidnb.op.c_code import Constant, c_code
from fluidnb.values.copies import on_host
from fluidnb_kernels.cuda import CTYPES, Source, by_rows, ctype, typed
from fluidnb_kernels.emit import FLOATS
from fluidnb_kernels.rules import require_fixed
from fluidnb_kernels.sliding import channel_first, shape_in, split_shape, steps_in
from fluidnb_kernels.tensor.strided_copy import WORDS


@dataclass(frozen=True, slots=True)
class Taps:
    """The two source elements of each element of a resized axis."""

    low: Array  # the first neighbours, rising
    high: Array  # the second neighbours, rising
    share: Array | None  # the share of the second, float32; None where the first is taken as it is


def taps(size: int, out: int, nearest: bool, corners: bool, mode: int, scale: float = 0.0) -> Taps:
    """The neighbours of each element of a resized axis, in float32 as Paddle computes them for every dtype.

    ``mode`` is 0 where elements are squares with a middle, 1 where they are points. ``scale`` is that of the second
    versions, 0 for the quotient of the sizes.
    """
    one, half = np.float32(1), np.float32(0.5)
    ratio = np.float32(0)
    if out > 1:
        ratio = np.float32(size - 1) / np.float32(out - 1) if corners else np.float32(size) / np.float32(out)
        if scale > 0 and not corners:
            ratio = one / np.float32(scale)
    steps = np.arange(out, dtype=np.float32)
    at = ratio * steps
    if nearest:
        low = np.minimum((at + half if corners else at).astype(np.int64), size - 1)
        return Taps(low, low, None)
    if mode == 0 and not corners:
        at = np.maximum(np.float64(ratio) * (steps + half) - 0.5, 0).astype(np.float32)  # rounded once, as Paddle's is
    low = np.minimum(at.astype(np.int64), size - 1)
    return Taps(low, np.minimum(low + 1, size - 1), np.minimum(at - low.astype(np.float32), one))


#: Elements of the larger image that are computed at a time, so that what is between stays in the second cache.
_PART = 1 << 16


def resample(x: Array, axes: list[Taps], out: Array) -> None:
    """Write an image with its axes resized one after the other, the last one first."""
    planes, result = x.reshape(-1, *x.shape[2:]), out if out.flags.c_contiguous else np.empty(out.shape, out.dtype)
    parts = result.reshape(-1, *out.shape[2:])
    known = list(enumerate(map(_shares, axes), 1))
    for part in _parts(parts):
        y = planes[part]
        for axis, shares in reversed(known):
            first, *second = [_weighted(y.take(index, axis, mode="clip"), share, axis) for index, share in shares]
            y = first + second[0] if second else first
        parts[part] = y
    if result is not out:
        out[...] = result


def resample_grad(g: Array, axes: list[Taps], dx: Array) -> None:
    """Write the gradient of `resample`."""
    planes, result = g.reshape(-1, *g.shape[2:]), dx if dx.flags.c_contiguous else np.empty(dx.shape, dx.dtype)
    parts = result.reshape(-1, *dx.shape[2:])
    known = [[(share, _turns(index)) for index, share in _shares(t)] for t in axes]
    for part in _parts(planes):
        y = planes[part]
        for axis, (size, shares) in enumerate(zip(dx.shape[2:], known, strict=True), 1):
            along = np.ascontiguousarray(np.moveaxis(y, axis, 1))  # elements side by side are added up together
            total = np.zeros((len(y), size, *along.shape[2:]), g.dtype)
            for share, turns in shares:
                given = _weighted(along, share, 1)
                for places, spots in turns:
                    total[:, spots] += given.take(places, 1, mode="clip")
            y = np.moveaxis(total, 1, axis)
        parts[part] = y
    if result is not dx:
        dx[...] = result


def _parts(images: Array) -> Iterator[slice]:
    """The planes of the larger image, some at a time."""
    step = max(1, _PART // max(images[:1].size, 1))
    return (slice(k, k + step) for k in range(0, len(images), step))


def _shares(t: Taps) -> list[tuple[Array, Array | None]]:
    """The neighbours along an axis and what they contribute; None for all."""
    return [(t.low, None)] if t.share is None else [(t.low, 1 - t.share), (t.high, t.share)]


def _weighted(x: Array, share: Array | None, axis: int) -> Array:
    """An image times shares along an axis, in its precision."""
    if share is None:
        return x
    dtype = x.dtype if x.dtype.kind == "f" else np.float32
    return x * share.astype(dtype).reshape([share.size if i == axis else 1 for i in range(x.ndim)])


def _turns(index: Array) -> list[tuple[Array, Array]]:
    """The places at which a rising index has its numbers the first, the second time and so on, and these numbers."""
    first = np.flatnonzero(np.diff(index, prepend=-1))
    turn = np.arange(len(index)) - np.repeat(first, np.diff(first, append=len(index)))
    return [(np.flatnonzero(turn == k), index[turn == k]) for k in range(turn.max(initial=-1) + 1)]


def _sizes(c: Context, sizes: tuple[int, ...]) -> list[int]:
    """The new sizes: by variables, by a scale, by attributes; -1 unknown."""
    given = [c.attr(name, 0) for name in ("out_d", "out_h", "out_w")[-len(sizes) :]]
    unknown = [-1] * len(sizes)
    if c.has("SizeTensor"):
        return [int(on_host(v).reshape(-1)[0]) for v in c.all("SizeTensor")] if c.runtime else unknown
    if c.has("OutSize"):
        if c.runtime:
            return [int(n) for n in on_host(c["OutSize"]).reshape(-1)]
        return [n if n > 0 else -1 for n in given]
    if c.has("Scale") and not c.runtime:
        return unknown
    found = scales(c)
    if not all(scale > 0 for scale in found):
        return given
    with np.errstate(over="ignore", invalid="ignore"):
        new = [np.float32(n) * np.float32(scale) for n, scale in zip(sizes, found, strict=True)]
    # a size that is no number is refused, as 0 is
    return [-1 if n < 0 else int(size) if np.isfinite(size) else 0 for n, size in zip(sizes, new, strict=True)]


def scales(c: Context) -> list[float]:
    """The scale of each axis, by a variable or an attribute; 0 where there is none."""
    given = c.attr("scale", 0.0)
    if c.has("Scale"):
        given = on_host(c["Scale"]).reshape(-1).tolist()
    given = given if isinstance(given, list) else [given]
    axes = next(c[slot].ndim for slot in ("X", "Out@GRAD") if c.has(slot)) - 2
    c.require(
        len(given) in {0, 1, axes}, f"{c.definition.type} takes one scale, or one for each axis.", received=given,
        hint="leave the others out.", expected=f"1 or {axes}",
    )  # fmt: skip
    return given if len(given) == axes else [given[0] if given else 0.0] * axes


def infer(c: Context) -> None:
    """Rule: the sizes of a resized image, by Attr(out_d), Attr(out_h) and Attr(out_w), scales or Input(OutSize)."""
    name, x, layout = c.definition.type, c["X"], c.attr("data_layout")
    c.check_inputs("X")
    n, channels, sizes = split_shape(x.shape, layout)
    new = _sizes(c, sizes)
    names = ("depth", "height", "width")[-len(sizes) :]
    c.require(
        len(new) == len(sizes) and all(m > 0 or m == -1 and not c.runtime for m in new),
        f"{name} needs a {' and a '.join(names)}.", expected=f"positive numbers: {len(sizes)}", received=new,
        hint=f"{' and '.join(f'out_{n[0]}' for n in names)}, a scale, or OutSize give them.",
    )  # fmt: skip
    c.set("Out", shape_in(layout, n, channels, new), x.dtype, c.lod("X"))


def _is_nearest(b: Context) -> bool:
    return b.definition.type.startswith("nearest")


def _axes(b: Context, sizes: Sequence[int], new: Sequence[int]) -> list[Taps]:
    corners, mode = b.attr("align_corners", True), b.attr("align_mode", 1)
    given = [0.0] * len(sizes)
    if "_v2" in b.definition.type and not (b.has("OutSize") or b.has("SizeTensor")):
        given = scales(b)
    return [
        taps(m, n, _is_nearest(b), corners, mode, scale) for m, n, scale in zip(sizes, new, given, strict=True)
    ]


_VARIABLES = values_of("OutSize", "SizeTensor", "Scale")

#: Elements of a window of dOut from which on a warp adds it up.
_WINDOW = 64

CUDA = Source(__file__, "interp.cu", typed(
    ("bilinear", FLOATS), ("interp_grad", FLOATS, ("false", "true")),
    ("nearest", [WORDS[size] for size in (1, 2, 4, 8)]),
))  # fmt: skip


def planes_of(b: Binder, x: Array) -> tuple[int, tuple[int, ...], int]:
    """Planes, the sizes of each, and the distance of its columns."""
    if b.attr("data_layout", "NCHW") == "NCHW":
        return x.shape[0] * x.shape[1], x.shape[2:], 1
    return x.shape[0], x.shape[1:-1], x.shape[-1]


@dataclass(frozen=True, slots=True)
class _Pass:
    """Two axes that are resized at once: planes, sizes before and after, the distance of columns, neighbours."""

    planes: int
    old: tuple[int, int]
    new: tuple[int, int]
    inner: int
    taps: list[Taps]


def _kept(size: int) -> Taps:
    """The neighbours of an axis that keeps its size."""
    index = np.arange(size)
    return Taps(index, np.minimum(index + 1, size - 1), np.zeros(size, np.float32))


def _passes(b: Binder, x: Array, out: Array) -> list[_Pass]:
    """The passes from x to out: one of rows and columns, and where there are three axes one of the first."""
    (planes, sizes, inner), (_, new, _) = planes_of(b, x), planes_of(b, out)
    axes = _axes(b, sizes, new)
    if len(sizes) == 1:
        return [_Pass(planes, (1, sizes[0]), (1, new[0]), inner, [_kept(1), *axes])]
    (h, w), (oh, ow) = sizes[-2:], new[-2:]
    first = _Pass(planes * math.prod(sizes[:-2]), (h, w), (oh, ow), inner, axes[-2:])
    if len(sizes) == 2:
        return [first]
    row = oh * ow
    return [first, _Pass(planes, (sizes[0], row), (new[0], row), inner, [axes[0], _kept(row)])]


def _tables(b: Binder, axes: list[Taps]) -> tuple[Array, Any]:
    """Neighbours and shares where kernels can read them."""
    low = b.table(np.concatenate([t.low for t in axes]).astype(np.int32))
    shares = [t.share for t in axes if t.share is not None]
    return low, b.table(np.concatenate(shares)) if shares else np.uintp(0)


def _on_cuda(b: Binder) -> None:
    x, out = b["X"], b["Out"]
    if not out.size:
        return
    passes = _passes(b, x, out)
    for step in passes:
        (h, w), (oh, ow), inner = step.old, step.new, step.inner
        low, share = _tables(b, step.taps)
        to = out if step is passes[-1] else b.tmp((step.planes * oh * ow * inner,), x.dtype)
        sizes = [np.int64(n) for n in (h, w, oh, ow, inner)]
        if _is_nearest(b):
            by_rows(b, CUDA, f"nearest<{WORDS[x.dtype.itemsize]}>", step.planes * oh, ow * inner, x, low, to, *sizes)
        else:
            by_rows(b, CUDA, f"bilinear<{ctype(x.dtype)}>", step.planes * oh, ow * inner, x, low, share, to, *sizes)
        x = to


def _grad_on_cuda(b: Binder) -> None:
    g, dx = b["Out@GRAD"], b["X@GRAD"]
    if not dx.size:
        return
    passes = _passes(b, dx, g)
    name = f"interp_grad<{ctype(g.dtype)}, {str(_is_nearest(b)).lower()}>"
    for step in reversed(passes):
        (h, w), (oh, ow), inner = step.old, step.new, step.inner
        low, share = _tables(b, step.taps)
        first = [np.searchsorted(t.low, np.arange(n + 1)) for t, n in zip(step.taps, step.old, strict=True)]
        lanes = 32 if inner == 1 and oh * ow >= _WINDOW * h * w else 1
        to = dx if step is passes[0] else b.tmp((step.planes * h * w * inner,), g.dtype)
        tables = low, b.table(np.concatenate(first).astype(np.int32)), share
        sizes = [np.int64(n) for n in (h, w, oh, ow, inner)]
        by_rows(b, CUDA, name, step.planes * h, w * inner * lanes, g, *tables, to, *sizes, np.int32(lanes))
        g = to


#: type -> (what an element of Out is, an example's result)
ROWS = {
    "bilinear_interp": ("the four elements of X around its place, by how near they are", "array([1., 2., 3.])"),
    "nearest_interp": ("the element of X that is nearest to its place", "array([1., 3., 3.])"),
    "bilinear_interp_v2": ("the four elements of X around its place, by how near they are", "array([1., 2., 3.])"),
    "nearest_interp_v2": ("the element of X that is nearest to its place", "array([1., 3., 3.])"),
    "linear_interp_v2": ("the two elements of X around its place, by how near they are", "array([1., 2., 3.])"),
    "trilinear_interp_v2": ("the eight elements of X around its place, by how near they are", "array([1., 2., 3.])"),
}
#: Axes that are resized, where these are not height and width.
_AXES = {"linear_interp_v2": ("w",), "trilinear_interp_v2": ("d", "h", "w")}
#: Operators of height and width.
_PLANE = tuple(type for type in ROWS if type not in _AXES)

_DOC = """Out[n, c] = X[n, c] in another size: each element is {what}.

    With ``align_corners`` the corners stay where they are, and element k of n is at ``k · (size - 1) / (n - 1)``.
    Without, it is at ``k · size / n``; for {linear} with ``align_mode`` 0 at
    ``(k + 1/2) · size / n - 1/2``.{second}

    Example:
        >>> from fluidnb.testing import run_op
        >>> x = np.array([1.0, 3.0]).reshape({shape})
        >>> run_op("{type}", {{"X": x}}, {{{sizes}}})["Out"].ravel()
        {result}

    Source: {source}.
    """


#: What the second versions add to the description.
_SECOND = " A scale of each axis takes the place of ``n / size``."


def _define(type: str, what: str, result: str) -> None:
    second = type.endswith("_v2")
    axes = _AXES.get(type, ("h", "w"))
    scale = (
        Attr("floats", [], "by how much each axis grows; empty for sizes") if second else
        Attr("float", 0.0, "by how much height and width grow; 0 for out_h and out_w")
    )  # fmt: skip
    names = {"d": "depth", "h": "height", "w": "width"}
    sizes = {
        f"out_{axis}": Attr("int", 0, f"the new {name}" if axis in axes else "ignored (compatibility)")
        for axis, name in names.items()
    }

    @op(
        type,
        inputs={
            f"X: float[n, c, {', '.join(axes)}]": f"images; [n, {', '.join(axes)}, c] with data_layout NHWC",
            f"OutSize?: int[{len(axes)}]": "sizes of the axes as a variable; they win over scale and attributes",
            "SizeTensor*?": "sizes of the axes as a variable each",
            f"Scale?: float[1] | float[{len(axes)}]" if second and len(axes) > 1 else "Scale?: float[1]":
                "scale as a variable",
        },
        outputs={"Out": "the images in their new size"},
        attrs={
            "data_layout": Attr("string", "NCHW", "where the channels are", enum=("NCHW", "NHWC")),
            **sizes,
            "scale": scale,
            "interp_method": Attr("string", "bilinear", "the operator's method again"),
            "align_corners": Attr("bool", True, "whether the corners stay where they are"),
            "align_mode": Attr("int", 1, "without align_corners: 0 for places of middles, 1 for those of edges"),
        },
        cost=None if type.startswith("nearest") else f"{2 ** len(axes)} * Out",
        infer=infer,
        grad=default_grad("X", "OutSize", "SizeTensor", "Scale", "Out@GRAD", wrt=["X"]),
        guard=_VARIABLES,
        dtype_slot="X",
        doc=_DOC.format(
            type=type, what=what, result=result, linear=type.replace("nearest", "bilinear"),
            shape=", ".join(["1"] * (1 + len(axes)) + ["2"]),
            sizes=", ".join(f'"out_{axis}": {3 if axis == "w" else 1}' for axis in axes),
            second=_SECOND if second else "",
            source="interpolate_v2_op of Paddle" if second else "Fluid's interpolate_op",
        ),
    )
    def interp(b: Binder) -> None:
        layout = b.attr("data_layout")
        x, out = channel_first(b["X"], layout), channel_first(b["Out"], layout)
        b(resample, x, _axes(b, x.shape[2:], out.shape[2:]), out)

    @grad_op(type + "_grad", guard=_VARIABLES, dtype_slot="Out@GRAD")
    def interp_grad(b: Binder) -> None:
        """dX = the sum of what each element of X has given, by its share."""
        layout = b.attr("data_layout", "NCHW")
        g, dx = channel_first(b["Out@GRAD"], layout), channel_first(b["X@GRAD"], layout)
        b(resample_grad, g, _axes(b, dx.shape[2:], g.shape[2:]), dx)

    kernel(type, place="cuda", dtypes=tuple(CTYPES) if type.startswith("nearest") else FLOATS)(_on_cuda)
    kernel(type + "_grad", place="cuda", dtypes=FLOATS)(_grad_on_cuda)


for _type, _row in ROWS.items():
    _define(_type, *_row)


@c_code(*_PLANE, function="interpolated")
@c_code(*(f"{type}_grad" for type in _PLANE), function="interpolated_grad")
def _interp_in_c(c: Context) -> dict[str, Constant]:
    require_fixed(c, "Scale")
    layout, grad = c.attr("data_layout", "NCHW"), "X@GRAD" in c.outputs
    x, out = c["X"].shape, c["Out@GRAD" if grad else "Out"].shape
    (n, channels, sizes), new = split_shape(x, layout), split_shape(out, layout)[2]
    found: dict[str, Constant] = {"N": n, "C": channels, "COUNT": math.prod(x), "OH": new[0], "OW": new[1]}
    for letter, t in zip("HW", _axes(c, sizes, new), strict=True):
        share = np.zeros(len(t.low)) if t.share is None else t.share
        found |= {letter + "_LOW": t.low.tolist(), letter + "_HIGH": t.high.tolist()}
        found[letter + "_SHARE"] = np.round(share.astype(np.float64) * 2**30).astype(np.int64).tolist()
    for letter, shape in (("X", x), ("Y", out)):
        found |= {f"{letter}_{name}": step for name, step in zip("NCHW", steps_in(layout, shape), strict=True)}
    return found
