"""Programs, blocks and guards."""

from __future__ import annotations

import pickle

import pytest

from fluidnb.errors import OpTypeError, OpValueError
from fluidnb.program import (
    BlockGuard,
    Program,
    ReplacedError,
    default_main_program,
    default_startup_program,
    get_var,
    program_guard,
    switch_main_program,
    switch_startup_program,
)


def test_create_block_nests_and_rollback_goes_back() -> None:
    program = Program()
    program.create_block()
    program.create_block()
    assert [b.parent_idx for b in program.blocks] == [-1, 0, 1]
    program.rollback()
    program.rollback()
    assert program.current_block_idx == 0


def test_rollback_of_the_global_block_is_refused() -> None:
    program = Program()
    with pytest.raises(OpValueError, match="cannot roll back the global block"):
        program.rollback()
    assert program.current_block_idx == 0


def test_create_block_with_a_parent_of_ones_own() -> None:
    program = Program()
    program.create_block()
    assert program.create_block(parent_idx=0).parent_idx == 0
    with pytest.raises(OpValueError, match="no block 7"):
        program.create_block(parent_idx=7)
    assert program.num_blocks == 3


def test_views_are_one_per_description() -> None:
    program = Program()
    assert program.global_block() is program.block(0) is program.blocks[0] is program.current_block()
    x = program.global_block().create_var(name="x", shape=[1], dtype="float32")
    assert program.global_block().vars["x"] is x is program.global_block().var("x")


def test_edits_through_the_description_are_seen() -> None:
    program = Program()
    block = program.global_block()
    var = program.desc.block(0).var("x")
    var.set_dtype(5)
    var.set_shape([2])
    assert block.var("x").shape == (2,)
    program.desc.block(0).append_op().set_type("t_same")
    assert [op.type for op in block.ops] == ["t_same"]
    program.desc.append_block(program.desc.block(0))
    assert len(program.blocks) == 2


def test_version_rises_with_every_edit() -> None:
    program = Program()
    block = program.global_block()
    seen = [program.version]

    def risen() -> bool:
        seen.append(program.version)
        return seen[-1] > seen[-2]

    x = block.create_var(name="x", shape=[1], dtype="float32")
    assert risen()
    x.stop_gradient = True
    assert risen()
    x.error_clip = "clip"
    assert risen()
    op = block.append_op("t_same", {"X": x}, {"Out": "y"})
    assert risen()
    op.set_attr("factor", 2.0)
    assert risen()
    program.desc.block(0).vars["x"].set_shape([3])
    assert risen()
    program.create_block()
    assert risen()
    program.random_seed = 3
    assert risen()
    block.remove_op(0)
    assert risen()


def test_block_guard_leaves_no_half_block() -> None:
    program = Program()
    block = program.global_block()
    x = block.create_var(name="x", shape=[1], dtype="float32")
    block.append_op("t_same", {"X": x}, {"Out": "y"})
    before = program.desc.serialize_to_string()
    with pytest.raises(RuntimeError, match="half"), BlockGuard(program) as inner:
        inside = inner.create_var(name="inside", shape=[1], dtype="float32")
        inner.append_op("t_same", {"X": x}, {"Out": inside})
        block.create_parameter(name="w", shape=[1], dtype="float32")
        block.append_op("t_same", {"X": x}, {"Out": "z"})
        with BlockGuard(program):
            raise RuntimeError("half built")
    assert program.desc.serialize_to_string() == before
    assert program.current_block_idx == 0
    with pytest.raises(ReplacedError, match="variable inside is no longer part of its program"):
        _ = inside.shape
    with pytest.raises(ReplacedError, match="block 1 is no longer part"):
        inner.append_op("t_same", {"X": x}, {"Out": "z"})


def test_block_guard_takes_a_program() -> None:
    with pytest.raises(OpTypeError, match="BlockGuard takes a program"):
        BlockGuard("main")  # type: ignore[arg-type]


def test_switch_main_program() -> None:
    program = Program()
    before = switch_main_program(program)
    try:
        assert default_main_program() is program
        assert program.short() == "the default main program"
    finally:
        assert switch_main_program(before) is program
    assert default_main_program() is before


def test_program_guard_sets_both_and_goes_back_when_the_body_raises() -> None:
    main, startup = Program(), Program()
    outer = default_main_program(), default_startup_program()
    with pytest.raises(RuntimeError), program_guard(main, startup):
        assert (default_main_program(), default_startup_program()) == (main, startup)
        raise RuntimeError
    assert (default_main_program(), default_startup_program()) == outer


@pytest.mark.parametrize("call", [switch_main_program, switch_startup_program, lambda p: program_guard(p).__enter__()])
def test_only_programs_are_defaults(call: object) -> None:
    before = default_main_program(), default_startup_program()
    with pytest.raises(TypeError, match="(must|should) be a Program"):
        call("main")  # type: ignore[operator]
    assert (default_main_program(), default_startup_program()) == before


def test_random_seed_is_an_int() -> None:
    program = Program()
    with pytest.raises(ValueError, match="must be an integer"):
        program.random_seed = "1"  # type: ignore[assignment]
    program.random_seed = 7
    assert program.random_seed == program.clone().random_seed == 7


def test_roles_are_written_on_operators() -> None:
    program = Program()
    block = program.global_block()
    x = block.create_var(name="x", shape=[1], dtype="float32")
    plain = block.append_op("t_same", {"X": x}, {"Out": "y"})
    with program.optimized_guard([x, "x@GRAD"]):
        op = block.append_op("t_same", {"X": x}, {"Out": "z"})
    assert (plain.attr("op_role"), plain.attr("op_device"), plain.attr("op_namescope")) == (0, "", "/")
    assert not plain.has_attr("op_role_var")
    assert (op.attr("op_role"), op.attr("op_role_var")) == (2, ["x", "x@GRAD"])
    assert program.op_role == 0


def test_get_var_looks_into_the_global_block(programs: tuple[Program, Program]) -> None:
    x = programs[0].global_block().create_var(name="x", shape=[1], dtype="float32")
    assert get_var("x") is x
    with pytest.raises(ValueError, match="var y not in this block"):
        get_var("y")


def test_parse_from_string_keeps_the_bytes_and_finds_parameters() -> None:
    program = Program()
    program.global_block().create_parameter(name="w", shape=[2], dtype="float32")
    data = program.desc.serialize_to_string()
    read = Program.parse_from_string(data)
    assert read.desc.serialize_to_string() == data
    assert [p.name for p in read.all_parameters()] == ["w"]
    assert pickle.loads(pickle.dumps(program)).desc.serialize_to_string() == data


def test_parse_from_string_refuses_bad_bytes() -> None:
    with pytest.raises(ValueError, match="Fail to parse program_desc from binary string"):
        Program.parse_from_string(b"\xff\xff\xff")


def test_list_vars_goes_through_all_blocks() -> None:
    program = Program()
    program.global_block().create_var(name="x", shape=[1], dtype="float32")
    program.create_block().create_var(name="y", shape=[1], dtype="float32")
    assert [v.name for v in program.list_vars()] == ["x", "y"]
