"""Models that old scripts save although a feed is missing: a warning, and training goes on; refused elsewhere."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb import compat
from fluidnb.errors import ArgumentError, OpValueError


def save(folder: Path) -> None:
    """Save a sum of two variables with one of them as feed."""
    x, mask = fluid.layers.data("x", [2]), fluid.layers.data("mask", [2])
    total = fluid.layers.elementwise_add(x, mask)
    fluid.io.save_inference_model(str(folder), ["x"], [total], fluid.Executor(fluid.CPUPlace()))


def test_a_missing_feed_is_a_warning_in_old_scripts(tmp_path: Path) -> None:
    compat.install(force=True)
    try:
        with pytest.warns(UserWarning, match="cannot be computed from x: it also needs mask. The model is saved"):
            save(tmp_path)
    finally:
        compat.uninstall()
    assert (tmp_path / "__model__").exists()


def test_a_missing_feed_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OpValueError, match="it also needs mask"):
        save(tmp_path)
    assert not list(tmp_path.iterdir())


def test_memory_optimize_keeps_what_old_scripts_fetch() -> None:
    compat.install(force=True)
    try:
        h = fluid.layers.relu(fluid.layers.data("x", [2]))
        loss = fluid.layers.mean(fluid.layers.tanh(h))
        fluid.memory_optimize(fluid.default_main_program())
        feed = {"x": np.array([[-1.0, 2.0]], "float32")}
        values = fluid.Executor(fluid.CPUPlace()).run(feed=feed, fetch_list=[h, loss])
    finally:
        compat.uninstall()
    assert values[0].tolist() == [[0.0, 2.0]]


def test_a_list_of_one_variable_is_the_variable_in_old_scripts() -> None:
    x = fluid.layers.data("x", [2])
    with pytest.raises(ArgumentError, match="input of reduce_sum must be a Variable"):
        fluid.layers.reduce_sum([x])
    compat.install(force=True)
    try:
        total = fluid.layers.reduce_sum([x], keep_dim=True)
        named = fluid.layers.reduce_sum(input=[x])
        with pytest.raises(ArgumentError, match="input of reduce_sum must be a Variable"):
            fluid.layers.reduce_sum([x, x])
    finally:
        compat.uninstall()
    feed = {"x": np.array([[1.0, 2.0]], "float32")}
    values = fluid.Executor(fluid.CPUPlace()).run(feed=feed, fetch_list=[total, named])
    assert [v.item() for v in values] == [3.0, 3.0]
