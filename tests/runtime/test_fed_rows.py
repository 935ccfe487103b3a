"""SelectedRows as feeds: their rows may differ from run to run, and nothing of them stays behind."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.errors import EnforceNotMet, OpTypeError, OpValueError
from fluidnb.values.selected_rows import SelectedRows

L = fluid.layers


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    with fluid.fresh(), fluid.scope_guard(fluid.Scope()):
        yield


def rows(numbers: list[int], values: Any, height: int = 6) -> SelectedRows:
    made = fluid.core.SelectedRows(numbers, height)
    made.get_tensor().set(np.asarray(values, np.float32), fluid.CPUPlace())
    return made


def fed_variable(name: str = "g") -> Any:
    block = fluid.default_main_program().global_block()
    kind = fluid.core.VarDesc.VarType.SELECTED_ROWS
    return block.create_var(name=name, type=kind, shape=[6, 2], dtype="float32")


@pytest.mark.parametrize("keep", [False, True])
def test_rows_that_change_from_run_to_run(keep: bool) -> None:
    out = L.get_tensor_from_selected_rows(L.merge_selected_rows(fed_variable()))
    exe = fluid.Executor(fluid.CPUPlace())
    for numbers, want in (([4, 1, 4], [[3, 4], [6, 8]]), ([5], [[1, 2]]), ([5], [[1, 2]]), ([2, 2, 2], [[9, 12]])):
        values = np.arange(2 * len(numbers)).reshape(-1, 2) + [1, 2]
        given = rows(numbers, values)
        [found] = exe.run(feed={"g": given}, fetch_list=[out], keep_scopes=keep)
        merged = {n: values[np.array(numbers) == n].sum(0) for n in sorted(set(numbers))}
        np.testing.assert_array_equal(found, list(merged.values()))
        assert len(want) == len(found)
        np.testing.assert_array_equal(np.asarray(given.get_tensor()), values)  # the user's own stay as they were


def test_a_sparse_step_of_sgd() -> None:
    start = np.arange(12, dtype=np.float32).reshape(6, 2)
    weight = L.create_parameter([6, 2], "float32", default_initializer=fluid.initializer.NumpyArrayInitializer(start))
    rate = L.fill_constant([1], "float32", 0.5)
    fluid.default_main_program().global_block().append_op(
        type="sgd",
        inputs={"Param": [weight], "Grad": [fed_variable()], "LearningRate": [rate]},
        outputs={"ParamOut": [weight]},
    )
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    for numbers in ([1, 3], [0, 3, 5]):
        [found] = exe.run(feed={"g": rows(numbers, np.ones((len(numbers), 2)))}, fetch_list=[weight])
        start[numbers] -= 0.5
        np.testing.assert_array_equal(found, start)


def test_another_run_does_not_see_them() -> None:
    out = L.get_tensor_from_selected_rows(fed_variable())
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(feed={"g": rows([1], [[1, 2]])}, fetch_list=[out])
    for _ in range(2):
        with pytest.raises(EnforceNotMet, match="no memory"):
            exe.run(fetch_list=[out])


def test_rows_that_do_not_fit() -> None:
    x = L.data("x", [2])
    out = L.get_tensor_from_selected_rows(fed_variable())
    exe = fluid.Executor(fluid.CPUPlace())
    with pytest.raises(OpValueError, match='SelectedRows fed for "g" do not fit'):
        exe.run(feed={"g": rows([1], [[1, 2, 3]])}, fetch_list=[out])
    with pytest.raises(OpValueError, match='SelectedRows fed for "g" do not fit'):
        exe.run(feed={"g": fluid.core.SelectedRows([1], 6)}, fetch_list=[out])
    with pytest.raises(OpTypeError, match='fed for "x"'):
        exe.run(feed={"x": rows([1], [[1, 2]])}, fetch_list=[x])
