"""Random networks of convolutions, normalisations and activations have numpy's bits, in new memory that holds NaN."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb import layers
from fluidnb.runtime import native_calls, wait_for_native_code
from fluidnb.runtime.native import many_calls, segment_code
from fluidnb.runtime.native.many_calls import taken_apart
from fluidnb_kernels.one_call import OneCall

#: Seeds, and those of networks in which one nest used memory that another had written.
SEEDS = (*range(24), 100019, 200043, 400001, 500141)


@pytest.fixture(autouse=True)
def settings(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(segment_code, "LONG", 0.0)
    fluid.set_flags({"FLAGS_init_allocated_mem": True})
    yield
    fluid.set_flags({"FLAGS_init_allocated_mem": False})


def network(seed: int) -> tuple[list[Any], dict[str, np.ndarray]]:
    """A random network: the variables to fetch, and the feed {"x": float32 [n, c, rows, columns]}."""
    draw = random.Random(seed)
    channels, height, width = draw.choice([2, 3, 5, 8]), draw.randint(4, 24), draw.randint(4, 40)
    y: Any = layers.data("x", [channels, height, width])
    trains, seen = draw.random() < 0.5, list[Any]()
    for _ in range(draw.randint(2, 7)):
        kind, c = draw.random(), y.shape[1]
        if kind < 0.45 and c > 1:
            window, stride = draw.choice([1, 2, 3, 3, 3, 5]), draw.choice([1, 1, 2, 3])
            dilation, padding = draw.choice([1, 1, 2]), draw.randint(0, 3)
            if min(y.shape[2:]) + 2 * padding < (window - 1) * dilation + 1:
                continue
            y = layers.conv2d(
                y, c, window, stride=stride, padding=padding, dilation=dilation, groups=c,
                bias_attr=draw.choice([False, None]), act=draw.choice([None, "relu", "tanh"]),
            )  # fmt: skip
        elif kind < 0.6:
            y = layers.conv2d(y, draw.choice([c, 4]), 1, act=draw.choice([None, "relu"]), bias_attr=False)
        elif kind < 0.8:
            test = not trains or draw.random() < 0.3
            y = layers.batch_norm(y, is_test=test, act=draw.choice([None, "relu", "relu6"]))
        elif kind < 0.9:
            y = getattr(layers, draw.choice(["relu6", "sigmoid", "leaky_relu", "swish"]))(y)
        elif min(y.shape[2:]) > 2:
            y = layers.pool2d(y, 2, draw.choice(["max", "avg"]), 2, ceil_mode=True)
        for other in seen:
            if other.shape == y.shape and draw.random() < 0.4:
                y = layers.elementwise_add(y, other)
                break
        seen.append(y)
    fetches = [y]
    if trains:
        loss = layers.mean(layers.square(y))
        fetches = [loss, *(gradient for _, gradient in fluid.append_backward(loss))]
    if draw.random() < 0.3 and seen:
        fetches.append(draw.choice(seen))
    shape = draw.choice([1, 1, 2, 8, 9]), channels, height, width
    return fetches, {"x": np.random.default_rng(seed).normal(size=shape).astype("float32")}


@pytest.mark.parametrize("seed", SEEDS)
def test_random_networks(seed: int) -> None:
    fluid.default_startup_program().random_seed = seed + 1
    fetches, feed = network(seed)
    exe, main = fluid.Executor(), fluid.default_main_program()
    fluid.set_flags({"FLAGS_native": "off"})
    exe.run(fluid.default_startup_program())
    kept = {p.name: np.array(fluid.fetch_var(p.name)) for p in main.list_vars() if p.persistable}

    def run() -> list[np.ndarray]:
        for name, value in kept.items():  # running moments move
            fluid.global_scope().find_var(name).get_tensor().set(value, fluid.CPUPlace())
        return exe.run(main, feed, fetches)  # type: ignore[no-any-return]

    wanted = run()
    fluid.set_flags({"FLAGS_native": "auto"})
    for _ in range(segment_code.OFTEN + 2):
        run()
    assert wait_for_native_code()
    for got, value in zip(run(), wanted, strict=True):
        np.testing.assert_array_equal(got, value)
    assert native_calls(main)


def test_no_buffer_of_an_array_that_is_gone() -> None:
    x, out = np.ones(3), np.empty(3)

    def apart(emit: Any, scratch: Any, a: Any, b: Any) -> None:
        used = scratch(a.shape, a.dtype)
        scratch(a.shape, a.dtype)  # which no call has
        emit(np.square, a, used)
        emit(np.sqrt, used, b)

    one = OneCall(lambda emit, a, b: emit(np.copyto, b, a), apart)
    calls, lives = taken_apart(segment_code.Calls([(one, (x, out))], [None], [None]), {})
    arrays = {id(array) for _, operands in calls.calls for array in operands}
    assert len(calls.calls) == 2 and lives.keys() <= arrays and len(lives) == 1
    assert many_calls.any_of(segment_code.Calls([(one, (x, out))], [None], [None]))
