"""arg_max, arg_min, argsort, top_k and top_k_v2: elements by their size."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from fluidnb.op import Array, Attr, Binder, Context, default_grad, grad_op, op, product, values_of
from fluidnb.op.c_code import Constant, c_code
from fluidnb.values import dtypes
from fluidnb_kernels.cuda import CTYPES, Source, ctype, each_line, lines_along, typed
from fluidnb_kernels.emit import FLOATS
from fluidnb_kernels.rules import integer, one_axis
from fluidnb_kernels.tensor.gather_scatter import put_back
from fluidnb_kernels.tensor.strided_copy import layout_of, move

#: The dtypes that have an order here.
ORDERED = (*FLOATS, "int32", "int64")


def _order(largest: bool, none_first: bool) -> str:
    return f"ranking<{str(largest).lower()}, {str(none_first).lower()}>"


def _kernels() -> Iterator[str]:
    for t in (CTYPES[d] for d in ORDERED):
        for largest in (True, False):
            yield from (f"find<{t}, {index}, {_order(largest, True)}>" for index in ("int", "long long"))
            yield f"top<{t}, {_order(largest, False)}>"
        yield f"top<{t}, {_order(True, True)}>"


EXTREMES = Source(__file__, "line_extremes.cu", _kernels)


def find_on_cuda(b: Binder, x: Array, axis: int | None, out: Array, largest: bool) -> None:
    """Emit the place of each line's largest or smallest element, NaN before all others; one line without axis."""
    sizes = (1, x.size, 1) if axis is None else lines_along(x.shape, axis)
    each_line(b, EXTREMES, f"find<{ctype(x.dtype)}, {ctype(out.dtype)}, {_order(largest, True)}>", *sizes, x, out)


def top(b: Binder, x: Array, k: int, axis: int, largest: bool = True, none_first: bool = False) -> None:
    """Emit Out and Indices of top_k."""
    name = f"top<{ctype(x.dtype)}, {_order(largest, none_first)}>"
    each_line(b, EXTREMES, name, *lines_along(x.shape, axis), x, b["Out"], b["Indices"], np.int64(k))


#: Elements that a block sorts, its threads, and blocks of a grid, whose blocks go round in strides.
TILE, _SORTERS, _MOST = 1024, 256, 1 << 16


SORT = Source(__file__, "sort.cu", typed(("sorted merged", ORDERED)))


def sort(b: Binder, x: Array, axis: int, descending: bool, out: Array | None, indices: Array | None) -> None:
    """Emit sorted elements and where they were, where wanted; equal ones keep their order."""
    lines, n, inner = lines_along(x.shape, axis)
    if inner > 1 and n > TILE:
        _sort_across(b, x, axis, descending, out, indices)
    elif lines and n:
        down = np.int32(descending)
        width = min(TILE, 1 << (n - 1).bit_length())
        tiles = -(-n // width)
        passes = (tiles - 1).bit_length()
        at_once = TILE // width
        values, places = _stages(b, x, out, passes), _stages(b, x, indices, passes, np.int64)
        b(
            SORT[f"sorted<{ctype(x.dtype)}>"], (min(_MOST, -(-lines * tiles // at_once)),), (_SORTERS,), 0, x,
            values[0], places[0], *map(np.int64, (lines, n, inner)), np.int32(width), np.int64(tiles), down,
        )  # fmt: skip
        for i in range(passes):
            b(
                SORT[f"merged<{ctype(x.dtype)}>"], (min(_MOST, lines * tiles),), (_SORTERS,), 0, values[i], places[i],
                values[i + 1], places[i + 1], *map(np.int64, (lines, n, TILE << i)), down,
            )  # fmt: skip


def _stages(b: Binder, x: Array, out: Array | None, passes: int, dtype: Any = None) -> list[Array | None]:
    """Targets of the first launch and of each merging pass: two workspaces in turn, the output last."""
    spare = [b.tmp(x.shape, dtype or x.dtype) for _ in range(min(passes, 2))]
    return [*(spare[i % 2] for i in range(passes)), out]


def _sort_across(b: Binder, x: Array, axis: int, descending: bool, out: Array | None, indices: Array | None) -> None:
    """Sort long lines of strided elements: copied to contiguous workspaces, and back."""

    def aside(like: Array) -> Array:
        return np.moveaxis(layout_of(like), axis, -1)

    shape = aside(x).shape
    lines = b.tmp(shape, x.dtype)
    move(b, lines, x, of=aside(x))
    results = [(y, b.tmp(shape, y.dtype)) for y in (out, indices) if y is not None]
    given = {id(y): t for y, t in results}
    sort(b, lines, -1, descending, given.get(id(out)), given.get(id(indices)))
    for y, t in results:
        move(b, y, t, aside(y))


def _lines(*arrays: Array | None) -> tuple[Array | None, ...]:
    """Arrays with at least one dimension: of a scalar as a line of one element."""
    return tuple(a if a is None or a.ndim else a.reshape(1) for a in arrays)


def _extreme_infer(c: Context) -> None:
    x, keep = c["X"], c.attr("keepdims")
    number = c.attr("dtype")
    dtype = dtypes.np_dtype(number if number >= 0 else np.int64)  # older programs say -1
    if c.attr("flatten"):
        c.set("Out", (1,) * (x.ndim if keep else 1), dtype)
        return
    axis = one_axis(c, c.attr("axis"), max(x.ndim, 1))
    shape = (*x.shape[:axis], *((1,) if keep else ()), *x.shape[axis + 1 :])
    c.set("Out", shape or (1,), dtype)


def find(function: Any, x: Array, axis: int | None, out: Array) -> None:
    """Write where a function of an array finds an element along an axis, or in all of it."""
    out[...] = function(x, axis).reshape(out.shape)


def _define(type: str, function: Any, word: str, example: int) -> None:
    @op(
        type,
        inputs={"X": "any shape"},
        outputs={"Out": f"whole numbers: where the {word} element is"},
        attrs={
            "axis": Attr("long", 0, "the dimension along which it is looked for; from the end when negative"),
            "keepdims": Attr("bool", False, "keep that dimension, with size 1"),
            "flatten": Attr("bool", False, "flatten X first"),
            "dtype": Attr("dtype", "int64", "dtype of Out, int32 or int64"),
        },
        infer=_extreme_infer,
        dtype_slot="X",
        cuda=ORDERED,
        doc=f"""Out = where the {word} element along ``axis`` is; the first of equal ones.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("{type}", {{"X": [[1.0, 9.0, 0.0]]}}, {{"axis": 1}})["Out"]
        array([{example}])

    Source: Fluid's {type}_op.
    """,
    )
    def extreme(b: Binder) -> None:
        axis = None if b.attr("flatten") else b.attr("axis")
        if b.on_cuda:
            return find_on_cuda(b, b["X"], axis, b["Out"], function is np.argmax)
        return b(find, function, b["X"], axis, b["Out"])


_define("arg_max", np.argmax, "largest", 1)
_define("arg_min", np.argmin, "smallest", 2)


def _sort_infer(c: Context) -> None:
    x = c["X"]
    one_axis(c, c.attr("axis"), max(x.ndim, 1))
    c.set("Out", x.shape, x.dtype, c.lod("X"))
    c.set("Indices", x.shape, np.int64, c.lod("X"))


#: Rows with fewer times the elements that are looked for, and fewer elements in all, are sorted whole and at once.
_FEW, _SMALL = 4, 4096


def _order_of(x: Array, axis: int) -> Array:
    """The order of a stable sort: that of numpy's other one where no elements are equal, in a quarter of the time."""
    if x.dtype.kind != "f" or x.size < _SMALL:
        return x.argsort(axis, kind="stable")
    lines = np.moveaxis(x, axis, -1)
    at = lines.argsort(-1)
    ordered = np.take_along_axis(lines, at, -1)
    unclear = ~(ordered[..., 1:] > ordered[..., :-1]).all(-1)  # also where there are NaN
    if unclear.any():
        at[unclear] = lines[unclear].argsort(-1, kind="stable")
    return np.moveaxis(at, -1, axis)


def write_sorted(x: Array, axis: int, descending: bool, out: Array | None, indices: Array | None) -> None:
    """Write sorted elements and where they were, where wanted; equal ones keep their order."""
    if descending:
        back = _order_of(np.flip(x, axis), axis)  # the last of equal ones first, then turned around
        at = x.shape[axis] - 1 - np.flip(back, axis)
    else:
        at = _order_of(x, axis)
    if out is not None:
        out[...] = np.take_along_axis(x, at, axis)
    if indices is not None:
        indices[...] = at


@op(
    "argsort",
    inputs={"X": "any shape"},
    outputs={"Out": "X sorted", "Indices": "int64: where in X its elements were"},
    attrs={
        "axis": Attr("int", -1, "the dimension along which to sort; from the end when negative"),
        "descending": Attr("bool", False, "the largest first"),
    },
    infer=_sort_infer,
    grad=default_grad("Indices", "X", "Out@GRAD"),
    dtype_slot="X",
    cuda=ORDERED,
)
def argsort(b: Binder) -> None:
    """Out, Indices = X sorted along ``axis``, and where its elements were; both inherit the LoD of X.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("argsort", {"X": [3.0, 1.0, 2.0]})["Indices"]
        array([1, 2, 0])

    Source: Fluid's argsort_op.
    """
    x, out, indices = _lines(b["X"], b["Out"], b["Indices"])
    operands = x, b.attr("axis"), b.attr("descending"), out, indices
    if b.on_cuda:
        return sort(b, *operands)
    return b(write_sorted, *operands)


@grad_op("argsort_grad", dtype_slot="X", cuda=True)
def argsort_grad(b: Binder) -> None:
    """dX = dOut back in the order of X; 0 where Indices, of another sort perhaps, leave elements out."""
    put_back(b, b["Out@GRAD"], b["Indices"], b["X@GRAD"], b.attr("axis", -1))


def _axis(c: Context) -> int:
    """The dimension along which elements are compared: for top_k, which has no axis and no scalars, the last one."""
    return one_axis(c, c.attr("axis", -1), max(c["X"].ndim, "top_k_v2" in c.definition.type))


def _infer(c: Context) -> None:
    type, x, axis, k = c.definition.type, c["X"], _axis(c), integer(c, "k", "K")
    n = x.shape[axis] if x.ndim else 1
    c.require(
        n < 0 or n >= k, f"The dimension of X along which {type} compares must be at least k.", expected=f">= {k}",
        received=n, hint=f"k={n} takes all of them.",
    )  # fmt: skip
    c.require(
        k > 0 or not c.runtime, f"{type} finds at least one element.", expected="k from 1 on", received=k,
    )  # fmt: skip
    lod = c.lod("X") if axis or type == "top_k" else ()
    for slot, dtype in (("Out", x.dtype), ("Indices", np.int64)):
        c.set(slot, (*x.shape[:axis], k, *x.shape[axis + 1 :]) if x.ndim else (), dtype, lod)


def _smallest(x: Array, k: int) -> Array:
    """The places of the k smallest elements of each row, in order."""
    rows, n = x.shape
    if _FEW * k > n or x.size < _SMALL:
        return x.argsort(-1, kind="stable")[:, :k]
    at = np.empty((rows, k), np.int64)
    among = x <= np.partition(x, k - 1, -1)[:, k - 1 : k]  # never where there are not k numbers, but NaN
    clear = np.count_nonzero(among, -1) == k  # else the last of them has equals behind it
    if not clear.all():
        at[~clear] = x[~clear].argsort(-1, kind="stable")[:, :k]
        x, among = x[clear], among[clear]
    places = (np.flatnonzero(among) % n).reshape(-1, k)
    at[clear] = np.take_along_axis(places, np.take_along_axis(x, places, -1).argsort(-1, kind="stable"), -1)
    return at


def first(x: Array, k: int, out: Array | None, indices: Array | None, largest: bool = True) -> None:
    """Write the k largest or smallest elements of each row and their places, where wanted; equal ones in order."""
    rising = x if not largest else ~x if x.dtype.kind in "biu" else -x  # the smallest integer has no negative
    at = _smallest(rising.reshape(-1, x.shape[-1]), k).reshape(*x.shape[:-1], k)
    if out is not None:
        out[...] = np.take_along_axis(x, at, -1)
    if indices is not None:
        indices[...] = at


@op(
    "top_k",
    inputs={"X": "at least one dimension", "K?": "k as a variable of one element"},
    outputs={"Out": "the k largest of each row, largest first", "Indices": "int64: where in the row they are"},
    attrs={"k": Attr("int", 1, "how many", ge=1)},
    cost="X",
    infer=_infer,
    grad=default_grad("X", "Indices", "Out@GRAD", wrt=["X"]),
    guard=values_of("K"),
    dtype_slot="X",
    cuda=ORDERED,
)
def top_k(b: Binder) -> None:
    """Out, Indices = the k largest elements of each row of X, and where they are; both inherit the LoD of X.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("top_k", {"X": [[1.0, 9.0, 5.0]]}, {"k": 2})["Indices"]
        array([[1, 2]])

    Source: Fluid's top_k_op.
    """
    x, out, indices, k = b["X"], b["Out"], b["Indices"], integer(b, "k", "K")
    if b.on_cuda:
        return top(b, x, k, -1, none_first=k == 1)
    if k > 1:
        return b(first, x, k, out, indices)
    if out is not None:
        b(np.maximum.reduce, x, -1, None, out, True)
    if indices is not None:
        b(x.argmax, -1, indices.reshape(x.shape[:-1]))


@op(
    "top_k_v2",
    inputs={"X": "any shape", "K?": "k as a variable of one element"},
    outputs={"Out": "the k elements, in order", "Indices": "int64: where along axis they are"},
    attrs={
        "k": Attr("int", 1, "how many", ge=1),
        "axis": Attr("int", -1, "the dimension along which they are looked for; from the end when negative"),
        "largest": Attr("bool", True, "the largest ones; else the smallest ones"),
        "sorted": Attr("bool", True, "ignored (compatibility with Paddle 2): they are always in order"),
    },
    cost="X",
    infer=_infer,
    grad=default_grad("X", "Indices", "K", "Out@GRAD", wrt=["X"]),
    guard=values_of("K"),
    dtype_slot="X",
    cuda=ORDERED,
)
def top_k_v2(b: Binder) -> None:
    """Out, Indices = the k largest or smallest elements of X along ``axis``, and where they are.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("top_k_v2", {"X": [4.0, 9.0, 5.0]}, {"k": 2, "largest": False})["Out"]
        array([4., 5.])

    Source: Paddle's top_k_v2_op.
    """
    axis, k = _axis(b), integer(b, "k", "K")
    if b.on_cuda:
        return top(b, b["X"], k, axis, b.attr("largest"))
    operands = _lines(b["X"], b["Out"], b["Indices"])
    x, out, indices = (None if a is None else np.moveaxis(a, axis, -1) for a in operands)
    return b(first, x, k, out, indices, b.attr("largest"))


@grad_op("top_k_grad", dtype_slot="X", cuda=True)
@grad_op("top_k_v2_grad", guard=values_of("K"), dtype_slot="X", cuda=True)
def top_k_grad(b: Binder) -> None:
    """dX = dOut at the places from which Out was taken, 0 elsewhere."""
    put_back(b, b["Out@GRAD"], b["Indices"], b["X@GRAD"], _axis(b))


@c_code("top_k", "top_k_v2", function="top")
@c_code("top_k_grad", "top_k_v2_grad", function="top_grad")
@c_code("arg_max", "arg_min", function="extreme")
def _order_in_c(c: Context) -> dict[str, Constant]:
    type, x = c.definition.type, c["X"]
    axis = c.attr("axis", -1) % max(x.ndim, 1)
    sizes = product(x.shape[:axis]), x.shape[axis] if x.ndim else 1, product(x.shape[axis + 1 :])
    flat = bool(c.attr("flatten", False))
    found: dict[str, Constant] = dict(zip(("OUTER", "N", "INNER"), (1, x.size, 1) if flat else sizes, strict=True))
    if type.startswith("top_k"):
        found["K"] = c["Out@GRAD" if "X@GRAD" in c.outputs else "Out"].shape[axis] if x.ndim else 1
    return {**found, "BEHIND": ">" if type == "arg_min" or not c.attr("largest", True) else "<"}


@c_code("argsort")
def _argsort_in_c(c: Context) -> dict[str, Constant]:
    lines, n, inner = lines_along(c["X"].shape, c.attr("axis", -1))
    sizes = {"OUTER": lines // max(inner, 1), "N": n, "INNER": inner}
    down, real = c.attr("descending", False), c["X"].dtype.kind == "f"  # NaN counts as the largest

    def before(a: str, b: str) -> str:
        less = f"{a} {'>' if down else '<'} {b}"
        return f"{less} || (isnan({a if down else b}) && !isnan({b if down else a}))" if real else less

    return {**sizes, "A_FIRST": before("a", "b"), "B_FIRST": before("b", "a")}
