"""Mistakes with programs, blocks, variables, parameters, layers and backward (FEATURES A)."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np

import fluidnb as fluid
from fluidnb.errors import NotFound, OpAssertionError, OpTypeError, OpValueError
from fluidnb.program import Program
from tests.errors.helpful import mistake

Steps = Generator[None, None, None]

NO_OP = "no operator is concerned"
NO_VARIABLE = "no variable is concerned"


def data() -> Any:
    """A program with x [-1, 13] and relu(x): the x."""
    x = fluid.layers.data("x", shape=[13])
    fluid.layers.relu(x)
    return x


@mistake(NotFound, op=NO_OP, slots="there is no such variable")
def block_without_the_variable() -> Steps:
    data()
    block = fluid.default_main_program().global_block()
    yield
    block.var("xx")


@mistake(OpTypeError, op=NO_OP, slots=NO_VARIABLE)
def variable_asked_by_number() -> Steps:
    data()
    block = fluid.default_main_program().global_block()
    yield
    block.var(3)


@mistake(NotFound, op=NO_OP, slots="there is no such variable")
def not_found_recursively() -> Steps:
    data()
    inner = fluid.default_main_program().create_block()
    inner.create_var(name="inside", shape=[1])
    fluid.default_main_program().rollback()
    yield
    fluid.default_main_program().global_block().var_recursive("inside")


@mistake(OpValueError, op=NO_OP)
def declared_with_another_shape() -> Steps:
    x = data()
    yield
    x.block.create_var(name="x", shape=[-1, 14])


@mistake(OpValueError, op=NO_OP)
def declared_with_another_dtype() -> Steps:
    x = data()
    yield
    x.block.create_var(name="x", dtype="int64")


@mistake(OpTypeError, op=NO_OP, slots="there is no variable yet")
def shape_of_text() -> Steps:
    x = data()
    yield
    x.block.create_var(name="new", shape="13")


@mistake(OpValueError, op=NO_OP, slots="there is no parameter yet")
def parameter_without_a_shape() -> Steps:
    x = data()
    yield
    x.block.create_parameter(name="w", dtype="float32")


@mistake(OpValueError, op=NO_OP, slots="there is no parameter yet")
def parameter_of_the_batch_size() -> Steps:
    x = data()
    yield
    x.block.create_parameter(name="w", shape=[-1, 3], dtype="float32")


@mistake(OpValueError, op=NO_OP, slots=NO_VARIABLE)
def rolled_back_too_far() -> Steps:
    data()
    yield
    fluid.default_main_program().rollback()


@mistake(OpValueError, op=NO_OP, slots=NO_VARIABLE)
def block_that_is_not_there() -> Steps:
    data()
    yield
    fluid.default_main_program().block(9)


@mistake(OpAssertionError, op=NO_OP, slots=NO_VARIABLE)
def empty_name_scope() -> Steps:
    data()
    yield
    with fluid.name_scope(""):
        pass


@mistake(OpTypeError, op=NO_OP, slots=NO_VARIABLE)
def guard_of_no_program() -> Steps:
    data()
    yield
    with fluid.program_guard("main"):
        pass


@mistake(OpTypeError, op=NO_OP, slots=NO_VARIABLE)
def switched_to_no_program() -> Steps:
    data()
    yield
    fluid.switch_main_program(None)


@mistake(OpValueError, op=NO_OP, slots=NO_VARIABLE)
def seed_of_text() -> Steps:
    data()
    yield
    fluid.default_main_program().random_seed = "one"


@mistake(OpValueError, op=NO_OP, slots=NO_VARIABLE)
def bytes_of_no_program() -> Steps:
    data()
    yield
    Program.parse_from_string(b"\x0a\xff not a program")


@mistake(OpTypeError, op=NO_OP)
def loop_over_a_variable() -> Steps:
    x = data()
    yield
    list(x)


@mistake(OpTypeError, op=NO_OP)
def number_of_a_variable() -> Steps:
    x = data()
    yield
    float(x)


@mistake(OpTypeError, op=NO_OP)
def array_of_a_variable() -> Steps:
    x = data()
    yield
    np.array(x)


@mistake(OpValueError, op=NO_OP)
def two_ellipses() -> Steps:
    x = data()
    yield
    x[..., 0, ...]


@mistake(OpTypeError, op=NO_OP)
def index_by_text() -> Steps:
    x = data()
    yield
    x["first"]


@mistake(OpTypeError, op=NO_OP)
def text_added_to_a_variable() -> Steps:
    x = data()
    yield
    x + "one"


@mistake(OpValueError, op=NO_OP)
def parameter_of_data() -> Steps:
    x = data()
    yield
    x.param  # noqa: B018


@mistake(OpValueError, op=NO_OP)
def gradient_before_backward() -> Steps:
    h = fluid.layers.fc(data(), size=2)
    yield
    h.grad  # noqa: B018


@mistake(NotFound, op=NO_OP, slots="there is no such variable")
def pruned_to_nothing_known() -> Steps:
    data()
    yield
    fluid.default_main_program().prune(["loss"])


@mistake(OpTypeError, op=NO_OP, slots=NO_VARIABLE)
def pruned_to_a_number() -> Steps:
    data()
    yield
    fluid.default_main_program().prune(3)


@mistake(OpTypeError, op=NO_OP, slots="what was given is no variable")
def layer_over_an_array() -> Steps:
    data()
    yield
    fluid.layers.fc(np.zeros((2, 3), "float32"), size=2)


@mistake(OpValueError, op=NO_OP)
def layer_over_unknown_sizes() -> Steps:
    x = fluid.layers.data("x", shape=[-1, -1], append_batch_size=False)
    yield
    fluid.layers.fc(x, size=2)


@mistake(OpValueError, op=NO_OP)
def layer_of_size_zero() -> Steps:
    x = data()
    yield
    fluid.layers.fc(x, size=0)


@mistake(OpValueError, op=NO_OP)
def unknown_activation() -> Steps:
    x = data()
    yield
    fluid.layers.fc(x, size=2, act="rleu")


@mistake(OpTypeError, op=NO_OP, slots=NO_VARIABLE)
def parameter_described_by_a_number() -> Steps:
    x = data()
    yield
    fluid.layers.fc(x, size=2, param_attr=3.5)


@mistake(OpTypeError, op=NO_OP, slots=NO_VARIABLE)
def initializer_of_text() -> Steps:
    data()
    yield
    fluid.ParamAttr(initializer="xavier")


@mistake(OpTypeError, op=NO_OP)
def loop_on_a_number() -> Steps:
    x = data()
    yield
    fluid.layers.While(x)


@mistake(OpValueError, op=NO_OP)
def loss_of_many_numbers() -> Steps:
    h = fluid.layers.fc(data(), size=2)
    yield
    fluid.append_backward(h)


@mistake(OpValueError, op=NO_OP)
def loss_that_nothing_computes() -> Steps:
    loss = fluid.layers.data("loss", shape=[1], append_batch_size=False)
    yield
    fluid.append_backward(loss)


@mistake(OpTypeError, op=NO_OP, slots="what was given is no variable")
def loss_by_name() -> Steps:
    fluid.layers.mean(fluid.layers.fc(data(), size=2))
    yield
    fluid.append_backward("mean_0.tmp_0")


@mistake(OpValueError)
def loss_through_an_operator_without_gradient() -> Steps:
    h = fluid.layers.fc(data(), size=2)
    loss = fluid.layers.mean(h % h)
    yield
    fluid.append_backward(loss)


@mistake(OpTypeError, op=NO_OP, slots=NO_VARIABLE)
def learning_rate_of_text() -> Steps:
    data()
    yield
    fluid.optimizer.SGD("fast")


@mistake(OpTypeError, op=NO_OP, slots="what was given is no variable")
def minimized_a_number() -> Steps:
    data()
    yield
    fluid.optimizer.SGD(0.1).minimize(0.5)


@mistake(OpValueError, op=NO_OP)
def nothing_to_train() -> Steps:
    loss = fluid.layers.mean(data())
    yield
    fluid.optimizer.SGD(0.1).minimize(loss)


@mistake(OpTypeError, op=NO_OP, slots=NO_VARIABLE)
def data_with_a_number_as_shape() -> Steps:
    data()
    yield
    fluid.layers.data("z", 13)


@mistake(OpTypeError, op=NO_OP, slots=NO_VARIABLE)
def concat_of_nothing() -> Steps:
    data()
    yield
    fluid.layers.concat([])


@mistake(OpTypeError, op=NO_OP, slots=NO_VARIABLE)
def filled_with_text() -> Steps:
    data()
    yield
    fluid.layers.fill_constant([1], "float32", "a")


@mistake(OpValueError, op=NO_OP, slots=NO_VARIABLE)
def block_asked_by_name() -> Steps:
    data()
    yield
    fluid.default_main_program().block("body")


@mistake(OpTypeError, op=NO_OP, slots=NO_VARIABLE)
def parameter_with_text_as_shape() -> Steps:
    data()
    yield
    fluid.layers.create_parameter("13", "float32")


@mistake(OpTypeError, op=NO_OP, slots=NO_VARIABLE)
def regularizer_that_is_a_number() -> Steps:
    data()
    yield
    fluid.ParamAttr(regularizer=0.1)  # type: ignore[arg-type]
