"""Clones share nothing; pruned programs have only what their targets need."""

from __future__ import annotations

import warnings

import pytest

from fluidnb.passes.lint import lint
from fluidnb.program import Block, Parameter, Program, prune_desc


@pytest.fixture
def block() -> Block:
    """a -> b -> c, and d beside them."""
    block = Program().global_block()
    block.create_var(name="a", shape=[-1, 3], dtype="float32")
    for source, out in (("a", "b"), ("b", "c"), ("a", "d")):
        block.append_op("t_same", {"X": source}, {"Out": out})
    return block


def outputs(program: Program) -> list[str]:
    """The names that the operators of the global block write."""
    return [n for op in program.global_block().ops for n in op.output_arg_names]


def test_a_clone_has_the_same_bytes_and_shares_nothing(block: Block) -> None:
    program = block.program
    w = block.create_parameter(
        name="w", shape=[2], dtype="float32", trainable=False, regularizer="l2", optimize_attr={"learning_rate": 0.5}
    )
    before = program.desc.serialize_to_string()
    made = program.clone()
    assert made.desc.serialize_to_string() == before
    twin = made.global_block().var("w")
    assert isinstance(twin, Parameter) and twin is not w and twin.block is made.global_block()
    assert (twin.trainable, twin.regularizer, twin.optimize_attr) == (False, "l2", {"learning_rate": 0.5})
    assert made.global_block().ops[0].where == block.ops[0].where is not None
    made.global_block().append_op("t_same", {"X": "a"}, {"Out": "e"})
    twin.stop_gradient = True
    twin.optimize_attr["learning_rate"] = 7.0
    assert program.desc.serialize_to_string() == before and w.optimize_attr == {"learning_rate": 0.5}


def test_a_clone_for_test_flips_is_test_and_removes_nothing(block: Block) -> None:
    program = block.program
    block.append_op("t_test", {"X": "a"}, {"Out": "e"})
    with program.block_guard() as inner:
        inner.append_op("t_test", {"X": "a"}, {"Out": "f"})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made = program.clone(for_test=True)
    assert made.global_block().ops[-1].attr("is_test") is True
    assert made.block(1).ops[0].attr("is_test") is True
    assert block.ops[-1].attr("is_test") is False
    assert outputs(made) == outputs(program)


@pytest.mark.parametrize("role", [1, 2, 257])
def test_a_clone_for_test_after_backward_warns(block: Block, role: int) -> None:
    with block.program.role_guard(role):
        block.append_op("t_same", {"X": "a"}, {"Out": "a@GRAD"})
    with pytest.warns(UserWarning, match="Clone before minimize"):
        block.program.clone(for_test=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        block.program.clone()
        block.program.inference_optimize()


def test_prune_keeps_what_targets_need(block: Block) -> None:
    before = block.program.desc.serialize_to_string()
    made = block.program.prune(["c"])
    assert outputs(made) == ["b", "c"]
    assert list(made.global_block().vars) == ["a", "b", "c"]
    assert made.global_block().ops[0].where == block.ops[0].where
    assert block.program.desc.serialize_to_string() == before
    assert outputs(block.program.prune(block.var("d"))) == ["d"]
    assert outputs(block.program.prune(block.ops[1])) == ["b", "c"]
    assert len(prune_desc(block.program.desc, ["c"]).block(0).ops) == 2


@pytest.mark.parametrize(("target", "kind"), [("cc", ValueError), (3, TypeError), ([None], TypeError)])
def test_targets_that_are_not_there(block: Block, target: object, kind: type[Exception]) -> None:
    with pytest.raises(kind):
        block.program.prune(target)


def test_prune_keeps_every_writer_of_what_is_needed(block: Block) -> None:
    block.append_op("t_same", {"X": "d"}, {"Out": "b"})
    assert outputs(block.program.prune("b")) == ["b", "d", "b"]


def test_prune_keeps_blocks_and_renumbers_them(block: Block) -> None:
    program = block.program
    with program.block_guard() as unused:
        unused.append_op("t_same", {"X": "d"}, {"Out": "unused"})
    with program.block_guard() as body:
        body.append_op("t_same", {"X": "b"}, {"Out": "inside"})
        with program.block_guard() as innermost:
            innermost.append_op("t_same", {"X": "inside"}, {"Out": "deep"})
        body.append_op("t_loop", {"X": "inside"}, attrs={"sub_block": innermost})
    block.create_var(name="out", shape=[1])
    block.append_op("t_loop", {}, {"Out": "out"}, {"sub_block": body})
    block.append_op("t_loop", {}, attrs={"sub_block": unused})
    made = program.prune("out")
    assert outputs(made) == ["b", "out"]
    assert [b.parent_idx for b in made.blocks] == [-1, 0, 1]
    assert made.global_block().ops[-1].block_attr_id("sub_block") == 1
    assert made.block(1).ops[-1].block_attr_id("sub_block") == 2
    assert made.block(2).has_var("deep")
    assert lint(made) == []


def test_feed_operators_come_first(block: Block) -> None:
    desc = block.desc
    op = desc.append_op()
    op.set_type("feed")
    with pytest.raises(ValueError, match="All FeedOps are at the beginning of the ProgramDesc"):
        block.program.prune("c")
