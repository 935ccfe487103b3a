"""Tensors filled with constants, or with evenly spaced numbers."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from fluidnb.op import Array, Attr, Binder, Context, no_slope, op, same, values_of
from fluidnb.op.c_code import Constant, c_code
from fluidnb.op.rules import Rule
from fluidnb.values import dtypes
from fluidnb.values.copies import on_host
from fluidnb_kernels import verbs
from fluidnb_kernels.cuda import Source, ctype, each, of_dtype, typed, written_as
from fluidnb_kernels.emit import FLOATS
from fluidnb_kernels.rows.values import put_whole, values_of_output
from fluidnb_kernels.rules import SHAPE_SLOTS, checked, integers
from fluidnb_kernels.tensor import strided_copy

#: The attributes of operators that fill with one value.
VALUE = {
    "value": Attr("float", 0.0, "the value"),
    "str_value": Attr("string", "", "the value as text, exact for large whole numbers; wins over value"),
    "force_cpu": Attr("bool", False, "keep the result on the CPU"),
}


def filling(b: Binder, dtype: Any) -> Any:
    """The value of an operator that fills, in the dtype of its output."""
    return b.const(_value(b, dtype), dtype)


def _value(c: Context, dtype: Any) -> float | int:
    """The value of an operator that fills, as a number."""
    text = c.attr("str_value", "")
    if not text:
        value: float | int = c.attr("value", 0.0)
    elif dtype.kind in "iu" and text.lstrip("+-").isdigit():
        value = int(text)
    else:
        value = float(text)
    return np.asarray(value).astype(dtype).item() if dtype.kind in "iub" else value


def _fixed(c: Context) -> tuple[tuple[int, ...], Any]:
    """The shape and the dtype that the attributes of an operator give its Out."""
    shape = integers(c, "shape", "ShapeTensor", "ShapeTensorList")
    known = c.runtime or not (c.has("ShapeTensor") or c.has("ShapeTensorList"))
    c.require(
        not known or all(n >= 0 for n in shape),
        f"The sizes in Attr(shape) of {c.definition.type} must not be negative.",
        expected="sizes >= 0", received=shape,
        hint="a size that depends on the batch: fill_constant_batch_size_like.",
    )  # fmt: skip
    return tuple(shape), dtypes.np_dtype(c.attr("dtype", 5))


def fixed_shape(c: Context) -> None:
    """Rule: Out has the shape and the dtype of the attributes."""
    c.set("Out", *_fixed(c))


def fixed_shape_or_rows(c: Context) -> None:
    """Rule: the same, also of the values of SelectedRows where Out is such."""
    shape, dtype = _fixed(c)
    if not (isinstance(c, Binder) and put_whole(c, "Out", shape, dtype)):
        c.set("Out", shape, dtype)


@op(
    "fill_constant",
    inputs={"ValueTensor?: any[1]": "the value as a variable, instead of the attribute", **SHAPE_SLOTS},
    outputs={"Out": "of the shape of the attribute"},
    attrs={
        "shape": Attr("longs", [], "sizes"),
        "dtype": Attr("dtype", "float32", "dtype of Out"),
        **VALUE,
        "place_type": Attr("int", -1, "ignored (compatibility with Paddle 2)"),
    },
    infer=checked(fixed_shape_or_rows, "ValueTensor"),
    guard=values_of("ShapeTensor", "ShapeTensorList"),
    cuda=True,
)
def fill_constant(b: Binder) -> None:
    """Out = value everywhere; SelectedRows get the values of all their rows.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("fill_constant", attrs={"shape": [2], "dtype": "int64", "value": 3.0})["Out"]
        array([3, 3])

    Source: Fluid's fill_constant_op.
    """
    out = values_of_output(b)
    if not b.has("ValueTensor"):
        return verbs.fill(b, out, filling(b, out.dtype))
    value = b["ValueTensor"]
    if not b.on_cuda:
        return b(np.copyto, out, value.reshape(()))
    value = of_dtype(b, value, out.dtype)  # it stays on the device
    return strided_copy.move(b, out, value, of=strided_copy.layout_of(value, ()))


def batch_size_like(c: Context, sequences: bool = False) -> None:
    """Rule: Out has the shape and the dtype of the attributes, with one size from Input."""
    x, shape, i, j = c["Input"], list(c.attr("shape")), c.attr("input_dim_idx"), c.attr("output_dim_idx")
    c.require(
        0 <= i < x.ndim and 0 <= j < len(shape),
        f"The dimensions of {c.definition.type} do not exist.",
        expected=f"input_dim_idx < {x.ndim}, output_dim_idx < {len(shape)}", received=f"{i} and {j}",
    )  # fmt: skip
    lod = c.lod("Input")
    if sequences and lod and i == 0:
        shape[j] = len(lod[-1]) - 1 if c.runtime else -1
    else:
        shape[j] = x.shape[i]
    c.set("Out", shape, dtypes.np_dtype(c.attr("dtype", 5)))


#: What operators have whose Out has one size from Input.
LIKE_INPUT = {"Input": "what has the batch size"}
LIKE = {
    "shape": Attr("ints", doc="sizes; the one that is copied may be -1"),
    "input_dim_idx": Attr("int", 0, "dimension of Input whose size is copied"),
    "output_dim_idx": Attr("int", 0, "dimension of Out that gets it"),
    "dtype": Attr("dtype", "float32", "dtype of Out"),
}


@op(
    "fill_constant_batch_size_like",
    inputs={"Input": "what has the batch size; with a LoD, its number of sequences counts"},
    outputs={"Out": "of the shape of the attribute, with one size from Input"},
    attrs={**LIKE, **VALUE},
    infer=partial(batch_size_like, sequences=True),
    grad=no_slope,
    cuda=True,
)
def fill_constant_batch_size_like(b: Binder) -> None:
    """Out = value everywhere, with as many rows as Input.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("fill_constant_batch_size_like", {"Input": [[1.0], [2.0]]}, {"shape": [-1, 3]})["Out"].shape
        (2, 3)

    Source: Fluid's fill_constant_batch_size_like_op.
    """
    verbs.fill(b, b["Out"], filling(b, b["Out"].dtype))


def _any_like(c: Context) -> None:
    number = c.attr("dtype", -1)
    c.set("Out", c["X"].shape, c["X"].dtype if number < 0 else dtypes.np_dtype(number), c.lod("X"))


def _define_like(type: str, out: str, formula: str, example: str, source: str, infer: Rule, **attrs: Attr) -> None:
    @op(
        type,
        inputs={"X": "any shape"},
        outputs={"Out": out},
        attrs=attrs,
        infer=infer,
        grad=no_slope,
        cuda=True,
        doc=f"""Out = {formula}.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("{type}", {{"X": [1.0, 2.0]}}{example}

    Source: {source}_op.
    """,
    )
    def fill_like(b: Binder) -> None:
        verbs.fill(b, b["Out"], filling(b, b["Out"].dtype))


_define_like(
    "fill_zeros_like", "zeros of its shape", "0 everywhere, with the shape, dtype and LoD of X",
    """)["Out"]\n        array([0., 0.])""", "Fluid's fill_zeros_like", same(),
)  # fmt: skip
_define_like(
    "fill_zeros_like2", "zeros of its shape",
    "0 everywhere, with the shape and LoD of X and the dtype of the attribute",
    """, {"dtype": "int64"})["Out"]\n        array([0, 0])""", "Fluid's fill_zeros_like", _any_like,
    dtype=Attr("dtype", "float32", "dtype of Out"),
)  # fmt: skip
_define_like(
    "fill_any_like", "of its shape", "value everywhere, with the shape and LoD of X",
    """, {"value": 7.0})["Out"]\n        array([7., 7.])""", "Paddle's fill_any_like", _any_like,
    value=Attr("float", 0.0, "the value"), dtype=Attr("int", -1, "VarType of Out; -1 for that of X"),
)  # fmt: skip


@c_code(
    "fill_constant", "fill_constant_batch_size_like", "fill_zeros_like", "fill_zeros_like2", "fill_any_like",
    function="fill",
)  # fmt: skip
def _fill_in_c(c: Context) -> dict[str, Constant]:
    value = _value(c, c["Out"].dtype)
    text: Constant = float(value) if c["Out"].dtype.kind == "f" else str(int(value))
    return {"COUNT": c["Out"].size, "VALUE": "(T)ValueTensor[0]" if c.has("ValueTensor") else text}


#: The attributes of assign_value of which one holds the values.
_VALUES = ("bool_values", "fp32_values", "fp64_values", "int32_values", "int64_values")


@op(
    "assign_value",
    outputs={"Out": "of the shape of the attribute"},
    attrs={
        "shape": Attr("ints", doc="sizes"),
        "dtype": Attr("dtype", doc="dtype of Out"),
        "bool_values": Attr("ints", [], "the values of a bool tensor"),
        "fp32_values": Attr("floats", [], "the values of a float32 tensor"),
        "fp64_values": Attr("float64s", [], "the values of a float64 tensor"),
        "int32_values": Attr("ints", [], "the values of an int32 tensor"),
        "int64_values": Attr("longs", [], "the values of an int64 tensor"),
    },
    infer=fixed_shape,
    cuda=True,
)
def assign_value(b: Binder) -> None:
    """Out = the values of the attribute that holds some, in row-major order.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("assign_value", attrs={"shape": [2], "dtype": "int32", "int32_values": [4, 5]})["Out"]
        array([4, 5], dtype=int32)

    Source: Fluid's assign_value_op.
    """
    verbs.write(b, b["Out"], _list(b, next((b.attr(name) for name in _VALUES if b.attr(name)), [])))


@c_code("assign_value", function="fill")
def _values_in_c(c: Context) -> dict[str, Constant]:
    out = c["Out"]
    values = np.array(next((c.attr(name) for name in _VALUES if c.attr(name)), [])).astype(out.dtype)
    real = out.dtype.kind == "f"
    items = ", ".join(map(str, values.astype(np.float64 if real else np.int64).tolist()))
    return {"COUNT": out.size, "VALUE": f"(T)((const {'double' if real else 'T'}[]){{{items}}})[i]"}


def _list(b: Binder, values: list[Any]) -> Any:
    """A list of values as an array that looks like Out."""
    out, type = b["Out"], b.definition.type
    b.require(
        len(values) == out.size, f"The number of values of {type} must be that of the elements of its shape.",
        expected=out.size, received=len(values),
    )  # fmt: skip
    return np.array(values).astype(out.dtype).reshape(out.shape)


@op(
    "fill",
    outputs={"Out": "of the shape of the attribute"},
    attrs={
        "value": Attr("floats", doc="the values, in row-major order"),
        "shape": Attr("ints", doc="sizes"),
        "dtype": Attr("dtype", "float32", "dtype of Out"),
        "force_cpu": Attr("bool", False, "keep the result on the CPU"),
    },
    infer=fixed_shape,
    cuda=True,
)
def fill(b: Binder) -> None:
    """Out = the values of the attribute, in row-major order.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("fill", attrs={"value": [4.0, 5.0], "shape": [2, 1], "dtype": "int64"})["Out"]
        array([[4],
               [5]])

    Source: Fluid's fill_op.
    """
    verbs.write(b, b["Out"], _list(b, b.attr("value")))


#: The dtypes of the CUDA kernels.
_WHOLE = ("int32", "int64")
NUMBERS = (*FLOATS, *_WHOLE)


def _numbers_of(*slots: str) -> Callable[[Context], tuple[Any, ...]]:
    """The numbers of inputs, on which the binding depends."""
    return lambda c: tuple(on_host(c[slot]).item() for slot in slots)


_range_numbers = _numbers_of("Start", "End", "Step")
_count = _numbers_of("Start", "Stop", "Num")


def _range_infer(c: Context) -> None:
    c.check_inputs()
    n = -1
    if c.runtime:
        start, end, step = _range_numbers(c)
        c.require(step != 0, "The step of range must not be 0.", expected="a number other than 0", received=step)
        c.require(
            start == end or (start < end) == (step > 0), "The step of range leads away from its end.",
            expected=f"a {'positive' if start < end else 'negative'} step from {start} to {end}", received=step,
        )  # fmt: skip
        n = max(0, int(np.ceil((end - start) / step)))
    c.set("Out", (n,), c["Start"].dtype)


@op(
    "range",
    inputs={"Start: any[1]": "the first number", "End: any[1]": "bound, not reached", "Step: any[1]": "distance"},
    outputs={"Out": "[n]: the numbers"},
    infer=_range_infer,
    guard=_range_numbers,
    data_shape=True,
    dtype_slot="Start",
    cuda=NUMBERS,
)
def range(b: Binder) -> None:
    """Out = Start, Start + Step, … before End.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("range", {"Start": [1.0], "End": [2.0], "Step": [0.5]})["Out"]
        array([1. , 1.5])

    Source: Fluid's range_op.
    """
    start, _, step = _range_numbers(b)
    out = b["Out"]
    if b.on_cuda:
        return _spaced(b, out, start, step)
    return b(np.copyto, out, (start + np.arange(out.size) * step).astype(out.dtype))


def _linspace_infer(c: Context) -> None:
    c.check_inputs()
    n = -1
    if c.runtime:
        n = int(on_host(c["Num"]).item())
        c.require(n > 0, "The num of linspace should be larger than 0.", expected="> 0", received=n)
    number = c.attr("dtype", -1)
    c.set("Out", (n,), c["Start"].dtype if number < 0 else dtypes.np_dtype(number))


@op(
    "linspace",
    inputs={"Start: any[1]": "the first number", "Stop: any[1]": "the last number", "Num: any[1]": "how many"},
    outputs={"Out": "[Num]: the numbers"},
    attrs={"dtype": Attr("int", -1, "the VarType of Out; -1 for that of Start")},
    infer=_linspace_infer,
    guard=_count,
    data_shape=True,
    dtype_slot="Start",
    cuda=True,
)
def linspace(b: Binder) -> None:
    """Out = Num numbers from Start to Stop, evenly spaced.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("linspace", {"Start": [0.0], "Stop": [1.0], "Num": np.array([3], "int32")})["Out"]
        array([0. , 0.5, 1. ])

    Source: Fluid's linspace_op.
    """
    start, stop, n = _count(b)
    out = b["Out"]
    if not b.on_cuda:
        return b(np.copyto, out, np.linspace(start, stop, int(n)).astype(out.dtype))
    start, stop, n = float(start), float(stop), float(n)
    numbers = out if out.dtype.name in NUMBERS else b.tmp(out.shape, np.float64)
    _spaced(b, numbers, start, (stop - start) / (n - 1) if n > 1 else 0.0, stop if n > 1 else None)
    return written_as(b, out, numbers)


SPACED = Source(
    __file__, "range_linspace.cu", typed(("spaced", NUMBERS, ("double",)), ("spaced", _WHOLE, ("long long",)))
)


def _spaced(b: Binder, out: Array, start: Any, step: Any, last: Any = None) -> None:
    """Emit ``out = start + i * step``, and ``last`` at the end where it is given."""
    whole = out.dtype.name in _WHOLE and isinstance(start, int) and isinstance(step, int)
    number, c = (np.int64, "long long") if whole else (np.float64, "double")
    ends = last is not None
    numbers = number(start), number(step), number(last if ends else 0), np.int32(ends)
    each(b, SPACED, f"spaced<{ctype(out.dtype)}, {c}>", out.size, out, *numbers)
