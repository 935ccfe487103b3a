"""Snapshots go back to the same bytes and the same objects."""

from __future__ import annotations

from fluidnb.program import Program
from fluidnb.program.snapshot import same_facts, take, view_facts


def test_restore_gives_back_bytes_objects_and_what_python_knows() -> None:
    program = Program()
    block = program.global_block()
    x = block.create_var(name="x", shape=[-1, 3], dtype="float32")
    w = block.create_parameter(name="w", shape=[3], dtype="float32")
    w.regularizer = "l2"
    op = block.append_op("t_same", {"X": x}, {"Out": "y"})
    with program.block_guard() as inner:
        inner.append_op("t_same", {"X": x}, {"Out": "z"})
    before, shot, version = program.desc.serialize_to_string(), program.snapshot(), program.version
    y = block.var("y")

    x.desc.set_shape([7])
    w.regularizer, w.trainable, y.error_clip = None, False, "clip"
    op.set_attr("factor", 3.0)
    block.rename_var("y", "renamed")
    block.prepend_op("t_source", outputs={"Out": "s"}, attrs={"shape": [1]})
    block.remove_op(1)
    program.desc.remove_blocks(1)
    program.create_block()
    program.random_seed = 4
    program.restore(shot)

    assert program.desc.serialize_to_string() == before
    assert block.var("x") is x and block.var("y") is y and block.ops[0] is op and program.block(1) is inner
    assert (w.regularizer, w.trainable, y.error_clip) == ("l2", True, None)
    facts = view_facts(w.desc)
    w.trainable = False
    assert not same_facts(facts, view_facts(w.desc))
    w.trainable = True
    assert same_facts(facts, view_facts(w.desc))
    assert (program.current_block_idx, program.random_seed, op.attr("factor")) == (0, 0, 1.0)
    assert program.version > version
    assert inner.append_op("t_same", {"X": y}, {"Out": "more"}).block is inner


def test_a_snapshot_of_an_unchanged_program_is_the_same_object() -> None:
    program = Program()
    first = take(program)
    assert take(program) is first
    program.global_block().create_var(name="x", shape=[1], dtype="float32")
    second = take(program)
    assert second is not first
    program.restore(first)
    assert take(program).blocks[0].vars == {}


def test_snapshots_share_the_bytes_of_what_did_not_change() -> None:
    program = Program()
    x = program.global_block().create_var(name="x", shape=[1], dtype="float32")
    first = take(program)
    program.global_block().create_var(name="y", shape=[1], dtype="float32")
    assert take(program).data[x.desc] is first.data[x.desc]
