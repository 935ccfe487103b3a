"""Subclasses of the interpreter: operators and blocks are seen, replaced, and undone."""

from __future__ import annotations

import gc
from collections import Counter

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.op import Control
from fluidnb.runtime import Frame, Interpreter, Scope
from fluidnb.runtime.compile.lowering import LoweredOp

L = fluid.layers


@pytest.fixture(autouse=True)
def fresh():
    with fluid.fresh():
        yield


class Trace(Interpreter):
    """Counts operators, iterations entered and left."""

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self.seen: Counter[str] = Counter()

    def run_op(self, op: LoweredOp, scope: Scope) -> Control | None:
        self.seen[op.desc.type()] += 1
        return super().run_op(op, scope)

    def enter_block(self, control: Control, k: int) -> None:
        self.seen["enter"] += 1
        super().enter_block(control, k)

    def leave_block(self, frame: Frame) -> None:
        self.seen["leave"] += 1
        super().leave_block(frame)


class Zeros(Interpreter):
    """Replaces relu by zeros."""

    def run_op(self, op: LoweredOp, scope: Scope) -> Control | None:
        if op.desc.type() != "relu":
            return super().run_op(op, scope)
        x = scope.find_var(op.desc.input("X")[0]).value
        scope.cell(op.desc.output("Out")[0])[0].value = fluid.LoDTensor(np.zeros_like(np.asarray(x)))
        return None


def loop() -> fluid.framework.Variable:
    """Adds 1 three times."""
    i, n = L.fill_constant([1], "int64", 0), L.fill_constant([1], "int64", 3)
    more = L.less_than(i, n)
    loop = L.While(more)
    with loop.block():
        L.increment(i)
        L.less_than(i, n, cond=more)
    return i


def test_operators_and_blocks_are_seen() -> None:
    i = loop()
    run = fluid.Executor().interpret(fetch_list=[i], interpreter=Trace)
    assert isinstance(run, Trace) and run.run().fetch()[0].tolist() == [3]
    assert run.seen["increment"] == 3 and run.seen["leave"] == 3 and run.seen["enter"] == 4


def test_an_operator_is_replaced_and_stepped_back() -> None:
    x = L.data("x", [2])
    y = L.scale(L.relu(x), 1.0, 5.0)
    feed = {"x": np.ones((1, 2), "float32")}
    run = fluid.Executor().interpret(feed=feed, fetch_list=[y], interpreter=Zeros)
    steps = 0
    while not run.done:
        run.step()
        steps += 1
    np.testing.assert_array_equal(run.fetch()[0], [[5, 5]])
    for _ in range(steps):
        run.back()
    assert run.value(y.name) is None
    np.testing.assert_array_equal(run.run().fetch()[0], [[5, 5]])


def test_its_scopes_go_with_it() -> None:
    scope = fluid.Scope()
    i = loop()
    run = fluid.Executor().interpret(fetch_list=[i], scope=scope).run()
    assert len(scope.kids) == 1
    del run
    gc.collect()
    assert scope.kids == []


def test_random_numbers_are_those_of_the_executor() -> None:
    fluid.default_main_program().random_seed = 4
    y = L.uniform_random([3])
    exe = fluid.Executor()
    [first], [second] = exe.run(fetch_list=[y], scope=fluid.Scope()), exe.interpret(
        fetch_list=[y], scope=fluid.Scope()
    ).run().fetch()  # fmt: skip
    np.testing.assert_array_equal(first, second)
