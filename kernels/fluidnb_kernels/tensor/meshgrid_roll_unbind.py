"""meshgrid, roll and unbind: elements rearranged."""

import math
from functools import partial
from itertools import product
from operator import itemgetter

import numpy as np

from fluidnb.op import Array, Attr, Binder, Context, grad_op, like_forward, op, values_of
from fluidnb.op.c_code import Constant, c_code
from fluidnb.op.grad import default_grad, second_grad
from fluidnb_kernels import verbs
from fluidnb_kernels.emit import FLOATS
from fluidnb_kernels.rules import agree, integers, one_axis, require_fixed
from fluidnb_kernels.tensor.strided_copy import fold, layout_of, move


def _grid_infer(c: Context) -> None:
    xs = c.all("X")
    c.check_inputs()
    wanted = len(c.outputs.get("Out", ()))
    c.require(wanted == len(xs), "meshgrid must have an output for each input.", expected=len(xs), received=wanted)
    shape = [x.shape[0] for x in xs]
    for i, x in enumerate(xs):
        c.set("Out", shape, x.dtype, (), i)


def _column(x: Array, i: int, rank: int) -> Array:
    """A list along dimension i."""
    return x.reshape([x.size if j == i else 1 for j in range(rank)])


@op(
    "meshgrid",
    inputs={"X*: any[its length]": "lists"},
    outputs={"Out*": "for each list a tensor with a dimension for every list"},
    infer=_grid_infer,
    grad=second_grad("meshgrid_grad", {"X": "X"}, {"outputs@GRAD": "Out"}, {"X@GRAD": "X"}),
    cuda=True,
)
def meshgrid(b: Binder) -> None:
    """Out[i] = X[i] along dimension i, repeated along the dimensions of the other lists.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("meshgrid", {"X": [np.array([1.0, 2.0]), np.array([5.0])]}, outputs={"Out": 2})["Out"][0]
        array([[1.],
               [2.]])

    Source: Paddle's meshgrid_op.
    """
    xs = b.all("X")
    for i, x in enumerate(xs):
        if b.wants("Out", i):
            verbs.copy(b, b.all("Out")[i], x, of=partial(_column, i=i, rank=len(xs)))


def _grid_grad_infer(c: Context) -> None:
    shape = [x.size for x in c.all("X")]
    for g in c.all("outputs@GRAD"):
        c.require(
            g is None or agree(g.shape, shape), "A gradient that meshgrid_grad gets must have the shape of the grid.",
            expected=shape, received=None if g is None else list(g.shape),
        )  # fmt: skip
    like_forward(c)


@grad_op("meshgrid_grad", infer=_grid_grad_infer, cuda=FLOATS)
def meshgrid_grad(b: Binder) -> None:
    """dX[i] = the sum of dOut[i] over the other dimensions."""
    for i, g in enumerate(b.all("outputs@GRAD")):
        if b.wants("X@GRAD", i):
            dx, axes = b.all("X@GRAD")[i], tuple(j for j in range(g.ndim) if j != i)
            if b.on_cuda:
                fold(b, g, dx, g.shape, axes)
            else:
                b(np.add.reduce, g, axes, None, _column(dx, i, g.ndim), True)


def _shifts(c: Context) -> tuple[list[int], list[int] | None]:
    """Shifts and their dimensions; None for all elements as one list."""
    axes, shifts = c.attr("axis", []), integers(c, "shifts", "ShiftsTensor", unknown=0)
    known = c.runtime or not c.has("ShiftsTensor")
    c.require(
        not known or len(shifts) == (len(axes) or 1), "roll needs a number for each dimension that Attr(axis) names.",
        expected=f"{len(axes) or 1}", received=shifts,
    )  # fmt: skip
    return shifts, [one_axis(c, a, c["X"].ndim) for a in axes] or None


def _roll_infer(c: Context) -> None:
    _shifts(c)
    c.set("Out", c["X"].shape, c["X"].dtype, c.lod("X"))


def rolled(x: Array, shifts: list[int], axes: list[int] | None, out: Array) -> None:
    """Write an array with elements moved along axes, or as one list; what leaves at an end comes in at the other."""
    out[...] = np.roll(x, shifts, axes) if axes else np.roll(x, shifts[0])


def _roll(b: Binder, x: Array, shifts: list[int], axes: list[int] | None, out: Array) -> None:
    """Emit ``out`` = the elements of ``x`` moved; on a GPU a copy for each part that stays in one piece."""
    if not b.on_cuda:
        return b(rolled, x, shifts, axes, out)
    shape = (x.size,) if axes is None else x.shape
    ways = [[(slice(None), slice(None))]] * len(shape)
    for axis in {*(axes or [0])}:
        n = shape[axis]
        far = sum(s for s, a in zip(shifts, axes or [0], strict=True) if a == axis) % max(n, 1)
        ways[axis] = [(slice(0, n - far), slice(far, n)), (slice(n - far, n), slice(0, far))]
    for parts in product(*ways):
        of, to = tuple(p[0] for p in parts), tuple(p[1] for p in parts)
        move(b, out, x, layout_of(out, shape)[to], layout_of(x, shape)[of])


@op(
    "roll",
    inputs={"X": "any shape", "ShiftsTensor?": "the shifts as a variable"},
    outputs={"Out": "the same shape"},
    attrs={
        "shifts": Attr("longs", [], "how far elements move along each dimension"),
        "axis": Attr("longs", [], "the dimensions; none for all elements as one list"),
    },
    infer=_roll_infer,
    grad=default_grad("X", "ShiftsTensor", "Out@GRAD", wrt=["X"]),
    guard=values_of("ShiftsTensor"),
    dtype_slot="X",
    cuda=True,
)
def roll(b: Binder) -> None:
    """Out = X with its elements moved; what leaves at an end comes in at the other.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("roll", {"X": [1.0, 2.0, 3.0]}, {"shifts": [1], "axis": [0]})["Out"]
        array([3., 1., 2.])

    Source: Paddle's roll_op.
    """
    _roll(b, b["X"], *_shifts(b), b["Out"])


@grad_op("roll_grad", guard=values_of("ShiftsTensor"), dtype_slot="X", cuda=True)
def roll_grad(b: Binder) -> None:
    """dX = dOut moved back."""
    shifts, axes = _shifts(b)
    _roll(b, b["Out@GRAD"], [-n for n in shifts], axes, b["X@GRAD"])


def _unbind_infer(c: Context) -> None:
    x = c["X"]
    axis = one_axis(c, c.attr("axis"), x.ndim)
    wanted = len(c.outputs.get("Out", ()))
    c.require(
        x.shape[axis] in (wanted, -1), "unbind must have an output for each part of X along axis.",
        expected=x.shape[axis], received=wanted,
    )  # fmt: skip
    for i in range(wanted):
        c.set("Out", (*x.shape[:axis], *x.shape[axis + 1 :]) or (1,), x.dtype, (), i)


@op(
    "unbind",
    inputs={"X": "at least one dimension"},
    outputs={"Out*": "its parts, one dimension less"},
    attrs={"axis": Attr("int", 0, "the dimension that is taken apart; from the end when negative")},
    infer=_unbind_infer,
    grad=second_grad("stack", {}, {"X": "Out"}, {"Y": "X"}),
    cuda=True,
)
def unbind(b: Binder) -> None:
    """Out[i] = the i-th part of X along ``axis``; the gradient stacks those of the parts.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("unbind", {"X": [[1.0, 2.0], [3.0, 4.0]]}, {"axis": 1}, {"Out": 2})["Out"]
        [array([1., 3.]), array([2., 4.])]

    Source: Paddle's unbind_op.
    """
    x = b["X"]
    at = (slice(None),) * (b.attr("axis") % x.ndim)
    for i, out in enumerate(b.all("Out")):
        if out is not None:
            verbs.copy(b, out, x, of=itemgetter((*at, i, ...)))


@c_code("roll", "roll_grad")
def _roll_in_c(c: Context) -> dict[str, Constant]:
    require_fixed(c, "ShiftsTensor")
    x = c["X"]
    shifts, axes = _shifts(c)
    sizes = [x.size] if axes is None else list(x.shape) or [1]
    moved = [0] * len(sizes)
    for shift, axis in zip(shifts, axes or [0], strict=True):
        moved[axis] = (moved[axis] + shift) % max(sizes[axis], 1)
    return {"COUNT": x.size, "SIZES": sizes, "SHIFTS": moved, "RANK": len(sizes)}


@c_code("unbind")
def _unbind_in_c(c: Context) -> dict[str, Constant]:
    x, parts = c["X"], c.all("Out")
    axis = c.attr("axis", 0) % x.ndim
    there = [i for i in range(len(parts)) if c.wants("Out", i)]
    rows, width = math.prod(x.shape[:axis]), math.prod(x.shape[axis + 1 :])
    return {"ROWS": rows, "WIDTH": width, "LAYERS": len(parts), "PARTS": len(there), "LAYER": there}


@c_code("meshgrid")
def _meshgrid_in_c(c: Context) -> dict[str, Constant]:
    sizes = [x.size for x in c.all("X")]
    there = [i for i in range(len(sizes)) if c.wants("Out", i)]
    inners = [math.prod(sizes[i + 1 :]) for i in there]
    numbers = {"COUNT": math.prod(sizes), "PARTS": len(there), "LISTS": there}
    return {**numbers, "SIZES": [sizes[i] for i in there], "INNERS": inners}
