"""Operators that run a block."""

import numpy as np
import pytest

from fluidnb.errors import EnforceNotMet
from fluidnb.op import RuleError
from fluidnb.program import Program
from fluidnb.runtime import Executor, Scope
from fluidnb.testing import OpTest

X = np.arange(3, dtype="float32")


def looping() -> Program:
    """total = x · 2 ^ n, by a loop that counts to n."""
    program = Program()
    outer = program.global_block()
    for name, shape, dtype in (("x", [-1], "float32"), ("i", [1], "int64"), ("n", [1], "int64"), ("more", [1], "bool")):
        outer.create_var(name=name, shape=shape, dtype=dtype)
    outer.create_var(name="total", dtype="float32")
    steps = outer.create_var(name="steps", type=11)
    outer.append_op(type="assign", inputs={"X": "x"}, outputs={"Out": "total"})
    outer.append_op(type="less_than", inputs={"X": "i", "Y": "n"}, outputs={"Out": "more"})
    inner = program.create_block()
    inner.append_op(type="scale", inputs={"X": "total"}, outputs={"Out": "total"}, attrs={"scale": 2.0})
    inner.append_op(type="increment", inputs={"X": "i"}, outputs={"Out": "i"})
    inner.append_op(type="less_than", inputs={"X": "i", "Y": "n"}, outputs={"Out": "more"})
    program.rollback()
    outer.append_op(
        type="while", inputs={"X": ["i", "n", "total"], "Condition": "more"},
        outputs={"Out": ["i", "total", "more"], "StepScopes": steps}, attrs={"sub_block": inner},
    )  # fmt: skip
    return program


def branching(scalar: bool) -> Program:
    """y = x, or 10 x where the condition holds."""
    program = Program()
    outer = program.global_block()
    outer.create_var(name="x", shape=[-1], dtype="float32")
    outer.create_var(name="c", shape=[1] if scalar else [-1], dtype="bool" if scalar else "float32")
    outer.create_var(name="y", dtype="float32")
    taken = outer.create_var(name="taken", type=11)
    outer.append_op(type="assign", inputs={"X": "x"}, outputs={"Out": "y"})
    inner = program.create_block()
    inner.append_op(type="scale", inputs={"X": "x"}, outputs={"Out": "y"}, attrs={"scale": 10.0})
    program.rollback()
    outer.append_op(
        type="conditional_block", inputs={"Cond": ["c"], "Input": ["x"]}, outputs={"Out": ["y"], "Scope": taken},
        attrs={"sub_block": inner, "is_scalar_condition": scalar},
    )  # fmt: skip
    return program


class TestWhile(OpTest):
    op_type = "while"

    @pytest.mark.parametrize("keep", [False, True])
    def test_output(self, keep):
        program, exe, scope = looping(), Executor(), Scope()
        for n in (3, 0, 1, 3):
            feed = {"x": X, "i": np.array([0]), "n": np.array([n])}
            total, i = exe.run(program, feed=feed, fetch_list=["total", "i"], scope=scope, keep_scopes=keep)
            assert total.tolist() == (X * 2**n).tolist() and i.tolist() == [n]


class TestConditionalBlock(OpTest):
    op_type = "conditional_block"

    @pytest.mark.parametrize("keep", [False, True])
    def test_output(self, keep):
        program, exe, scope = branching(True), Executor(), Scope()
        for holds in (True, False, False, True):
            feed = {"x": X, "c": np.array([holds])}
            (y,) = exe.run(program, feed=feed, fetch_list=["y"], scope=scope, keep_scopes=keep)
            assert y.tolist() == (X * 10 if holds else X).tolist()


def accumulating() -> Program:
    """after[t] = x[t] + the memory, and the memory is twice that; outputs stacked along time."""
    program = Program()
    outer = program.global_block()
    outer.create_var(name="x", shape=[-1, 3], dtype="float32")
    outer.create_var(name="start", shape=[3], dtype="float32")
    for name in ("after", "twice"):
        outer.create_var(name=name, dtype="float32")
    steps = outer.create_var(name="steps", type=11)
    inner = program.create_block()
    inner.create_var(name="x", shape=[3], dtype="float32")
    inner.create_var(name="before", shape=[3], dtype="float32")
    for name in ("after", "twice"):
        inner.create_var(name=name, dtype="float32")
    inner.append_op(type="elementwise_add", inputs={"X": "x", "Y": "before"}, outputs={"Out": "after"})
    inner.append_op(type="scale", inputs={"X": "after"}, outputs={"Out": "twice"}, attrs={"scale": 2.0})
    program.rollback()
    outer.append_op(
        type="recurrent", inputs={"inputs": ["x"], "initial_states": ["start"]},
        outputs={"outputs": ["after", "twice"], "step_scopes": steps},
        attrs={"sub_block": inner, "ex_states": ["before"], "states": ["twice"], "has_states": True},
    )  # fmt: skip
    return program


class TestRecurrent(OpTest):
    op_type = "recurrent"

    @pytest.mark.parametrize("keep", [False, True])
    @pytest.mark.parametrize("reverse", [False, True])
    def test_output(self, keep, reverse):
        program, exe, scope = accumulating(), Executor(), Scope()
        program.global_block().ops[-1].desc.set_attr("reverse", reverse)
        for count in (3, 1, 3):
            x, memory, wanted = np.arange(3.0 * count, dtype="f4").reshape(count, 3), X, {}
            for t in reversed(range(count)) if reverse else range(count):
                wanted[t] = x[t] + memory
                memory = 2 * wanted[t]
            feed = {"x": x, "start": X}
            after, twice = exe.run(program, feed=feed, fetch_list=["after", "twice"], scope=scope, keep_scopes=keep)
            assert after.tolist() == [wanted[t].tolist() for t in range(count)]
            assert twice.tolist() == (2 * after).tolist()


def test_a_condition_that_is_data():
    program, exe, scope = branching(False), Executor(), Scope()
    for rows in (2, 0):
        (y,) = exe.run(program, feed={"x": X, "c": np.ones(rows, "float32")}, fetch_list=["y"], scope=scope)
        assert y.tolist() == (X * 10 if rows else X).tolist()


def test_conditions_of_several_elements():
    program = looping()
    while_op = program.global_block().ops[-1]
    with pytest.raises(EnforceNotMet, match="condition of conditional_block must have one element"):
        Executor().run(branching(True), feed={"x": X, "c": np.array([True, True])}, fetch_list=["y"], scope=Scope())
    program.global_block().var("more").desc.set_shape([2])
    with pytest.raises(RuleError, match="condition of while must be a bool of one element"):
        program.global_block().append_op(
            type="while", inputs={"X": ["i"], "Condition": "more"},
            outputs={"Out": ["i"], "StepScopes": "steps"}, attrs={"sub_block": while_op.attr("sub_block")},
        )  # fmt: skip
    assert len(program.global_block().ops) == 3
