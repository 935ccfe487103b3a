"""Symbol tables: definitions by name inside those around them, and the block that they compile to."""

from __future__ import annotations

import pytest

from fluidnb.errors import NotFound, OpTypeError, OpValueError
from fluidnb.program import Block, SymbolTable, prune_block
from fluidnb.proto.desc import ProgramDesc
from fluidnb.proto.framework_pb2 import VarType
from tests.tools.refused import refused


def chain(table: SymbolTable, pairs: list[tuple[str, str]]) -> None:
    """``t_same`` operators from the first to the second name of each pair; variables are declared at first mention."""
    for a, b in pairs:
        for name in (a, b):
            if table.find_var(name) is None:
                var = table.var(name)
                var.set_dtype(VarType.FP32)
                var.set_shape([2] if name == "a" else [])
        op = table.new_op()
        op.set_type("t_same")
        op.set_input("X", [a])
        op.set_output("Out", [b])


def test_names_are_made_when_left_out_and_are_free() -> None:
    table = SymbolTable()
    table.var("var_0")
    first, second, op = table.var(), table.new_var(), table.new_op()
    assert (first.name(), second.name()) == ("var_1", "var_2")
    assert table.find_op("op_0") is op and list(table.ops) == ["op_0"]
    assert SymbolTable(table).var().name() == "var_3"


def test_lookup_walks_outwards_and_gives_none() -> None:
    outer = SymbolTable()
    inner = SymbolTable(outer)
    x, op = outer.var("x"), outer.new_op("o")
    assert inner.find_var("x") is x and inner.find_var("x", recursive=False) is None
    assert inner.find_var("nothing") is None and inner.find_op("o") is None and outer.find_op("o") is op
    hidden = inner.var("x")
    assert hidden is not x and inner.find_var("x") is hidden and outer.find_var("x") is x


def test_siblings_do_not_see_each_other() -> None:
    outer = SymbolTable()
    one, other = SymbolTable(outer), SymbolTable(outer)
    one.var("x")
    assert other.find_var("x") is None and (one.compile().idx, other.compile().idx) == (1, 2)


@pytest.mark.parametrize(
    ("kind", "text"),
    [("var", 'This table has a variable "twice" already.'), ("new_op", 'This table has an operator "twice" already.')],
)
def test_a_name_is_defined_once(kind: str, text: str) -> None:
    table = SymbolTable()
    first = getattr(table, kind)("twice")
    with refused(OpValueError, text):
        getattr(table, kind)("twice")
    assert (table.find_var("twice") or table.find_op("twice")) is first
    assert len(table.vars) + len(table.ops) == 1


def test_wrong_kinds_of_names_and_parents() -> None:
    with pytest.raises(OpTypeError, match="A name is a str"):
        SymbolTable().var(3)  # type: ignore[arg-type]
    with pytest.raises(OpTypeError, match="parent of a SymbolTable"):
        SymbolTable("x")  # type: ignore[arg-type]


def test_compile_gives_a_description_that_stands_alone() -> None:
    outer = SymbolTable()
    chain(outer, [("a", "b")])
    inner = SymbolTable(outer)
    chain(inner, [("b", "c")])
    desc = inner.compile()
    assert (desc.idx, desc.parent_idx, list(desc.vars), [op.optype for op in desc.ops]) == (1, 0, ["c"], ["t_same"])
    assert desc.find_var_recursive("a") is not outer.find_var("a")
    data = desc.program.serialize_to_string()
    assert ProgramDesc.parse_from_string(data).block(1).serialize_to_string() == desc.serialize_to_string()
    inner.var("late")
    assert not desc.has_var("late")


def test_shapes_are_inferred_from_the_definitions() -> None:
    outer = SymbolTable()
    inner = SymbolTable(outer)
    chain(outer, [("a", "b")])
    chain(inner, [("b", "c")])
    outer.infer_shape()
    inner.infer_shape()
    found = inner.find_var("c")
    assert found is not None and found.shape() == [2] and inner.ops["op_0"].attr("factor") == 1.0


def test_what_is_not_declared_does_not_compile() -> None:
    table = SymbolTable()
    op = table.new_op("o")
    with pytest.raises(OpValueError, match='Operator "o" has no type'):
        table.compile()
    op.set_type("t_same")
    op.set_input("X", ["imags"])
    table.var("image")
    with pytest.raises(NotFound, match='"o" .t_same. names "imags", which no table declares') as caught:
        table.compile()
    assert caught.value.hint == 'Did you mean "image"?'


def test_the_seeds_spelling() -> None:
    table = SymbolTable()
    x, op = table.NewVar("x"), table.NewOp("o")
    op.set_type("t_source")
    assert table.FindVar("x") is x and table.FindOp("o") is op and table.Var("y") is table.FindVar("y")
    assert list(table.Compile().vars) == ["x", "y"]


def test_a_block_over_what_was_compiled() -> None:
    table = SymbolTable()
    chain(table, [("a", "b")])
    block = Block(table.compile())
    assert repr(block) == "Block 0: 2 variables, 1 operator"
    assert Block(block.desc).program is block.program


def test_pruning_keeps_what_the_targets_need() -> None:
    table = SymbolTable()
    chain(table, [("a", "b"), ("b", "c"), ("a", "d")])
    desc = table.compile()
    before = desc.program.serialize_to_string()
    small = prune_block(desc, ["c"])
    assert [op.output("Out") for op in small.ops] == [["b"], ["c"]] and list(small.vars) == ["a", "b", "c"]
    assert desc.program.serialize_to_string() == before
    with pytest.raises(NotFound, match="prune.. cannot reach cc."):
        prune_block(desc, ["cc"])


def test_pruning_keeps_every_writer_and_the_variables_around() -> None:
    outer = SymbolTable()
    chain(outer, [("a", "b"), ("a", "z")])
    inner = SymbolTable(outer)
    chain(inner, [("a", "t"), ("b", "t"), ("b", "d")])
    small = prune_block(inner.compile(), ["t"])
    assert [op.input("X") for op in small.ops] == [["a"], ["b"]]
    assert (small.idx, list(small.program.block(0).vars), small.program.block(0).ops) == (1, ["a", "b"], [])
