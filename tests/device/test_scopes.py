"""Values of a scope are moved to the place that runs on it, and into files and back."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb import layers
from fluidnb.values import VarType

ONES = {"x": np.ones((2, 3), "float32")}


def _rows(place: Any) -> fluid.SelectedRows:
    """Rows 1, 3 and 1 of five in the global scope, their values on a place."""
    rows = fluid.global_scope().var("rows").get_selected_rows()
    rows.set_height(5)
    rows.set_rows([1, 3, 1])
    rows.get_tensor().set(np.array([[1.0], [2.0], [3.0]], "float32"), place)
    return rows


def _held(program: fluid.Program) -> fluid.Variable:
    return program.global_block().create_var(
        name="rows", type=VarType.SELECTED_ROWS, dtype="float32", shape=[5, 1], persistable=True
    )


def test_rows_go_where_the_run_is_whoever_moved_them(cuda: fluid.CUDAPlace) -> None:
    merged = layers.merge_selected_rows(_held(fluid.default_main_program()))
    out = layers.get_tensor_from_selected_rows(merged)
    executors = [fluid.Executor(place) for place in (cuda, fluid.CPUPlace())]
    for place in (fluid.CPUPlace(), cuda, fluid.CPUPlace()):
        _rows(place)
        for exe in (*executors, *executors):
            got, rows = exe.run(fetch_list=[out, merged])
            np.testing.assert_array_equal(got, [[4.0], [2.0]])
            np.testing.assert_array_equal(rows.to_dense(), [[0], [4], [0], [2], [0]])


def test_arrays_of_tensors_go_where_the_run_is(cuda: fluid.CUDAPlace) -> None:
    held = (
        fluid.default_main_program()
        .global_block()
        .create_var(name="held", type=VarType.LOD_TENSOR_ARRAY, dtype="float32", shape=[-1, 2], persistable=True)
    )
    read = layers.array_read(held, layers.fill_constant([1], "int64", 1))
    for place in (fluid.CPUPlace(), cuda):
        tensors = [fluid.LoDTensor() for _ in range(2)]
        for number, tensor in enumerate(tensors):
            tensor.set(np.full((1, 2), number, "float32"), place)
        fluid.global_scope().var("held").value = fluid.LoDTensorArray(tensors)
        for where in (cuda, fluid.CPUPlace()):
            (got,) = fluid.Executor(where).run(fetch_list=[read])
            np.testing.assert_array_equal(got, [[1.0, 1.0]])


def test_a_tensor_that_was_empty_knows_where_it_is_then(cuda: fluid.CUDAPlace) -> None:
    layers.fc(layers.data("x", shape=[3]), 2, param_attr="w", bias_attr=False)
    empty = fluid.global_scope().var("w").get_tensor()
    fluid.Executor(cuda).run(fluid.default_startup_program())
    tensor = fluid.global_scope().find_var("w").get_tensor()
    assert tensor is empty and tensor._place() is cuda
    assert np.array(tensor).shape == (3, 2)


@pytest.mark.parametrize("filename", [None, "all"])
def test_parameters_go_into_files_and_back_on_either_place(
    cuda: fluid.CUDAPlace, tmp_path: Path, filename: str | None
) -> None:
    y = layers.fc(layers.data("x", shape=[3]), 2)
    program, predict = fluid.default_main_program(), fluid.default_main_program().clone(for_test=True)
    fluid.optimizer.Adam(0.1).minimize(layers.mean(y))
    saver = fluid.Executor(cuda)
    saver.run(fluid.default_startup_program())
    saver.run(program, feed=ONES)
    fluid.io.save_persistables(saver, str(tmp_path), program, filename)
    (want,) = saver.run(predict, feed=ONES, fetch_list=[y])
    saver.run(program, feed=ONES)
    for place in (cuda, fluid.CPUPlace()):
        scope, exe = fluid.global_scope() if place is cuda else fluid.Scope(), fluid.Executor(place)
        with fluid.scope_guard(scope):
            fluid.io.load_persistables(exe, str(tmp_path), program, filename)
            assert scope.find_var(y.block.all_parameters()[0].name).get_tensor()._place() is place
            np.testing.assert_allclose(exe.run(predict, feed=ONES, fetch_list=[y])[0], want, rtol=1e-5)


def test_a_model_for_inference_is_saved_from_a_device_and_loaded_there(cuda: fluid.CUDAPlace, tmp_path: Path) -> None:
    y = layers.fc(layers.data("x", shape=[3]), 2, act="softmax")
    exe = fluid.Executor(cuda)
    exe.run(fluid.default_startup_program())
    (want,) = exe.run(feed=ONES, fetch_list=[y])
    fluid.io.save_inference_model(str(tmp_path), ["x"], [y], exe)
    for place in (cuda, fluid.CPUPlace()):
        with fluid.scope_guard(fluid.Scope()):
            program, feeds, fetches = fluid.io.load_inference_model(str(tmp_path), fluid.Executor(place))
            (got,) = fluid.Executor(place).run(program, feed={feeds[0]: ONES["x"]}, fetch_list=fetches)
            np.testing.assert_allclose(got, want, rtol=1e-5)


def test_rows_of_a_device_make_the_same_file(cuda: fluid.CUDAPlace, tmp_path: Path) -> None:
    program = fluid.Program()
    _held(program)
    written = []
    for number, (values, place) in enumerate(product((fluid.CPUPlace(), cuda), repeat=2)):
        _rows(values)
        fluid.io.save_persistables(fluid.Executor(place), str(tmp_path / str(number)), program)
        written.append((tmp_path / str(number) / "rows").read_bytes())
    assert len(set(written)) == 1
    assert np.array([1.0, 2.0, 3.0], "float32").tobytes() in written[0]


def test_operators_run_on_their_own_in_a_scope_on_a_device(cuda: fluid.CUDAPlace) -> None:
    merged = layers.merge_selected_rows(_held(fluid.default_main_program()))
    _rows(fluid.CPUPlace())
    scope = fluid.global_scope()
    block = fluid.default_main_program().global_block()
    block.infer_shape(scope)
    block.run(scope, cuda)
    np.testing.assert_array_equal(scope.find_var(merged.name).get_selected_rows().to_dense()[:, 0], [0, 4, 0, 2, 0])
