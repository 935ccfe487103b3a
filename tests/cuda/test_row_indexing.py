"""Operators that choose rows and elements, on the emulator beyond the cases of their OpTests."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from fluidnb.op import Binder, Clock, OpDesc, check_desc, get_op
from fluidnb.runtime import Scope
from fluidnb.runtime.compile.lowering import LoweredOp
from fluidnb.values import LoDTensor
from fluidnb_kernels import emulator
from fluidnb_kernels.cuda import grid
from fluidnb_kernels.emulator.raw import EmulatorError
from tests.cuda.test_strided_copy import both, some
from tests.cuda.twins import OnDevice

pytestmark = pytest.mark.skipif(bool(emulator.missing()), reason=emulator.missing())

FLOATS = [np.float32, np.float64, np.float16, ml_dtypes.bfloat16]
name_of: Any = lambda d: np.dtype(d).name  # noqa: E731


@pytest.mark.parametrize("dtype", FLOATS, ids=name_of)
@pytest.mark.parametrize("width", [1, 5, 8, 300])
def test_rows_that_meet(width: int, dtype: Any) -> None:
    x, ids, g = some(9, width, dtype=dtype), np.array([3, 8, 3, 0, -1], np.int64), some(5, width, dtype=dtype, seed=2)
    both("gather", {"X": x, "Index": ids})
    both("gather_grad", {"X": x, "Index": ids, "Out@GRAD": g}, ["X@GRAD"])
    for overwrite in (True, False):
        both("scatter", {"X": x, "Ids": abs(ids).astype(np.int32), "Updates": g}, overwrite=overwrite)
    slopes = {"Ids": abs(ids), "Updates": g, "Out@GRAD": x}
    both("scatter_grad", slopes, ["X@GRAD", "Updates@GRAD"])


def test_threads_go_round_in_strides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grid, "BLOCKS", 1)
    x, ids = some(3, 1300), np.array([2, 0, 2, 1, 1])
    out = both("gather", {"X": x, "Index": ids})["Out"][0]
    both("gather_grad", {"X": x, "Index": ids, "Out@GRAD": out}, ["X@GRAD"])
    both("gather", {"X": some(4, 3), "Index": np.arange(400) % 4})


@pytest.mark.parametrize("padding", [-1, 3])
@pytest.mark.parametrize("dtype", FLOATS, ids=name_of)
def test_tables(dtype: Any, padding: int) -> None:
    w, ids = some(9, 6, dtype=dtype), np.array([[3], [8], [3], [0]])
    out = both("lookup_table", {"W": w, "Ids": ids}, padding_idx=padding)["Out"][0]
    both("lookup_table_grad", {"W": w, "Ids": ids, "Out@GRAD": out}, ["W@GRAD"], padding_idx=padding)


def bind(desc: OpDesc, scope: Scope) -> None:
    """Run an operator on the emulator alone."""
    check_desc(get_op(desc.optype), desc)
    for function, args, kw in Binder(LoweredOp(desc, 0, 0), OnDevice(Clock(1)), scope).bind():
        function(*args, **kw)


def test_a_sparse_gradient_of_a_table() -> None:
    scope, g = Scope(), some(3, 2)
    for name, array in {"w": some(9, 2), "ids": np.array([[3], [8], [3]]), "g": g}.items():
        scope.var(name).value = LoDTensor(array)
    ins = {"W": ["w"], "Ids": ["ids"], "Out@GRAD": ["g"]}
    bind(OpDesc("lookup_table_grad", ins, {"W@GRAD": ["dw"]}, {"is_sparse": True, "padding_idx": 8}), scope)
    slope = scope.find_var("dw").value
    assert slope.rows() == [3, 8, 3]
    assert np.array_equal(slope.value.array, [g[0], [0, 0], g[2]])


@pytest.mark.parametrize("index", [np.int32, np.int64, np.uint8], ids=name_of)
def test_parts_by_several_numbers(index: Any) -> None:
    x, at = some(4, 5, 6), np.array([[3, 1], [0, 4], [3, 1]], index)
    out = both("gather_nd", {"X": x, "Index": at})["Out"][0]
    both("gather_nd_grad", {"X": x, "Index": at, "Out@GRAD": out}, ["X@GRAD"])
    both("scatter_nd_add", {"X": x, "Index": at, "Updates": out})


def test_elements_along_a_dimension() -> None:
    x, at = some(4, 6), np.array([[5, 0], [1, 1], [2, 3], [0, 5]])
    out = both("index_sample", {"X": x, "Index": at})["Out"][0]
    both("index_sample_grad", {"X": x, "Index": at, "Out@GRAD": out}, ["X@GRAD"])
    y = some(3, 4, 5)
    out = both("index_select", {"X": y, "Index": np.array([4, 0, 4], np.int32)}, dim=2)["Out"][0]
    both("index_select_grad", {"X": y, "Index": np.array([4, 0, 4]), "Out@GRAD": out}, ["X@GRAD"], dim=2)


def test_rows_of_candidates() -> None:
    xs, ids = [some(5, 3, seed=k) for k in range(3)], np.array([[2], [0], [1], [2]], np.int32)
    out = both("multiplex", {"Ids": ids, "X": xs})["Out"][0]
    both("multiplex_grad", {"Ids": ids, "X": xs, "Out@GRAD": out}, {"X@GRAD": 3})


@pytest.mark.parametrize("size", [1, 1000, 5000])
def test_places_of_a_condition(size: int) -> None:
    x = some(size, 3) % 5
    hit = x > 2
    assert np.array_equal(both("where_index", {"Condition": hit})["Out"][0], np.argwhere(hit))
    both("where", {"Condition": hit, "X": x, "Y": -x})
    y = both("masked_select", {"X": x, "Mask": hit}, ["Y"])["Y"][0]
    both("masked_select_grad", {"X": x, "Mask": hit, "Y@GRAD": y}, ["X@GRAD"])


def test_what_is_not_taken_gives_no_gradient_whatever_it_is() -> None:
    hit, g = np.array([True, False]), np.array([np.inf, np.nan], np.float32)
    slopes = both("where_grad", {"Condition": hit, "X": g, "Y": g, "Out@GRAD": g}, ["X@GRAD", "Y@GRAD"])
    assert np.array_equal(slopes["X@GRAD"][0], [np.inf, 0])
    assert np.array_equal(slopes["Y@GRAD"][0], [0, np.nan], equal_nan=True)


@pytest.mark.parametrize(
    ("type", "inputs", "attrs"),
    [
        ("gather", {"X": np.zeros((3, 2)), "Index": np.array([3])}, {}),
        ("lookup_table", {"W": np.zeros((3, 2)), "Ids": np.array([[-1]])}, {}),
        ("scatter", {"X": np.zeros(3), "Ids": np.array([3]), "Updates": np.zeros(1)}, {}),
        ("gather_nd", {"X": np.zeros((3, 2)), "Index": np.array([[0, 2]])}, {}),
        ("one_hot", {"X": np.array([[4]])}, {"depth": 4}),
        ("index_sample", {"X": np.zeros((1, 3)), "Index": np.array([[-1]])}, {}),
    ],
)
def test_a_number_that_names_no_row_stops_the_kernel(type: str, inputs: dict[str, Any], attrs: dict[str, Any]) -> None:
    scope = Scope()
    for slot, array in inputs.items():
        scope.var(slot).value = LoDTensor(array)
    desc = OpDesc(type, {slot: [slot] for slot in inputs}, {"Out": ["y"]}, attrs)
    with pytest.raises(EmulatorError, match="__trap"):
        bind(desc, scope)


@pytest.mark.parametrize("lenient", [False, True])
@pytest.mark.parametrize("dtype", [0, 2, 3, 5, 6], ids=["bool", "int32", "int64", "float32", "float64"])
def test_single_ones(dtype: int, lenient: bool) -> None:
    ids = np.array([[0], [2], [9 if lenient else 1]])
    for type in ("one_hot", "one_hot_v2"):
        both(type, {"X": ids}, depth=3, dtype=dtype, allow_out_of_range=lenient)


@pytest.mark.parametrize("dtype", [*FLOATS, np.int32, np.int64], ids=name_of)
@pytest.mark.parametrize(("shape", "k"), [((3, 7), 7), ((2, 40), 5), ((4, 1500), 3)], ids=str)
def test_the_largest_in_order(shape: tuple[int, ...], k: int, dtype: Any) -> None:
    x = some(*shape, dtype=dtype) % np.array(11, dtype)
    found = both("top_k", {"X": x}, ["Out", "Indices"], k=k)
    g = some(*found["Out"][0].shape, dtype=dtype)
    both("top_k_grad", {"X": x, "Indices": found["Indices"][0], "Out@GRAD": g}, ["X@GRAD"], k=k)
    for largest in (True, False):
        both("top_k_v2", {"X": x}, ["Out", "Indices"], k=3, axis=0 if shape[0] >= 3 else 1, largest=largest)


def test_a_line_in_order_is_taken_whole() -> None:
    """The thread of the first element has the one that comes 32 places after it, too."""
    for x in (np.arange(70.0), np.arange(70.0)[::-1]):
        both("top_k", {"X": x[None].copy()}, ["Out", "Indices"], k=70)


def test_the_smallest_integer_comes_last() -> None:
    x = np.array([[-(2**31), 5, -1]], np.int32)
    assert both("top_k", {"X": x}, ["Out", "Indices"], k=3)["Indices"][0].tolist() == [[1, 2, 0]]


@pytest.mark.parametrize("k", [1, 3])
def test_numbers_that_are_none_in_order(k: int) -> None:
    x = np.array([[1.0, np.nan, np.inf, np.nan, -np.inf]], np.float32)
    both("top_k", {"X": x}, ["Out", "Indices"], k=k)


@pytest.mark.parametrize("dtype", [*FLOATS, np.int32, np.int64], ids=name_of)
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_where_the_ends_are(axis: int, dtype: Any) -> None:
    x = some(6, 50, 3, dtype=dtype) % np.array(7, dtype)
    for type in ("arg_max", "arg_min"):
        both(type, {"X": x}, axis=axis, dtype=2)
    both("arg_max", {"X": x}, flatten=True)


@pytest.mark.parametrize("type", ["arg_max", "arg_min"])
def test_numbers_that_are_none_are_found_first(type: str) -> None:
    x = np.array([[1.0, np.nan, np.inf, np.nan], [-np.inf, 2.0, 5.0, 5.0]], np.float32)
    both(type, {"X": x}, axis=1)


def test_gradients_go_back_to_their_order() -> None:
    x = some(4, 9)
    for axis in (0, 1):
        both("argsort_grad", {"X": x, "Indices": x.argsort(axis), "Out@GRAD": x}, ["X@GRAD"], axis=axis)
