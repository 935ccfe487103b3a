"""Mistakes that show when a program runs, or is asked to (FEATURES D3)."""

from __future__ import annotations

import sys
from collections.abc import Generator
from typing import Any

import numpy as np

import fluidnb as fluid
from fluidnb.errors import EnforceNotMet, NotFound, OpTypeError, OpValueError
from fluidnb.framework import BlockGuard
from tests.errors.helpful import mistake

Steps = Generator[None, None, None]

NO_OP = "no operator is concerned"
NO_VARIABLE = "no variable is concerned"
UNKNOWN = "there is no such variable"


def regression(trained: bool = True) -> tuple[fluid.Executor, Any, dict[str, Any]]:
    """A linear regression on x [-1, 3], initialised: executor, loss and a feed."""
    x = fluid.layers.data("x", shape=[3])
    y = fluid.layers.data("y", shape=[1])
    loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(x, size=1), y))
    fluid.optimizer.SGD(0.1).minimize(loss)
    exe = fluid.Executor(fluid.CPUPlace())
    if trained:
        exe.run(fluid.default_startup_program())
    return exe, loss, {"x": np.ones((2, 3), "float32"), "y": np.ones((2, 1), "float32")}


@mistake(EnforceNotMet, op=NO_OP, slots=NO_VARIABLE)
def closed_executor() -> Steps:
    exe, loss, feed = regression()
    exe.close()
    yield
    exe.run(feed=feed, fetch_list=[loss])


@mistake(OpTypeError, op=NO_OP, slots=NO_VARIABLE)
def program_of_text() -> Steps:
    exe, loss, feed = regression()
    yield
    exe.run("main", feed=feed, fetch_list=[loss])


@mistake(OpTypeError, op=NO_OP, slots=NO_VARIABLE)
def scope_of_text() -> Steps:
    exe, loss, feed = regression()
    yield
    exe.run(feed=feed, fetch_list=[loss], scope="mine")


@mistake(OpTypeError, op=NO_OP, slots=NO_VARIABLE)
def place_of_text() -> Steps:
    regression()
    yield
    fluid.Executor("cpu")


@mistake(EnforceNotMet, op=NO_OP, slots=NO_VARIABLE)
def place_without_a_device() -> Steps:
    regression()
    yield
    had = {name: sys.modules[name] for name in ["cupy"] if name in sys.modules}
    sys.modules["cupy"] = None  # type: ignore[assignment]  # as if it were not installed
    try:
        fluid.Executor(fluid.CUDAPlace(999))
    finally:
        del sys.modules["cupy"]
        sys.modules.update(had)


@mistake(OpTypeError, op=NO_OP, slots=NO_VARIABLE)
def keyword_of_the_guide() -> Steps:
    exe, loss, feed = regression()
    yield
    exe.run(feed=feed, fetchlist=[loss])


@mistake(OpTypeError, op=NO_OP, slots=NO_VARIABLE)
def feed_no_dict() -> Steps:
    exe, loss, feed = regression()
    yield
    exe.run(feed=[feed["x"], feed["y"]], fetch_list=[loss])


@mistake(OpTypeError, op=NO_OP, slots=NO_VARIABLE)
def feed_by_variable() -> Steps:
    exe, loss, feed = regression()
    x = fluid.default_main_program().global_block().var("x")
    yield
    exe.run(feed={x: feed["x"]}, fetch_list=[loss])


@mistake(NotFound, op=NO_OP, slots=UNKNOWN)
def fed_an_unknown_name() -> Steps:
    exe, loss, feed = regression()
    yield
    exe.run(feed={**feed, "xx": feed["x"]}, fetch_list=[loss])


@mistake(NotFound, op=NO_OP)
def forgot_to_feed() -> Steps:
    exe, loss, feed = regression()
    yield
    exe.run(feed={"x": feed["x"]}, fetch_list=[loss])


@mistake(OpValueError, op=NO_OP)
def fed_another_rank() -> Steps:
    exe, loss, feed = regression()
    yield
    exe.run(feed={**feed, "x": np.ones(3, "float32")}, fetch_list=[loss])


@mistake(OpValueError, op=NO_OP)
def fed_another_width() -> Steps:
    exe, loss, feed = regression()
    yield
    exe.run(feed={**feed, "x": np.ones((2, 4), "float32")}, fetch_list=[loss])


@mistake(OpValueError, op=NO_OP)
def fed_another_dtype() -> Steps:
    exe, loss, feed = regression()
    yield
    exe.run(feed={**feed, "x": np.ones((2, 3), "float64")}, fetch_list=[loss])


@mistake(OpTypeError, op=NO_OP)
def fed_text() -> Steps:
    exe, loss, feed = regression()
    yield
    exe.run(feed={**feed, "x": "ones"}, fetch_list=[loss])


@mistake(OpTypeError, op=NO_OP)
def fed_a_list_of_arrays() -> Steps:
    exe, loss, feed = regression()
    yield
    exe.run(feed={**feed, "x": [np.ones(3, "float32"), np.ones(3, "float32")]}, fetch_list=[loss])


@mistake(EnforceNotMet, op=NO_OP)
def fed_an_empty_tensor() -> Steps:
    exe, loss, feed = regression()
    yield
    exe.run(feed={**feed, "x": fluid.LoDTensor()}, fetch_list=[loss])


@mistake(OpValueError)
def fed_rows_that_differ() -> Steps:
    exe, loss, feed = regression()
    yield
    exe.run(feed={**feed, "y": np.ones((5, 1), "float32")}, fetch_list=[loss])


@mistake(OpTypeError, op=NO_OP, slots=NO_VARIABLE)
def fetched_a_number() -> Steps:
    exe, _, feed = regression()
    yield
    exe.run(feed=feed, fetch_list=[3])


@mistake(NotFound, op=NO_OP, slots=UNKNOWN)
def fetched_an_unknown_name() -> Steps:
    exe, _, feed = regression()
    yield
    exe.run(feed=feed, fetch_list=["mean_0.tmp_9"])


@mistake(EnforceNotMet, op=NO_OP)
def fetched_lod_as_an_array() -> Steps:
    words = fluid.layers.data("words", shape=[1], lod_level=1)
    twice = fluid.layers.scale(words, scale=2.0)
    exe = fluid.Executor(fluid.CPUPlace())
    sentence = fluid.create_lod_tensor(np.ones((3, 1), "float32"), [[1, 2]], fluid.CPUPlace())
    yield
    exe.run(feed={"words": sentence}, fetch_list=[twice])


@mistake(NotFound, op=NO_OP)
def fetched_from_inside_a_loop() -> Steps:
    i, n = fluid.layers.zeros([1], "int64"), fluid.layers.fill_constant([1], "int64", 3)
    cond = fluid.layers.less_than(i, n)
    with fluid.layers.While(cond).block():
        inside = fluid.layers.scale(i)
        fluid.layers.increment(i)
        fluid.layers.less_than(i, n, cond=cond)
    exe = fluid.Executor(fluid.CPUPlace())
    yield
    exe.run(fetch_list=[inside])


@mistake(EnforceNotMet)
def startup_program_not_run() -> Steps:
    exe, loss, feed = regression(trained=False)
    yield
    exe.run(feed=feed, fetch_list=[loss])


@mistake(EnforceNotMet, op=NO_OP)
def fetched_what_nothing_wrote() -> Steps:
    exe, _, feed = regression()
    fluid.default_main_program().global_block().create_var(name="idle", shape=[1])
    yield
    exe.run(feed=feed, fetch_list=["idle"])


@mistake(EnforceNotMet)
def read_what_nothing_wrote() -> Steps:
    block = fluid.default_main_program().global_block()
    block.create_var(name="idle", shape=[3], dtype="float32")
    block.append_op("relu", {"X": "idle"}, {"Out": "out"})
    exe = fluid.Executor(fluid.CPUPlace())
    yield
    exe.run(fetch_list=["out"])


@mistake(EnforceNotMet)
def condition_of_two() -> Steps:
    i, n = (fluid.layers.data(name, shape=[-1], append_batch_size=False) for name in "in")
    cond = fluid.layers.less_than(i, n)
    block = fluid.default_main_program().global_block()
    block.create_var(name="steps", type=fluid.core.VarDesc.VarType.STEP_SCOPES)
    with BlockGuard(fluid.default_main_program()) as body:
        fluid.layers.less_than(i, n, cond=cond)
    block.append_op("while", {"Condition": cond}, {"StepScopes": "steps"}, {"sub_block": body})
    exe = fluid.Executor(fluid.CPUPlace())
    yield
    exe.run(feed={"i": np.zeros(2, "float32"), "n": np.ones(2, "float32")})


@mistake(EnforceNotMet)
def condition_without_a_value() -> Steps:
    block = fluid.default_main_program().global_block()
    cond = block.create_var(name="cond", shape=[1], dtype="bool")
    block.create_var(name="steps", type=fluid.core.VarDesc.VarType.STEP_SCOPES)
    with BlockGuard(fluid.default_main_program()) as body:
        fluid.layers.assign(np.zeros(1, "bool"), cond)
    block.append_op("while", {"Condition": cond}, {"StepScopes": "steps"}, {"sub_block": body})
    exe = fluid.Executor(fluid.CPUPlace())
    yield
    exe.run()


@mistake(EnforceNotMet)
def read_beyond_an_array() -> Steps:
    x = fluid.layers.data("x", shape=[3])
    zero, five = fluid.layers.zeros([1], "int64"), fluid.layers.fill_constant([1], "int64", 5)
    read = fluid.layers.array_read(fluid.layers.array_write(x, zero), five)
    exe = fluid.Executor(fluid.CPUPlace())
    yield
    exe.run(feed={"x": np.ones((2, 3), "float32")}, fetch_list=[read])


@mistake(EnforceNotMet)
def label_out_of_range() -> Steps:
    x = fluid.layers.data("x", shape=[3])
    label = fluid.layers.data("label", shape=[1], dtype="int64")
    loss = fluid.layers.cross_entropy(input=fluid.layers.softmax(x), label=label)
    exe = fluid.Executor(fluid.CPUPlace())
    yield
    exe.run(feed={"x": np.ones((2, 3), "float32"), "label": np.array([[1], [7]])}, fetch_list=[loss])


@mistake(EnforceNotMet, slots="it reads no variable")
def file_that_is_not_there() -> Steps:
    w = fluid.layers.create_tensor("float32", name="w")
    fluid.layers.load(w, "no_such_file.npy")
    exe = fluid.Executor(fluid.CPUPlace())
    yield
    exe.run(fetch_list=[w])
