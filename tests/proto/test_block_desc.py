"""BlockDesc: order, identity, names."""

from __future__ import annotations

import pytest

from fluidnb.errors import OpTypeError, OpValueError
from fluidnb.proto.desc import BlockDesc, OpDesc, ProgramDesc, VarDesc


def block_of(*types: str) -> BlockDesc:
    """The first block of a new program, with an operation of each type."""
    block = ProgramDesc().block(0)
    for optype in types:
        block.append_op(OpDesc(optype))
    return block


def types_of(block: BlockDesc) -> list[str]:
    """The types of its operations, in the objects and in the bytes, which have to agree."""
    types = [op.type() for op in block.ops]
    again = ProgramDesc.parse_from_string(block.program.serialize_to_string()).block(block.idx)
    assert [op.type() for op in again.ops] == types
    return types


def test_operations_go_where_they_are_put() -> None:
    block = block_of("b", "d")
    block.prepend_op(OpDesc("a"))
    block.insert_op(2, OpDesc("c"))
    block.append_op().set_type("e")
    assert types_of(block) == ["a", "b", "c", "d", "e"]
    assert block.op_size() == 5
    assert block.op(-1).type() == "e"
    assert all(op.block is block for op in block.ops)


def test_operations_keep_their_identity_out_and_in() -> None:
    block = block_of("a", "b", "c")
    before = list(block.ops)
    data = block.program.serialize_to_string()
    b, c = block.remove_op(1, 3)
    assert (b, c) == (before[1], before[2])
    assert b.block is None and types_of(block) == ["a"]
    b.set_attr("k", 1)
    b.remove_attr("k")
    block.append_op(c)
    block.insert_op(1, b)
    assert all(x is y for x, y in zip(block.ops, before, strict=True))
    assert block.program.serialize_to_string() == data


def test_operations_move_between_programs() -> None:
    one, other = block_of("a", "b"), block_of()
    (op,) = one.remove_op(0)
    other.append_op(op)
    op.set_attr("k", 1)
    assert (types_of(one), types_of(other)) == (["b"], ["a"])
    assert ProgramDesc(other.program).block(0).op(0).attr("k") == 1


def test_variables_keep_their_identity_out_and_in() -> None:
    block = block_of()
    x, y = block.var("x"), block.var("y")
    assert block.var("x") is x and block.all_vars() == [x, y]
    assert block.remove_var("x") is x and x.block is None
    assert not block.has_var("x")
    assert block.add_var(x) is x
    assert list(block.vars) == ["y", "x"]


def test_inner_blocks_see_outwards() -> None:
    program = ProgramDesc()
    outer = program.block(0)
    inner = program.append_block(outer)
    deep = program.append_block(inner)
    x, own = outer.var("x"), deep.var("own")
    assert deep.find_var_recursive("x") is x and deep.has_var_recursive("x")
    assert deep.find_var("x") is None and not deep.has_var("x")
    assert outer.find_var_recursive("own") is None and not outer.has_var_recursive("own")
    shadow = inner.var("x")
    assert deep.find_var_recursive("x") is shadow
    assert deep.find_var_recursive("own") is own
    assert (deep.id, deep.parent, deep.parent_idx) == (2, 1, 1)


def test_a_renamed_variable_keeps_its_place_and_is_followed_everywhere() -> None:
    program = ProgramDesc()
    block = program.block(0)
    for name in "abcd":
        block.var(name)
    op = block.append_op(OpDesc("sum", {"X": ["b", "a", "b"]}, {"Out": ["b"]}, {"op_role_var": ["b", "b@GRAD"]}))
    inner, shadowing = program.append_block(block), program.append_block(block)
    within_shadow = program.append_block(shadowing)
    shadowing.var("b")
    reads = [each.append_op(OpDesc("relu", {"X": ["b"]})) for each in (inner, shadowing, within_shadow)]
    b = block.vars["b"]
    assert block.rename_var("b", "e") is b
    assert list(block.vars) == ["a", "e", "c", "d"] and block.vars["e"] is b and b.name() == "e"
    assert (op.ins, op.outs, op.attr("op_role_var")) == ({"X": ["e", "a", "e"]}, {"Out": ["e"]}, ["e", "b@GRAD"])
    assert [read.input("X") for read in reads] == [["e"], ["b"], ["b"]]
    again = ProgramDesc.parse_from_string(_with_dtypes(program).serialize_to_string())
    assert again.block(0).op(0).ins == op.ins and again.block(1).op(0).input("X") == ["e"]
    assert list(again.block(0).vars) == ["a", "e", "c", "d"]


def _with_dtypes(program: ProgramDesc) -> ProgramDesc:
    for block in program.blocks:
        for var in block.all_vars():
            var.set_dtype(VarDesc.VarType.FP32)
    return program


def test_a_caller_may_say_where_a_name_starts() -> None:
    block = block_of()
    block.var("x")
    ops = [block.append_op(OpDesc("relu", {"X": ["x"]})) for _ in range(3)]
    block.rename_var("x", "y", since=1)
    assert [op.input("X") for op in ops] == [["x"], ["y"], ["y"]]


def test_what_cannot_be_done_is_refused_and_leaves_no_trace() -> None:
    block = block_of("a", "b")
    block.var("x")
    block.var("y")
    free = VarDesc("x")
    version, data = block.program.version, block.program.serialize_to_string()
    for call, says in (
        (lambda: block.append_op(block.op(0)), "An operation is in one block at a time"),
        (lambda: block.insert_op(3, OpDesc("c")), "has no place 3"),
        (lambda: block.insert_op(-1, OpDesc("c")), "has no place -1"),
        (lambda: block.remove_op(2), "has no operations 2 to 2"),
        (lambda: block.remove_op(1, 0), "has no operations 1 to -1"),
        (lambda: block.op(2), "has no operation 2; it has 2"),
        (lambda: block.remove_var("z"), 'declares no variable "z"'),
        (lambda: block.rename_var("z", "w"), 'declares no variable "z"'),
        (lambda: block.rename_var("x", "y"), 'has a variable "y" already'),
        (lambda: block.add_var(free), 'has a variable "x" already'),
        (lambda: block_of().add_var(block.var("x")), 'Variable "x" is in block 0 already'),
    ):
        with pytest.raises(OpValueError) as refused:
            call()
        assert says in str(refused.value)
    with pytest.raises(OpTypeError, match="The name of a variable is a text"):
        block.var(3)  # type: ignore[arg-type]
    with pytest.raises(OpTypeError, match="The name of a variable is a text"):
        block.rename_var("x", 3)  # type: ignore[arg-type]
    assert block.rename_var("x", "x").name() == "x"
    assert (block.program.version, block.program.serialize_to_string()) == (version, data)


def test_forward_block() -> None:
    block = block_of()
    assert block.get_forward_block_idx() == block.forward_block_idx == -1
    assert not block.pb.HasField("forward_block_idx")
    block.set_forward_block_idx(1)
    assert block.get_forward_block_idx() == 1


def test_what_lacks_something_is_named() -> None:
    block = block_of("a")
    block.append_op()
    with pytest.raises(OpValueError, match=r"op 1 \(without a type\) in block 0: \['type'\] are not initialized"):
        block.serialize_to_string()
    block.op(1).set_type("b")
    block.var("x").set_shape([1])
    with pytest.raises(OpValueError, match=r'variable "x": .* are not initialized'):
        block.program.serialize_to_string()
    assert repr(block) == "BlockDesc(0: 2 ops, 1 vars)"
