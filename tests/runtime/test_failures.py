"""A run that fails leaves programs, parameters and scopes as they were before the operator that failed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb import op
from fluidnb.errors import EnforceNotMet
from fluidnb.op import Attr, same

EXE = fluid.Executor(fluid.CPUPlace())
BOTH = pytest.mark.parametrize("machine", [False, True])


class Trap:
    """Makes the kernel below fail at will."""

    armed = False

    @classmethod
    def spring(cls, x: np.ndarray[Any, Any], out: np.ndarray[Any, Any]) -> None:
        """Copy, or fail."""
        if cls.armed:
            raise ZeroDivisionError("the trap")
        np.copyto(out, x)


@pytest.fixture(autouse=True)
def trap() -> Iterator[type[Trap]]:
    """An operator that copies its input, and fails while the trap is armed."""

    def kernel(b: op.Binder) -> None:
        b(Trap.spring, b["X"], b["Out"])

    op.op("trap", inputs={"X": "any"}, outputs={"Out": "same"}, attrs={"n": Attr("int", 0)}, infer=same())(kernel)
    Trap.armed = False
    yield Trap
    op.remove_op("trap")


def held(scope: fluid.Scope) -> dict[str, Any]:
    """The values of a scope by name; None for a variable without."""
    tensors = {n: v.value for n, v in scope.vars.items()}
    return {n: None if t is None or t.array is None else np.array(t).tolist() for n, t in tensors.items()}


def three_parameters(shape: int = 2) -> None:
    """A startup program: a = 1, then the trap, then b = 2."""
    block = fluid.default_startup_program().global_block()
    for name in ("a", "through", "b"):
        block.create_var(name=name, shape=[shape], dtype="float32", persistable=True)
    attrs = {"shape": [shape], "dtype": "float32"}
    block.append_op("fill_constant", {}, {"Out": "a"}, {**attrs, "value": 1.0})
    block.append_op("trap", {"X": "a"}, {"Out": "through"})
    block.append_op("fill_constant", {}, {"Out": "b"}, {**attrs, "value": 2.0})


@BOTH
def test_what_was_not_reached_is_not_there(machine: bool) -> None:
    three_parameters()
    scope, Trap.armed = fluid.Scope(), True
    with pytest.raises(EnforceNotMet, match=r"trap failed: ZeroDivisionError: the trap[\s\S]*op 1 \(trap\) in block 0"):
        EXE.run(fluid.default_startup_program(), scope=scope, keep_scopes=machine)
    assert held(scope) == {"a": [1, 1]} and scope.kids == []
    Trap.armed = False
    EXE.run(fluid.default_startup_program(), scope=scope, keep_scopes=machine)
    assert held(scope) == {"a": [1, 1], "through": [1, 1], "b": [2, 2]}


@BOTH
def test_what_was_there_stays_even_if_it_would_change_its_shape(machine: bool) -> None:
    three_parameters(shape=3)
    scope = fluid.Scope()
    for name in ("a", "through", "b"):
        scope.var(name).get_tensor().set(np.full(2, 7, "float32"), fluid.CPUPlace())
    tensor, Trap.armed = scope.find_var("b").get_tensor(), True
    array = tensor.array
    with pytest.raises(EnforceNotMet):
        EXE.run(fluid.default_startup_program(), scope=scope, keep_scopes=machine)
    assert held(scope) == {"a": [1, 1, 1], "through": [7, 7], "b": [7, 7]}
    assert scope.find_var("b").get_tensor() is tensor and tensor.array is array


@BOTH
def test_a_variable_without_a_value_stays_without(machine: bool) -> None:
    three_parameters()
    scope, Trap.armed = fluid.Scope(), True
    variable = scope.var("b")
    with pytest.raises(EnforceNotMet):
        EXE.run(fluid.default_startup_program(), scope=scope, keep_scopes=machine)
    assert scope.find_var("b") is variable and variable.value is None


def trained() -> tuple[Any, fluid.Scope, dict[str, Any]]:
    """A regression whose second parameter's gradient passes the trap; initialised."""
    x = fluid.layers.data("x", shape=[2])
    w = fluid.layers.create_parameter([2, 1], "float32", name="w")
    v = fluid.layers.create_parameter([1], "float32", name="v")
    loss = fluid.layers.mean(fluid.layers.elementwise_add(fluid.layers.mul(x, w), v))
    fluid.append_backward(loss)
    block = fluid.default_main_program().global_block()
    rate = fluid.layers.fill_constant([1], "float32", 0.5)
    through = block.create_var(name="through", shape=[1], dtype="float32")
    block.append_op("sgd", {"Param": w, "Grad": "w@GRAD", "LearningRate": rate}, {"ParamOut": w})
    block.append_op("trap", {"X": "v@GRAD"}, {"Out": through})
    block.append_op("sgd", {"Param": v, "Grad": through, "LearningRate": rate}, {"ParamOut": v})
    scope = fluid.Scope()
    EXE.run(fluid.default_startup_program(), scope=scope)
    return loss, scope, {"x": np.ones((3, 2), "float32")}


@BOTH
@pytest.mark.parametrize("bound", [False, True])
def test_parameters_are_as_before_the_operator_that_failed(machine: bool, bound: bool) -> None:
    loss, scope, feed = trained()
    if bound:
        EXE.run(feed=feed, fetch_list=[loss], scope=scope, keep_scopes=machine)
        scope.drop_kids()
    before, Trap.armed = held(scope), True
    with pytest.raises(EnforceNotMet, match="the trap"):
        EXE.run(feed=feed, fetch_list=[loss], scope=scope, keep_scopes=machine)
    np.testing.assert_allclose(held(scope).pop("w"), np.array(before["w"]) - 0.5, rtol=1e-6)
    assert held(scope)["v"] == before["v"] and set(held(scope)) == set(before) and scope.kids == []
    Trap.armed = False
    EXE.run(feed=feed, fetch_list=[loss], scope=scope, keep_scopes=machine)
    np.testing.assert_allclose(held(scope)["v"], np.array(before["v"]) - 0.5, rtol=1e-6)


@BOTH
def test_a_shape_that_does_not_fit_fails_before_anything_runs(machine: bool) -> None:
    loss, scope, feed = trained()
    scope.find_var("v").get_tensor().set(np.zeros((4, 5), "float32"), fluid.CPUPlace())
    before = held(scope)
    with pytest.raises(EnforceNotMet, match=r"elementwise_add[\s\S]*v  float32\[4, 5\]"):
        EXE.run(feed=feed, fetch_list=[loss], scope=scope, keep_scopes=machine)
    assert held(scope) == before


def test_a_failure_inside_a_loop_names_its_block() -> None:
    i, n = fluid.layers.zeros([1], "int64"), fluid.layers.fill_constant([1], "int64", 3)
    cond = fluid.layers.less_than(i, n)
    with fluid.layers.While(cond).block():
        inside = fluid.default_main_program().current_block()
        inside.append_op("trap", {"X": i}, {"Out": "out"})
        fluid.layers.increment(i)
        fluid.layers.less_than(i, n, cond=cond)
    EXE.run()
    Trap.armed = True
    for machine in (False, True):
        with pytest.raises(EnforceNotMet, match=r"op 0 \(trap\) in block 1[\s\S]*test_failures.py"):
            EXE.run(keep_scopes=machine)
    assert fluid.global_scope().kids == [] and held(fluid.global_scope()) == {}


def test_the_state_of_numpy_is_restored() -> None:
    loss, scope, feed = trained()
    before, Trap.armed = np.geterr(), True
    with pytest.raises(EnforceNotMet):
        EXE.run(feed=feed, fetch_list=[loss], scope=scope)
    assert np.geterr() == before
