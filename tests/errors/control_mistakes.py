"""Mistakes with loops, branches and recurrent networks (FEATURES D6 to D12)."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import fluidnb as fluid
from fluidnb.errors import EnforceNotMet, OpAssertionError, OpTypeError, OpValueError
from fluidnb.layers.control_flow import BlockGuardWithCompletion, WhileGuard
from tests.errors.helpful import mistake

Steps = Generator[None, None, None]
L: Any = fluid.layers

NO_OP = "no operator is concerned"
NO_VARIABLE = "no variable is concerned"


def rows() -> tuple[Any, Any]:
    """x [-1, 3] and a bool for each of its rows."""
    return L.data("x", shape=[3]), L.data("cond", shape=[1], dtype="bool")


def two_sides(first: int = 1, second: int = 1) -> Any:
    """An IfElse with so many outputs of its true and its false block."""
    x, cond = rows()
    ie = L.IfElse(cond)
    with ie.true_block():
        ie.output(*[L.relu(ie.input(x)) for _ in range(first)])
    with ie.false_block():
        ie.output(*[L.tanh(ie.input(x)) for _ in range(second)])
    return ie


def yes() -> Any:
    """A bool of one element."""
    return L.less_than(L.zeros([1], "int64"), L.ones([1], "int64"))


# While, ConditionalBlock, Switch.


@mistake(OpTypeError, op=NO_OP, slots=NO_VARIABLE)
def condition_of_python() -> Steps:
    yield
    L.While(True)


@mistake(OpTypeError, op=NO_OP)
def condition_that_is_no_bool() -> Steps:
    n = L.ones([1], "int64")
    yield
    L.While(n)


@mistake(OpTypeError, op=NO_OP)
def condition_for_each_row_of_a_loop() -> Steps:
    _, cond = rows()
    yield
    L.While(cond)


@mistake(OpTypeError, op=NO_OP, slots=NO_VARIABLE)
def while_guard_of_a_condition() -> Steps:
    cond = yes()
    yield
    WhileGuard(cond)


@mistake(OpTypeError, op=NO_OP, slots=NO_VARIABLE)
def conditional_block_without_a_list() -> Steps:
    cond = yes()
    yield
    L.ConditionalBlock(cond)


@mistake(OpValueError, op=NO_OP, slots=NO_VARIABLE)
def case_outside_of_its_switch() -> Steps:
    cond = yes()
    yield
    L.Switch().case(cond)


@mistake(OpValueError, op=NO_OP, slots=NO_VARIABLE)
def default_without_a_case() -> Steps:
    switch = L.Switch()
    yield
    with switch.block(), switch.default():
        pass


@mistake(OpValueError, op=NO_OP, slots=NO_VARIABLE)
def case_after_the_default() -> Steps:
    cond, out = yes(), L.zeros([1], "float32")
    yield
    with L.Switch() as switch:
        with switch.case(cond):
            L.assign(L.ones([1], "float32"), output=out)
        with switch.default():
            L.assign(L.ones([1], "float32"), output=out)
        switch.case(cond)


@mistake(OpTypeError, op=NO_OP)
def case_of_a_number() -> Steps:
    one = L.ones([1], "float32")
    yield
    with L.Switch() as switch:
        switch.case(one)


# IfElse.


@mistake(OpTypeError, op=NO_OP, slots=NO_VARIABLE)
def if_else_by_python() -> Steps:
    yield
    L.IfElse(True)


@mistake(OpTypeError, op=NO_OP)
def if_else_by_numbers() -> Steps:
    x, _ = rows()
    yield
    L.IfElse(x)


@mistake(OpValueError, op=NO_OP)
def if_else_by_two_columns() -> Steps:
    cond = L.data("both", shape=[2], dtype="bool")
    yield
    L.IfElse(cond)


@mistake(OpValueError, op=NO_OP, slots=NO_VARIABLE)
def input_outside_of_the_sides() -> Steps:
    x, cond = rows()
    ie = L.IfElse(cond)
    yield
    ie.input(x)


@mistake(OpValueError, op=NO_OP)
def input_that_is_made_inside() -> Steps:
    x, cond = rows()
    ie = L.IfElse(cond)
    yield
    with ie.true_block():
        ie.input(L.relu(ie.input(x)))


@mistake(OpValueError, op=NO_OP, slots=NO_VARIABLE)
def output_outside_of_the_sides() -> Steps:
    x, cond = rows()
    ie = L.IfElse(cond)
    yield
    ie.output(x)


@mistake(OpTypeError, op=NO_OP, slots=NO_VARIABLE)
def output_of_a_number() -> Steps:
    _, cond = rows()
    ie = L.IfElse(cond)
    yield
    with ie.true_block():
        ie.output(1.0)


@mistake(OpValueError, op=NO_OP, slots=NO_VARIABLE)
def side_without_output() -> Steps:
    x, cond = rows()
    ie = L.IfElse(cond)
    yield
    with ie.false_block():
        ie.input(x)


@mistake(OpValueError, op=NO_OP, slots=NO_VARIABLE)
def side_inside_a_side() -> Steps:
    _, cond = rows()
    ie = L.IfElse(cond)
    yield
    with ie.true_block(), ie.false_block():
        pass


@mistake(OpValueError, op=NO_OP, slots=NO_VARIABLE)
def side_a_second_time() -> Steps:
    ie = two_sides()
    yield
    ie.true_block()


@mistake(OpValueError, op=NO_OP, slots=NO_VARIABLE)
def if_else_without_sides() -> Steps:
    _, cond = rows()
    ie = L.IfElse(cond)
    yield
    ie()


@mistake(OpValueError, op=NO_OP, slots=NO_VARIABLE)
def if_else_called_inside_a_side() -> Steps:
    _, cond = rows()
    ie = L.IfElse(cond)
    yield
    with ie.true_block():
        ie()


@mistake(OpValueError, op=NO_OP, slots=NO_VARIABLE)
def sides_with_different_counts() -> Steps:
    ie = two_sides(2, 1)
    yield
    ie()


@mistake(OpValueError, op=NO_OP)
def sides_with_different_columns() -> Steps:
    x, cond = rows()
    ie = L.IfElse(cond)
    with ie.true_block():
        ie.output(ie.input(x))
    with ie.false_block():
        ie.output(L.fc(ie.input(x), 2))
    yield
    ie()


@mistake(OpValueError, op=NO_OP, slots=NO_VARIABLE)
def if_else_with_a_second_condition() -> Steps:
    ie, other = two_sides(), L.data("other", shape=[1], dtype="bool")
    yield
    ie(other)


@mistake(OpValueError, op=NO_OP, slots=NO_VARIABLE)
def input_of_the_other_side() -> Steps:
    x, _ = rows()
    ie = L.IfElse(inputs=[x], output_num=1)
    yield
    with ie.false_block():
        ie.inputs(True, 0)


@mistake(OpValueError, op=NO_OP, slots=NO_VARIABLE)
def input_that_was_not_declared() -> Steps:
    x, _ = rows()
    ie = L.IfElse(inputs=[x], output_num=1)
    yield
    with ie.true_block():
        ie.inputs(True, 1)


@mistake(OpValueError, op=NO_OP, slots=NO_VARIABLE)
def output_beyond_the_number_declared() -> Steps:
    x, _ = rows()
    ie = L.IfElse(inputs=[x], output_num=1)
    yield
    with ie.true_block():
        ie.set_output(True, 1, ie.inputs(True, 0))


@mistake(OpValueError, op=NO_OP)
def sides_of_one_condition_that_do_not_fit() -> Steps:
    x, _ = rows()
    ie = L.IfElse(yes())
    with ie.true_block():
        ie.output(L.relu(x))
    yield
    with ie.false_block():
        ie.output(L.fc(x, 2))


# StaticRNN.


def sequence(name: str = "seq", steps: int = 3) -> Any:
    """A sequence, time first."""
    return L.data(name, shape=[steps, 2, 4], append_batch_size=False)


@mistake(OpValueError, op=NO_OP, slots=NO_VARIABLE)
def memory_outside_of_the_step() -> Steps:
    start, rnn = L.zeros([2, 4], "float32"), L.StaticRNN()
    yield
    rnn.memory(init=start)


@mistake(OpValueError, op=NO_OP, slots=NO_VARIABLE)
def memory_without_a_start() -> Steps:
    x, rnn = sequence(), L.StaticRNN()
    yield
    with rnn.step():
        rnn.step_input(x)
        rnn.memory(shape=[-1, 4])


@mistake(OpTypeError, op=NO_OP, slots=NO_VARIABLE)
def step_input_of_a_list() -> Steps:
    x, rnn = sequence(), L.StaticRNN()
    yield
    with rnn.step():
        rnn.step_input([x])


@mistake(OpValueError, op=NO_OP)
def sequences_of_two_lengths() -> Steps:
    x, y, rnn = sequence(), sequence("other", 4), L.StaticRNN()
    yield
    with rnn.step():
        rnn.step_input(x)
        rnn.step_input(y)


@mistake(OpAssertionError, op=NO_OP)
def memory_that_is_not_updated() -> Steps:
    x, start, rnn = sequence(), L.zeros([2, 4], "float32"), L.StaticRNN()
    yield
    with rnn.step():
        rnn.memory(init=start)
        rnn.output(rnn.step_input(x))


@mistake(OpValueError, op=NO_OP)
def memory_that_changes_its_shape() -> Steps:
    x, start, rnn = sequence(), L.zeros([2, 4], "float32"), L.StaticRNN()
    yield
    with rnn.step():
        before = rnn.memory(init=start)
        rnn.update_memory(before, L.fc(rnn.step_input(x), 5))


@mistake(OpValueError, op=NO_OP, slots=NO_VARIABLE)
def update_of_what_is_no_memory() -> Steps:
    x, rnn = sequence(), L.StaticRNN()
    yield
    with rnn.step():
        now = rnn.step_input(x)
        rnn.update_memory(now, now)


@mistake(OpValueError, op=NO_OP, slots=NO_VARIABLE)
def results_before_the_step() -> Steps:
    rnn = L.StaticRNN()
    yield
    rnn()


@mistake(OpValueError, op=NO_OP, slots=NO_VARIABLE)
def network_without_output() -> Steps:
    x, rnn = sequence(), L.StaticRNN()
    with rnn.step():
        rnn.step_input(x)
    yield
    rnn()


@mistake(OpValueError, op=NO_OP, slots=NO_VARIABLE)
def network_without_a_sequence() -> Steps:
    one, rnn = L.ones([1], "float32"), L.StaticRNN()
    yield
    with rnn.step():
        rnn.output(L.relu(one))


@mistake(OpValueError, op=NO_OP, slots=NO_VARIABLE)
def second_step_of_a_network() -> Steps:
    x, rnn = sequence(), L.StaticRNN()
    with rnn.step():
        rnn.output(rnn.step_input(x))
    yield
    rnn.step()


@mistake(OpTypeError, op=NO_OP, slots=NO_VARIABLE)
def guard_of_no_network() -> Steps:
    x = sequence()
    yield
    BlockGuardWithCompletion(x)


# DynamicRNN.


def words(name: str = "words", levels: int = 1) -> Any:
    """A batch of sequences."""
    return L.data(name, shape=[4], lod_level=levels)


@mistake(OpValueError, op=NO_OP, slots=NO_VARIABLE)
def step_input_outside_of_the_block() -> Steps:
    x, rnn = words(), L.DynamicRNN()
    yield
    rnn.step_input(x)


@mistake(OpTypeError, op=NO_OP, slots=NO_VARIABLE)
def dynamic_step_input_of_a_number() -> Steps:
    rnn = L.DynamicRNN()
    yield
    with rnn.block():
        rnn.step_input(3)


@mistake(OpValueError, op=NO_OP)
def step_input_without_sequences() -> Steps:
    x, rnn = words(levels=0), L.DynamicRNN()
    yield
    with rnn.block():
        rnn.step_input(x)


@mistake(OpValueError, op=NO_OP)
def step_inputs_of_two_levels() -> Steps:
    x, y, rnn = words(), words("deep", levels=2), L.DynamicRNN()
    yield
    with rnn.block():
        rnn.step_input(x)
        rnn.step_input(y, level=1)


@mistake(EnforceNotMet, op=NO_OP, slots=NO_VARIABLE)
def static_input_before_a_step_input() -> Steps:
    x, rnn = words(), L.DynamicRNN()
    yield
    with rnn.block():
        rnn.static_input(x)


@mistake(OpValueError, op=NO_OP, slots=NO_VARIABLE)
def dynamic_memory_before_a_step_input() -> Steps:
    rnn = L.DynamicRNN()
    yield
    with rnn.block():
        rnn.memory(shape=[4], value=0.0)


@mistake(OpValueError, op=NO_OP, slots=NO_VARIABLE)
def reordered_memory_before_a_step_input() -> Steps:
    start, rnn = L.data("start", shape=[4]), L.DynamicRNN()
    yield
    with rnn.block():
        rnn.memory(init=start, need_reorder=True)


@mistake(OpAssertionError, op=NO_OP)
def dynamic_memory_that_is_not_updated() -> Steps:
    x, rnn = words(), L.DynamicRNN()
    yield
    with rnn.block():
        rnn.output(rnn.step_input(x))
        rnn.memory(shape=[4])


@mistake(OpValueError, op=NO_OP, slots=NO_VARIABLE)
def dynamic_update_of_what_is_no_memory() -> Steps:
    x, rnn = words(), L.DynamicRNN()
    yield
    with rnn.block():
        now = rnn.step_input(x)
        rnn.update_memory(now, now)


@mistake(OpValueError, op=NO_OP, slots=NO_VARIABLE)
def dynamic_network_without_sequences() -> Steps:
    one, rnn = L.ones([1], "float32"), L.DynamicRNN()
    yield
    with rnn.block():
        rnn.output(L.relu(one))


@mistake(OpValueError, op=NO_OP, slots=NO_VARIABLE)
def results_inside_the_block() -> Steps:
    x, rnn = words(), L.DynamicRNN()
    yield
    with rnn.block():
        rnn.output(rnn.step_input(x))
        rnn()


@mistake(OpValueError, op=NO_OP, slots=NO_VARIABLE)
def second_block_of_a_network() -> Steps:
    x, rnn = words(), L.DynamicRNN()
    with rnn.block():
        rnn.output(rnn.step_input(x))
    yield
    rnn.block()
