"""Large feeds and results that native code alone touches are read and written where the user has them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.memory import flags
from fluidnb.op import Binder, op
from fluidnb.op.define import remove_op
from fluidnb.runtime.interpreter.failed_run import last_failed
from fluidnb.runtime.replay.direct_arrays import DirectArrays

L = fluid.layers
#: Enough elements for a feed that counts as large.
SIZE = 1 << 15


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, bool]]:
    """Feeds of the runs, and whether each was read in its place."""
    rows: list[tuple[str, bool]] = []
    take = DirectArrays.take

    def noted(self: DirectArrays, name: str, value: Any) -> bool:
        rows.append((name, take(self, name, value)))
        return rows[-1][1]

    monkeypatch.setattr(DirectArrays, "take", noted)
    return rows


def numbers(seed: int, dtype: str = "float32") -> np.ndarray:
    return np.random.default_rng(seed).uniform(-1, 1, SIZE).astype(dtype)


def chain(*fetch: str) -> tuple[fluid.Executor, list[Any]]:
    """tanh(x * y) + y, and what is fetched of it."""
    flags.values["native"] = "require"
    x, y = (L.data(name, [SIZE], append_batch_size=False) for name in "xy")
    h = L.tanh(L.elementwise_mul(x, y))
    found = {"x": x, "h": h, "out": L.elementwise_add(h, y)}
    return fluid.Executor(), [found[name] for name in fetch or ("out",)]


def expected(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.tanh(x * y) + y


def test_results_are_those_of_copies(taken: list[Any]) -> None:
    exe, fetch = chain()
    for seed in range(6):
        feed = {"x": numbers(seed), "y": numbers(seed + 100)}
        before = {name: value.copy() for name, value in feed.items()}
        (got,) = exe.run(feed=feed, fetch_list=fetch)
        np.testing.assert_array_equal(got, expected(**feed))
        for name, value in feed.items():
            np.testing.assert_array_equal(value, before[name])
            value[...] = np.nan  # nobody reads it any more
    assert len(taken) == 10 and all(direct for _, direct in taken[-6:])


def test_others_are_copied(taken: list[Any]) -> None:
    exe, fetch = chain()
    x, y = numbers(1), numbers(2)
    wide = np.repeat(x, 2)
    unaligned = np.zeros(4 * SIZE + 1, "uint8")[1:].view("float32")
    unaligned[...] = x
    tensor = fluid.LoDTensor()
    tensor.set(x, fluid.CPUPlace())
    for value in (x, wide[::2], x, unaligned, x, np.asarray(tensor), x, x[::-1].copy()[::-1], x):
        (got,) = exe.run(feed={"x": value, "y": y}, fetch_list=fetch)
        np.testing.assert_array_equal(got, expected(x, y))
    assert [direct for name, direct in taken if name == "x"][-7:] == [True, False, True, False, True, False, True]


@pytest.mark.parametrize("how", ["off", "observer", "nan", "interpreter"])
def test_who_reads_the_buffers_finds_them_filled(how: str, taken: list[Any]) -> None:
    exe, fetch = chain()
    y = numbers(7)
    for seed in range(8):
        x = numbers(seed)
        other = seed % 2 == 1 and seed > 2
        flags.values["native"] = "off" if other and how == "off" else "require"
        if other and how == "observer":
            with fluid.profiler.profiler("CPU", "total"):
                (got,) = exe.run(feed={"x": x, "y": y}, fetch_list=fetch)
        elif other and how == "interpreter":
            got = exe.interpret(feed={"x": x, "y": y}, fetch_list=fetch).run().fetch()[0]
        else:
            if how == "nan":
                fluid.set_flags({"FLAGS_check_nan_inf": other})
            (got,) = exe.run(feed={"x": x, "y": y}, fetch_list=fetch)
        np.testing.assert_array_equal(got, expected(x, y))
    fluid.set_flags({"FLAGS_check_nan_inf": False})
    assert any(direct for _, direct in taken)


@pytest.mark.parametrize("case", ["fetched", "product", "in place"])
def test_a_feed_with_other_readers_is_copied(case: str, taken: list[Any]) -> None:
    if case == "fetched":
        exe, fetch = chain("x", "out")
        feed = {"x": numbers(1), "y": numbers(2)}
        wanted = [feed["x"], expected(**feed)]
    else:
        flags.values["native"] = "require"
        x, y = (L.data(name, [256, 128], append_batch_size=False) for name in "xy")
        exe, feed = fluid.Executor(), {name: numbers(k).reshape(256, 128) for k, name in enumerate("xy")}
        if case == "product":
            fetch = [L.elementwise_add(L.matmul(x, x, transpose_x=True), L.reduce_sum(y))]
            wanted = [feed["x"].T @ feed["x"] + feed["y"].sum()]
        else:
            L.assign(L.scale(x, 2.0), x)
            fetch, wanted = [L.elementwise_add(x, y)], [2 * feed["x"] + feed["y"]]
    for _ in range(3):
        for got, want in zip(exe.run(feed=feed, fetch_list=fetch), wanted, strict=True):
            np.testing.assert_allclose(got, want, rtol=2e-4)
    assert case == "in place" or not any(direct for name, direct in taken if name == "x")


def test_a_run_that_fails_leaves_the_feed_for_the_debugger() -> None:
    flags.values["native"] = "require"
    x = L.data("x", [SIZE], append_batch_size=False)
    index = L.data("index", [1], dtype="int64", append_batch_size=False)
    out = L.gather(L.tanh(x), index)
    exe = fluid.Executor()
    for value in range(4):
        exe.run(feed={"x": numbers(value), "index": np.array([value])}, fetch_list=[out])
    bad = numbers(9)
    with pytest.raises(fluid.core.EnforceNotMet):
        exe.run(feed={"x": bad, "index": np.array([SIZE])}, fetch_list=[out])
    failed = last_failed()
    assert failed is not None
    np.testing.assert_array_equal(failed.values["x"][0], bad)


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Results of the runs that could be, and whether each was written in its place."""
    rows: list[bool] = []
    result = DirectArrays.result

    def noted(self: DirectArrays, number: int) -> Any:
        found = result(self, number)
        rows.append(found is not None)
        return found

    monkeypatch.setattr(DirectArrays, "result", noted)
    return rows


def test_results_belong_to_the_user(given: list[bool]) -> None:
    exe, fetch = chain("h", "out")
    kept: list[Any] = []
    for seed in range(12):
        feed = {"x": numbers(seed), "y": numbers(seed + 50)}
        h, out = exe.run(feed=feed, fetch_list=fetch)
        np.testing.assert_array_equal(out, expected(**feed))
        if seed % 3 == 0:
            kept.append((h[5:], out.reshape(2, -1), feed))  # views
        elif seed % 3 == 1:
            kept.append((memoryview(h)[5:], out, feed))
        else:
            out[...] = h[...] = np.nan
    for h, out, feed in kept:
        np.testing.assert_array_equal(np.asarray(out).reshape(-1), expected(**feed))
        np.testing.assert_array_equal(h, np.tanh(feed["x"] * feed["y"])[5:])
    assert all(given[-20:])


def test_memory_of_results_that_are_dropped_is_used_again(given: list[bool]) -> None:
    exe, fetch = chain()
    feed = {"x": numbers(1), "y": numbers(2)}
    places = set()
    for _ in range(20):
        (out,) = exe.run(feed=feed, fetch_list=fetch)
        places.add(out.__array_interface__["data"][0])
        del out
    assert len(places) <= 4


def test_other_results_are_copies(given: list[bool]) -> None:
    flags.values["native"] = "require"
    x = L.data("x", [SIZE], append_batch_size=False)
    w = L.create_parameter([SIZE], "float32", name="w")
    twice = L.tanh(L.elementwise_add(x, w))
    L.assign(L.elementwise_add(w, L.scale(x, 0.5)), w)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    feed = {"x": numbers(3)}
    before = np.array(fluid.global_scope().find_var("w").get_tensor())
    for _ in range(5):
        one, other, param = exe.run(feed=feed, fetch_list=[twice, twice, "w"])
        np.testing.assert_array_equal(one, np.tanh(feed["x"] + before))
        np.testing.assert_array_equal(other, one)
        before = before + feed["x"] * np.float32(0.5)
        np.testing.assert_array_equal(param, before)
        np.testing.assert_array_equal(np.array(fluid.global_scope().find_var("w").get_tensor()), before)
        one[...] = param[...] = 7
    assert not any(given)
    (tensor,) = exe.run(feed=feed, fetch_list=["w"], return_numpy=False)
    np.testing.assert_array_equal(np.array(tensor), before + feed["x"] * np.float32(0.5))


def test_tensors_after_arrays(given: list[bool]) -> None:
    exe, fetch = chain()
    for seed in range(8):
        feed = {"x": numbers(seed), "y": numbers(seed + 50)}
        (got,) = exe.run(feed=feed, fetch_list=fetch, return_numpy=seed % 2 == 0)
        np.testing.assert_array_equal(np.array(got), expected(**feed))
    assert any(given)


class _Hidden:
    """An object that has an array which its call does not show."""

    def __init__(self, array: Any) -> None:
        self.array = array


def test_an_array_inside_another_object_is_copied(taken: list[Any]) -> None:
    @op("reads_hidden", inputs={"X": "float"}, outputs={"Out": "the same"})
    def reads_hidden(b: Binder) -> None:
        """A copy."""
        out = b.set("Out", b["X"].shape, b["X"].dtype)
        b(lambda hidden, target: np.copyto(target, hidden.array), _Hidden(b["X"]), out)

    try:
        exe, (out,) = chain()
        block = fluid.default_main_program().global_block()
        copy = block.create_var(name="copy", dtype="float32", shape=[SIZE])
        block.append_op(type="reads_hidden", inputs={"X": block.var("x")}, outputs={"Out": copy})
        for seed in range(5):
            feed = {"x": numbers(seed), "y": numbers(seed + 50)}
            one, other = exe.run(feed=feed, fetch_list=[out, copy])
            np.testing.assert_array_equal(one, expected(**feed))
            np.testing.assert_array_equal(other, feed["x"])
        assert taken and not any(direct for _, direct in taken)
    finally:
        remove_op("reads_hidden")
