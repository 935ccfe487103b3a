"""reshape, squeeze, unsqueeze and flatten: the same elements in another shape.

Most have a second form, with a 2, whose gradient needs the shape of X alone, which XShape keeps.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from fluidnb.op import Attr, Binder, Context, default_grad, grad_op, op, product, second_grad, values_of
from fluidnb.op.c_code import Constant, c_code
from fluidnb_kernels.emit import is_view, writing, written
from fluidnb_kernels.rules import integers, one_axis

_INPUTS = {
    "X": "any shape",
    "Shape?": "the sizes as a variable, instead of the attribute",
    "ShapeTensor*?": "each size as a variable of one element",
}


def target_shape(c: Context, wanted: list[int]) -> tuple[int, ...]:
    """The shape that a reshape gives; of the sizes 0 copies that of X, one -1 takes what is left or is unknown."""
    x = c["X"]
    if not c.runtime and wanted.count(-1) > 1 and (c.has("Shape") or c.has("ShapeTensor")):
        return tuple(x.shape[i] if n == 0 and i < x.ndim else n for i, n in enumerate(wanted))  # known when it runs
    c.require(
        wanted.count(-1) <= 1, "Only one dimension value of 'shape' in ReshapeOp can be -1.",
        expected="one -1 at most", received=wanted,
        hint=f"write the other sizes: shape={[-1, *x.shape[1:]]} keeps that of X."
        if -1 not in x.shape[1:]
        else "write the other sizes as numbers, or as 0 to copy that of X.",
    )  # fmt: skip
    shape: list[int] = []
    for i, n in enumerate(wanted):
        c.require(
            n >= -1, "The sizes in Attr(shape) of reshape are -1, 0 or positive.", expected=">= -1", received=wanted
        )
        c.require(
            n != 0 or i < x.ndim, "A 0 in Attr(shape) of reshape copies a dimension that X does not have.",
            expected=f"0 before dimension {x.ndim}", received=wanted,
        )  # fmt: skip
        shape.append(x.shape[i] if n == 0 else n)
    copied = [i for i, n in enumerate(wanted) if n == 0 and x.shape[i] == -1]  # unknown on both sides: they cancel out
    if -1 in wanted and x.shape.count(-1) == len(copied):
        i = wanted.index(-1)
        size = product([n for n in x.shape if n != -1])
        rest = product([n for k, n in enumerate(shape) if k != i and k not in copied])
        if size and (rest <= 0 or size % rest):
            c.fail(
                "X cannot be reshaped to Attr(shape) of reshape: sizes do not divide.",
                expected=f"a multiple of {rest} elements", received=f"{size} elements in {list(x.shape)}",
                hint=_sizes_hint(wanted, size),
            )  # fmt: skip
        shape[i] = size // rest if rest > 0 else 0
    elif -1 not in shape and -1 not in x.shape:
        if product(shape) != x.size:
            c.fail(
                "The size of X must be that of Attr(shape) of reshape.",
                expected=f"{product(shape)} elements for {wanted}", received=f"{x.size} elements in {list(x.shape)}",
                hint=_sizes_hint(wanted, x.size),
            )  # fmt: skip
    return tuple(shape)


def _sizes_hint(wanted: list[int], size: int) -> str:
    """Sizes like the wanted ones that have as many elements as X."""
    known = product([n for n in wanted[:-1] if n > 0])
    if -1 not in wanted[:-1] and 0 not in wanted and size % known == 0:
        return f"shape={[*wanted[:-1], -1]} has {size} elements."
    return f"shape=[-1] has {size} elements."


def _wanted(c: Context) -> list[int]:
    """The requested sizes; while building, the attribute's in place of a variable's."""
    if not c.runtime and (c.has("Shape") or c.has("ShapeTensor")):
        return list(c.attr("shape")) or integers(c, "shape", "Shape", "ShapeTensor")
    return integers(c, "shape", "Shape", "ShapeTensor")


def lod_of(c: Context, shape: tuple[int, ...]) -> Any:
    """The LoD of X, where its rows are those of the new shape."""
    return c.lod("X") if shape and c["X"].ndim and shape[0] == c["X"].shape[0] else ()


def emit_reshape(b: Binder, slot: str, x: Any, shape: tuple[int, ...], lod: Any) -> None:
    """Emit an output that has the elements of an array in another shape: a view of it where that is safe."""
    view = x.reshape(shape)
    if is_view(view, x):
        return b.alias(slot, view, lod)
    out = b.set(slot, shape, x.dtype, lod)
    if out is not None:
        whole = writing(b, out, x.shape)
        b(np.copyto, whole, x)
        written(b, out, whole)


#: The gradient of the gradient of every operator that keeps the elements and changes the shape.
AGAIN = second_grad("reshape2_grad_grad", {"DOut": "Out@GRAD"}, {"DDX": "X@GRAD"}, {"DDOut": "Out@GRAD"})


def _reshape_define(type: str, keeps: bool, doc: str) -> None:
    """Register a form of reshape; one that keeps XShape needs no more of X for its gradient."""

    def infer(c: Context) -> None:
        shape, x = target_shape(c, _wanted(c)), c["X"]
        if not c.runtime:  # while running Out may be a view of X, so the kernel makes it
            c.set("Out", shape, x.dtype, lod_of(c, shape))
        c.set("XShape", (0, *x.shape), x.dtype, c.lod("X"))

    @op(
        type,
        inputs=_INPUTS,
        outputs={
            "Out": "its elements in another shape",
            **({"XShape~": "no elements: [0, the shape of X]"} if keeps else {}),
        },
        attrs={"shape": Attr("ints", [], "sizes: 0 copies that of X, one -1 takes what is left")},
        infer=infer,
        grad=default_grad(*(["XShape"] if keeps else ["X", "Out"]), "Out@GRAD", wrt=["X"]),
        guard=values_of("Shape", "ShapeTensor"),
        dtype_slot="X",
        cuda=True,  # tensors of a device are contiguous, so all of it is views and copies
        doc=doc,
    )  # fmt: skip
    def reshape(b: Binder) -> None:
        shape = target_shape(b, _wanted(b))
        emit_reshape(b, "Out", b["X"], shape, lod_of(b, shape))

    @grad_op(type + "_grad", infer=None, grad=AGAIN, cuda=True)
    def reshape_grad(b: Binder) -> None:
        """dX = dOut in the shape of X."""
        shape, slot = (b["XShape"].shape[1:], "XShape") if keeps else (b["X"].shape, "X")
        emit_reshape(b, "X@GRAD", b["Out@GRAD"], shape, b.lod(slot))


_reshape_define(
    "reshape", False,
    """Out = the elements of X in another shape; the LoD is propagated where the number of rows stays.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("reshape", {"X": [[1, 2, 3], [4, 5, 6]]}, {"shape": [-1, 2]})["Out"]
        array([[1, 2],
               [3, 4],
               [5, 6]])

    Source: Fluid's reshape_op.
    """,
)  # fmt: skip
_reshape_define(
    "reshape2", True,
    """Out = the elements of X in another shape; its gradient needs the shape of X alone, which XShape keeps.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("reshape2", {"X": [[1, 2], [3, 4]]}, {"shape": [4]})["Out"]
        array([1, 2, 3, 4])

    Source: Fluid's reshape_op.
    """,
)  # fmt: skip


def _again_infer(c: Context) -> None:
    if not c.runtime:
        c.set("DDOut", c["DOut"].shape, c["DOut"].dtype, c.lod("DOut"))


@grad_op("reshape2_grad_grad", infer=_again_infer, cuda=True)
def reshape2_grad_grad(b: Binder) -> None:
    """DDOut = DDX in the shape of DOut."""
    emit_reshape(b, "DDOut", b["DDX"], b["DOut"].shape, b.lod("DOut"))


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


def _squeeze_flatten_define(type: str, row: Row) -> None:
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
    _squeeze_flatten_define(_type, _row)


@c_code("reshape", "reshape2", *ROWS, function="reshaped")
def _reshaped_in_c(c: Context) -> dict[str, Constant]:
    return {"COUNT": c["Out"].size}


@c_code("reshape_grad", "reshape2_grad", *(f"{type}_grad" for type in ROWS), function="reshaped_grad")
def _reshaped_grad_in_c(c: Context) -> dict[str, Constant]:
    return {"COUNT": c["Out@GRAD"].size}
