"""Blocks: variables by name, operators in order."""

from __future__ import annotations

from typing import Any

import pytest

from fluidnb.program import Block, Program
from fluidnb.proto.desc import OpDesc


@pytest.fixture
def block() -> Block:
    return Program().global_block()


def test_var_of_an_unknown_name(block: Block) -> None:
    block.create_var(name="image", shape=[1], dtype="float32")
    with pytest.raises(ValueError, match="var imge not in this block") as caught:
        block.var("imge")
    assert 'Did you mean "image"?' in str(caught.value)


@pytest.mark.parametrize("name", [None, 3, b"x"])
def test_var_takes_a_text(block: Block, name: Any) -> None:
    with pytest.raises(TypeError, match="name of Block.var must be the name of a variable"):
        block.var(name)


def test_var_recursive_sees_parents_and_local_names_shadow(block: Block) -> None:
    outer = block.create_var(name="x", shape=[1], dtype="float32")
    inner = block.program.create_block()
    assert inner.var_recursive("x") is outer
    assert not inner.has_var("x")
    local = inner.create_var(name="x", shape=[5], dtype="float32")
    assert inner.var_recursive("x") is local
    assert block.var_recursive("x") is outer
    assert outer.shape == (1,)


def test_var_recursive_names_the_blocks_that_were_searched(block: Block) -> None:
    inner = block.program.create_block()
    inner.create_var(name="y", shape=[1], dtype="float32")
    with pytest.raises(ValueError, match="Var y is not found recursively") as caught:
        block.var_recursive("y")
    assert "block 1 has it" in str(caught.value)
    with pytest.raises(ValueError, match="Var z is not found recursively") as caught:
        inner.var_recursive("z")
    assert "blocks 1, 0" in str(caught.value)


def test_create_parameter_lands_in_the_global_block(block: Block) -> None:
    inner = block.program.create_block()
    w = inner.create_parameter(name="w", shape=[2], dtype="float32")
    assert w.block is block
    assert not inner.has_var("w")
    assert block.all_parameters() == [w]


def test_a_second_declaration_that_agrees_gives_the_same_variable(block: Block) -> None:
    x = block.create_var(name="x", shape=[-1, 3], dtype="float32", lod_level=1)
    assert block.create_var(name="x") is x
    assert block.create_var(name="x", shape=(-1, 3), dtype="float32", lod_level=1, persistable=False) is x
    w = block.create_parameter(name="w", shape=[2], dtype="float32", trainable=False)
    assert block.create_parameter(name="w", shape=[2], dtype="float32") is w
    assert not w.trainable
    assert len(block.vars) == 2


@pytest.mark.parametrize(
    ("again", "what"),
    [
        ({"shape": [3]}, r"previous shape is \(-1, 3\), the new shape is \(3,\)"),
        ({"dtype": "int64"}, "previous data type is float32, the new data type is int64"),
        ({"lod_level": 2}, "previous lod_level is 1, the new lod_level is 2"),
        ({"persistable": True}, "previous persistable is False, the new persistable is True"),
        ({"type": 13}, "previous type is LOD_TENSOR, the new type is LOD_TENSOR_ARRAY"),
    ],
)
def test_a_second_declaration_that_differs(block: Block, again: dict[str, Any], what: str) -> None:
    block.create_var(name="x", shape=[-1, 3], dtype="float32", lod_level=1)
    before = block.program.desc.serialize_to_string()
    with pytest.raises(ValueError, match=f"Variable x has been created before. The {what}. They are not matched."):
        block.create_var(name="x", **again)
    assert block.program.desc.serialize_to_string() == before


def test_prepend_insert_and_remove(block: Block) -> None:
    def put(where: str, out: str, *place: int) -> None:
        getattr(block, where)(*place, type="t_source", outputs={"Out": out}, attrs={"shape": [1]})

    put("append_op", "b")
    put("prepend_op", "a")
    put("insert_op", "c", 2)
    put("insert_op", "z", -1)
    assert [op.output("Out") for op in block.ops] == [["a"], ["b"], ["z"], ["c"]]
    assert block.ops[2].idx == 2
    block.remove_op(2)
    block.delete_ops(block.ops[0:2])
    assert [op.output("Out") for op in block.ops] == [["c"]]
    assert [op.type for op in block.slice_ops(0, 1)] == ["t_source"]


@pytest.mark.parametrize("index", [1, -2, 99])
def test_places_that_a_block_does_not_have(block: Block, index: int) -> None:
    block.append_op("t_source", outputs={"Out": "a"}, attrs={"shape": [1]})
    with pytest.raises(ValueError, match="has no operator"):
        block.remove_op(index)
    with pytest.raises(ValueError, match="has no place"):
        block.insert_op(index + (index > 0), "t_source", outputs={"Out": "b"}, attrs={"shape": [1]})
    assert len(block.ops) == 1
    assert not block.has_var("b")


def test_rename_var_follows_everywhere(block: Block) -> None:
    x = block.create_var(name="x", shape=[1], dtype="float32")
    block.append_op("t_same", {"X": x}, {"Out": "y"})
    inner = block.program.create_block()
    inner.append_op("t_same", {"X": x}, {"Out": "z"})
    assert block.rename_var("x", "image") is x
    assert (x.name, block.ops[0].input("X"), inner.ops[0].input("X")) == ("image", ["image"], ["image"])
    with pytest.raises(ValueError, match="var y is in this block already"):
        block.rename_var("image", "y")


def test_put_desc_keeps_attributes_that_only_its_writer_knew(block: Block) -> None:
    block.create_var(name="x", shape=[1], dtype="float32")
    desc = OpDesc("t_same", {"X": ["x"]}, {"Out": ["y"]}, {"theirs": 1})
    with pytest.raises(ValueError, match="no attribute theirs"):
        block.put_desc(desc)
    assert desc.block is None
    op = block.put_desc(desc, strict=False)
    assert (op.attr("theirs"), op.attr("op_role"), block.var("y").shape) == (1, 0, (1,))


def test_ops_and_vars_are_live_sequences(block: Block) -> None:
    ops, variables = block.ops, block.vars
    x = block.create_var(name="x", shape=[1], dtype="float32")
    op = block.append_op("t_same", {"X": x}, {"Out": "y"})
    assert list(ops) == [op] == ops[:] and ops[-1] is op and len(ops) == 1 and op in ops
    assert list(variables) == ["x", "y"] and "x" in variables and 3 not in variables
    assert variables.get("none") is None
    with pytest.raises(KeyError):
        variables["none"]


def test_seed_spellings(block: Block) -> None:
    block.append_operator("t_source", outputs={"Out": "b"}, attrs={"shape": [1]})
    block.prepend_operator("t_source", outputs={"Out": "a"}, attrs={"shape": [1]})
    assert [op.output("Out") for op in block.ops] == [["a"], ["b"]]


def test_an_operator_that_is_not_there() -> None:
    ops = Program().global_block().ops
    with pytest.raises(IndexError, match=r"Block 0 has 0 operators\.[\s\S]*a block with operators"):
        ops[0]
    assert list(ops) == [] and ops[:1] == []
