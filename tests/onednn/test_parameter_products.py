"""Products by parameters that stay as they are, by oneDNN: the numbers of numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb import layers
from fluidnb_kernels.onednn import library
from tests.onednn.test_convolution import assert_agree, by_both, small


@pytest.fixture(autouse=True)
def constant(by_onednn: None) -> None:
    fluid.set_flags({"FLAGS_constant_filters": True})


def parameter(*shape: int, dtype: str = "float32") -> Any:
    return layers.create_parameter(list(shape), dtype, name="w")


def started() -> fluid.Executor:
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    return exe


def by_library(exe: fluid.Executor) -> bool:
    hot: Any = exe._hot
    return any(isinstance(function, library.Call) for function, _ in hot.root.code.plain.calls)


@pytest.mark.parametrize("rows", [1, 2, 8, 33])
@pytest.mark.parametrize("how", ["mul", "matmul", "transposed", "tall"])
def test_products(rows: int, how: str) -> None:
    if how == "tall":
        out = layers.matmul(layers.data("x", [3, 400]), parameter(400, 300), alpha=0.5)
        x = small(rows, 3, 400)
    else:
        given, x = layers.data("x", [400]), small(rows, 400)
        if how == "mul":
            out = layers.mul(given, parameter(400, 300))
        elif how == "matmul":
            out = layers.matmul(given, parameter(400, 300))
        else:
            out = layers.matmul(given, parameter(300, 400), transpose_y=True)
    started()
    assert_agree(*by_both([out], {"x": x}))


def test_a_parameter_is_converted_once_for_each_binding() -> None:
    out = layers.matmul(layers.data("x", [400]), parameter(400, 300))
    exe = started()
    tensor = fluid.global_scope().find_var("w").get_tensor()

    def first(rows: int) -> float:
        return float(exe.run(feed={"x": np.ones((rows, 400), "float32")}, fetch_list=[out])[0][0, 0])

    tensor.set(np.ones((400, 300), "float32"), fluid.CPUPlace())
    assert first(4) == 400
    tensor.set(np.full((400, 300), 2, "float32"), fluid.CPUPlace())
    assert [first(4), first(5), first(4)] == [400, 800, 800]
    fluid.set_flags({"FLAGS_constant_filters": False})
    tensor.set(np.full((400, 300), 3, "float32"), fluid.CPUPlace())
    assert [first(4), first(6)] == [1200, 1200]


def test_a_square_parameter_and_its_transpose_are_told_apart() -> None:
    x, w = layers.data("x", [400]), parameter(400, 400)
    outs = [layers.matmul(x, w), layers.matmul(x, w, transpose_y=True)]
    started()
    assert_agree(*by_both(outs, {"x": small(4, 400)}))


def test_what_a_program_trains_is_no_constant() -> None:
    out = layers.fc(layers.data("x", [400]), 300)
    fluid.optimizer.SGD(0.1).minimize(layers.mean(out))
    exe = started()
    for _ in range(2):
        exe.run(feed={"x": small(4, 400)}, fetch_list=[out])
    assert not by_library(exe)


@pytest.mark.parametrize("case", ["float64", "many rows", "small", "no parameter", "without the flag"])
def test_others_are_numpys(case: str) -> None:
    dtype = "float64" if case == "float64" else "float32"
    rows, width = (200 if case == "many rows" else 4), (30 if case == "small" else 400)
    x = layers.data("x", [width], dtype=dtype)
    w = layers.data("w", [width, 300], append_batch_size=False) if case == "no parameter" else parameter(
        width, 300, dtype=dtype
    )  # fmt: skip
    out = layers.matmul(x, w)
    if case == "without the flag":
        fluid.set_flags({"FLAGS_constant_filters": False})
    exe = started()
    feed = {"x": small(rows, width).astype(dtype)}
    if case == "no parameter":
        feed["w"] = small(width, 300)
    for _ in range(2):
        exe.run(feed=feed, fetch_list=[out])
    assert not by_library(exe)
