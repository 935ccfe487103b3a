"""take_along_axis, put_along_axis: elements along one axis, named by numbers of the output's or values' shape."""

import math
from typing import Any

import numpy as np

from fluidnb.errors import EnforceNotMet
from fluidnb.op import Array, Attr, Binder, Context, default_grad, grad_op, op
from fluidnb.op.c_code import Constant, c_code
from fluidnb_kernels.rules import checked, one_axis

HOST = "no CUDA kernel yet: elements that are named twice are added in a fixed order"


def _checked(index: Array, size: int, type: str) -> Array:
    """Numbers of elements from 0 on; negative ones count from the end."""
    if index.size and not -size <= index.min() <= index.max() < size:
        bad = index[(index < -size) | (index >= size)].ravel()[0]
        raise EnforceNotMet(
            f"Index of {type} names an element that does not exist.", expected=f"{-size} to {size - 1}",
            received=int(bad), hint="every number is that of an element along Axis.",
        )  # fmt: skip
    return np.where(index < 0, index + size, index)


def _spots(index: Array, axis: int) -> tuple[Any, ...]:
    """Index arrays that name the elements."""
    spots = list(np.ogrid[tuple(slice(n) for n in index.shape)])
    spots[axis] = index
    return tuple(spots)


def take(x: Array, index: Array, axis: int, out: Array) -> None:
    """Write the elements that an index names."""
    out[...] = x[_spots(_checked(index, x.shape[axis], "take_along_axis"), axis)]


def add_back(g: Array, index: Array, axis: int, dx: Array) -> None:
    """Add values to the elements that an index names."""
    dx[...] = 0
    np.add.at(dx, _spots(_checked(index, dx.shape[axis], "take_along_axis"), axis), g)


def _axis(c: Context) -> int:
    return one_axis(c, c.attr("Axis", 0), c["Input"].ndim, "Axis")


def _check(c: Context) -> tuple[int, ...]:
    """The shape of the index, which must name elements of Input."""
    x, index, axis = c["Input"], c["Index"], _axis(c)
    c.check_inputs()
    c.require(
        index.ndim == x.ndim
        and all(-1 in (n, m) or n <= m for i, (n, m) in enumerate(zip(index.shape, x.shape, strict=True)) if i != axis),
        f"Index of {c.definition.type} must have the axes of Input, and be no longer along the others than Axis.",
        expected=f"{x.ndim} axes, at most {list(x.shape)}", received=list(index.shape),
    )  # fmt: skip
    shape: tuple[int, ...] = index.shape
    return shape


@op(
    "take_along_axis",
    inputs={"Input": "at least one dimension", "Index: int": "which elements along Axis; as many axes as Input"},
    outputs={"Result": "the shape of Index"},
    attrs={"Axis": Attr("int", 0, "the axis along which elements are named; from the end when negative")},
    infer=checked(lambda c: c.set("Result", _check(c), c["Input"].dtype)),
    grad=default_grad("Input", "Index", "Result@GRAD", wrt=["Input"]),
    dtype_slot="Input",
    host_only=HOST,
)
def take_along_axis(b: Binder) -> None:
    """Result[i, j] = Input[i, Index[i, j]] for ``Axis`` 1, and likewise for the others.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("take_along_axis", {"Input": [[1.0, 2.0]], "Index": np.array([[1, 0]])}, {"Axis": 1})["Result"]
        array([[2., 1.]])

    Source: Paddle's take_along_axis_op.
    """
    b(take, b["Input"], b["Index"], _axis(b), b["Result"])


@grad_op("take_along_axis_grad", dtype_slot="Input", host_only=HOST)
def take_along_axis_grad(b: Binder) -> None:
    """dInput = 0, with each element of dResult added where it came from."""
    b(add_back, b["Result@GRAD"], b["Index"], _axis(b), b["Input@GRAD"])


#: Reduce -> how a value meets the element that is there; None where it takes its place.
REDUCE: dict[str, np.ufunc | None] = {
    "assign": None, "add": np.add, "multiply": np.multiply, "mul": np.multiply, "amax": np.maximum, "amin": np.minimum,
}  # fmt: skip
_NEUTRAL = {"add": 0, "multiply": 1, "mul": 1}


def put(x: Array, index: Array, values: Array, axis: int, how: str, include: bool, out: Array) -> None:
    """Write an array with values put where an index names elements."""
    out[...] = x
    spots = _spots(_checked(index, x.shape[axis], "put_along_axis"), axis)
    values = np.broadcast_to(values, index.shape)
    function = REDUCE[how]
    if function is None or not include:
        out[spots] = values if function is None or how not in _NEUTRAL else _NEUTRAL[how]
    if function is not None:
        function.at(out, spots, values)


def put_grad(
    g: Array, index: Array, axis: int, how: str, x: Array, values: Array, dx: Array | None, dvalues: Array | None
) -> None:
    """Write the gradients of `put` for assign, add and products."""
    spots = _spots(_checked(index, g.shape[axis], "put_along_axis"), axis)
    total = x
    if how in ("mul", "multiply"):
        total = np.empty_like(g)
        put(x, index, values, axis, how, True, total)
    if dx is not None:
        dx[...] = g
        if how == "assign":
            dx[spots] = 0
        elif total is not x:
            dx[spots] = (g * total / x)[spots]
    if dvalues is not None:
        dvalues[...] = g[spots] if total is x else (g * total)[spots] / values


def _put_infer(c: Context) -> None:
    shape, values = _check(c), c["Value"]
    c.require(
        values.size == 1 or len(values.shape) == len(shape)
        and all(-1 in (n, m) or n in (1, m) for n, m in zip(values.shape, shape, strict=True)),
        "Value of put_along_axis must have the shape of Index, or one that is repeated to it.",
        expected=list(shape), received=list(values.shape),
    )  # fmt: skip
    c.set("Result", c["Input"].shape, c["Input"].dtype)


@op(
    "put_along_axis",
    inputs={
        "Input": "at least one dimension", "Index: int": "which elements along Axis; as many axes as Input",
        "Value": "what is put there, in the shape of Index",
    },
    outputs={"Result": "the shape of Input"},
    attrs={
        "Axis": Attr("int", 0, "the axis along which elements are named; from the end when negative"),
        "Reduce": Attr("string", "assign", "how a value meets the element that is there", enum=tuple(REDUCE)),
        "Include_self": Attr("bool", True, "whether the element that is there counts"),
    },
    infer=checked(_put_infer),
    grad=default_grad("Input", "Index", "Value", "Result@GRAD", wrt=["Input", "Value"]),
    dtype_slot="Input",
    host_only=HOST,
)  # fmt: skip
def put_along_axis(b: Binder) -> None:
    """Result = Input, with Result[i, Index[i, j]] = Value[i, j] for ``Axis`` 1; or the sum, product, maximum, minimum.

    Example:
        >>> from fluidnb.testing import run_op
        >>> given = {"Input": [[1.0, 2.0]], "Index": np.array([[1]]), "Value": [[5.0]]}
        >>> run_op("put_along_axis", given, {"Axis": 1, "Reduce": "add"})["Result"]
        array([[1., 7.]])

    Source: Paddle's put_along_axis_op.
    """
    how = b.attr("Reduce", "assign"), b.attr("Include_self", True)
    b(put, b["Input"], b["Index"], b["Value"], _axis(b), *how, b["Result"])


def _put_grad_infer(c: Context) -> None:
    c.require(
        c.attr("Reduce", "assign") in ("assign", "add", "mul", "multiply") and c.attr("Include_self", True),
        "put_along_axis has a gradient for assign, add and mul.", expected="one of these, with Include_self",
        received=c.attr("Reduce", "assign"), hint="leave it out of the loss, or stop the gradient at its inputs.",
    )  # fmt: skip
    for slot in ("Input", "Value"):
        c.set(f"{slot}@GRAD", c[slot].shape if slot == "Input" else c["Index"].shape, c["Input"].dtype)


@grad_op("put_along_axis_grad", infer=_put_grad_infer, dtype_slot="Input", host_only=HOST)
def put_along_axis_grad(b: Binder) -> None:
    """dInput = dResult but where values took the place; dValue = dResult there; products: dResult · Result / X."""
    how = b.attr("Reduce", "assign")
    targets = b["Input@GRAD"], b["Value@GRAD"]
    b(put_grad, b["Result@GRAD"], b["Index"], _axis(b), how, b["Input"], b["Value"], *targets)


#: Reduce -> how a value meets the element that is there, in C.
_JOINS = {"assign": "value", "add": "there + value", "multiply": "there * value", "mul": "there * value"}


@c_code("put_along_axis")
def _put_along_axis_in_c(c: Context) -> dict[str, Constant]:
    how, value, index = c.attr("Reduce", "assign"), c["Value"], c["Index"]
    lost = " || isnan(value)" if value.dtype.kind == "f" else ""
    join = _JOINS.get(how, f"there {'<' if how == 'amax' else '>'} value{lost} ? value : there")
    shape = value.shape if value.size > 1 else (1,) * index.ndim
    steps = [0 if n == 1 else math.prod(shape[i + 1 :]) for i, n in enumerate(shape)]
    found = {**_along_axis_in_c(c), "JOIN": join, "FIRST": str(_NEUTRAL.get(how, "value")), "VALUE_STEPS": steps}
    return {**found, "INCLUDED": c.attr("Include_self", True)}


@c_code("take_along_axis", "take_along_axis_grad")
def _along_axis_in_c(c: Context) -> dict[str, Constant]:
    x, index, axis = c["Input"], c["Index"], _axis(c)
    steps = [math.prod(x.shape[i + 1 :]) for i in range(x.ndim)]
    numbers = {"COUNT": index.size, "WHOLE": x.size, "HEIGHT": x.shape[axis], "STEP": steps[axis], "RANK": x.ndim}
    return {**numbers, "SIZES": list(index.shape), "STEPS": [0 if i == axis else n for i, n in enumerate(steps)]}
