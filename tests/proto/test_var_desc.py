"""VarDesc: what a variable is and holds."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fluidnb.errors import OpTypeError, OpValueError
from fluidnb.proto.desc import ProgramDesc, VarDesc
from tests.proto.goldens import golden

T = VarDesc.VarType


@pytest.mark.parametrize("kind", [T.LOD_TENSOR, T.SELECTED_ROWS, T.LOD_TENSOR_ARRAY])
def test_what_holds_numbers_has_a_dtype_and_a_shape(kind: int) -> None:
    var = VarDesc("x", kind)
    var.set_dtype(T.INT64)
    var.set_shape((-1, np.int64(3)))  # type: ignore[arg-type]
    assert (var.type(), var.dtype(), var.shape()) == (kind, T.INT64, [-1, 3])
    again = VarDesc.parse_from_string(var.serialize_to_string())
    assert (again.type(), again.dtype(), again.shape()) == (kind, T.INT64, [-1, 3])
    assert len(var.pb.type.ListFields()) == 2


@pytest.mark.parametrize("kind", [T.LOD_TENSOR, T.LOD_TENSOR_ARRAY])
def test_lod_level(kind: int) -> None:
    var = VarDesc("x", kind)
    assert var.lod_level() == 0
    var.set_lod_level(2)
    assert var.lod_level() == 2
    for level, error in ((-1, OpValueError), (1.5, OpTypeError)):
        with pytest.raises(error):
            var.set_lod_level(level)  # type: ignore[arg-type]
    assert var.lod_level() == 2


@pytest.mark.parametrize("kind", [T.STEP_SCOPES, T.LOD_RANK_TABLE, T.FEED_MINIBATCH, T.FETCH_LIST, T.RAW])
def test_what_holds_no_numbers_has_neither(kind: int) -> None:
    var = VarDesc("s", kind)
    before = var.serialize_to_string()
    calls: list[Callable[[], object]] = [
        var.shape,
        var.dtype,
        var.lod_level,
        lambda: var.set_shape([1]),
        lambda: var.set_dtype(5),
        lambda: var.set_lod_level(1),
        lambda: var.set_shapes([[1]]),
    ]
    for call in calls:
        with pytest.raises(OpValueError, match=f'Variable "s" is .*({T.Type.Name(kind)}|no READER)'):  # type: ignore[arg-type]
            call()
    assert var.serialize_to_string() == before


def test_flags() -> None:
    var = VarDesc("x")
    for name in ("persistable", "stop_gradient", "need_check_feed", "is_parameter"):
        assert getattr(var, name)() is False
        getattr(var, f"set_{name}")(True)
        again = VarDesc.parse_from_string(var.serialize_to_string())
        assert getattr(var, name)() is getattr(again, name)() is True


def test_changing_the_type_takes_the_numbers_along() -> None:
    var = VarDesc("g")
    var.set_dtype(T.FP32)
    var.set_shape([9, 4])
    var.set_lod_level(1)
    var.set_type(T.LOD_TENSOR_ARRAY)
    assert (var.shape(), var.dtype(), var.lod_level()) == ([9, 4], T.FP32, 1)
    var.set_type(T.SELECTED_ROWS)
    assert (var.shape(), var.dtype()) == ([9, 4], T.FP32)
    assert len(var.pb.type.ListFields()) == 2
    var.set_type(T.STEP_SCOPES)
    assert len(var.pb.type.ListFields()) == 1
    var.set_type(T.READER)
    assert var.shapes() == []


def test_changing_the_type_of_a_fresh_variable_writes_nothing_more() -> None:
    var = VarDesc("g")
    var.set_type(T.SELECTED_ROWS)
    assert var.serialize_to_string() == VarDesc("g", T.SELECTED_ROWS).serialize_to_string()


def test_a_reader_has_several() -> None:
    var = VarDesc("r", T.READER)
    var.set_shapes([[-1, 784], [-1, 1]])
    var.set_dtypes([T.FP32, T.INT64])
    var.set_lod_levels([0, 1])
    again = VarDesc.parse_from_string(var.serialize_to_string())
    assert (again.shapes(), again.dtypes(), again.lod_levels()) == ([[-1, 784], [-1, 1]], [T.FP32, T.INT64], [0, 1])
    with pytest.raises(OpValueError, match="READER, which has no shape"):
        var.shape()
    var.set_shapes([[3]])
    assert (var.shapes(), var.dtypes()) == ([[3]], [T.FP32])


def test_wrong_values_are_refused_and_leave_no_trace() -> None:
    var = VarDesc("x")
    var.set_dtype(T.FP32)
    var.set_shape([2, 3])
    before = var.serialize_to_string()
    for call, error in (
        (lambda: var.set_shape([2, 0.5]), OpTypeError),  # type: ignore[list-item]
        (lambda: var.set_shape([2, 2**63]), OpValueError),
        (lambda: var.set_shape(3), OpTypeError),  # type: ignore[arg-type]
        (lambda: var.set_dtype(99), OpValueError),
        (lambda: var.set_type(99), OpValueError),
        (lambda: var.set_name(3), OpTypeError),  # type: ignore[arg-type]
        (lambda: VarDesc(3), OpTypeError),  # type: ignore[arg-type]
        (lambda: VarDesc("x", 99), OpValueError),
    ):
        with pytest.raises(error):
            call()
    assert var.serialize_to_string() == before


def test_a_shape_without_a_dtype_has_no_bytes() -> None:
    var = VarDesc("x")
    var.set_shape([2])
    with pytest.raises(OpValueError, match=r'variable "x": .*data_type.* are not initialized'):
        var.serialize_to_string()


def test_names_follow_in_the_block() -> None:
    block = ProgramDesc().block(0)
    x = block.var("x")
    x.set_name("y")
    assert block.find_var("y") is x and not block.has_var("x")
    block.var("z")
    with pytest.raises(OpValueError, match='Block 0 has a variable "z" already'):
        x.set_name("z")
    assert x.name() == "y"


def test_clones_are_equal_and_free() -> None:
    block = ProgramDesc.parse_from_string(golden("sparse_grad_adam")).block(0)
    kinds = {var.type() for var in block.all_vars()}
    assert T.SELECTED_ROWS in kinds
    for var in block.all_vars():
        twin = var.clone()
        assert twin.pb == var.pb and twin.block is None
        twin.set_persistable(not var.persistable())
        assert twin.pb != var.pb


def test_repr_is_short() -> None:
    var = VarDesc("x")
    assert repr(var) == "VarDesc(x: LOD_TENSOR)"
    var.set_dtype(T.FP32)
    var.set_shape([-1, 2])
    assert repr(var) == "VarDesc(x: LOD_TENSOR FP32[-1, 2])"
    assert repr(VarDesc("s", T.STEP_SCOPES)) == "VarDesc(s: STEP_SCOPES)"


def test_that_it_is_fed_is_not_in_the_bytes() -> None:
    x = VarDesc("x")
    before = x.pb.SerializePartialToString()
    x.set_is_data(True)
    assert x.is_data() and x.clone().is_data() and not x.need_check_feed()
    assert x.pb.SerializePartialToString() == before
    x.set_need_check_feed(True)
    x.set_is_data(False)
    assert not x.is_data() and not x.need_check_feed()


#: Edits of a variable, and what is read of it.
EDITS: dict[str, Callable[[VarDesc], object]] = {
    "dtype": lambda v: v.set_dtype(T.INT64),
    "shape": lambda v: v.set_shape([4, -1]),
    "level": lambda v: v.type() == T.LOD_TENSOR and v.set_lod_level(1),
    "persistable": lambda v: v.set_persistable(True),
    "not persistable": lambda v: v.set_persistable(False),
    "stop": lambda v: v.set_stop_gradient(True),
    "parameter": lambda v: v.set_is_parameter(True),
    "data": lambda v: v.set_is_data(True),
    "no data": lambda v: v.set_is_data(False),
    "check": lambda v: v.set_need_check_feed(True),
    "name": lambda v: v.set_name("y"),
    "rows": lambda v: v.set_type(T.SELECTED_ROWS),
    "tensor": lambda v: v.set_type(T.LOD_TENSOR),
    "message": lambda v: v.pb,
    "type": lambda v: v._set_type_bytes(OTHER._type_bytes()),
}
OTHER = VarDesc("other")
OTHER.set_dtype(T.FP64)
OTHER.set_shape([7])


def _read(var: VarDesc) -> tuple[object, ...]:
    flags = var.persistable(), var.stop_gradient(), var.is_parameter(), var.need_check_feed()
    level = var.lod_level() if var.type() == T.LOD_TENSOR else None
    return var.name(), var.type(), var.shape(), var.dtype(), level, flags


@given(st.lists(st.sampled_from(sorted(EDITS)), max_size=8))
def test_a_variable_like_another_is_edited_as_one_with_a_message(edits: list[str]) -> None:
    model = VarDesc("x")
    model.set_dtype(T.FP32)
    model.set_shape([-1, 3])
    lazy, parsed = VarDesc._like("x", model._type_bytes()), VarDesc.parse_from_string(model.serialize_to_string())
    for edit in edits:
        EDITS[edit](lazy)
        EDITS[edit](parsed)
        assert _read(lazy) == _read(parsed)
    assert lazy.serialize_to_string() == parsed.serialize_to_string()
    assert _read(VarDesc.parse_from_string(lazy.serialize_to_string())) == _read(lazy)
    lazy._restore(model.serialize_to_string())
    assert _read(lazy) == _read(model)
