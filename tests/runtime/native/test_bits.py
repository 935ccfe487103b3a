"""Native code and numpy give the same bits: random calls, and programs with gradients."""

from __future__ import annotations

import random
from functools import partial
from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb import layers
from fluidnb.runtime.native import c_source
from fluidnb.runtime.native.segment_code import Calls, NativeCall, with_native
from tests.runtime.random_calls import Call, RandomCalls, same_bits

#: Programs that are compiled together: a compiler takes as long to start as for one of them.
TOGETHER = 50


def nothing() -> None:
    """Separates the calls of two programs."""


def check_random_calls(first: int) -> list[NativeCall]:
    """Check some lists of random calls; gives the native calls that they became."""
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
        code, native, _ = with_native(Calls(plain, list(range(len(plain))), plain), {})
        assert len(native) > TOGETHER / 2 and sum(call.replaced for call in native) > 0.9 * (len(plain) - TOGETHER)
        for function, args in code.calls:
            function(*args)
    for seed, p, memory in zip(range(first, first + TOGETHER), programs, wanted, strict=True):
        assert all(map(same_bits, p.memory(), memory)), f"seed {seed}"
    return native


@pytest.mark.parametrize("first", range(0, 500, TOGETHER))
def test_random_calls(first: int) -> None:
    assert not any("stream(" in call.text for call in check_random_calls(first))


@pytest.mark.parametrize("first", range(1000, 1200, TOGETHER))
def test_stores_past_the_caches(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(c_source, "LARGE", 0)  # as if all arrays were larger than the caches
    monkeypatch.setattr(c_source, "TILE", 8)
    made = check_random_calls(first)
    assert sum("stream(" in call.text for call in made) > TOGETHER / 10
    assert any(call.text.startswith("\nNARROW") for call in made)


def test_large_arrays_are_stored_past_the_caches() -> None:
    rows = np.random.default_rng(0).standard_normal((2, 3_000_001)).astype("float32")
    x, y = rows
    out, in_place = np.empty(6_000_003, "float32")[1::2][:3_000_001], y.copy()
    dense = np.empty(3_000_002, "float32")[1:]
    calls = [(np.multiply, (x, y, dense)), (np.add, (dense, x, out)), (np.add, (in_place, x, in_place))]
    code, made, _ = with_native(Calls(calls, [0, 1, 2], calls), {})
    for function, args in code.calls:
        function(*args)
    for array, wanted in ((dense, x * y), (out, x * y + x), (in_place, y + x)):
        np.testing.assert_array_equal(array, wanted)
    (text,) = (call.text for call in made)
    assert text.count("stream(") == 1  # neither what has gaps nor what is read before


def native(calls: list[Any]) -> None:
    """Make calls in native code, all of them."""
    code, made, _ = with_native(Calls(calls, list(range(len(calls))), calls), {})
    assert sum(call.replaced for call in made) == len(calls)
    for function, args in code.calls:
        function(*args)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_limits(dtype: str) -> None:
    special = [np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 1.5, -1.5, 1e-45, 2.0, -3.0, 1e30, -1e30]
    x = np.resize(np.array(special, dtype), (3, 20))
    numbers = [np.array(number, dtype) for number in special]
    for number in numbers:
        number.flags.writeable = False
    outs = [np.empty_like(x) for _ in range(4 * len(special))]
    pairs = [(f, x, n) for n in numbers for f in (np.maximum, np.minimum)]
    pairs += [(f, n, x) for f, x, n in pairs]
    calls = [(partial(f, out=out), args) for (f, *args), out in zip(pairs, outs, strict=True)]
    for function, args in calls:
        function(*args)
    wanted = [out.copy() for out in outs]
    native(calls)
    assert all(map(same_bits, outs, wanted))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sums_of_rows(dtype: str, rng: np.random.Generator) -> None:
    rows = [rng.standard_normal((3, n)).astype(dtype) for n in (*range(2, 20), 127, 128, 129, 136, 255, 1000, 4099)]
    rows += [np.full((3, 40), -0.0, dtype), np.full((3, 9), np.inf, dtype), np.array([[np.inf, -np.inf, 1]], dtype)]
    outs = [np.empty(len(x), dtype) for x in rows]
    calls = [(np.add.reduce, (x, 1, None, out)) for x, out in zip(rows, outs, strict=True)]
    with np.errstate(all="ignore"):
        wanted = [np.add.reduce(x, 1) for x in rows]
    native(calls)
    assert all(map(same_bits, outs, wanted))


ACTIVATIONS = (
    "relu", "sigmoid", "tanh", "softplus", "elu", "leaky_relu", "square", "abs", "exp", "logsigmoid", "selu", "swish",
    "softsign", "reciprocal",
)  # fmt: skip


def random_program(seed: int) -> tuple[list[Any], dict[str, Any]]:
    """A random program with its gradients: the variables to fetch, and a feed with NaN and infinity now and then."""
    pick, numbers = random.Random(seed), np.random.default_rng(seed)
    rows, columns = pick.choice([1, 2, 5, 64]), pick.choice([1, 3, 40, 130, 1500])
    x, y = (layers.data(name, [columns]) for name in "xy")
    x.stop_gradient = y.stop_gradient = False
    row = layers.create_parameter([columns], "float32", name="row")
    seen = [x, y]
    for _ in range(pick.randint(3, 14)):
        a, b, kind = pick.choice(seen), pick.choice([*seen[-3:], row]), pick.random()
        if kind < 0.45:
            seen.append(getattr(layers, pick.choice(ACTIVATIONS))(a))
        elif kind < 0.75:
            seen.append(getattr(layers, "elementwise_" + pick.choice(["add", "sub", "mul", "max", "min"]))(a, b))
        elif kind < 0.85:
            seen.append(layers.softmax(a))
        elif kind < 0.95:
            seen.append(a * layers.reduce_mean(a, 1, keep_dim=True))
        else:
            seen.append(layers.scale(a, pick.uniform(-2, 2), pick.uniform(-1, 1)))
    loss = layers.mean(seen[-1] + pick.choice(seen))
    fetches = [loss, pick.choice(seen), *fluid.gradients(loss, [x, row])]
    feed = {name: numbers.standard_normal((rows, columns)).astype("float32") for name in "xy"}
    if pick.random() < 0.3:
        feed["x"].flat[:: pick.randint(2, 9)] = pick.choice([np.nan, np.inf, -np.inf, 0.0, -0.0])
    return [v for v in fetches if v is not None], feed


@pytest.mark.parametrize("seed", range(40))
def test_random_programs(seed: int) -> None:
    fetches, feed = random_program(seed)
    exe, main = fluid.Executor(), fluid.default_main_program()
    exe.run(fluid.default_startup_program())
    seen = []
    for mode in ("off", "require"):
        fluid.set_flags({"FLAGS_native": mode})
        exe.run(main, feed, fetches)
        seen.append(exe.run(main, feed, fetches))
    assert fluid.runtime.native_calls(main)
    assert all(map(same_bits, *seen))


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
