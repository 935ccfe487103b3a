"""Python's operators and indices on variables: the operators that they append."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pytest

from fluidnb.errors import OpTypeError, OpValueError
from fluidnb.program import Program, Variable
from fluidnb.values.dtypes import VarType
from tests.tools.refused import refused


@pytest.fixture
def x() -> Variable:
    return Program().global_block().create_var(name="x", shape=[-1, 4], dtype="float32", lod_level=1)


@pytest.fixture
def i() -> Variable:
    return Program().global_block().create_var(name="i", shape=[3], dtype="int64")


def appended(v: Variable) -> list[str]:
    """The types of the operators that a variable's program has."""
    return [op.type for op in v.block.ops]


@pytest.mark.parametrize(("make", "scale", "bias"), [
    (lambda x: x + 2, 1.0, 2.0), (lambda x: 2 + x, 1.0, 2.0), (lambda x: x - 2, 1.0, -2.0),
    (lambda x: 2 - x, -1.0, 2.0), (lambda x: x * 2, 2.0, 0.0), (lambda x: np.float32(2) * x, 2.0, 0.0),
    (lambda x: x / 2, 0.5, 0.0), (lambda x: -x, -1.0, 0.0),
])  # fmt: skip
def test_a_number_beside_a_variable_is_a_scale(x: Variable, make: Any, scale: float, bias: float) -> None:
    y = make(x)
    assert appended(x) == ["scale"]
    assert (y.op.attr("scale"), y.op.attr("bias"), y.shape, y.lod_level) == (scale, bias, (-1, 4), 1)


@pytest.mark.parametrize(("verb", "op_type"), [
    (operator.add, "elementwise_add"), (operator.sub, "elementwise_sub"), (operator.mul, "elementwise_mul"),
    (operator.truediv, "elementwise_div"), (operator.lt, "less_than"),
])  # fmt: skip
def test_two_variables(x: Variable, verb: Any, op_type: str) -> None:
    y = x.block.create_var(name="y", shape=[-1, 4], dtype="float32")
    z = verb(x, y)
    assert appended(x) == [op_type]
    assert (z.op.input("X"), z.op.input("Y"), z.shape) == (["x"], ["y"], (-1, 4))
    assert z.dtype == (VarType.BOOL if verb is operator.lt else VarType.FP32)


def test_a_product_of_matrices(x: Variable) -> None:
    w = x.block.create_var(name="w", shape=[4, 3], dtype="float32")
    y = x @ w
    assert appended(x) == ["matmul"]
    assert (y.op.input("X"), y.op.input("Y"), y.shape, y.dtype) == (["x"], ["w"], (-1, 3), VarType.FP32)


@pytest.mark.parametrize("numbers", [np.float64(2), 2])
def test_functions_of_numpy_that_are_operators(x: Variable, numbers: Any) -> None:
    np.add(x, numbers), np.subtract(numbers, x), np.less(numbers, x), np.negative(x)
    assert appended(x) == ["scale", "scale", "fill_constant", "greater_than", "scale"]


def test_comparison_with_a_number_makes_a_constant(x: Variable) -> None:
    y = x < 3
    assert appended(x) == ["fill_constant", "less_than"]
    assert y.dtype == VarType.BOOL
    assert x.block.ops[0].attr("value") == 3.0


def test_equality_is_an_operator_only_between_operands(x: Variable) -> None:
    assert (x == None) is False  # noqa: E711
    assert x != "x"
    assert x in [x] and {x: 1}[x] == 1
    assert appended(x) == []


def test_division_of_integers_is_done_on_floats(i: Variable) -> None:
    assert (i / 2).dtype == VarType.FP32
    assert (i * 0.5).dtype == VarType.FP32
    assert (i * 2).dtype == VarType.INT64
    assert (i + 2.0).dtype == VarType.INT64


def test_astype(i: Variable) -> None:
    y = i.astype(np.float64)
    assert (y.dtype, appended(i)) == (VarType.FP64, ["cast"])
    with pytest.raises(ValueError, match="flot"):
        i.astype("flot")


@pytest.mark.parametrize("other", ["two", None, [1, 2], np.zeros((2, 2))])
def test_other_operands_are_refused_and_append_nothing(x: Variable, other: Any) -> None:
    with pytest.raises(OpTypeError, match=r"\+ takes a variable or a number beside variable x"):
        x + other
    assert appended(x) == []
    assert list(x.block.vars) == ["x"]


def test_shapes_that_do_not_fit_leave_no_trace(x: Variable) -> None:
    y = x.block.create_var(name="y", shape=[-1, 5], dtype="float32")
    before = x.block.program.desc.serialize_to_string()
    with pytest.raises(RuntimeError):
        x + y
    assert x.block.program.desc.serialize_to_string() == before


def test_operators_append_to_the_current_block(x: Variable) -> None:
    with x.block.program.block_guard() as inner:
        y = x + 1
    assert y.block is inner
    assert appended(x) == []


@pytest.mark.parametrize(("item", "text"), [
    ((..., ...), "Index can have one ellipsis only."), (slice(0, 3, 0), "slice step cannot be zero."),
    ((0, 0, 0), "Too many indices for variable x"), ((0, 4), "Index 4 is out of range for axis 1"),
    ((0, -5), "Index -5 is out of range for axis 1"),
])  # fmt: skip
def test_bad_indices(x: Variable, item: Any, text: str) -> None:
    with refused(OpValueError, text):
        x[item]
    assert appended(x) == []


@pytest.mark.parametrize("item", ["a", 1.5, None, True, slice("a", 2), [0, 1]])
def test_indices_of_other_kinds(x: Variable, item: Any) -> None:
    with pytest.raises(OpTypeError, match="Valid index accept int or slice or tuple."):
        x[item]
    assert appended(x) == []


@pytest.mark.parametrize("item", [
    0, -1, slice(1, 3), slice(None, None, None), slice(-2, None), (0, 1, 2), (..., 0), (0, ...), (slice(1, 2), ..., -1),
    (slice(None), 2), slice(None, -1), slice(3, None, -1), (slice(None, None, 2), 1), slice(None, None, -1),
    slice(0, 1),
])  # fmt: skip
def test_cuts_are_those_of_numpy(item: Any) -> None:
    """The plan, done by hand on an array, gives what numpy gives."""
    from fluidnb.program.indexing import plan

    v = Program().global_block().create_var(name="v", shape=[4, 5, 6], dtype="float32")
    array = out = np.arange(120).reshape(4, 5, 6)
    cuts = plan(v, item)
    for cut in cuts:
        size = out.shape[cut.axis]
        end: int | None = cut.end
        start = cut.start + size if cut.start < 0 else min(cut.start, size - (cut.step < 0))
        if cut.step < 0:
            end = None if end == -1 else end
        out = out[(slice(None),) * cut.axis + (slice(start, end, cut.step),)]
    out = out.reshape([n for a, n in enumerate(out.shape) if a not in [c.axis for c in cuts if c.drop]])
    assert np.array_equal(out, array[item])


@pytest.mark.parametrize(
    ("numbers", "error"), [(np.array([1, 2]), OpTypeError), (np.array("a"), OpTypeError), (np.array(None), OpTypeError),
                           (np.array(1j), OpTypeError), (10**400, OpValueError)],
)  # fmt: skip
@pytest.mark.parametrize("verb", [operator.add, operator.pow, operator.mod, operator.lt, operator.eq, operator.ne])
def test_arrays_and_numbers_beyond_floats_are_refused(x: Variable, verb: Any, numbers: Any, error: Any) -> None:
    with pytest.raises(error):
        verb(x, numbers)
    if not isinstance(numbers, int):
        with pytest.raises(OpTypeError):
            verb(numbers, x)
    assert appended(x) == []


@pytest.mark.parametrize("number", [0.5, float("inf"), float("nan"), 2**63, -(2**63) - 1])
def test_a_number_that_a_dtype_does_not_have_is_no_operand_of_a_comparison(i: Variable, number: float) -> None:
    with pytest.raises(OpValueError, match="< takes a number of the dtype of variable i"):
        i < number  # noqa: B015
    assert appended(i) == []


def test_integers_that_no_32_bit_float_has_are_compared_exactly(i: Variable) -> None:
    i == 2**24 + 1, i < 3  # noqa: B015
    exact, plain = (op for op in i.block.ops if op.type == "fill_constant")
    assert exact.attr("str_value") == "16777217" and not plain.attr("str_value")


@pytest.mark.parametrize("index", [np.array([0, 1]), int, np.array(1.5), np.ma.masked, slice(np.array([]), None)])
def test_arrays_and_types_are_no_indices(x: Variable, index: Any) -> None:
    with pytest.raises(OpTypeError, match="Valid index accept int or slice or tuple"):
        x[index]
