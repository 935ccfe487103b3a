"""Mistakes with dense layers, optimizers, schedules, files and readers (FEATURES G, I, J)."""

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


def image() -> Any:
    """An image [-1, 3, 8, 8]."""
    return fluid.layers.data("image", shape=[3, 8, 8])


def loss() -> Any:
    """A loss over one weight."""
    return fluid.layers.mean(fluid.layers.fc(fluid.layers.data("x", shape=[4]), 1))


@mistake(OpValueError, op="the layer checks before it appends one", slots="the number of channels is what is wrong")
def groups_that_do_not_divide() -> Steps:
    x = image()
    yield
    fluid.layers.conv2d(x, num_filters=4, filter_size=3, groups=2)


@mistake(EnforceNotMet)
def filter_larger_than_the_image() -> Steps:
    x = image()
    yield
    fluid.layers.conv2d(x, num_filters=4, filter_size=11)


@mistake(OpValueError, op="the layer checks before it appends one", slots=NO_VARIABLE)
def pooling_of_another_kind() -> Steps:
    x = image()
    yield
    fluid.layers.pool2d(x, pool_size=2, pool_type="median")


@mistake(OpValueError, op="the layer checks before it appends one")
def a_row_where_an_image_is_wanted() -> Steps:
    x = fluid.layers.data("x", shape=[8])
    yield
    fluid.layers.pool2d(x, pool_size=2)


@mistake(OpValueError)
def epsilon_out_of_bounds() -> Steps:
    x = image()
    yield
    fluid.layers.batch_norm(x, epsilon=0.5)


@mistake(EnforceNotMet)
def split_that_does_not_add_up() -> Steps:
    x = fluid.layers.data("x", shape=[10])
    yield
    fluid.layers.split(x, [3, 3], dim=1)


@mistake(EnforceNotMet)
def stack_of_two_shapes() -> Steps:
    x, y = fluid.layers.data("x", shape=[3]), fluid.layers.data("y", shape=[4])
    yield
    fluid.layers.stack([x, y])


@mistake(EnforceNotMet)
def an_id_beyond_the_table() -> Steps:
    ids = fluid.layers.data("ids", shape=[1], dtype="int64")
    row = fluid.layers.embedding(ids, size=[5, 2])
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    yield
    exe.run(feed={"ids": np.array([[7]])}, fetch_list=[row])


@mistake(OpTypeError, op=NO_OP, slots=NO_VARIABLE)
def learning_rate_as_text() -> Steps:
    loss()
    yield
    fluid.optimizer.Adagrad("0.1")


@mistake(OpValueError, op=NO_OP, slots=NO_VARIABLE)
def piecewise_values_do_not_fit() -> Steps:
    loss()
    yield
    fluid.layers.piecewise_decay([10, 20], [0.1, 0.01])


@mistake(EnforceNotMet, slots="the variable is what could not be loaded")
def a_file_that_is_not_there() -> Steps:
    loss()
    exe, folder = fluid.Executor(fluid.CPUPlace()), "no_such_folder"
    yield
    fluid.io.load_params(exe, folder)


@mistake(OpTypeError, op=NO_OP, slots=NO_VARIABLE)
def feeds_of_a_model_as_variables() -> Steps:
    found = loss()
    exe, folder = fluid.Executor(fluid.CPUPlace()), tempfile.gettempdir()
    yield
    fluid.io.save_inference_model(folder, [found], [found], exe)


@mistake(NotFound, op=NO_OP, slots="there is no such variable")
def a_model_fed_by_a_name_it_lacks() -> Steps:
    found = loss()
    exe, folder = fluid.Executor(fluid.CPUPlace()), tempfile.gettempdir()
    yield
    fluid.io.save_inference_model(folder, ["xx"], [found], exe)


@mistake(OpValueError, op=NO_OP, slots=NO_VARIABLE)
def a_profile_sorted_by_another_key() -> Steps:
    loss()
    yield
    fluid.profiler.stop_profiler("longest", None)
