"""Pictures of what lies on a device, without a notebook: scopes, tensors, memory, time lines and debug sessions."""

from __future__ import annotations

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb import layers
from fluidnb.debug.profile import profile_steps
from fluidnb.viz import plain
from fluidnb.viz.memory.reader import read_memory
from fluidnb.viz.memory.svg import memory_html
from fluidnb.viz.memory.text import memory_lines
from fluidnb.viz.notebook_reprs import repr_html
from fluidnb.viz.session.text import session_lines, value_lines
from fluidnb.viz.session.values import read_values
from fluidnb.viz.time.timeline import read_timeline, timeline_lines
from fluidnb.viz.values.reader import read_scope, read_tensor
from fluidnb.viz.values.text import scope_lines, tensor_lines

FEED = {"x": np.linspace(0, 1, 60, dtype="float32").reshape(3, 20)}


@pytest.fixture
def loss(cuda: fluid.CUDAPlace) -> fluid.Variable:
    """The loss of a net that has been trained for a step on the device."""
    made = layers.mean(layers.fc(layers.data("x", shape=[20]), 16, act="relu", param_attr="w"))
    fluid.optimizer.SGD(0.1).minimize(made)
    exe = fluid.Executor(cuda)
    exe.run(fluid.default_startup_program())
    exe.run(feed=FEED, fetch_list=[made])
    return made


def test_scopes_and_tensors(loss: fluid.Variable) -> None:
    scope = fluid.global_scope()
    tensor = scope.find_var("w").get_tensor()
    held = np.array(tensor)
    found = read_tensor(tensor, "w")
    assert (found.nan, found.inf, found.shape) == (0, 0, (20, 16))
    shown = plain(tensor_lines(found))
    assert "on CUDAPlace(0)" in shown and f"[{held.min():.3g}, {held.max():.3g}]" in shown
    assert "w" in plain(scope_lines(read_scope(scope, previews=True)))
    assert "CUDAPlace(0)" in (repr_html(tensor) or "")


def test_memory(loss: fluid.Variable) -> None:
    picture = read_memory()
    shown = plain(memory_lines(picture))
    assert "CUDAPlace(0)" in shown and "w" in shown
    assert "CUDAPlace(0)" in memory_html(picture)


def test_time_lines(loss: fluid.Variable, cuda: fluid.CUDAPlace) -> None:
    exe = fluid.Executor(cuda)
    profile, _ = profile_steps(lambda: exe.run(feed=FEED, fetch_list=[loss]), 2)
    shown = plain(timeline_lines(read_timeline(profile)))
    assert "mul" in shown and "sgd" in shown


def test_sessions(loss: fluid.Variable, cuda: fluid.CUDAPlace) -> None:
    session = fluid.debug(feed=FEED, fetch_list=[loss], place=cuda)
    here = session.step(3)  # behind relu
    shown = plain(session_lines(here, fluid.default_main_program(), values=read_values(session)))
    assert "wrote" in shown and "relu" in shown
    assert "±" in plain(value_lines(here, read_values(session)))
    session.close()
