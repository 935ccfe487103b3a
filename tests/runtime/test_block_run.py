"""Blocks in a scope of the user's: infer shapes, run, evaluate."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.errors import EnforceNotMet, FluidError, NotFound, OpTypeError
from fluidnb.program import Block, SymbolTable
from fluidnb.proto.framework_pb2 import VarType
from fluidnb.values.device_context import DeviceContext

CPU = fluid.CPUPlace()


def put(scope: fluid.Scope, **values: object) -> fluid.Scope:
    """Give variables of a scope their values."""
    for name, value in values.items():
        scope.var(name).get_tensor().set(np.asarray(value, "float32"), CPU)
    return scope


def held(scope: fluid.Scope, name: str) -> np.ndarray:
    """The values of a scope."""
    variable = scope.find_var(name)
    assert variable is not None
    return np.array(variable.get_tensor())


def abc() -> Block:
    """x -> a -> b, and d beside them, each twice what it reads, compiled from a symbol table."""
    table = SymbolTable()
    for name in ("x", "a", "b", "d"):
        var = table.var(name)
        var.set_dtype(VarType.FP32)
        var.set_shape([-1, 2] if name == "x" else [])
    for source, out in [("x", "a"), ("a", "b"), ("x", "d")]:
        op = table.new_op(out)
        op.set_type("scale")
        op.set_input("X", [source])
        op.set_output("Out", [out])
        op.set_attr("scale", 2.0)
    return Block(table.compile())


def test_run_wants_variables_and_operators_first() -> None:
    block, scope = abc(), put(fluid.Scope(), x=[[1, 2]])
    with pytest.raises(EnforceNotMet, match="operators and variables should be created first."):
        block.run(scope, CPU)
    assert scope.local_var_names() == ["x"]
    assert block.infer_shape(scope) == {"a": (1, 2), "b": (1, 2), "d": (1, 2)}
    assert scope.local_var_names() == ["a", "b", "d", "x"]
    assert scope.var("b").get_tensor().shape() == [1, 2] and scope.var("b").get_tensor().array is None
    block.run(scope, CPU)
    np.testing.assert_array_equal(held(scope, "b"), [[4, 8]])
    np.testing.assert_array_equal(held(scope, "d"), [[2, 4]])


def test_every_scope_and_every_edit_wants_it_anew() -> None:
    block, one, other = abc(), put(fluid.Scope(), x=[[1, 2]]), put(fluid.Scope(), x=[[3, 4], [5, 6]])
    block.infer_shape(one)
    with pytest.raises(EnforceNotMet, match="created first") as caught:
        block.run(other, CPU)
    assert caught.value.received == "a scope that it has not seen"
    block.infer_shape(other)
    block.run(one, CPU)
    block.run(other, DeviceContext.get(CPU))
    np.testing.assert_array_equal(held(one, "b"), [[4, 8]])
    np.testing.assert_array_equal(held(other, "b"), [[12, 16], [20, 24]])
    block.append_op("scale", {"X": "b"}, {"Out": "e"}, {"scale": 1.0})
    with pytest.raises(EnforceNotMet) as caught:
        block.run(one, CPU)
    assert caught.value.received == "a program that has changed since then"


def test_shapes_come_from_the_scope_and_the_declarations() -> None:
    block = abc()
    assert block.infer_shape(fluid.Scope())["b"] == (-1, 2)
    assert block.infer_shape(put(fluid.Scope(), x=np.ones((7, 2))))["b"] == (7, 2)
    assert block.var("b").shape == ()  # the program's own declaration stays as it was


def test_a_broken_rule_names_the_operator_and_creates_nothing() -> None:
    x = fluid.layers.data("x", shape=[3])
    fluid.layers.fc(x, size=2, bias_attr=False)
    scope = put(fluid.Scope(), x=np.ones((5, 4)))
    with pytest.raises(FluidError) as caught:
        fluid.default_main_program().global_block().infer_shape(scope)
    assert caught.value.op == "op 0 (mul) in block 0" and "5, 4" in str(caught.value)
    assert scope.local_var_names() == ["x"]


def test_what_was_never_set_is_named() -> None:
    block, scope = abc(), fluid.Scope()
    block.infer_shape(scope)
    with pytest.raises(EnforceNotMet, match="x") as caught:
        block.run(scope, CPU)
    assert caught.value.op == "op 0 (scale) in block 0"


def test_wrong_arguments() -> None:
    block, scope = abc(), fluid.Scope()
    for call in (lambda: block.infer_shape({}), lambda: block.run({}, CPU), lambda: block.eval("b", {}, CPU)):
        with pytest.raises(OpTypeError, match="scope should be a Scope, but dict was given."):
            call()
    with pytest.raises(OpTypeError, match="A block runs on a place"):
        block.run(scope, "cpu")
    with pytest.raises(OpTypeError, match="A target of eval"):
        block.eval([3], scope, CPU)


def test_persistable_variables_live_at_the_root_and_train_in_place() -> None:
    x = fluid.layers.data("x", shape=[2])
    loss = fluid.layers.mean(fluid.layers.fc(x, size=1, bias_attr=False, param_attr="w"))
    fluid.optimizer.SGD(0.5).minimize(loss)
    root = fluid.Scope()
    fluid.Executor(CPU).run(fluid.default_startup_program(), scope=root)
    w, inner = held(root, "w"), put(root.new_scope(), x=[[1, 2]])
    block = fluid.default_main_program().global_block()
    block.infer_shape(inner)
    block.run(inner, CPU)
    assert "w" not in inner.local_var_names()
    np.testing.assert_allclose(held(root, "w"), w - 0.5 * np.array([[1], [2]]), rtol=1e-6)
    assert loss.name not in root.local_var_names()


def test_the_executor_sees_what_a_block_wrote() -> None:
    y = fluid.layers.scale(fluid.layers.create_global_var([1], 1.0, "float32", persistable=True, name="g"), scale=3.0)
    exe, scope = fluid.Executor(CPU), fluid.Scope()
    exe.run(fluid.default_startup_program(), scope=scope)
    assert exe.run(fetch_list=[y], scope=scope)[0] == 3
    writer = fluid.Program()
    with fluid.program_guard(writer):
        fluid.layers.fill_constant([1], "float32", 5.0, out=writer.global_block().create_var(
            name="g", shape=[1], dtype="float32", persistable=True))  # fmt: skip
    writer.global_block().infer_shape(scope)
    writer.global_block().run(scope, CPU)
    assert exe.run(fetch_list=[y], scope=scope)[0] == 15


def test_eval_runs_the_least_and_changes_nothing() -> None:
    block, scope = abc(), put(fluid.Scope(), x=[[1, 2]])
    before = block.program.desc.serialize_to_string()
    (value,) = block.eval(["b"], scope, CPU)
    np.testing.assert_array_equal(value, [[4, 8]])
    assert block.program.desc.serialize_to_string() == before and scope.find_var("d") is None
    whole = put(fluid.Scope(), x=[[1, 2]])
    block.infer_shape(whole)
    block.run(whole, CPU)
    np.testing.assert_array_equal(value, held(whole, "b"))
    with pytest.raises(NotFound, match="prune.. cannot reach bb"):
        block.eval("bb", scope, CPU)
    put(scope, x=[[5, 5]])
    np.testing.assert_array_equal(block.eval(block.var("b"), scope, CPU)[0], [[20, 20]])
    np.testing.assert_array_equal(value, [[4, 8]])  # a copy


def test_eval_drops_side_effects_and_the_last_writer_wins(capfd: pytest.CaptureFixture[str]) -> None:
    block = fluid.default_main_program().global_block()
    x = fluid.layers.fill_constant([1], "float32", 1.0)
    out = block.create_var(name="out", shape=[1], dtype="float32")
    block.append_op("scale", {"X": x}, {"Out": out}, {"scale": 2.0})
    block.append_op("print", {"In": x}, {"Out": "printed"}, {"message": "seen"})
    block.append_op("scale", {"X": x}, {"Out": out}, {"scale": 7.0})
    assert block.eval(out, fluid.Scope(), CPU)[0] == 7
    assert "seen" not in "".join(capfd.readouterr())


def test_eval_draws_on() -> None:
    x = fluid.layers.uniform_random([4])
    block, scope = fluid.default_main_program().global_block(), fluid.Scope()
    first, second = block.eval(x, scope, CPU)[0], block.eval(x, scope, CPU)[0]
    assert (first != second).any()


def test_lod_comes_back_as_a_tensor() -> None:
    x = fluid.layers.data("x", shape=[1], lod_level=1)
    y = fluid.layers.scale(x, scale=2.0)
    scope = fluid.Scope()
    scope.var("x").value = fluid.create_lod_tensor(np.ones((3, 1), "float32"), [[1, 2]], CPU)
    (value,) = fluid.default_main_program().global_block().eval(y, scope, CPU)
    assert value.recursive_sequence_lengths() == [[1, 2]] and np.array(value).sum() == 6


def test_loops_run_and_their_scopes_go() -> None:
    i = fluid.layers.fill_constant([1], "int64", 0)
    n = fluid.layers.fill_constant([1], "int64", 4)
    total = fluid.layers.fill_constant([1], "float32", 0.0)
    cond = fluid.layers.less_than(i, n)
    loop = fluid.layers.While(cond)
    with loop.block():
        fluid.layers.assign(total + 2.0, total)
        fluid.layers.increment(i, in_place=True)
        fluid.layers.less_than(i, n, cond=cond)
    block, scope = fluid.default_main_program().global_block(), fluid.Scope()
    mine = scope.new_scope()
    block.infer_shape(scope)
    block.run(scope, CPU)
    assert held(scope, total.name) == 8 and scope.kids == [mine]
    inner = fluid.default_main_program().block(1)
    inside = scope.new_scope()
    inner.infer_shape(inside)
    inner.run(inside, CPU)
    assert held(scope, total.name) == 10


def test_a_scope_that_goes_takes_its_values_along() -> None:
    block, scope = abc(), put(fluid.Scope(), x=[[1, 2]])
    block.infer_shape(scope)
    block.run(scope, CPU)
    gone = weakref.ref(scope)
    del scope
    gc.collect()
    assert gone() is None
