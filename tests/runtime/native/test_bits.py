"""Native code and numpy give the same bits: random calls, and programs with gradients."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb import layers
from fluidnb.runtime.native.segment_code import Calls, with_native
from tests.runtime.native.random_calls import Call, RandomCalls, same_bits

#: Programs that are compiled together: a compiler takes as long to start as for one of them.
TOGETHER = 50


def nothing() -> None:
    """Separates the calls of two programs."""


@pytest.mark.parametrize("first", range(0, 500, TOGETHER))
def test_random_calls(first: int) -> None:
    programs = [RandomCalls(seed) for seed in range(first, first + TOGETHER)]
    emitted: list[Call] = [call for p in programs for call in (*p.calls, (nothing, (), {}))]
    plain = [(partial(f, **kw) if kw else f, args) for f, args, kw in emitted]
    before = [p.memory() for p in programs]
    with np.errstate(all="ignore"):
        for function, args in plain:
            function(*args)
        wanted = [p.memory() for p in programs]
        for p, memory in zip(programs, before, strict=True):
            p.restore(memory)
        code, (functions, replaced) = with_native(Calls(plain, plain, plain), emitted, {})
        assert functions > TOGETHER / 2 and replaced > 0.9 * (len(plain) - TOGETHER)
        for function, args in code.calls:
            function(*args)
    for seed, p, memory in zip(range(first, first + TOGETHER), programs, wanted, strict=True):
        assert all(map(same_bits, p.memory(), memory)), f"seed {seed}"


def network() -> tuple[Any, Any]:
    """A loss with its training: activations, softmax, sums, Adam."""
    x, y = layers.data("x", [33]), layers.data("y", [33])
    h = layers.elementwise_mul(layers.sigmoid(layers.relu(x + y)), x)
    h = layers.fc(layers.softmax(h), 7, act="tanh")
    loss = layers.mean(layers.square(layers.softplus(h)))
    fluid.optimizer.Adam(0.05).minimize(loss)
    return h, loss


@pytest.mark.parametrize("mode", ["auto", "require"])
def test_training(mode: str) -> None:
    fetches = network()
    rng = np.random.default_rng(0)
    feed = {name: rng.standard_normal((9, 33)).astype("float32") for name in "xy"}
    exe, main, startup = fluid.Executor(), fluid.default_main_program(), fluid.default_startup_program()
    startup.random_seed = 5
    seen = []
    for flag in ("off", mode):
        fluid.set_flags({"FLAGS_native": flag})
        with fluid.scope_guard(fluid.Scope()):
            exe.run(startup)
            steps = [exe.run(main, feed, list(fetches)) for _ in range(40)]
            assert fluid.runtime.wait_for_native_code()
            steps += [exe.run(main, feed, list(fetches)) for _ in range(3)]
        seen.append([[array.tobytes() for array in step] for step in steps])
    assert seen[0] == seen[1]
