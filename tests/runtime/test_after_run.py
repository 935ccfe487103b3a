"""Callbacks get every run that succeeded, however it ran; a run without callbacks costs no more."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.runtime.observers import after_run

FEED = {"x": np.ones((2, 3), "float32")}


@pytest.fixture
def told() -> Iterator[list[Any]]:
    """The runs that were reported."""
    runs: list[Any] = []

    def look(program: Any, scope: Any) -> None:
        runs.append((program, scope))

    after_run.append(look)
    yield runs
    after_run.remove(look)


def test_every_way_of_running_is_told(told: list[Any]) -> None:
    y = fluid.layers.relu(fluid.layers.data("x", [3]))
    main, scope, exe = fluid.default_main_program(), fluid.global_scope(), fluid.Executor()
    fetches = [y]
    exe.run(main, feed=FEED, fetch_list=fetches)
    exe.run(main, feed=FEED, fetch_list=fetches)  # the short way
    exe.run(main, feed={"x": np.ones((5, 3), "float32")}, fetch_list=fetches)
    exe.run(main, feed=FEED, fetch_list=fetches, keep_scopes=True)
    scope.drop_kids()
    with fluid.debug():
        exe.run(main, feed=FEED, fetch_list=fetches)
    other = fluid.Scope()
    exe.run(main, feed=FEED, fetch_list=fetches, scope=other)
    assert told == [(main, scope)] * 5 + [(main, other)]


def test_a_run_that_failed_is_not_told(told: list[Any]) -> None:
    x = fluid.layers.data("x", [3])
    y = fluid.layers.reshape(x, [-1, 5])
    with pytest.raises(fluid.errors.FluidError):
        fluid.Executor().run(feed=FEED, fetch_list=[y])
    assert told == []


def test_what_is_told_may_be_looked_at_and_run_again(told: list[Any]) -> None:
    y = fluid.layers.relu(fluid.layers.data("x", [3]))
    exe, values = fluid.Executor(), []

    def again(program: Any, scope: Any) -> None:
        if len(told) < 5:
            values.append(exe.run(program, feed=FEED, fetch_list=[y])[0])

    after_run.append(again)
    try:
        exe.run(feed=FEED, fetch_list=[y])
        exe.run(feed=FEED, fetch_list=[y])
    finally:
        after_run.remove(again)
    assert all(np.array_equal(value, FEED["x"]) for value in values)
    assert len(told) == 2 + len(values) == 6
