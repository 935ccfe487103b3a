"""Mistakes in a single operator, found when it is appended; and in the definition of a new one (FEATURES A5, B)."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np

import fluidnb as fluid
from fluidnb import op
from fluidnb.errors import EnforceNotMet, NotFound, OpTypeError, OpValueError
from tests.errors.helpful import mistake

Steps = Generator[None, None, None]


def small() -> tuple[Any, Any, Any]:
    """A program with x [-1, 13], w [13, 1] and an output: the block, x and w."""
    block = fluid.default_main_program().global_block()
    x = fluid.layers.data("x", shape=[13])
    w = block.create_parameter(name="w", shape=[13, 1], dtype="float32")
    block.append_op("relu", {"X": x}, {"Out": "h"})
    return block, x, w


@mistake(OpValueError, op="it has no type", slots="it has no type")
def no_type() -> Steps:
    block, x, _ = small()
    yield
    block.append_op(None, {"X": x}, {"Out": "out"})


@mistake(NotFound)
def unknown_type() -> Steps:
    block, x, _ = small()
    yield
    block.append_op("rleu", {"X": x}, {"Out": "out"})


@mistake(EnforceNotMet)
def missing_input() -> Steps:
    block, x, _ = small()
    yield
    block.append_op("mul", {"X": x}, {"Out": "out"})


@mistake(OpValueError)
def too_many_arguments() -> Steps:
    block, x, w = small()
    yield
    block.append_op("mul", {"X": [x, x], "Y": w}, {"Out": "out"})


@mistake(OpValueError)
def missing_output() -> Steps:
    block, x, w = small()
    yield
    block.append_op("mul", {"X": x, "Y": w})


@mistake(NotFound)
def unknown_input_slot() -> Steps:
    block, x, w = small()
    yield
    block.append_op("mul", {"X": x, "Z": w}, {"Out": "out"})


@mistake(NotFound)
def unknown_output_slot() -> Steps:
    block, x, w = small()
    yield
    block.append_op("mul", {"X": x, "Y": w}, {"Output": "out"})


@mistake(NotFound)
def unknown_variable() -> Steps:
    block, x, _ = small()
    yield
    block.append_op("mul", {"X": x, "Y": "v"}, {"Out": "out"})


@mistake(NotFound)
def variable_of_another_program() -> Steps:
    block, x, _ = small()
    other = fluid.Program().global_block().create_var(name="elsewhere", shape=[13, 1], dtype="float32")
    yield
    block.append_op("mul", {"X": x, "Y": other}, {"Out": "out"})


@mistake(OpTypeError, slots="what was given is no variable")
def number_for_a_variable() -> Steps:
    block, x, _ = small()
    yield
    block.append_op("mul", {"X": x, "Y": 3.0}, {"Out": "out"})


@mistake(OpTypeError, slots="the inputs are not read yet")
def inputs_no_dict() -> Steps:
    block, x, _ = small()
    yield
    block.append_op("relu", x, {"Out": "out"})


@mistake(OpTypeError, slots="the inputs are not read yet")
def attrs_no_dict() -> Steps:
    block, x, _ = small()
    yield
    block.append_op("scale", {"X": x}, {"Out": "out"}, [("scale", 2.0)])


@mistake(NotFound)
def unknown_attribute() -> Steps:
    block, x, _ = small()
    yield
    block.append_op("scale", {"X": x}, {"Out": "out"}, {"scael": 2.0})


@mistake(OpTypeError)
def attribute_of_another_type() -> Steps:
    block, x, _ = small()
    yield
    block.append_op("scale", {"X": x}, {"Out": "out"}, {"scale": "twice"})


@mistake(OpValueError)
def required_attribute() -> Steps:
    block, x, _ = small()
    yield
    block.append_op("clip", {"X": x}, {"Out": "out"}, {"min": 1.0})


@mistake(OpValueError)
def attributes_at_odds() -> Steps:
    block, x, _ = small()
    yield
    block.append_op("clip", {"X": x}, {"Out": "out"}, {"min": 1.0, "max": -1.0})


@mistake(OpValueError)
def attribute_too_small() -> Steps:
    block, x, _ = small()
    yield
    block.append_op("top_k", {"X": x}, {"Out": "out", "Indices": "which"}, {"k": 0})


@mistake(OpValueError)
def attribute_not_in_its_enum() -> Steps:
    block, x, _ = small()
    yield
    block.append_op("print", {"In": x}, {"Out": "out"}, {"print_phase": "SIDEWAYS"})


@mistake(OpValueError)
def attribute_beyond_32_bits() -> Steps:
    block, x, _ = small()
    yield
    block.append_op("top_k", {"X": x}, {"Out": "out", "Indices": "which"}, {"k": 2**40})


@mistake(OpValueError)
def widths_of_mul() -> Steps:
    block, x, _ = small()
    block.create_var(name="narrow", shape=[5, 1], dtype="float32")
    yield
    block.append_op("mul", {"X": x, "Y": "narrow"}, {"Out": "out"})


@mistake(OpValueError)
def shapes_of_elementwise_add() -> Steps:
    _, x, _ = small()
    other = fluid.layers.data("other", shape=[5])
    yield
    fluid.layers.elementwise_add(x, other)


@mistake(OpValueError)
def dtypes_of_elementwise_add() -> Steps:
    _, x, _ = small()
    other = fluid.layers.data("other", shape=[13], dtype="int64")
    yield
    fluid.layers.elementwise_add(x, other)


@mistake(OpValueError)
def widths_of_matmul() -> Steps:
    _, x, w = small()
    yield
    fluid.layers.matmul(x, w, transpose_y=True)


@mistake(OpValueError)
def sizes_of_reshape() -> Steps:
    one = fluid.layers.data("one", shape=[4, 3], append_batch_size=False)
    yield
    fluid.layers.reshape(one, shape=[5, 3])


@mistake(OpValueError)
def permutation_of_transpose() -> Steps:
    _, x, _ = small()
    yield
    fluid.layers.transpose(x, perm=[0, 0])


@mistake(OpValueError)
def shapes_of_concat() -> Steps:
    _, x, _ = small()
    other = fluid.layers.data("other", shape=[13, 2])
    yield
    fluid.layers.concat([x, other], axis=1)


@mistake(OpValueError)
def shapes_of_sum() -> Steps:
    _, x, w = small()
    yield
    fluid.layers.sums([x, w])


@mistake(OpValueError)
def label_of_cross_entropy() -> Steps:
    _, x, _ = small()
    label = fluid.layers.data("label", shape=[1], dtype="float32")
    yield
    fluid.layers.cross_entropy(input=fluid.default_main_program().global_block().var("h"), label=label)


@mistake(OpValueError)
def axis_of_reduce() -> Steps:
    _, x, _ = small()
    yield
    fluid.layers.reduce_sum(x, dim=7)


@mistake(OpValueError)
def probability_of_dropout() -> Steps:
    _, x, _ = small()
    yield
    fluid.layers.dropout(x, dropout_prob=1.5)


@mistake(OpValueError, op="no operator is made", slots="no variable is concerned")
def registered_twice() -> Steps:
    small()
    yield
    op.op("relu", inputs={"X": "any"}, outputs={"Out": "any"})(print)


@mistake(OpValueError, op="no operator is made", slots="no variable is concerned")
def slot_declared_twice() -> Steps:
    small()
    yield
    op.op("own", inputs={"X": "any", "X*": "many"}, outputs={"Out": "any"})(print)


@mistake(OpValueError, op="no operator is made", slots="no variable is concerned")
def default_against_its_own_rule() -> Steps:
    small()
    yield
    op.Attr("float", -1.0, "a rate", ge=0)


@mistake(NotFound, op="no operator is made", slots="no variable is concerned")
def kernel_for_nothing() -> Steps:
    small()
    yield
    op.kernel("rleu", library="MINE")(print)


@mistake(EnforceNotMet)
def no_kernel_for_the_dtype() -> Steps:
    _, x, _ = small()
    y = fluid.layers.scale(x)
    exe = fluid.Executor(fluid.CPUPlace())
    yield
    with op.prefer("scale", layout="NHWC"):
        exe.run(feed={"x": np.zeros((1, 13), "float32")}, fetch_list=[y])
