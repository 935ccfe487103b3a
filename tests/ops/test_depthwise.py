"""Convolutions of each channel with a separate filter: numpy's bits in both forms, and through an executor."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import fluidnb as fluid
from fluidnb.testing import run_op
from fluidnb_kernels.conv import depthwise
from fluidnb_kernels.sliding import Axis

L = fluid.layers


class Recorder:
    """Stands for the binder of a kernel: records its calls, and fills new memory with NaN."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, tuple[Any, ...]]] = []

    def tmp(self, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        return np.full(shape, np.nan, dtype)

    def __call__(self, function: Any, *args: Any) -> None:
        self.calls.append((function, args))


def direct(x: np.ndarray, w: np.ndarray, axes: list[Axis]) -> np.ndarray:
    """The sums, one element of the filters after the other."""
    rows, columns = axes
    whole = np.zeros((*x.shape[:2], rows.reach, columns.reach))
    whole[:, :, rows.inside, columns.inside] = x
    out = np.zeros((*x.shape[:2], rows.out, columns.out))
    for i, j in product(*map(range, w.shape[2:])):
        out += whole[:, :, rows.tap(i), columns.tap(j)] * w[:, 0, i, j, None, None]
    return out


def in_memory(x: np.ndarray, inner: bool) -> np.ndarray:
    return np.moveaxis(np.ascontiguousarray(np.moveaxis(x, 0, -1)), -1, 0) if inner else np.ascontiguousarray(x)


axis = st.tuples(*(st.integers(1, n) for n in (9, 4, 3, 3)), st.integers(0, 3), st.integers(0, 3))


def _axis(size: int, window: int, stride: int, dilation: int, low: int, high: int) -> Axis:
    size = max(size, (window - 1) * dilation + 1 - low - high)
    return Axis(size, window, stride, dilation, low, (size + low + high - (window - 1) * dilation - 1) // stride + 1)


@given(axis, axis, st.integers(1, 3), st.integers(2, 5), st.booleans(), st.sampled_from(["float32", "float64"]))
@example((9, 3, 1, 1, 1, 1), (40, 3, 1, 1, 1, 1), 2, 3, False, "float32")
@example((9, 3, 2, 1, 1, 1), (80, 3, 2, 1, 1, 1), 2, 3, False, "float32")
@example((9, 5, 2, 2, 2, 1), (33, 3, 3, 1, 2, 0), 2, 3, True, "float32")
def test_both_forms(
    rows: tuple[int, ...], columns: tuple[int, ...], n: int, c: int, inner: bool, dtype: str
) -> None:  # fmt: skip
    axes = [_axis(*rows), _axis(*columns)]
    draws = np.random.default_rng((*rows, *columns, n, c))
    shape = n, c, axes[0].size, axes[1].size
    x = in_memory(draws.uniform(-1, 1, shape).astype(dtype), inner)
    w = draws.uniform(-1, 1, (c, 1, axes[0].window, axes[1].window)).astype(dtype)
    out = in_memory(np.full((n, c, axes[0].out, axes[1].out), np.nan, dtype), inner)
    if not depthwise.fits(x, w, out, axes, c):
        assert inner  # sizes with which no order is that of the batch innermost
        return
    b = Recorder()
    depthwise.convolve(b, x, w, out, axes)  # type: ignore[arg-type]
    ((one, args),) = b.calls
    expected, limit = direct(x, w, axes), 1e-5 if dtype == "float32" else 1e-13
    for _ in range(3):  # the second run makes what the first one listed
        out[:] = np.nan
        one(*args)
        np.testing.assert_allclose(out, expected, rtol=0, atol=limit)
    by_numpy = out.tobytes()
    for array in args[3:]:
        array[:] = np.nan
    out[:] = np.nan
    calls, own = one.calls(*args)
    for function, operands in calls:
        function(*operands)
    assert out.tobytes() == by_numpy
    assert len(own) == 1


@given(axis, axis, st.integers(1, 3), st.integers(2, 5), st.booleans())
@example((40, 3, 2, 1, 1, 1), (33, 3, 2, 1, 1, 1), 2, 3, False)
@example((9, 5, 3, 1, 2, 1), (40, 4, 2, 1, 1, 0), 2, 3, True)
def test_gradients_of_images(rows: tuple[int, ...], columns: tuple[int, ...], n: int, c: int, inner: bool) -> None:
    axes = [_axis(*rows), _axis(*columns)]
    draws = np.random.default_rng((*rows, *columns, n, c))
    g = in_memory(draws.uniform(-1, 1, (n, c, axes[0].out, axes[1].out)), inner)
    w = draws.uniform(-1, 1, (c, 1, axes[0].window, axes[1].window))
    dx = in_memory(np.full((n, c, axes[0].size, axes[1].size), np.nan), inner)
    b = Recorder()
    if not depthwise.fits(g, w, dx, axes, c):
        return
    if not depthwise.image_gradient(b, g, w, dx, axes):  # type: ignore[arg-type]
        assert any(a.stride > min(a.window, 1 if a.dilation > 1 else a.window) or a.low >= a.window for a in axes)
        return
    whole = np.zeros((n, c, *(max(a.reach, a.low + a.size) for a in axes)))
    for i, j in product(*map(range, w.shape[2:])):
        whole[:, :, axes[0].tap(i), axes[1].tap(j)] += g * w[:, 0, i, j, None, None]
    for _ in range(3):
        dx[:] = np.nan
        for function, args in b.calls:
            function(*args)
        np.testing.assert_allclose(dx, whole[:, :, axes[0].inside, axes[1].inside], rtol=0, atol=1e-12)


@given(axis, axis, st.integers(1, 3), st.integers(2, 5), st.booleans())
@example((40, 3, 2, 1, 1, 1), (33, 3, 2, 1, 1, 1), 2, 3, False)
@example((9, 5, 2, 2, 2, 1), (33, 3, 3, 1, 2, 0), 2, 3, True)
def test_gradients_of_filters(rows: tuple[int, ...], columns: tuple[int, ...], n: int, c: int, inner: bool) -> None:
    axes = [_axis(*rows), _axis(*columns)]
    draws = np.random.default_rng((*rows, *columns, n, c))
    x = in_memory(draws.uniform(-1, 1, (n, c, axes[0].size, axes[1].size)), inner)
    g = in_memory(draws.uniform(-1, 1, (n, c, axes[0].out, axes[1].out)), inner)
    dw = np.full((c, 1, axes[0].window, axes[1].window), np.nan)
    if not depthwise.fits(x, dw, g, axes, c):
        return
    b = Recorder()
    depthwise.filter_gradient(b, x, g, dw, axes)  # type: ignore[arg-type]
    whole = np.zeros((n, c, axes[0].reach, axes[1].reach))
    whole[:, :, axes[0].inside, axes[1].inside] = x
    for _ in range(3):
        dw[:] = np.nan
        for function, args in b.calls:
            function(*args)
        for i, j in product(*map(range, dw.shape[2:])):
            expected = (whole[:, :, axes[0].tap(i), axes[1].tap(j)] * g).sum((0, 2, 3))
            np.testing.assert_allclose(dw[:, 0, i, j], expected, rtol=0, atol=1e-11)


@pytest.mark.parametrize("op", ["depthwise_conv2d", "depthwise_conv2d_transpose"])
@pytest.mark.parametrize(("stride", "padding", "dilation"), [(1, 1, 1), (2, 1, 1), (1, 0, 2), (1, 3, 1)])
def test_the_numbers_of_a_convolution_with_groups(op: str, stride: int, padding: int, dilation: int) -> None:
    draws = np.random.default_rng(5)
    x, w = draws.uniform(-1, 1, (2, 4, 9, 8)), draws.uniform(-1, 1, (4, 1, 3, 3))
    attrs = {"strides": [stride] * 2, "paddings": [padding] * 2, "dilations": [dilation] * 2}
    got = run_op(op, {"Input": x, "Filter": w}, {**attrs, "groups": 4}, ["Output"])["Output"]
    one = "conv2d_transpose" if op.endswith("transpose") else "conv2d"
    for channel in range(4):
        part = slice(channel, channel + 1)
        alone = run_op(one, {"Input": x[:, part], "Filter": w[part]}, attrs, ["Output"])["Output"]
        np.testing.assert_allclose(got[:, part], alone, atol=1e-12)


@pytest.mark.parametrize("results", [2, 3])
def test_a_transposed_one_with_several_results_for_a_channel(results: int) -> None:
    draws = np.random.default_rng(6)
    x, w = draws.uniform(-1, 1, (2, 4, 5, 6)), draws.uniform(-1, 1, (4, results, 3, 3))
    inputs, attrs = {"Input": x, "Filter": w}, {"strides": [1, 1], "paddings": [1, 1]}
    got = run_op("conv2d_transpose", inputs, {**attrs, "groups": 4}, ["Output"])["Output"]
    for channel in range(4):
        part = {"Input": x[:, channel : channel + 1], "Filter": w[channel : channel + 1]}
        alone = run_op("conv2d_transpose", part, attrs, ["Output"])["Output"]
        np.testing.assert_allclose(got[:, channel * results : (channel + 1) * results], alone, atol=1e-12)


@pytest.fixture
def programs() -> Iterator[None]:
    with fluid.fresh():
        yield


@pytest.mark.parametrize("batch", [1, 8])
def test_a_network_trains_as_with_other_convolutions(
    batch: int, programs: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    fluid.default_startup_program().random_seed = 7
    image = L.data("image", [8, 12, 12])
    y = L.conv2d(image, 8, 3, padding=1, groups=8, act="relu", bias_attr=False)
    y = L.batch_norm(L.conv2d(y, 8, 3, stride=2, padding=1, groups=8, bias_attr=False), act="relu6")
    loss = L.mean(L.square(y))
    fluid.optimizer.SGD(0.1).minimize(loss)
    exe, draws = fluid.Executor(), np.random.default_rng(1)
    feeds = [draws.uniform(-1, 1, (batch, 8, 12, 12)).astype("float32") for _ in range(4)]

    def losses() -> list[float]:
        with fluid.scope_guard(fluid.Scope()):
            exe.run(fluid.default_startup_program())
            return [exe.run(feed={"image": feed}, fetch_list=[loss])[0].item() for feed in feeds]

    calls: list[Any] = []
    convolve = depthwise.convolve
    monkeypatch.setattr(depthwise, "convolve", lambda *args: calls.append(args) or convolve(*args))
    got = losses()
    assert calls
    monkeypatch.setattr(depthwise, "fits", lambda *args: False)
    exe = fluid.Executor()
    np.testing.assert_allclose(got, losses(), rtol=1e-5)
