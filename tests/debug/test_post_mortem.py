"""After a failed run: the run is replayed, and paused at the operator that failed."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb import layers
from fluidnb.errors import FluidError, NotFound
from tests.debug.programs import held, started


def counted() -> tuple[fluid.Program, fluid.Program, fluid.framework.Variable]:
    """A program that counts its runs in a persistable variable, then takes the logarithm of what dropout leaves."""
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        count = layers.create_global_var([1], 0.0, "float32", persistable=True, name="count")
        layers.increment(count)
        h = layers.dropout(layers.data("x", shape=[2]), 0.5, dropout_implementation="upscale_in_train")
        y = layers.log(h)
    return main, startup, y


def called(function, x, name):
    """The result of a Python function over a variable."""
    out = fluid.default_main_program().current_block().create_var(name=name, dtype="float32", shape=[-1, 2])
    return layers.py_func(function, x, out)


@pytest.mark.parametrize("kept", [False, True])
def test_it_stands_at_the_operator_that_failed_with_everything_before_it(kept):
    main, startup, y = counted()
    scope, exe = started(startup), fluid.Executor()
    feed = {"x": np.array([[1.0, 2.0]], "float32")}
    fluid.set_flags({"FLAGS_check_nan_inf": True})
    try:
        with pytest.raises(FluidError, match="log"):
            while True:  # sooner or later dropout gives a 0, and log gives -inf
                exe.run(main, feed, [y], scope=scope, keep_scopes=kept)
        after = held(scope)
        d = fluid.debug.post_mortem()
    finally:
        fluid.set_flags({"FLAGS_check_nan_inf": False})
    assert d.snapshot.reason == "the operator failed" and d.snapshot.op.type == "log"
    assert "contains NAN/Inf" in str(d.snapshot.error)
    assert (d["dropout_0.tmp_0"] == 0).any(), "the same random numbers"
    assert d["count"].item() == np.frombuffer(after["count"], "float32").item()
    d.restart()
    assert d["count"].item() == np.frombuffer(after["count"], "float32").item() - 1
    d.close()
    assert held(scope) == after, "walking again has left nothing"


def test_what_had_changed_and_was_not_kept_is_named():
    main, startup, _ = counted()
    with fluid.program_guard(main, startup):
        bad = called(_raise, main.global_block().var("x"), "z")
    scope = started(startup)
    with pytest.raises(FluidError, match="mine"):
        fluid.Executor().run(main, {"x": np.ones((1, 2), "float32")}, [bad], scope=scope)
    after = held(scope)
    d = fluid.debug.post_mortem()
    assert d.snapshot.op.type == "py_func" and "not restored: count" in d.snapshot.reason
    d.close()
    assert held(scope) == after


def _raise(a):
    raise ValueError("mine")


def test_a_failure_in_a_step_of_an_rnn_names_the_step_and_shows_its_variables():
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()):
        x = layers.data("x", shape=[3, 2, 2], append_batch_size=False)
        rnn = layers.StaticRNN()
        with rnn.step():
            step = rnn.step_input(x)
            memory = rnn.memory(shape=[-1, 2], batch_ref=step)
            total = layers.elementwise_add(step, memory)
            out = called(_refuse_large, total, "limited")
            rnn.update_memory(memory, out)
            rnn.output(out)
        outs = rnn()
    feed = {"x": np.arange(12, dtype="float32").reshape(3, 2, 2)}
    with pytest.raises(FluidError, match="too large"):
        fluid.Executor().run(main, feed, [outs])
    d = fluid.debug.post_mortem()
    assert (d.snapshot.op.type, d.snapshot.frames[-1].iteration) == ("py_func", 2)
    np.testing.assert_array_equal(d[total.name], feed["x"].sum(0))
    before = d.last_write(total.name)
    assert before.op.type == "elementwise_add" and before.frames[-1].iteration == 2
    d.close()


def _refuse_large(a):
    if np.asarray(a).max() > 15:
        raise ValueError("too large")
    return np.asarray(a)


def test_without_a_failure_it_says_so():
    program = fluid.Program()
    with fluid.program_guard(program):
        z = called(_raise, layers.relu(layers.data("x", shape=[2])), "z")
    with pytest.raises(FluidError):
        fluid.Executor().run(program, {"x": np.ones((1, 2), "float32")}, [z])
    fluid.debug.post_mortem().close()
    del program, z
    gc.collect()
    with pytest.raises(NotFound, match="no failed run"):
        fluid.debug.post_mortem()
