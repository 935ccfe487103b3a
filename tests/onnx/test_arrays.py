"""Arrays of tensors in exported loops: onnxruntime beside our executor."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

import fluidnb as fluid
from fluidnb import layers
from fluidnb.errors import NotBuiltYet
from tests.onnx.test_models import by_runtime
from tests.onnx.test_sequences import saved


def number(value: int) -> Any:
    """A constant whole number."""
    return layers.fill_constant([1], "int64", value)


def states() -> Any:
    """Each step reads the state before it and writes the next one."""
    x, i, array = layers.data("x", [4]), number(0), None
    array = layers.array_write(layers.fc(x, 4, act="tanh"), i)
    last, more = number(5), layers.less_than(i, number(5))
    with layers.While(more).block():
        now = layers.tanh(layers.elementwise_add(layers.array_read(array, i), layers.scale(x, 0.1)))
        layers.increment(i)
        layers.array_write(now, i, array)
        layers.less_than(i, last, cond=more)
    joined, _ = layers.tensor_array_to_tensor(array, axis=1)
    return joined, layers.array_length(array), layers.array_read(array, number(3))


def overwritten() -> Any:
    """Each step replaces the only element, and one of another array."""
    x, i, last = layers.data("x", [4]), number(0), number(4)
    array, other = layers.array_write(x, number(0)), layers.array_write(x, number(0))
    layers.array_write(layers.scale(x, 2.0), number(1), other)
    more = layers.less_than(i, last)
    with layers.While(more).block():
        layers.array_write(layers.scale(layers.array_read(array, number(0)), 0.5), number(0), array)
        layers.array_write(layers.array_read(array, number(0)), number(0), other)
        layers.increment(i)
        layers.less_than(i, last, cond=more)
    return layers.array_read(array, number(0)), *layers.tensor_array_to_tensor(other, axis=0)[:1]


def created() -> Any:
    """An array that is empty before the loop."""
    x, i, last = layers.data("x", [4]), number(0), number(3)
    array, more = layers.create_array("float32"), layers.less_than(i, last)
    with layers.While(more).block():
        layers.array_write(layers.scale(x, 3.0, bias=1.0), i, array)
        layers.increment(i)
        layers.less_than(i, last, cond=more)
    return layers.array_read(array, number(2)), layers.array_length(array)


def given() -> Any:
    """An array that is only read in the loop."""
    x, i, last = layers.data("x", [4]), number(0), number(3)
    array = layers.create_array("float32")
    for k in range(3):
        layers.array_write(layers.scale(x, float(k + 1)), number(k), array)
    total, more = layers.scale(x, 0.0), layers.less_than(i, last)
    with layers.While(more).block():
        layers.assign(layers.elementwise_add(total, layers.array_read(array, i)), output=total)
        layers.increment(i)
        layers.less_than(i, last, cond=more)
    return total


CASES: list[Callable[[], Any]] = [states, overwritten, created, given]


@pytest.mark.parametrize("opset", [14, 17, 20])
@pytest.mark.parametrize("case", CASES)
def test_onnxruntime_agrees(case: Callable[[], Any], opset: int, tmp_path: Path) -> None:
    model = fluid.open(str(saved(case, tmp_path)))
    (path,) = model.save(str(tmp_path), to="onnx", name="m", opset=opset)
    onnx.checker.check_model(path, full_check=True)
    given = {"x": np.random.default_rng(0).standard_normal((3, 4)).astype("float32")}
    for got, want in zip(by_runtime(Path(path), given), model.run(given), strict=True):
        assert got.shape == want.shape and got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_old_opsets_are_refused(tmp_path: Path) -> None:
    with pytest.raises(NotBuiltYet, match="arrays of tensors before opset 14"):
        fluid.open(str(saved(states, tmp_path))).save(str(tmp_path), to="onnx", opset=13)


def test_results_of_each_iteration_are_written_again(tmp_path: Path) -> None:
    kinds = onnx.TensorProto
    nodes = [helper.make_node("Mul", ["s", "two"], ["next"]), helper.make_node("Identity", ["next"], ["each"]),
             helper.make_node("Identity", ["c"], ["go"])]  # fmt: skip
    info = helper.make_tensor_value_info
    body = helper.make_graph(
        nodes, "body", [info("i", kinds.INT64, []), info("c", kinds.BOOL, []), info("s", kinds.FLOAT, [2])],
        [info("go", kinds.BOOL, []), info("next", kinds.FLOAT, [2]), info("each", kinds.FLOAT, [2])],
        [helper.make_tensor("two", kinds.FLOAT, [], [2.0])],
    )  # fmt: skip
    graph = helper.make_graph(
        [helper.make_node("Loop", ["n", "", "x"], ["last", "all"], body=body)], "loop", [info("x", kinds.FLOAT, [2])],
        [info("last", kinds.FLOAT, [2]), info("all", kinds.FLOAT, [None, 2])],
        [helper.make_tensor("n", kinds.INT64, [], [4])],
    )  # fmt: skip
    first = tmp_path / "first.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), first)
    (again,) = fluid.open(str(first)).save(str(tmp_path), to="onnx", name="again")
    x = {"x": np.array([1.0, -2.0], "float32")}
    for got, want in zip(by_runtime(Path(again), x), by_runtime(first, x), strict=True):
        np.testing.assert_array_equal(got, want)
