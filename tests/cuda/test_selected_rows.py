"""SelectedRows on the emulator: rows that come once, several times, or not at all."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fluidnb.op import Binder, Clock, OpDesc, check_desc, get_op
from fluidnb.runtime import Scope
from fluidnb.runtime.compile.lowering import LoweredOp
from fluidnb.testing.eager import Fresh
from fluidnb.values import LoDTensor, SelectedRows
from fluidnb_kernels import emulator
from tests.cuda.devices import OnDevice
from tests.cuda.operands import numbers, twins

pytestmark = pytest.mark.skipif(bool(emulator.missing()), reason=emulator.missing())

IDS = ([], [4], [4, 0, 4, 4, 1], list(range(9)))


def rows(ids: list[int], dtype: Any, *shape: int) -> SelectedRows:
    """Some rows of a tensor."""
    return SelectedRows(ids, 9, LoDTensor((numbers(len(ids), *shape) * 9).round().astype(dtype)))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int64])
@pytest.mark.parametrize("ids", IDS)
def test_merged_rows(ids: list[int], dtype: Any) -> None:
    desc = OpDesc("merge_selected_rows", {"X": ["x"]}, {"Out": ["y"]}, {})
    check_desc(get_op("merge_selected_rows"), desc)
    for shape in ((3,), (2, 300)):
        results = []
        for memory in (Fresh(Clock(1)), OnDevice(Clock(1))):
            scope = Scope()
            scope.var("x").value = rows(ids, dtype, *shape)
            for function, args, kw in Binder(LoweredOp(desc, 0, 0), memory, scope).bind():
                function(*args, **kw)
            results.append(scope.find_var("y").value)
        want, got = results
        assert got.rows() == want.rows() and got.value.array.dtype == dtype
        np.testing.assert_array_equal(got.value.array, want.value.array)  # sums of whole numbers are exact


@pytest.mark.parametrize("ids", IDS)
def test_values_of_rows(ids: list[int]) -> None:
    twins("get_tensor_from_selected_rows", {"X": rows(ids, np.float32, 2)}, {}, ["Out"])


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int64])
@pytest.mark.parametrize("ids", IDS)
def test_sums_with_rows(ids: list[int], dtype: Any) -> None:
    whole = (numbers(9, 2, 3) * 9).round().astype(dtype)
    some, others = rows(ids, dtype, 2, 3), rows([8, 8, 0], dtype, 2, 3)
    sums = [[some, others], [some], [whole, some, whole, others], [some, whole]]
    for terms in sums[: 2 if dtype is np.float16 else 4]:  # numpy takes half a tensor as float32 here, but not rows
        twins("sum", {"X": terms}, {}, ["Out"])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("ids", IDS)
def test_functions_of_rows(ids: list[int], dtype: Any) -> None:
    bound, factor = np.array([2.5], dtype), np.array([-3.0], dtype)
    for type, inputs, attrs in (
        ("scale", {}, {"scale": 2.5}),
        ("clip", {}, {"min": -1.0, "max": 1.5}),
        ("clip", {"Max": bound}, {"min": -1.0, "max": 1.5}),
        ("elementwise_mul", {"Y": factor}, {}),
    ):
        twins(type, {"X": rows(ids, dtype, 70), **inputs}, attrs, ["Out"])
