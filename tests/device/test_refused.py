"""Refusals of a device itself, and Ctrl-C from the program: no part of the device is replaced here."""

from __future__ import annotations

import signal
from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb import layers
from fluidnb.errors import EnforceNotMet
from fluidnb_kernels.cuda import grid

FEED = {"x": np.array([[1.0, -1.0, 2.0]], "float32")}


def test_a_launch_of_too_many_threads_names_operator_and_line(
    cuda: fluid.CUDAPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = layers.data("x", shape=[3])
    out = layers.exp(layers.relu(layers.scale(x, scale=2.0)))
    with monkeypatch.context() as patch:
        patch.setattr(grid, "THREADS", 4096)
        with pytest.raises(EnforceNotMet) as told:
            fluid.Executor(cuda).run(feed=FEED, fetch_list=[out])
    assert "op 0 (scale) in block 0" in str(told.value)
    assert "layers.scale(x, scale=2.0)" in str(told.value)
    fluid.default_main_program().desc.state = None  # what was bound so goes on being refused
    (got,) = fluid.Executor(cuda).run(feed=FEED, fetch_list=[out])
    np.testing.assert_allclose(got, np.exp([[2.0, 0.0, 4.0]]), rtol=1e-6)


def test_ctrl_c_stops_a_run_and_the_next_one_goes_through(cuda: fluid.CUDAPlace) -> None:
    pressed: list[int] = []

    def press(array: Any) -> Any:
        if len(pressed) == 1:
            signal.raise_signal(signal.SIGINT)
        pressed.append(1)
        return np.array(array)

    x = layers.data("x", shape=[3])
    seen = fluid.default_main_program().global_block().create_var(name="seen", shape=[-1, 3], dtype="float32")
    layers.py_func(press, layers.scale(x, scale=2.0), seen)
    total = layers.create_global_var([1], 0.0, "float32", persistable=True)
    layers.increment(total)
    out = layers.relu(seen)
    exe = fluid.Executor(cuda)
    exe.run(fluid.default_startup_program())
    for run in range(4):
        if run == 1:
            with pytest.raises(KeyboardInterrupt):
                exe.run(feed=FEED, fetch_list=[out])
            pressed.append(1)
            continue
        count, got = exe.run(feed=FEED, fetch_list=[total, out])
        np.testing.assert_array_equal(got, [[2.0, 0.0, 4.0]])
        assert count == {0: 1, 2: 2, 3: 3}[run]  # the run that was stopped did not come to it
