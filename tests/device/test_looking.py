"""Looking at what runs on a device: the profiler, the debugger, memory."""

from __future__ import annotations

import numpy as np

import fluidnb as fluid
from fluidnb import layers
from fluidnb.debug.profile import profile_steps


def _net() -> fluid.Variable:
    x = layers.data("x", shape=[3])
    return layers.mean(layers.relu(layers.scale(x, scale=-2.0)))


FEED = {"x": np.array([[1.0, -1.0, 2.0]], "float32")}


def test_each_operator_is_timed_by_the_devices_clock(cuda: fluid.CUDAPlace) -> None:
    out, exe = _net(), fluid.Executor(cuda)
    profile, _ = profile_steps(lambda: exe.run(feed=FEED, fetch_list=[out]), 3)
    assert [event.type for event in profile.events] == ["scale", "relu", "mean"] * 3
    assert all(0 <= event.start <= event.end for event in profile.events)
    starts = [event.start for event in profile.events]
    assert starts == sorted(starts)


def test_a_session_goes_forwards_and_back_on_a_device(cuda: fluid.CUDAPlace) -> None:
    out = _net()
    session = fluid.debug(feed=FEED, fetch_list=[out], place=cuda)
    assert session.step(2).op.type == "mean"
    np.testing.assert_array_equal(session["relu_0.tmp_0"], [[0.0, 2.0, 0.0]])
    session.edit("relu_0.tmp_0", 3.0)
    assert session.continue_().state == "done"
    assert session.results[0] == 3.0
    assert session.back(2).op.type == "mean"  # an edit is a step
    np.testing.assert_array_equal(session["relu_0.tmp_0"], [[0.0, 2.0, 0.0]])
    session.continue_()
    np.testing.assert_allclose(session.results[0], 2 / 3, rtol=1e-6)
    session.close()


def test_operators_that_write_their_own_input_are_taken_back(cuda: fluid.CUDAPlace) -> None:
    i = layers.fill_constant([1], "float32", 1.0)
    for _ in range(3):
        layers.increment(i)
    session = fluid.debug(feed={}, fetch_list=[i], place=cuda)
    session.continue_()
    assert session.results[0] == 4.0
    session.back(2)
    assert session[i.name] == 2.0
    session.continue_()
    assert session.results[0] == 4.0
    session.close()


def test_the_first_nan_is_found(cuda: fluid.CUDAPlace) -> None:
    x = layers.data("x", shape=[3])
    out = layers.mean(layers.log(x))
    fluid.set_flags({"FLAGS_check_nan_inf": True})
    try:
        fluid.Executor(cuda).run(feed=FEED, fetch_list=[out])
    except fluid.core.EnforceNotMet as error:
        assert "log" in str(error)
    else:
        raise AssertionError("nobody has seen the NaN")
    finally:
        fluid.set_flags({"FLAGS_check_nan_inf": False})
