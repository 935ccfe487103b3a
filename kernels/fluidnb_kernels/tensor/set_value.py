"""set_value: a tensor with other values in a part of it, as ``x[1:3, ::2] = value``."""

from typing import Any

import numpy as np

from fluidnb.op import Array, Attr, Binder, Context, default_grad, grad_op, op, values_of
from fluidnb.op.c_code import Constant, c_code
from fluidnb_kernels.rules import checked, integers, one_axis, require_fixed
from fluidnb_kernels.tensor.strided_copy import layout_of, parts_in_c

_LISTS = ("StartsTensorList", "EndsTensorList", "StepsTensorList")
HOST = "no CUDA kernel yet: assign and slice have them"
#: Attributes with the values, of programs before Paddle 2.5 beside today's.
_VALUES = ("values", "fp32_values", "fp64_values", "int32_values", "int64_values", "bool_values")


def _index(c: Context) -> tuple[Any, ...]:
    """Numpy index of the part: a slice for each axis, a number where the axis is dropped."""
    rank, axes = c["Input"].ndim, c.attr("axes", [])
    starts, ends, steps = (
        integers(c, name, "", slot) for name, slot in zip(("starts", "ends", "steps"), _LISTS, strict=True)
    )
    c.require(
        len(axes) == len(starts) == len(ends) == len(steps),
        "Attr(axes), Attr(starts), Attr(ends) and Attr(steps) of set_value must have the same length.",
        expected=f"{len(axes)} numbers each", received=f"starts {starts}, ends {ends}, steps {steps}",
    )  # fmt: skip
    c.require(all(steps), "Attr(steps) of set_value must not be 0.", received=steps)
    gone = {one_axis(c, a, rank, "decrease_axes") for a in c.attr("decrease_axes", [])}
    index: list[Any] = [slice(None)] * rank
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        axis = one_axis(c, axis, rank, "axes")
        n = c["Input"].shape[axis]
        if axis in gone:
            c.require(
                not c.runtime or -n <= start < n, "set_value names an element that does not exist.",
                expected=f"{-n} to {n - 1} along axis {axis}", received=start,
            )  # fmt: skip
        part = slice(start, end, step)
        if step < 0:  # Paddle's rule: -1 ends before the first element
            part = slice(max(start, -n), None if end == -1 else end, step)
        index[axis] = start if axis in gone else part
    return tuple(index)


def _part(x: Array, index: tuple[Any, ...], new: tuple[int, ...]) -> Array:
    """The part, a view, with the axes that the assignment adds."""
    part = x[(*index, ...)]
    for count, axis in enumerate(sorted(new)):
        part = np.expand_dims(part, min(axis + count, part.ndim))
    return part


def assign(x: Array, index: tuple[Any, ...], new: tuple[int, ...], value: Array, out: Array) -> None:
    """Write x with a value in a part of it."""
    out[...] = x
    _part(out, index, new)[...] = value


def assign_grad(g: Array, index: tuple[Any, ...], new: tuple[int, ...], dx: Array | None, dvalue: Array | None) -> None:
    """Write the gradients of `assign`."""
    if dvalue is not None:
        part = _part(g, index, new)
        shape = (1,) * (part.ndim - dvalue.ndim) + dvalue.shape[max(dvalue.ndim - part.ndim, 0) :]
        repeated = tuple(i for i, (n, m) in enumerate(zip(shape, part.shape, strict=True)) if n == 1 < m)
        dvalue[...] = (part.sum(repeated, keepdims=True) if repeated else part).reshape(dvalue.shape)
    if dx is not None:
        dx[...] = g
        _part(dx, index, new)[...] = 0


def _new(c: Context) -> tuple[int, ...]:
    return tuple(c.attr("none_axes", []))


def _infer(c: Context) -> None:
    x, index = c["Input"], _index(c)
    given = [name for name in _VALUES if c.attr(name, [])]
    c.require(
        c.has("ValueTensor") or len(given) == 1, "set_value needs ValueTensor, or values in an attribute.",
        expected="one of them", received=", ".join(given) or "neither",
    )  # fmt: skip
    if c.runtime:
        shape = _part(np.broadcast_to(np.empty((), bool), x.shape), index, _new(c)).shape
        value = c["ValueTensor"].shape if c.has("ValueTensor") else tuple(c.attr("shape", [])) or (1,)
        while len(value) > len(shape) and value[0] == 1:
            value = value[1:]
        c.require(
            len(value) <= len(shape)
            and all(n in (1, m) for n, m in zip(value[::-1], shape[::-1], strict=False)),
            "The value of set_value must have the shape of the part, or one that is repeated to it.",
            expected=list(shape), received=list(value),
        )  # fmt: skip
        count = 0 if c.has("ValueTensor") else len(c.attr(given[0]))
        size = int(np.prod(c.attr("shape", []) or [1], dtype=object))
        c.require(
            c.has("ValueTensor") or count == size, "set_value must have as many values as its shape has elements.",
            expected=size, received=count,
        )  # fmt: skip
    c.set("Out", x.shape, x.dtype, c.lod("Input"))


@op(
    "set_value",
    inputs={
        "Input": "at least one dimension", "ValueTensor?": "the value, in the shape of the part",
        **dict(zip((f"{s}*?" for s in _LISTS), ("starts as variables", "ends as variables", "steps as variables"),
                   strict=True)),
    },
    outputs={"Out": "the shape of Input"},
    attrs={
        "dtype": Attr("dtype", "float32", "of the values"),
        "axes": Attr("longs", doc="the axes that are cut"),
        "starts": Attr("longs", [], "the first element along each; from the end when negative"),
        "ends": Attr("longs", [], "the one after the last along each; with a negative step, -1 is before the first"),
        "steps": Attr("longs", [], "from element to element along each"),
        "decrease_axes": Attr("longs", [], "axes with one element, which the value does not have"),
        "none_axes": Attr("longs", [], "axes that the value has beside those of the part"),
        "values": Attr("scalars", [], "the value's elements"),
        "shape": Attr("longs", [], "the value's shape"),
        "fp32_values": Attr("floats", None, "the value's elements, before Paddle 2.5"),
        "fp64_values": Attr("float64s", None, "the value's elements, before Paddle 2.5"),
        "int32_values": Attr("ints", None, "the value's elements, before Paddle 2.5"),
        "int64_values": Attr("longs", None, "the value's elements, before Paddle 2.5"),
        "bool_values": Attr("ints", None, "the value's elements, before Paddle 2.5"),
    },
    infer=checked(_infer),
    grad=default_grad("Input", "ValueTensor", *_LISTS, "Out@GRAD", wrt=["Input", "ValueTensor"]),
    guard=values_of(*_LISTS),
    dtype_slot="Input",
    host_only=HOST,
)  # fmt: skip
def set_value(b: Binder) -> None:
    """Out = Input, with Out[start:end:step] = the value along each of ``axes``.

    Example:
        >>> from fluidnb.testing import run_op
        >>> part = {"axes": [0], "starts": [0], "ends": [2], "steps": [1], "values": [5.0], "shape": [1]}
        >>> run_op("set_value", {"Input": [1.0, 2.0, 3.0]}, part)["Out"]
        array([5., 5., 3.])

    Source: Paddle's set_value_op.
    """
    x = b["Input"]
    if b.has("ValueTensor"):
        value = b["ValueTensor"]
    else:
        value = _constant(b)
    shape = _part(np.broadcast_to(np.empty((), bool), x.shape), _index(b), _new(b)).ndim
    if value.ndim > shape:
        value = value.reshape(value.shape[value.ndim - shape :])
    b(assign, x, _index(b), _new(b), value, b["Out"])


def _constant(c: Context) -> Array:
    """The value that the attributes give."""
    values = next(c.attr(name) for name in _VALUES if c.attr(name, []))
    return np.array(values).astype(c["Input"].dtype).reshape(c.attr("shape", []))


@grad_op("set_value_grad", guard=values_of(*_LISTS), dtype_slot="Out@GRAD", host_only=HOST)
def set_value_grad(b: Binder) -> None:
    """dInput = dOut but 0 in the part; dValueTensor = dOut there, summed where the value was repeated."""
    dvalue = b["ValueTensor@GRAD"] if b.has("ValueTensor") else None
    b(assign_grad, b["Out@GRAD"], _index(b), _new(b), b["Input@GRAD"], dvalue)


@c_code("set_value")
def _set_value_in_c(c: Context) -> dict[str, Constant]:
    require_fixed(c, *_LISTS)
    given = c.has("ValueTensor")
    value, out = c["ValueTensor"] if given else _constant(c), c["Out"]
    part = _part(layout_of(out), _index(c), _new(c))
    of = layout_of(value, value.shape[max(len(value.shape) - part.ndim, 0) :])
    if given:
        return {**parts_in_c(out, value, to=part, of=of), "VALUE": "ValueTensor"}
    named = {"inf": "INFINITY", "-inf": "-INFINITY", "nan": "NAN"}
    numbers = (value.astype(np.int64) if value.dtype.kind == "b" else value).ravel().tolist()
    items = ", ".join(f"(T)({named.get(str(n), str(n))})" for n in numbers)
    return {**parts_in_c(out, value, to=part, of=of), "VALUE": f"((const T[]){{{items}}})"}
