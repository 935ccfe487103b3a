"""Convolutions by Winograd's minimal filtering: the numbers of direct products, to the last digits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fluidnb as fluid
from fluidnb.memory import flags
from fluidnb.testing import run_op
from fluidnb_kernels.conv import winograd

L = fluid.layers


@pytest.fixture(autouse=True)
def separate() -> Iterator[None]:
    before = flags.values["constant_filters"]
    with fluid.fresh():
        yield
    flags.values["constant_filters"] = before


def by_both(monkeypatch: Any, op: str, inputs: dict[str, Any], attrs: dict[str, Any], out: str) -> list[np.ndarray]:
    """A result with and without it, the latter in float64; asserts that the first is by it."""
    used: list[Any] = []
    pays = winograd.pays
    with monkeypatch.context() as patch:
        patch.setattr(winograd, "pays", lambda *args, **kw: used.append(pays(*args, **kw)) or used[-1])
        got = run_op(op, inputs, attrs, [out])[out]
    assert any(used)
    wide = {slot: value.astype("float64") for slot, value in inputs.items()}
    return [np.asarray(got), np.asarray(run_op(op, wide, attrs, [out])[out])]


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(shape).uniform(-1, 1, shape).astype("float32")


def assert_close(got: np.ndarray, exact: np.ndarray) -> None:
    assert got.dtype == np.float32 and got.shape == exact.shape
    np.testing.assert_allclose(got, exact, rtol=0, atol=3e-6 * np.abs(exact).max())


SHAPES = [(1, 32, 14, 12), (2, 33, 9, 15), (8, 40, 7, 6), (3, 32, 12, 11), (9, 64, 5, 9)]
PADDINGS = [[0, 0], [1, 1], [2, 1], [0, 1, 2, 0]]


@pytest.mark.parametrize("paddings", PADDINGS, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_convolutions(
    shape: tuple[int, ...], paddings: list[int], layout: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(winograd, "_RESULTS", 1)
    x, w = numbers(*shape), numbers(37, shape[1], 3, 3)
    if layout == "NHWC":
        x = np.ascontiguousarray(np.moveaxis(x, 1, -1))
    attrs = {"paddings": paddings, "data_format": layout}
    assert_close(*by_both(monkeypatch, "conv2d", {"Input": x, "Filter": w}, attrs, "Output"))


@pytest.mark.parametrize("paddings", PADDINGS, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_gradients_of_images(shape: tuple[int, ...], paddings: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(winograd, "_RESULTS", 1)
    x, w = numbers(*shape), numbers(37, shape[1], 3, 3)
    attrs = {"paddings": paddings}
    out = run_op("conv2d", {"Input": x, "Filter": w}, attrs)["Output"]
    inputs = {"Input": x, "Filter": w, "Output@GRAD": numbers(*np.shape(out))}
    assert_close(*by_both(monkeypatch, "conv2d_grad", inputs, attrs, "Input@GRAD"))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_transposed_convolutions(shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(winograd, "_RESULTS", 1)
    inputs = {"Input": numbers(*shape), "Filter": numbers(shape[1], 35, 3, 3)}
    assert_close(*by_both(monkeypatch, "conv2d_transpose", inputs, {"paddings": [1, 1]}, "Output"))


@given(
    st.integers(1, 10), st.integers(32, 70), st.integers(32, 70), st.integers(3, 20), st.integers(3, 20),
    st.integers(0, 2), st.integers(1, 1 << 18),
)  # fmt: skip
def test_any_sizes(n: int, channels: int, count: int, height: int, width: int, padding: int, size: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(winograd, "_RESULTS", 1)
        patch.setattr(winograd, "_BYTES", size)  # parts of few rows
        inputs = {"Input": numbers(n, channels, height, width), "Filter": numbers(count, channels, 3, 3)}
        assert_close(*by_both(patch, "conv2d", inputs, {"paddings": [padding, padding]}, "Output"))


@pytest.mark.parametrize(
    "change",
    [
        {"strides": [2, 1]}, {"dilations": [1, 2]}, {"groups": 2}, {"paddings": [3, 1]}, {"filter": (32, 31, 3, 3)},
        {"filter": (31, 32, 3, 3)}, {"filter": (32, 32, 3, 1)}, {"size": 10}, {"dtype": "float64"},
    ],
    ids=str,
)  # fmt: skip
def test_others_are_direct_products(change: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(winograd, "convolve", None)
    groups, size = change.get("groups", 1), change.pop("size", 20)
    shape = change.pop("filter", (32, 32 // groups, 3, 3))
    dtype = change.pop("dtype", "float32")
    x, w = numbers(1, shape[1] * groups, size, size).astype(dtype), numbers(*shape).astype(dtype)
    assert run_op("conv2d", {"Input": x, "Filter": w}, change)["Output"].size


def network(size: int = 6) -> tuple[Any, fluid.Executor, dict[str, Any]]:
    y = L.conv2d(L.data("x", [32, size, size]), 32, 3, bias_attr=False, param_attr="w")
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    return y, exe, {"x": numbers(2, 32, size, size)}


def test_a_constant_filter_is_transformed_once() -> None:
    flags.values["constant_filters"] = True
    y, exe, feed = network()
    (one,), (two,) = (exe.run(feed=feed, fetch_list=[y]) for _ in range(2))
    np.testing.assert_array_equal(one, two)
    tensor = fluid.global_scope().find_var("w").get_tensor()
    tensor.set(np.zeros((32, 32, 3, 3), "float32"), fluid.CPUPlace())
    np.testing.assert_array_equal(exe.run(feed=feed, fetch_list=[y])[0], one)  # as the flag says
    (other,) = exe.run(feed={"x": feed["x"][:1]}, fetch_list=[y])
    assert not other.any(), "bound anew, it is transformed again"
    assert len([kept for key, kept in winograd._transformed.items() if key[1] == (32, 32, 3, 3)]) >= 1


def test_a_filter_that_changes_is_transformed_in_every_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(winograd, "_RESULTS", 1)
    y, exe, feed = network()
    assert exe.run(feed=feed, fetch_list=[y])[0].any()
    fluid.global_scope().find_var("w").get_tensor().set(np.zeros((32, 32, 3, 3), "float32"), fluid.CPUPlace())
    assert not exe.run(feed=feed, fetch_list=[y])[0].any()


def test_training_is_that_of_direct_products(monkeypatch: pytest.MonkeyPatch) -> None:
    def losses() -> list[float]:
        with fluid.fresh():
            fluid.default_startup_program().random_seed = 1
            h = L.data("x", [32, 12, 12])
            for _ in range(3):
                h = L.batch_norm(L.conv2d(h, 32, 3, padding=1, bias_attr=False), act="relu")
            loss = L.mean(L.softmax_with_cross_entropy(L.fc(h, 5), L.data("y", [1], dtype="int64")))
            fluid.optimizer.SGD(0.1).minimize(loss)
            exe = fluid.Executor()
            exe.run(fluid.default_startup_program())
            feed = {"x": numbers(8, 32, 12, 12), "y": np.arange(8).reshape(8, 1) % 5}
            return [exe.run(feed=feed, fetch_list=[loss])[0].item() for _ in range(6)]

    ours = losses()
    monkeypatch.setattr(winograd, "pays", lambda *args, **kw: False)
    np.testing.assert_allclose(ours, losses(), rtol=2e-3)
    assert ours[-1] < ours[0]
