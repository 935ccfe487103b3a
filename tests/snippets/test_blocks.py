"""The block design documents' snippets about descriptions, symbol tables, and running blocks (S0.5, S0.9-11, S2.*)."""

from __future__ import annotations

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.errors import EnforceNotMet, OpValueError
from fluidnb.program import Block, SymbolTable, prune_block
from fluidnb.proto import framework_pb2
from fluidnb.proto.desc import BlockDesc, ProgramDesc
from fluidnb.proto.framework_pb2 import VarType
from fluidnb.values.device_context import DeviceContext

PLACE = fluid.CPUPlace()


def chain() -> BlockDesc:
    """x -> a -> b -> c, and d beside them, as a symbol table compiles them."""
    table = SymbolTable()
    for name in ("x", "a", "b", "c", "d"):
        var = table.Var(name)
        var.set_dtype(VarType.FP32)
        var.set_shape([3])
    for source, out in [("x", "a"), ("a", "b"), ("b", "c"), ("x", "d")]:
        op = table.NewOp()
        op.set_type("scale")
        op.set_input("X", [source])
        op.set_output("Out", [out])
        op.set_attr("scale", 2.0)
    return table.Compile()


def filled() -> fluid.Scope:
    """A scope with x = [1, 2, 3]."""
    scope = fluid.Scope()
    scope.var("x").get_tensor().set(np.array([1, 2, 3], "float32"), PLACE)
    return scope


def value(scope: fluid.Scope, name: str) -> list[float]:
    """The values of a scope."""
    variable = scope.find_var(name)
    assert variable is not None
    return np.array(variable.get_tensor()).tolist()


def test_s0_5_s2_5_block_desc() -> None:
    fields = framework_pb2.BlockDesc.DESCRIPTOR.fields_by_name
    numbers = {name: field.number for name, field in fields.items()}
    assert numbers == {"idx": 1, "parent_idx": 2, "vars": 3, "ops": 4, "forward_block_idx": 5}


@pytest.mark.parametrize("spelling", ["NewVar", "Var"])
def test_s0_9_s2_9_symbol_table(spelling: str) -> None:
    outer = SymbolTable(None)
    inner = SymbolTable(outer)
    w = getattr(outer, spelling)("fc.w")
    unnamed, other = getattr(inner, spelling)(), getattr(inner, spelling)()
    assert unnamed.name() != other.name() and inner.FindVar(unnamed.name()) is unnamed
    assert inner.FindVar("fc.w") is w and inner.FindVar("fc.w", recursive=False) is None
    assert inner.FindVar("nothing") is None and inner.FindOp("nothing") is None
    op = inner.NewOp("product")
    assert inner.FindOp("product") is op
    with pytest.raises(OpValueError):
        inner.NewOp("product")
    with pytest.raises(OpValueError):
        getattr(outer, spelling)("fc.w")
    op.set_type("scale")
    op.set_input("X", ["fc.w"])
    op.set_output("Out", [other.name()])
    desc = inner.Compile()
    again = ProgramDesc.parse_from_string(desc.program.serialize_to_string()).block(desc.idx)
    assert again.serialize_to_string() == desc.serialize_to_string()
    assert [o.type() for o in again.ops] == ["scale"] and again.has_var_recursive("fc.w")


@pytest.mark.parametrize("where", [PLACE, DeviceContext.create(PLACE)], ids=["place", "dev_ctx"])
def test_s0_10_s2_10_class_block(where: object) -> None:
    block, scope = Block(chain()), filled()
    with pytest.raises(EnforceNotMet, match="operators and variables should be created first."):
        block.Run(scope, where)
    block.InferShape(scope)
    block.Run(scope, where)
    assert value(scope, "c") == [8, 16, 24] and value(scope, "d") == [2, 4, 6]


@pytest.mark.parametrize("where", [PLACE, DeviceContext.create(PLACE)], ids=["place", "dev_ctx"])
def test_s0_11_s2_11_prune_and_eval(where: object) -> None:
    desc = chain()
    desc.remove_op(0)  # a is given, so that a -> b -> c has two operators
    before = desc.program.serialize_to_string()
    assert [op.output("Out") for op in prune_block(desc, ["c"]).ops] == [["b"], ["c"]]
    scope, whole = filled(), filled()
    for each in (scope, whole):
        each.var("a").get_tensor().set(np.array([5, 6, 7], "float32"), PLACE)
    (got,) = Block(desc).Eval(["c"], scope, where)
    block = Block(desc)
    block.InferShape(whole)
    block.Run(whole, where)
    assert got.tolist() == value(whole, "c") == [20, 24, 28]
    assert scope.find_var("d") is None and desc.program.serialize_to_string() == before
