"""Launches in a row that compute element by element become one with the same numbers, where FLAGS_native says so."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb import layers
from fluidnb.memory import flags
from fluidnb.runtime import native_calls, native_text
from fluidnb.values.device_context import DeviceContext
from fluidnb_kernels.activation.table import CUDA as ACTIVATIONS
from fluidnb_kernels.cuda import of_dtype
from fluidnb_kernels.device.element_groups import Group, Step, key_of, step_of
from fluidnb_kernels.elementwise.launch import CUDA as ARITHMETIC
from fluidnb_kernels.optimizer.launch import CUDA as UPDATES
from tests.tools.sampling import sample

_ODD = np.array([0.0, -0.0, np.nan, np.inf, -np.inf, 1e-40, -1e30, 0.5, -2.5, 3.0], "float32")


def results(build: Any, feeds: list[dict[str, Any]], place: Any, native: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The fetched values of some runs, and the program."""
    monkeypatch.setitem(flags.values, "native", native)
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 3
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        fetch = build()
    exe, scope = fluid.Executor(place), fluid.Scope()
    exe.run(startup, scope=scope)
    return [[np.array(v) for v in exe.run(main, feed, fetch, scope=scope)] for feed in feeds], main


def same(build: Any, feeds: list[dict[str, Any]], place: Any, monkeypatch: pytest.MonkeyPatch) -> fluid.Program:
    """Runs with and without groups give the same bits; the program that has some."""
    apart, _ = results(build, feeds, place, "off", monkeypatch)
    joined, main = results(build, feeds, place, "require", monkeypatch)
    assert [a.tobytes() for row in apart for a in row] == [a.tobytes() for row in joined for a in row]
    return main


def trained() -> list[Any]:
    """A training step with bias, activations, a scale, a clip, squares, and an intermediate result that is fetched."""
    x, y = layers.data("x", [33]), layers.data("y", [1])
    h = layers.scale(layers.tanh(layers.relu(layers.fc(x, 16))), 2.0, 1.0)
    h = layers.clip(layers.elementwise_mul(h, layers.sigmoid(h)), -1.0, 1.5)
    h = h + layers.square(h)
    loss = layers.mean(layers.square_error_cost(layers.fc(h, 1), y))
    fluid.optimizer.Momentum(0.1, 0.9).minimize(loss)
    return [loss, h]


def test_a_training_has_the_same_bits(cuda: fluid.CUDAPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    feeds = [{"x": rng.random((n, 33), "float32"), "y": rng.random((n, 1), "float32")} for n in (7, 7, 7, 5)]
    main = same(trained, feeds, cuda, monkeypatch)
    first, *others = native_calls(main)
    types = ["elementwise_add", "relu", "tanh", "scale", "sigmoid", "elementwise_mul", "clip", "square"]
    assert [op.desc.optype for op in first.ops] == [*types, "elementwise_add"] and first.replaced == 9
    assert others and "tanh_grad" in native_text(main)
    assert "float* a7" not in first.text  # the square is read by nobody else: it is not written


def test_a_run_that_is_watched_has_launches_of_its_own(cuda: fluid.CUDAPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    feeds = [{"x": np.ones((4, 33), "float32"), "y": np.ones((4, 1), "float32")}] * 3
    plain, _ = results(trained, feeds, cuda, "require", monkeypatch)
    monkeypatch.setitem(flags.values, "benchmark", True)
    watched, main = results(trained, feeds, cuda, "require", monkeypatch)
    assert native_calls(main) == []
    assert all(
        a.tobytes() == b.tobytes() for p, q in zip(plain, watched, strict=True) for a, b in zip(p, q, strict=True)
    )


def drawn(seed: int) -> Any:
    """A function that builds a random chain of operators, of one shape or with a bias, a row or a number beside it."""

    def build() -> list[Any]:
        draw = np.random.default_rng(seed)
        dtype = draw.choice(["float32", "float64"])
        made = [layers.data(name, [3, 10], dtype=dtype) for name in "xy"]
        beside = [layers.data("band", [10], dtype=dtype, append_batch_size=False)]
        beside.append(layers.data("one", [1], dtype=dtype, append_batch_size=False))
        for _ in range(draw.integers(3, 14)):
            a, b = (made[i] for i in draw.integers(0, len(made), 2))
            kind = draw.integers(0, 7)
            if kind == 0:
                name = draw.choice(["relu", "tanh", "sigmoid", "exp", "square", "abs", "softsign", "softplus", "floor"])
                made.append(getattr(layers, name)(a))
            elif kind <= 2:
                name = draw.choice(["add", "sub", "mul", "div", "max", "min"])
                made.append(getattr(layers, f"elementwise_{name}")(a, b))
            elif kind == 3:
                other = beside[draw.integers(0, 2)]
                made.append(layers.elementwise_add(a, other, axis=-1))
            elif kind == 4:
                made.append(layers.scale(a, float(draw.normal()), float(draw.normal())))
            elif kind == 5:
                made.append(layers.cast(layers.less_than(a, b), dtype))
            else:
                made.append(layers.sum([a, b, made[0]]))
        shown = [made[i] for i in sorted(set(draw.integers(2, len(made), 2)))]
        loss = layers.reduce_sum(made[-1])
        pairs = fluid.backward.append_backward(loss, parameter_list=[])
        assert pairs == []
        return [*shown, loss]

    return build


@pytest.mark.parametrize("seed", sample(range(60), 12))
def test_random_chains_have_the_same_bits(seed: int, cuda: fluid.CUDAPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = np.random.default_rng([7, seed])
    dtype = np.random.default_rng(seed).choice(["float32", "float64"])
    feeds = []
    for rows in (4, 4, 3):
        x, y = (draw.standard_normal((rows, 3, 10)).astype(dtype) for _ in "xy")
        x[0, 0] = _ODD
        feeds.append({"x": x, "y": y, "band": draw.random(10).astype(dtype), "one": np.ones(1, dtype)})
    same(drawn(seed), feeds, cuda, monkeypatch)


# ---- what cannot be in one kernel


def arrays(place: fluid.CUDAPlace, *sizes: int) -> list[Any]:
    """Device arrays over one piece of memory, each from a byte on, of 64 floats or as many as are said."""
    context = DeviceContext.get(place)
    whole = context.empty((8192,), np.uint8)
    pointer = type(whole.data)
    return [
        type(whole)((64,), np.dtype("float32"), pointer(whole.data.mem, whole.data.ptr - whole.data.mem.ptr + at))
        for at in sizes
    ]


def unary(x: Any, y: Any, count: int = 64) -> Step:
    """A launch of relu."""
    return step(ACTIVATIONS["unary<f::relu, float, 1>"], x, y, *[np.float64(0)] * 3, np.int64(count))


def banded(x: Any, y: Any, out: Any) -> Step:
    """A launch of a sum with a bias of eight numbers."""
    return step(ARITHMETIC["banded<f::add, float, float, 1>"], x, y, out, np.int64(8), np.int64(1), np.int64(64))


def step(function: Any, *args: Any) -> Step:
    """A launch as a step of a group."""
    made = step_of((function, ((1,), (32,), 0, *args)))
    assert made is not None
    return made


def joins(first: Step, second: Step) -> bool:
    """Whether two launches can be one."""
    return Group(first).take(second)


def test_memory_decides_what_can_be_one_kernel(cuda: fluid.CUDAPlace) -> None:
    a, b, c, beside_b = arrays(cuda, 0, 1024, 2048, 1024 + 16)
    assert joins(unary(a, b), unary(b, c)) and joins(unary(a, b), unary(a, a)) and joins(unary(a, a), unary(a, a))
    assert joins(unary(beside_b, a), unary(b, c))  # both are only read
    assert not joins(unary(a, b), unary(beside_b, c))  # what another thread has written
    assert not joins(unary(beside_b, c), unary(a, b))  # what another thread may not have read yet
    assert not joins(unary(a, b), unary(c, beside_b))
    assert not joins(unary(a, b, 64), unary(b, c, 32))
    assert joins(unary(a, b), banded(b, a, c))
    assert not joins(unary(a, b), banded(a, b, c)) and not joins(banded(a, b, c), unary(a, b))


def test_a_group_ends_where_a_thread_would_hold_too_much(cuda: fluid.CUDAPlace) -> None:
    row = arrays(cuda, *range(0, 4096 + 256, 256))
    group = Group(unary(row[0], row[1]))
    assert all(group.take(unary(x, y)) for x, y in zip(row[1:15], row[2:16], strict=True))
    assert len(group.arrays) == 16 and group.loaded == {key_of(row[0])}
    assert not group.take(unary(row[15], row[16])) and group.take(unary(row[15], row[0]))


def test_other_calls_are_no_steps() -> None:
    assert step_of((np.add, (1, 2))) is None and step_of((of_dtype, ())) is None
    assert step_of((UPDATES["zero<float>"], ())) is None
