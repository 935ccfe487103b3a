"""squeeze, unsqueeze and flatten: the same elements with other dimensions, one row for each operator.

Each has a second form, with a 2, whose gradient needs the shape of X alone, which XShape keeps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fluidnb.op import Attr, Binder, Context, default_grad, grad_op, op, product, values_of
from fluidnb_kernels.rules import integers, one_axis
from fluidnb_kernels.tensor.reshape import AGAIN, emit_reshape, lod_of

Shape = tuple[int, ...]


def _squeezed(c: Context) -> Shape:
    shape, axes = c["X"].shape, c.attr("axes")
    if not axes:
        return tuple(n for n in shape if n != 1)
    gone = {one_axis(c, a, len(shape), "axes") for a in axes}
    return tuple(n for i, n in enumerate(shape) if i not in gone or n not in (1, -1))


def _unsqueezed(c: Context) -> Shape:
    shape, axes = list(c["X"].shape), integers(c, "axes", "AxesTensor", "AxesTensorList")
    if not c.runtime and (c.has("AxesTensor") or c.has("AxesTensorList")):
        return (-1,) * (len(shape) + len(axes))
    for a in axes:
        shape.insert(one_axis(c, a, len(shape) + 1, "axes"), 1)
    return tuple(shape)


def _flattened(c: Context) -> Shape:
    shape, axis = c["X"].shape, c.attr("axis")
    c.require(
        0 <= axis <= len(shape), f"Attr(axis) of {c.definition.type} must be from 0 to the rank of X.",
        expected=f"0 to {len(shape)}", received=axis,
    )  # fmt: skip
    return product(shape[:axis]), product(shape[axis:])


def _range_flattened(c: Context) -> Shape:
    shape = c["X"].shape
    start, stop = (one_axis(c, c.attr(n), len(shape), n) for n in ("start_axis", "stop_axis"))
    c.require(start <= stop, "stop_axis must not come before start_axis.", expected=f">= {start}", received=stop)
    return (*shape[:start], product(shape[start : stop + 1]), *shape[stop + 1 :])


@dataclass(frozen=True, slots=True)
class Row:
    """One operator."""

    formula: str  # what it does to the shape
    shape: Callable[[Context], Shape]  # the new shape; -1 where it is not known yet
    attrs: dict[str, Attr]  # its attributes
    example: tuple[str, str, str]  # shape of X, attributes and shape of Out, for the documentation
    tensors: tuple[str, ...] = ()  # inputs of Paddle 2 that stand for attributes


_SQUEEZE = Row(
    "without dimensions of size 1", _squeezed,
    {"axes": Attr("ints", [], "the dimensions that go where their size is 1; none means all of size 1")},
    ("(1, 3, 1)", '{"axes": [0]}', "(3, 1)"),
)  # fmt: skip
_UNSQUEEZE = Row(
    "with new dimensions of size 1", _unsqueezed,
    {"axes": Attr("ints", [], "where the new dimensions are, one after another")},
    ("(2, 3)", '{"axes": [0, -1]}', "(1, 2, 3, 1)"), ("AxesTensor?", "AxesTensorList*?"),
)  # fmt: skip
_FLATTEN = Row(
    "as a matrix", _flattened, {"axis": Attr("int", 1, "how many dimensions make the height")},
    ("(2, 3, 4)", '{"axis": 2}', "(6, 4)"),
)  # fmt: skip
_RANGE = Row(
    "with some neighbouring dimensions as one", _range_flattened,
    {"start_axis": Attr("int", 1, "the first of them"), "stop_axis": Attr("int", 1, "the last of them")},
    ("(2, 3, 4)", '{"start_axis": 0, "stop_axis": 1}', "(6, 4)"),
)  # fmt: skip

ROWS = {
    "squeeze": _SQUEEZE, "squeeze2": _SQUEEZE, "unsqueeze": _UNSQUEEZE, "unsqueeze2": _UNSQUEEZE,
    "flatten": _FLATTEN, "flatten2": _FLATTEN, "flatten_contiguous_range": _RANGE,
}  # fmt: skip

_DOC = """Out = X {formula}; the LoD is propagated where the number of rows stays.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("{type}", {{"X": np.zeros({x})}}, {attrs})["Out"].shape
        {out}

    Source: Fluid's {type}_op.
    """


def _define(type: str, row: Row) -> None:
    keeps = not type.endswith(("squeeze", "flatten"))

    def rule(c: Context) -> None:
        x, shape = c["X"], row.shape(c)
        if not c.runtime:  # while running Out may be a view of X, so the kernel makes it
            c.set("Out", shape, x.dtype, lod_of(c, shape))
        c.set("XShape", (0, *x.shape), x.dtype, c.lod("X"))

    @op(
        type,
        inputs={"X": "any shape", **dict.fromkeys(row.tensors, "the axes as variables")},
        outputs={"Out": "X " + row.formula, **({"XShape~": "no elements: [0, the shape of X]"} if keeps else {})},
        attrs=row.attrs,
        infer=rule,
        guard=values_of(*(slot.rstrip("*?") for slot in row.tensors)),
        grad=default_grad("XShape" if keeps else "X", "Out@GRAD", wrt=["X"]),
        cuda=True,  # tensors of a device are contiguous, so all of it is views and copies
        doc=_DOC.format(formula=row.formula, type=type, x=row.example[0], attrs=row.example[1], out=row.example[2]),
    )
    def ranks(b: Binder) -> None:
        shape = row.shape(b)
        emit_reshape(b, "Out", b["X"], shape, lod_of(b, shape))

    @grad_op(type + "_grad", infer=None, grad=AGAIN, cuda=True)
    def ranks_grad(b: Binder) -> None:
        """dX = dOut in the shape of X."""
        shape = b["XShape"].shape[1:] if keeps else b["X"].shape
        emit_reshape(b, "X@GRAD", b["Out@GRAD"], shape, b.lod("XShape" if keeps else "X"))


for _type, _row in ROWS.items():
    _define(_type, _row)
