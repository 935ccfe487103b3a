"""expand, tile, expand_v2 and expand_as_v2: a tensor repeated, by counts or up to a shape; a row for each operator."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from fluidnb.op import Attr, Binder, Context, default_grad, grad_op, like_forward, linear_grad, op, values_of
from fluidnb.op.c_code import Constant, c_code
from fluidnb_kernels import verbs
from fluidnb_kernels.emit import FLOATS, reading, writing, written
from fluidnb_kernels.rules import integers
from fluidnb_kernels.tensor.strided_copy import fold, layout_of, parts_in_c

#: The size of X along each dimension of Out, and how often it is repeated there.
Repeats = list[tuple[int, int]]


def _filled(c: Context, rank: int) -> list[int]:
    """The shape of X with ones before it."""
    return [1] * (rank - c["X"].ndim) + list(c["X"].shape)


def _numbers(c: Context, attr: str, whole: str, each: str) -> list[int]:
    """The repetitions of X along each dimension, from the inputs of expand and tile."""
    times = integers(c, attr, whole, each)
    known = c.runtime or not (c.has(whole) or c.has(each))
    c.require(
        not known or all(t > 0 for t in times), f"Attr({attr}) of {c.definition.type} must be positive.",
        expected="> 0", received=times,
    )  # fmt: skip
    return times


def _times(c: Context) -> Repeats:
    times, x = _numbers(c, "expand_times", "ExpandTimes", "expand_times_tensor"), c["X"]
    c.require(
        len(times) == x.ndim, "The number of elements of Attr(expand_times) of expand must be the rank of X.",
        expected=f"{x.ndim} numbers", received=times,
    )  # fmt: skip
    return list(zip(x.shape, times, strict=True))


def _tiles(c: Context) -> Repeats:
    times = _numbers(c, "repeat_times", "RepeatTimes", "repeat_times_tensor")
    rank = max(len(times), c["X"].ndim)
    return list(zip(_filled(c, rank), [1] * (rank - len(times)) + times, strict=True))


def _up_to(c: Context, shape: list[int], keep: bool) -> Repeats:
    """Repeats that lead to a shape; -1 in it keeps the size of X, or is not known."""
    type, x = c.definition.type, c["X"].shape
    c.require(
        len(shape) >= len(x), f"{type} cannot drop dimensions of X.", expected=f"at least {len(x)} sizes",
        received=shape,
    )  # fmt: skip
    repeats = []
    for n, size in zip(_filled(c, len(shape)), shape, strict=True):
        size = n if size == -1 and keep else size
        c.require(
            size == n or n in (1, -1) or size == -1, f"{type} repeats dimensions of size 1 only.",
            expected=f"{list(x)}, or any size where it has a 1", received=shape,
        )  # fmt: skip
        repeats.append((n, 1 if size == n else size if n == 1 else -1))
    return repeats


def _expanded(c: Context) -> Repeats:
    slots = ("Shape", "expand_shapes_tensor")
    return _up_to(c, integers(c, "shape", *slots), c.runtime or not any(map(c.has, slots)))


def _expanded_as(c: Context) -> Repeats:
    shape = c.attr("target_shape", [])
    return _up_to(c, list(c["Y"].shape) if c.has("Y") and (not shape or -1 in shape) else shape, False)


@dataclass(frozen=True, slots=True)
class Row:
    """One operator."""

    formula: str  # what Out is
    repeats: Callable[[Context], Repeats]  # how often X is repeated
    slots: dict[str, str]  # inputs beside X
    attrs: dict[str, Attr]  # its attributes
    variables: tuple[str, ...]  # those of the inputs whose values count
    example: tuple[str, str, str]  # X, what is given beside it and the result, for the documentation


ROWS = {
    "expand": Row(
        "X repeated expand_times[d] times along each dimension d", _times,
        {"ExpandTimes?": "Paddle 2: the numbers as a variable", "expand_times_tensor*?": "the numbers as variables"},
        {"expand_times": Attr("ints", [], "how often X is repeated along each dimension")},
        ("ExpandTimes", "expand_times_tensor"), ("[1.0, 2.0]", '{"expand_times": [2]}', "[1., 2., 1., 2.]"),
    ),
    "tile": Row(
        "X repeated repeat_times[d] times along each dimension d, aligned at the last one", _tiles,
        {"RepeatTimes?": "the numbers as a variable", "repeat_times_tensor*?": "the numbers as variables"},
        {"repeat_times": Attr("ints", [], "how often X is repeated along each dimension")},
        ("RepeatTimes", "repeat_times_tensor"), ("[1.0, 2.0]", '{"repeat_times": [2]}', "[1., 2., 1., 2.]"),
    ),
    "expand_v2": Row(
        "X repeated where it has size 1, up to a shape", _expanded,
        {"Shape?": "the shape as a variable", "expand_shapes_tensor*?": "its sizes as variables"},
        {"shape": Attr("ints", [], "the shape; -1 keeps the size of X")},
        ("Shape", "expand_shapes_tensor"), ("[7.0]", '{"shape": [3]}', "[7., 7., 7.]"),
    ),
    "expand_as_v2": Row(
        "X repeated where it has size 1, up to target_shape, or the shape of Y", _expanded_as,
        {"Y?": "what has the shape where target_shape is not known"},
        {"target_shape": Attr("ints", [], "the shape; it decides where it has no -1")},
        (), ("[7.0]", '{"target_shape": [3]}', "[7., 7., 7.]"),
    ),
}  # fmt: skip


def _slope_infer(c: Context) -> None:
    x, g = c["X"], c["Out@GRAD"]
    pairs = zip(g.shape, _filled(c, g.ndim), strict=False)
    c.require(
        g.ndim >= x.ndim and all(-1 in (n, size) or (n % size == 0 if size else n == 0) for n, size in pairs),
        f"Input(Out@GRAD) of {c.definition.type} must have a multiple of each size of Input(X).",
        expected=f"multiples of {list(x.shape)}", received=list(g.shape),
    )  # fmt: skip
    like_forward(c)


_DOC = """Out = {formula}; the LoD is propagated where rows are not repeated.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("{type}", {{"X": {x}}}, {attrs})["Out"]
        array({out})

    Source: {owner}'s {type}_op.
    """


def _define(type: str, row: Row) -> None:
    def infer(c: Context) -> None:
        repeats = row.repeats(c)
        rows_stay = repeats and len(repeats) == c["X"].ndim and repeats[0][1] == 1
        shape = [-1 if n < 0 or t < 0 else n * t for n, t in repeats]
        c.set("Out", shape, c["X"].dtype, c.lod("X") if rows_stay else ())

    def apart(b: Context) -> tuple[list[int], list[int]]:
        """The shape of Out with each repetition as a separate dimension, and that of X."""
        repeats = row.repeats(b)
        return [n for size, times in repeats for n in (times, size)], [n for size, _ in repeats for n in (1, size)]

    def summed(b: Context) -> list[int]:
        """The shape of dOut with each repetition as a separate dimension."""
        g = b["Out@GRAD"]
        return [m for n, size in zip(g.shape, _filled(b, g.ndim), strict=True) for m in (n // max(size, 1), size)]

    @op(
        type,
        inputs={"X": "any shape", **row.slots},
        outputs={"Out": row.formula},
        attrs=row.attrs,
        infer=infer,
        grad=default_grad("X", *row.variables, "Out@GRAD", wrt=["X"]),
        guard=values_of(*row.variables),
        dtype_slot="X",
        cuda=True,
        doc=_DOC.format(
            type=type, formula=row.formula, x=row.example[0], attrs=row.example[1], out=row.example[2],
            owner="Fluid" if type == "expand" else "Paddle",
        ),
    )  # fmt: skip
    def repeated(b: Binder) -> None:
        whole, part = apart(b)
        out: Any = writing(b, b["Out"], whole)
        verbs.copy(b, out, reading(b, b["X"], part))
        written(b, b["Out"], out)

    @grad_op(
        type + "_grad", infer=_slope_infer, guard=values_of(*row.variables), dtype_slot="X", cuda=FLOATS,
        grad=None if type == "expand_as_v2" else linear_grad(type, also=row.variables),
    )  # fmt: skip
    def repeated_grad(b: Binder) -> None:
        """dX = the sum of dOut over all repetitions."""
        g, whole = b["Out@GRAD"], summed(b)
        if b.on_cuda:
            return fold(b, g, b["X@GRAD"], whole, range(0, len(whole), 2))
        dx = writing(b, b["X@GRAD"], [1 if d % 2 == 0 else size for d, size in enumerate(whole)])
        b(np.add.reduce, reading(b, g, whole), tuple(range(0, len(whole), 2)), None, dx, True)
        return written(b, b["X@GRAD"], dx)

    @c_code(type, function="rearranged", file="strided_copy.c")
    def in_c(c: Context) -> dict[str, Constant]:
        x, out = c["X"], c["Out"]
        shape = [m for n, size in zip(out.shape, _filled(c, out.ndim), strict=True) for m in (n // max(size, 1), size)]
        part = [1 if d % 2 == 0 else size for d, size in enumerate(shape)]
        return parts_in_c(out, x, layout_of(out, shape), layout_of(x, part))

    @c_code(type + "_grad", function="repeated_grad", file="strided_copy.c")
    def grad_in_c(c: Context) -> dict[str, Constant]:
        g, dx, whole = c["Out@GRAD"], c["X@GRAD"], summed(c)
        target = layout_of(dx, [1 if d % 2 == 0 else size for d, size in enumerate(whole)])
        return parts_in_c(dx, g, np.broadcast_to(target, whole), layout_of(g, whole))


for _type, _row in ROWS.items():
    _define(_type, _row)
