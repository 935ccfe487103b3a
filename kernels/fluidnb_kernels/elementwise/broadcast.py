"""Broadcasting of Y to X as Fluid does it, and the dimensions of a launch."""

from collections.abc import Iterable, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from fluidnb.op import Attr, Binder, Context, broadcast_dim
from fluidnb.op.c_code import Constant

Shape = tuple[int, ...]

#: The attribute that every operator on two tensors has.
AXIS = Attr("int", -1, "dimension of X at which Y begins; -1 aligns them at the last one", ge=-1)


def aligned(x: Shape, y: Shape, axis: int) -> tuple[Shape, Shape]:
    """Two shapes filled up with 1 to as many dimensions; of unequal lengths where they do not fit."""
    if x == y:  # Fluid does not look at axis then
        return x, y
    if len(y) > len(x):
        return aligned(y, x, axis)[::-1]
    start = len(x) - len(y) if axis == -1 else axis
    while y and y[-1] == 1 and start + len(y) > len(x):
        y = y[:-1]
    return x, (1,) * start + y + (1,) * (len(x) - start - len(y))


def filled(c: Context, whole: Shape, part: Shape) -> Shape:
    """A shape filled up with 1 to as many dimensions as another, from the operator's axis on."""
    axis = c.attr("axis", -1)
    x, y = aligned(whole, part, axis)
    if len(x) != len(y):
        c.fail(
            f"Broadcast dimension mismatch: the operands of {c.definition.type} do not fit.",
            expected=f"{list(part)} within {list(whole)} from dimension {axis} on", received=f"axis {axis}",
            hint=_axis_hint(whole, part),
        )  # fmt: skip
    return y


def _axis_hint(x: Shape, y: Shape) -> str:
    """The axis of X at which Y fits, or what Y would have to be."""
    starts = range(max(len(x) - len(y), 0) + 1)
    fitting = [k for k in starts if all(m in (1, n) for n, m in zip(x[k:], y, strict=False)) and len(y) <= len(x)]
    if fitting:
        return f"axis={fitting[0]} begins with dimension {fitting[0]} of X."
    return f"Y has to end in the sizes of X, {list(x[-len(y) :])} for example; layers.reshape or layers.slice makes it."


def joined(c: Context) -> tuple[Shape, Shape, Shape]:
    """The aligned shapes of X and Y, and the shape of what comes of them."""
    return _joined(c, c["X"].shape, c["Y"].shape)


def _joined(c: Context, of_x: Shape, of_y: Shape) -> tuple[Shape, Shape, Shape]:
    """The same for their shapes."""
    axis = c.attr("axis", -1)
    if of_x == of_y:
        return of_x, of_y, of_x
    x, y = aligned(of_x, of_y, axis)
    out = tuple(broadcast_dim(i, j) for i, j in zip(x, y, strict=False))
    if len(x) != len(y) or -2 in out:
        c.fail(
            f"Broadcast dimension mismatch: the operands of {c.definition.type} do not fit.",
            expected=f"Y broadcastable to X {list(of_x)} from dimension {axis} on",
            received=f"Y {list(of_y)}",
            hint=_axis_hint(of_x, of_y),
        )  # fmt: skip
    return x, y, out


def broadcast(c: Context) -> None:
    """Rule: Out has the shape of X and Y together, the dtype and the LoD of X."""
    x, y = c["X"], c["Y"]
    out = _joined(c, x.shape, y.shape)[2]
    if x.dtype != y.dtype:  # numpy takes microseconds to write a dtype: only for a message
        c.fail(
            f"DataType of Paddle Op {c.definition.type} must be the same. Get ({x.dtype}) != ({y.dtype})",
            expected=f"X and Y of one dtype, for example {x.dtype}", received=f"{x.dtype} and {y.dtype}",
            hint="cast one of them with layers.cast.",
        )  # fmt: skip
    c.set("Out", out, x.dtype, c.lod("X"))


def operands(b: Binder) -> tuple[Any, Any]:
    """X and Y as views that numpy broadcasts."""
    x, y, _ = joined(b)
    return b["X"].reshape(x), b["Y"].reshape(y)


def summed(shape: Shape, out: Shape) -> tuple[int, ...]:
    """The axes along which an operand was repeated, over which its gradient is summed."""
    return tuple(i for i, (n, m) in enumerate(zip(shape, out, strict=True)) if n == 1 != m)


#: Dimensions that a kernel takes at most.
MOST = 6


class Dim(NamedTuple):
    """Merges adjacent dimensions that are alike."""

    size: int  # how many elements it counts
    in_x: bool  # whether X has it, and is not repeated along it
    in_y: bool  # whether Y has it


class Band(NamedTuple):
    """X as (outer, mid, inner), of which Y has mid."""

    outer: int  # how often Y is repeated
    mid: int  # the elements of Y
    inner: int  # how many elements of X beside each other meet one of Y


def merged(x: Shape, y: Shape, out: Shape) -> list[Dim]:
    """The dimensions of two operands, of which neighbours differ and none has size 1."""
    dims: list[Dim] = []
    for n, m, size in zip(x, y, out, strict=True):
        kind = n == size, m == size
        if size == 1:
            continue
        if dims and dims[-1][1:] == kind:
            dims[-1] = Dim(dims[-1].size * size, *kind)
        else:
            dims.append(Dim(size, *kind))
    return dims


def alike(dims: list[Dim]) -> bool:
    """Whether X and Y have one shape."""
    return all(dim.in_x and dim.in_y for dim in dims)


def band(dims: list[Dim]) -> Band | None:
    """Y as a band of X, where it is one."""
    places = [i for i, dim in enumerate(dims) if dim.in_y]
    if len(places) > 1 or not all(dim.in_x for dim in dims):
        return None
    if not places:
        return Band(1, 1, prod(dim.size for dim in dims))
    (at,) = places
    return Band(*(prod(dim.size for dim in part) for part in (dims[:at], dims[at : at + 1], dims[at + 1 :])))


def steps(dims: list[Dim], has: Sequence[bool]) -> list[int]:
    """The distance of a tensor's elements along each dimension; 0 where it lacks the dimension."""
    found, step = [0] * len(dims), 1
    for i in reversed(range(len(dims))):
        if has[i]:
            found[i], step = step, step * dims[i].size
    return found


def six(dims: list[Dim], order: Sequence[int], *tensors: Iterable[bool]) -> list[Any]:
    """Dimensions as the kernels take them: six sizes, then the six steps of each tensor, as scalars."""
    left = MOST - len(dims)
    rows = [[1] * left + [dims[i].size for i in order]]
    for tensor in tensors:
        step = steps(dims, list(tensor))
        rows.append([0] * left + [step[i] for i in order])
    return [np.int64(n) for row in rows for n in row]


def lines_in_c(c: Context) -> dict[str, Constant]:
    """Constants of C code that goes over two operands in lines, which are their last merged dimension."""
    x, y, out = joined(c)
    dims = merged(x, y, out) or [Dim(1, True, True)]
    sizes = [dim.size for dim in dims]
    found: dict[str, Constant] = {"LINES": prod(sizes[:-1]), "LINE": sizes[-1], "SIZES": sizes[:-1]}
    for k, letter in ((1, "X"), (2, "Y")):
        *before, found[letter + "_STEP"] = steps(dims, [bool(d[k]) for d in dims])
        found[letter + "_STEPS"] = before
        found[letter + "_LINE"] = f"element(line, SIZES, {letter}_STEPS, {len(before)})" if any(before) else "0"
    return found
