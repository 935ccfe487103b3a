"""ProgramDesc: blocks, and the version that rises with every edit."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from fluidnb.errors import OpValueError
from fluidnb.proto.desc import BlockDesc, OpDesc, ProgramDesc, VarDesc
from tests.proto.goldens import golden


def small() -> ProgramDesc:
    """Two blocks, two operations, two variables."""
    program = ProgramDesc()
    block = program.block(0)
    program.append_block(block)
    for name in ("x", "y"):
        block.var(name).set_dtype(VarDesc.VarType.FP32)
    block.append_op(OpDesc("scale", {"X": ["x"]}, {"Out": ["y"]}, {"scale": 2.0}))
    block.append_op(OpDesc("relu", {"X": ["y"]}, {"Out": ["y"]}))
    return program


def test_a_new_program_says_version_0() -> None:
    program = ProgramDesc()
    assert program.num_blocks() == 1
    assert (program.block(0).idx, program.block(0).parent_idx) == (0, -1)
    assert program.serialize_to_string().endswith(b"\x22\x02\x08\x00")
    assert program.to_pb().version.version == 0 and program.to_pb().HasField("version")


EDITS: dict[str, Callable[[ProgramDesc, BlockDesc, OpDesc, VarDesc], object]] = {
    "append_block": lambda p, b, o, v: p.append_block(b),
    "remove_blocks": lambda p, b, o, v: p.remove_blocks(1),
    "touch": lambda p, b, o, v: p.touch(),
    "append_op": lambda p, b, o, v: b.append_op(OpDesc("tanh")),
    "prepend_op": lambda p, b, o, v: b.prepend_op(OpDesc("tanh")),
    "insert_op": lambda p, b, o, v: b.insert_op(1, OpDesc("tanh")),
    "remove_op": lambda p, b, o, v: b.remove_op(0),
    "var": lambda p, b, o, v: b.var("z"),
    "add_var": lambda p, b, o, v: b.add_var(VarDesc("z")),
    "remove_var": lambda p, b, o, v: b.remove_var("x"),
    "rename_var": lambda p, b, o, v: b.rename_var("x", "z"),
    "idx": lambda p, b, o, v: setattr(p.block(1), "idx", 5),
    "parent_idx": lambda p, b, o, v: setattr(p.block(1), "parent_idx", 5),
    "forward_block_idx": lambda p, b, o, v: b.set_forward_block_idx(1),
    "op.set_type": lambda p, b, o, v: o.set_type("assign"),
    "op.set_is_target": lambda p, b, o, v: o.set_is_target(True),
    "op.set_input": lambda p, b, o, v: o.set_input("X", ["y"]),
    "op.set_output": lambda p, b, o, v: o.set_output("New", ["x"]),
    "op.remove_input": lambda p, b, o, v: o.remove_input("X"),
    "op.remove_output": lambda p, b, o, v: o.remove_output("Out"),
    "op.rename_input": lambda p, b, o, v: o.rename_input("x", "z"),
    "op.rename_output": lambda p, b, o, v: o.rename_output("y", "z"),
    "op.rename": lambda p, b, o, v: o.rename("y", "z"),
    "op.set_attr": lambda p, b, o, v: o.set_attr("scale", 3.0),
    "op.set_attr new": lambda p, b, o, v: o.set_attr("bias", 3.0),
    "op.set_block_attr": lambda p, b, o, v: o.set_block_attr("sub_block", b),
    "op.set_blocks_attr": lambda p, b, o, v: o.set_blocks_attr("blocks", [b]),
    "op.remove_attr": lambda p, b, o, v: o.remove_attr("scale"),
    "op.copy_from": lambda p, b, o, v: o.copy_from(OpDesc("tanh")),
    "var.set_name": lambda p, b, o, v: v.set_name("z"),
    "var.set_type": lambda p, b, o, v: v.set_type(VarDesc.VarType.SELECTED_ROWS),
    "var.set_dtype": lambda p, b, o, v: v.set_dtype(VarDesc.VarType.INT64),
    "var.set_shape": lambda p, b, o, v: v.set_shape([1]),
    "var.set_lod_level": lambda p, b, o, v: v.set_lod_level(1),
    "var.set_persistable": lambda p, b, o, v: v.set_persistable(True),
    "var.set_stop_gradient": lambda p, b, o, v: v.set_stop_gradient(True),
    "var.set_is_data": lambda p, b, o, v: v.set_is_data(True),
    "var.set_need_check_feed": lambda p, b, o, v: v.set_need_check_feed(True),
    "var.set_is_parameter": lambda p, b, o, v: v.set_is_parameter(True),
}


@pytest.mark.parametrize("parsed", [False, True], ids=["built", "parsed"])
@pytest.mark.parametrize("edit", EDITS)
def test_every_edit_raises_the_version(edit: str, parsed: bool) -> None:
    program = ProgramDesc.parse_from_string(small().serialize_to_string()) if parsed else small()
    block = program.block(0)
    version, data = program.version, block.program.to_pb().SerializePartialToString()
    EDITS[edit](program, block, block.op(0), block.var("x"))
    assert program.version > version
    assert edit in ("touch", "var.set_is_data") or program.to_pb().SerializePartialToString() != data


def test_a_reader_raises_the_version_too() -> None:
    program = small()
    reader = program.block(0).add_var(VarDesc("r", VarDesc.VarType.READER))
    for edit in (
        lambda: reader.set_shapes([[1]]),
        lambda: reader.set_dtypes([VarDesc.VarType.FP32]),
        lambda: reader.set_lod_levels([1]),
    ):
        version = program.version
        edit()
        assert program.version > version


def test_every_method_that_edits_is_tried() -> None:
    tried = {name.split(" ")[0].removeprefix("op.").removeprefix("var.") for name in EDITS}
    readers = {"set_shapes", "set_dtypes", "set_lod_levels"}
    for kind in (OpDesc, VarDesc, BlockDesc, ProgramDesc):
        edits = {n for n in dir(kind) if n.startswith(("set_", "remove_", "rename", "append_", "insert_", "copy_from"))}
        assert edits - {"set_forward_block_idx"} - readers <= tried


def test_reading_does_not_raise_the_version() -> None:
    program = small()
    version = program.version
    block, op, var = program.block(0), program.block(0).op(0), program.block(0).var("x")
    _ = op.ins, op.outs, op.attrs, op.type(), op.attr_type("scale"), repr(op), op.clone()
    _ = var.shape(), var.dtype(), var.lod_level(), repr(var), var.clone()
    _ = block.all_vars(), block.find_var_recursive("q"), repr(block), program.serialize_to_string(), repr(program)
    op.rename("nobody", "somebody")
    op.remove_attr("nothing")
    program.flush()
    assert program.version == version


def test_edits_outside_a_program_are_free() -> None:
    program = small()
    (op,) = program.block(0).remove_op(0)
    var = program.block(0).remove_var("x")
    version = program.version
    op.set_attr("scale", 4.0)
    var.set_shape([1])
    assert program.version == version


def test_blocks_come_and_go_at_the_end() -> None:
    program = ProgramDesc()
    data = program.serialize_to_string()
    inner = program.append_block(program.block(0))
    deep = program.append_block(inner)
    assert [(b.idx, b.parent_idx) for b in program.blocks] == [(0, -1), (1, 0), (2, 1)]
    assert program.num_blocks() == 3 and program.block(2) is deep
    assert [b.parent_idx for b in ProgramDesc.parse_from_string(program.serialize_to_string()).blocks] == [-1, 0, 1]
    assert program.remove_blocks(1) == [inner, deep]
    assert program.serialize_to_string() == data
    for start in (0, 2, -1):
        with pytest.raises(OpValueError):
            program.remove_blocks(start)
    for index in (1, -1):
        with pytest.raises(OpValueError, match="The program has no block"):
            program.block(index)


def test_feed_and_fetch_targets_go_by_column() -> None:
    program = ProgramDesc()
    block = program.block(0)
    for col, name in ((1, "b"), (0, "a")):
        block.append_op(OpDesc("feed", {"X": ["feed"]}, {"Out": [name]}, {"col": col}))
        block.append_op(OpDesc("fetch", {"X": [name]}, {"Out": ["fetch"]}, {"col": col}))
    assert program.get_feed_target_names() == ["a", "b"]
    assert program.get_fetch_target_names() == ["a", "b"]
    assert ProgramDesc().get_feed_target_names() == []


def test_a_real_program_reads_as_it_was_written() -> None:
    program = ProgramDesc.parse_from_string(golden("fit_a_line"))
    block = program.block(0)
    assert {"mul", "elementwise_add", "mean", "mul_grad", "sgd"} <= {op.type() for op in block.ops}
    sgd = next(op for op in block.ops if op.type() == "sgd")
    assert sgd.output("ParamOut") == sgd.input("Param")
    assert block.vars[sgd.input("Param")[0]].persistable()
    assert repr(program) == f"ProgramDesc(1 blocks, {block.op_size()} ops)"


def test_large_programs_come_back() -> None:
    program = ProgramDesc()
    block = program.block(0)
    for i in range(3000):
        block.var(f"v{i}").set_dtype(5)
        block.append_op(OpDesc("scale", {"X": [f"v{i}"]}, {"Out": [f"v{i + 1}"]}, {"scale": 0.5 * i}))
    again = ProgramDesc.parse_from_string(program.serialize_to_string())
    assert again.block(0).op_size() == 3000
    assert all(a.attrs == b.attrs and a.ins == b.ins for a, b in zip(again.block(0).ops, block.ops, strict=True))


def test_operations_outlive_their_program() -> None:
    program = ProgramDesc.parse_from_string(golden("fit_a_line"))
    ops = program.block(0).remove_op(0, program.block(0).op_size())
    data = [op.pb.SerializeToString() for op in ops]
    del program
    other = ProgramDesc()
    for op in ops:
        other.block(0).append_op(op)
    assert [op.serialize_to_string() for op in other.block(0).ops] == data


def test_names_that_are_no_text_are_refused() -> None:
    program = ProgramDesc()
    program.blocks[0].append_op(OpDesc("relu", {"X": ["abc"]}, {"Out": ["d"]}))
    data = program.serialize_to_string()
    for good in (b"relu", b"abc", b"X"):
        bad = data.replace(good, b"\xff" + good[1:])
        with pytest.raises(OpValueError, match="Fail to parse program_desc from binary string"):
            ProgramDesc.parse_from_string(bad)


def test_an_attribute_whose_name_is_no_text_is_refused() -> None:
    program = ProgramDesc()
    program.block(0).append_op(OpDesc("relu", {}, {}, {"marked": 1}))
    data = program.serialize_to_string().replace(b"marked", b"mark\xff\xfe")
    with pytest.raises(OpValueError, match="A name in op 0 of block 0 is no text"):
        ProgramDesc.parse_from_string(data)
