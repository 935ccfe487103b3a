"""Calls over large arrays, made for a part of the elements at a time: the same bits, in fewer calls."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb import layers
from fluidnb.runtime.native import segment_code
from fluidnb.runtime.native.segment_code import Calls, nothing
from fluidnb.runtime.replay import tiled_calls
from fluidnb.runtime.replay.tiled_calls import tiled
from tests.runtime.random_calls import RandomCalls, same_bits
from tests.runtime.random_networks import network

#: Lists of random calls in one test.
TOGETHER = 50


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts of a few elements."""
    monkeypatch.setattr(segment_code, "LARGE", 512)
    monkeypatch.setattr(tiled_calls, "LARGE", 512)
    monkeypatch.setattr(tiled_calls, "_PART", 400)


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[Calls]:
    """The calls of the segments that were made in parts."""
    found: list[Calls] = []

    def recorded(plain: Calls, lives: Any) -> Calls:
        made = tiled(plain, lives)
        if made is not plain:
            found.append(made)
        return made

    monkeypatch.setattr(tiled_calls, "tiled", recorded)
    return found


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("first", range(0, 500, TOGETHER))
def test_random_calls(first: int) -> None:
    fewer = 0
    for seed in range(first, first + TOGETHER):
        program = RandomCalls(seed)
        plain = [(partial(f, **kw) if kw else f, args) for f, args, kw in program.calls]
        before = program.memory()
        with np.errstate(all="ignore"):
            for function, args in plain:
                function(*args)
            wanted = program.memory()
            program.restore(before)
            numbers = list(range(len(plain)))
            made = tiled(Calls(plain, numbers, numbers), {})
            for function, args in made.calls:
                function(*args)
        assert all(map(same_bits, program.memory(), wanted)), f"seed {seed}"
        assert len(made.calls) == len(made.ops) == len(made.units) == len(plain)
        fewer += sum(function is nothing for function, _ in made.calls)
    assert fewer > TOGETHER


def values(program: Any, feed: Any, fetches: Any, runs: int) -> list[list[np.ndarray]]:
    """The results of some runs that begin with the same persistable variables."""
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    kept = {p.name: np.array(fluid.fetch_var(p.name)) for p in program.list_vars() if p.persistable}
    found = []
    for _ in range(runs):
        for name, value in kept.items():  # running moments move
            fluid.global_scope().find_var(name).get_tensor().set(value, fluid.CPUPlace())
        found.append(exe.run(program, feed, fetches))
    return found


@pytest.mark.usefixtures("small")
def test_random_networks(seen: list[Calls]) -> None:
    fluid.set_flags({"FLAGS_native": "off", "FLAGS_init_allocated_mem": True})
    for seed in range(60):
        main, startup = fluid.Program(), fluid.Program()
        startup.random_seed = seed + 1
        with fluid.program_guard(main, startup), fluid.scope_guard(fluid.Scope()), fluid.unique_name.guard():
            fetches, feed = network(seed)
            first, *others = values(main, feed, fetches, 3)
        for other in others:
            assert all(map(np.array_equal, other, first)), f"seed {seed}"
    fluid.set_flags({"FLAGS_init_allocated_mem": False})
    assert len(seen) > 40


def test_a_chain_is_one_call(seen: list[Calls]) -> None:
    x = layers.data("x", [1000])
    x.stop_gradient = False
    y = layers.softmax(layers.sigmoid(layers.scale(x, 0.5)))
    (gradient,) = fluid.gradients([layers.square(y)], [x])
    feed = {"x": np.random.default_rng(0).normal(size=(500, 1000)).astype("float32")}
    fluid.set_flags({"FLAGS_native": "off"})
    first, second, third = values(fluid.default_main_program(), feed, [y, gradient], 3)
    for got, again, wanted in zip(second, third, first, strict=True):
        np.testing.assert_array_equal(got, wanted)
        np.testing.assert_array_equal(again, wanted)
    (made,) = seen  # once, at the second run
    names = [getattr(function, "__name__", "") for function, _ in made.calls]
    assert names.count("nothing") == len(names) - 1
    (parts,) = (args[0] for function, args in made.calls if function is not nothing)
    assert len(parts) % len(names) == 0 and len(parts) > 10 * len(names)


def test_what_only_these_calls_touch_is_memory_for_one_part(seen: list[Calls]) -> None:
    y = layers.exp(layers.sigmoid(layers.data("x", [1000])))
    feed = {"x": np.ones((700, 1000), "float32")}
    fluid.set_flags({"FLAGS_native": "off"})
    values(fluid.default_main_program(), feed, [y], 2)
    (made,) = seen
    parts = made.calls[0][1][0]
    first, *others = (args for function, args in parts if getattr(function, "__name__", "") == "negative")
    assert all(np.shares_memory(first[1], output) for _, output in others[:-1])
    assert not any(np.shares_memory(first[0], source) for source, _ in others)


def test_small_arrays_stay(seen: list[Calls]) -> None:
    y = layers.exp(layers.sigmoid(layers.data("x", [1000])))
    fluid.set_flags({"FLAGS_native": "off"})
    values(fluid.default_main_program(), {"x": np.ones((10, 1000), "float32")}, [y], 3)
    assert not seen


def test_sizes_that_change(seen: list[Calls]) -> None:
    y = layers.exp(layers.sigmoid(layers.data("x", [1000])))
    fluid.set_flags({"FLAGS_native": "off"})
    exe = fluid.Executor()
    for rows in (300, 400, 500, 600, 300, 400, 500, 600):
        feed = np.random.default_rng(rows).normal(size=(rows, 1000)).astype("float32")
        (got,) = exe.run(fluid.default_main_program(), {"x": feed}, [y])
        np.testing.assert_allclose(got, np.exp(1 / (1 + np.exp(-feed))), rtol=1e-6)
    assert len(seen) == 4


def test_parameters_in_columns(seen: list[Calls]) -> None:
    """Memory in the order of columns has no parts; the numbers are right."""
    x = layers.data("x", [1000])
    w = layers.create_parameter([600, 1000], "float32", name="w")
    y = layers.relu(layers.exp(layers.sigmoid(w)) + x)
    fluid.set_flags({"FLAGS_native": "off"})
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    value = np.asfortranarray(np.random.default_rng(0).normal(size=(600, 1000)).astype("float32"))
    fluid.global_scope().find_var("w").get_tensor().set(value, fluid.CPUPlace())
    feed = {"x": np.ones((600, 1000), "float32")}
    first, second = (exe.run(fluid.default_main_program(), feed, [y])[0] for _ in range(2))
    np.testing.assert_array_equal(first, second)
    np.testing.assert_allclose(first, np.exp(1 / (1 + np.exp(-value))) + 1, rtol=1e-6)


def test_watched_runs_see_every_operator(seen: list[Calls]) -> None:
    y = layers.exp(layers.sigmoid(layers.data("x", [1000])))
    feed = {"x": np.ones((700, 1000), "float32")}
    fluid.set_flags({"FLAGS_native": "off"})
    values(fluid.default_main_program(), feed, [y], 2)
    assert seen
    with fluid.profiler.profiler("CPU", profile_path=None) as profile:
        fluid.Executor().run(fluid.default_main_program(), feed, [y])
    assert {row.event for row in profile.rows()} == {"sigmoid", "exp"}
