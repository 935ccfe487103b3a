"""Mistakes about programs that memory_optimize rewrites, or that are pruned (FEATURES G2, A16)."""

from __future__ import annotations

import tempfile
from collections.abc import Generator
from typing import Any

import numpy as np

import fluidnb as fluid
from fluidnb.errors import EnforceNotMet, NotFound, OpTypeError, OpValueError
from tests.errors.helpful import mistake

Steps = Generator[None, None, None]

NO_OP = "no operator is concerned"
NO_VARIABLE = "no variable is concerned"
X = np.ones((2, 3), "float32")


def regression() -> tuple[Any, Any]:
    """A prediction and its loss."""
    guess = fluid.layers.fc(fluid.layers.data("x", shape=[3]), 2)
    return guess, fluid.layers.mean(guess)


@mistake(EnforceNotMet)
def fetch_of_what_memory_optimize_dropped() -> Steps:
    guess, loss = regression()
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    fluid.memory_optimize(fluid.default_main_program())
    yield
    exe.run(feed={"x": X}, fetch_list=[loss, guess])


@mistake(EnforceNotMet)
def inference_model_of_what_memory_optimize_dropped() -> Steps:
    guess, _ = regression()
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    fluid.memory_optimize(fluid.default_main_program())
    yield
    fluid.io.save_inference_model(tempfile.gettempdir(), ["x"], [guess], exe)


@mistake(EnforceNotMet)
def target_that_release_memory_dropped() -> Steps:
    guess, _ = regression()
    fluid.release_memory(fluid.default_main_program())
    yield
    fluid.default_main_program().prune(guess)


@mistake(EnforceNotMet)
def backward_after_release_memory() -> Steps:
    x = fluid.layers.data("x", shape=[3], stop_gradient=False)
    loss = fluid.layers.mean(fluid.layers.square(fluid.layers.scale(x, scale=2.0)))
    fluid.release_memory(fluid.default_main_program())
    fluid.append_backward(loss)
    exe = fluid.Executor(fluid.CPUPlace())
    yield
    exe.run(feed={"x": X}, fetch_list=[loss])


@mistake(OpValueError, op=NO_OP, slots=NO_VARIABLE)
def memory_optimize_with_level_2() -> Steps:
    regression()
    yield
    fluid.memory_optimize(fluid.default_main_program(), level=2)


@mistake(OpTypeError, op=NO_OP, slots=NO_VARIABLE)
def memory_optimize_of_a_description() -> Steps:
    regression()
    yield
    fluid.memory_optimize(fluid.default_main_program().desc)  # type: ignore[arg-type]


@mistake(NotFound, op=NO_OP, slots="there is no such variable")
def skip_opt_set_with_an_unknown_name() -> Steps:
    _, loss = regression()
    yield
    fluid.memory_optimize(fluid.default_main_program(), skip_opt_set={loss, "fc_0.tmp"})


@mistake(OpTypeError, op=NO_OP, slots=NO_VARIABLE)
def skip_opt_set_with_a_list_inside() -> Steps:
    _, loss = regression()
    yield
    fluid.memory_optimize(fluid.default_main_program(), skip_opt_set=[[loss]])  # type: ignore[list-item]


@mistake(OpValueError, op="it is the operator that is given", slots=NO_VARIABLE)
def prune_from_an_operator_inside_a_block() -> Steps:
    i = fluid.layers.zeros([1], "int64")
    more = fluid.layers.less_than(i, fluid.layers.ones([1], "int64"))
    with fluid.layers.While(more).block():
        fluid.layers.increment(i)
        fluid.layers.less_than(i, fluid.layers.ones([1], "int64"), cond=more)
    yield
    fluid.default_main_program().prune(fluid.default_main_program().block(1).ops[0])
