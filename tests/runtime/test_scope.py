"""Scopes: a forest of variables by name, whose hierarchy goes when the mini-batch ends."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.errors import OpTypeError
from fluidnb.runtime import Scope

EXE = fluid.Executor(fluid.CPUPlace())


def test_a_variable_is_made_once_and_found_from_inside() -> None:
    outer = Scope()
    inner = outer.new_scope()
    x = outer.var("x")
    assert outer.var("x") is x and inner.find_var("x") is x and inner.find_var("y") is None
    hidden = inner.var("x")
    assert hidden is not x and inner.find_var("x") is hidden and outer.find_var("x") is x
    assert (inner.parent, outer.kids, outer.local_var_names()) == (outer, [inner], ["x"])
    inner.erase(["x", "nothing"])
    assert inner.find_var("x") is x
    outer.erase("x")
    assert inner.find_var("x") is None


def test_siblings_do_not_see_each_other() -> None:
    outer = Scope()
    one, other = outer.new_scope(), outer.new_scope()
    one.var("x")
    assert other.find_var("x") is None


def test_dropping_destroys_variables_and_their_memory() -> None:
    outer = Scope()
    deep = outer.new_scope().new_scope()
    tensor = deep.var("x").get_tensor()
    tensor.set(np.ones(1000, "float32"), fluid.CPUPlace())
    gone = weakref.ref(fluid.memory.owner(tensor.array))
    outer.drop_kids()
    assert outer.kids == [] and deep.parent is None
    del tensor, deep
    gc.collect()
    assert gone() is None


def test_names_are_text() -> None:
    with pytest.raises(OpTypeError, match="A variable's name is a str"):
        Scope().var(3)


def test_guard_and_switch() -> None:
    before, mine = fluid.global_scope(), Scope()
    with pytest.raises(ValueError), fluid.scope_guard(mine):
        assert fluid.global_scope() is mine
        raise ValueError
    assert fluid.global_scope() is before
    old = fluid._switch_scope(mine)
    try:
        assert old is before and fluid.global_scope() is mine
    finally:
        fluid._switch_scope(old)
    with pytest.raises(OpTypeError, match="scope_guard takes a Scope"), fluid.scope_guard("mine"):
        pass


def network() -> fluid.Variable:
    """fc of a fed x."""
    return fluid.layers.fc(fluid.layers.data("x", shape=[3]), size=2)


def test_only_persistable_variables_outlive_a_run() -> None:
    y, scope = network(), Scope()
    EXE.run(fluid.default_startup_program(), scope=scope)
    EXE.run(feed={"x": np.ones((4, 3), "float32")}, fetch_list=[y], scope=scope)
    assert scope.local_var_names() == ["fc_0.b_0", "fc_0.w_0"] and scope.kids == []


def test_persistable_variables_are_made_in_the_outermost_scope() -> None:
    network()
    outer = Scope()
    EXE.run(fluid.default_startup_program(), scope=outer.new_scope().new_scope())
    assert outer.local_var_names() == ["fc_0.b_0", "fc_0.w_0"]


def test_startup_may_run_twice_and_gives_new_values() -> None:
    network()
    scope = Scope()
    values = []
    for _ in range(2):
        EXE.run(fluid.default_startup_program(), scope=scope)
        values.append(np.array(scope.find_var("fc_0.w_0").get_tensor()))
    assert not np.array_equal(*values)


@pytest.mark.parametrize("machine", [False, True])
def test_the_user_may_change_what_a_bound_program_sees(machine: bool) -> None:
    y, scope, feed = network(), Scope(), {"x": np.ones((1, 3), "float32")}
    EXE.run(fluid.default_startup_program(), scope=scope)

    def result() -> list[float]:
        return [float(v) for v in EXE.run(feed=feed, fetch_list=[y], scope=scope, keep_scopes=machine)[0][0]]

    def fill(value: float) -> None:
        for name, shape in (("fc_0.w_0", (3, 2)), ("fc_0.b_0", (2,))):
            scope.var(name).get_tensor().set(np.full(shape, value, "float32"), fluid.CPUPlace())

    result()
    fill(1)  # the same memory
    assert result() == [4, 4]
    scope.erase(["fc_0.w_0", "fc_0.b_0"])
    fill(2)  # other variables
    assert result() == [8, 8]
    tensor = scope.find_var("fc_0.b_0").get_tensor()
    tensor._share_data_with(fluid.LoDTensor(np.array([10, 20], "float32")))  # other memory
    assert result() == [16, 26]
    inner = scope.new_scope()
    inner.var("fc_0.b_0").get_tensor().set(np.zeros(2, "float32"), fluid.CPUPlace())  # a hidden one
    assert EXE.run(feed=feed, fetch_list=[y], scope=inner)[0].tolist() == [[6, 6]] and result() == [16, 26]


def test_a_parameter_may_get_another_shape() -> None:
    y, scope = network(), Scope()
    EXE.run(fluid.default_startup_program(), scope=scope)
    feed = {"x": np.ones((1, 3), "float32")}
    EXE.run(feed=feed, fetch_list=[y], scope=scope)
    scope.find_var("fc_0.w_0").get_tensor().set(np.ones((3, 5), "float32"), fluid.CPUPlace())
    scope.find_var("fc_0.b_0").get_tensor().set(np.ones(5, "float32"), fluid.CPUPlace())
    assert EXE.run(feed=feed, fetch_list=[y], scope=scope)[0].tolist() == [[4] * 5]


def test_kept_scopes_go_with_the_next_run_that_keeps_them() -> None:
    y, scope = network(), Scope()
    EXE.run(fluid.default_startup_program(), scope=scope)
    feed = {"x": np.ones((1, 3), "float32")}
    (value,) = EXE.run(feed=feed, fetch_list=[y], scope=scope, keep_scopes=True)
    (kept,) = scope.kids
    assert kept.local_var_names() == ["fc_0.tmp_0", "fc_0.tmp_1", "x"]
    assert np.array(kept.find_var(y.name).get_tensor()).tobytes() == value.tobytes()
    assert kept.find_var("fc_0.w_0") is scope.find_var("fc_0.w_0")
    EXE.run(feed=feed, fetch_list=[y], scope=scope, keep_scopes=True)
    assert len(scope.kids) == 1 and scope.kids[0] is not kept
    EXE.run(feed=feed, fetch_list=[y], scope=scope)
    assert len(scope.kids) == 1


def test_a_scope_shows_itself() -> None:
    scope = Scope()
    scope.var("x")
    scope.new_scope()
    assert repr(scope) == "<Scope: 1 variables, 1 inside>"
