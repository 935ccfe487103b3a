"""Lint finds what is wrong; diff says what changed."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from fluidnb.passes.diff import diff
from fluidnb.passes.lint import lint
from fluidnb.program import Block, Program
from fluidnb.proto.desc import OpDesc


@pytest.fixture
def block() -> Block:
    block = Program().global_block()
    block.create_var(name="x", shape=[-1, 3], dtype="float32")
    block.append_op("t_same", {"X": "x"}, {"Out": "y"})
    with block.program.block_guard() as inner:
        inner.append_op("t_same", {"X": "y"}, {"Out": "z"})
    block.append_op("t_loop", {"X": "y"}, attrs={"sub_block": inner})
    return block


def test_a_sound_program_has_no_findings(block: Block) -> None:
    assert lint(block.program) == lint(block.program.desc) == []


def put(block: Block, type: str, ins: dict[str, list[str]], outs: dict[str, list[str]]) -> OpDesc:
    """Append an operator without any check."""
    return block.desc.append_op(OpDesc(type, ins, outs))


MISTAKES: list[tuple[str, str, Callable[[Block], object]]] = [
    ("unknown-op", "t_sam has not been registered", lambda b: put(b, "t_sam", {"X": ["x"]}, {"Out": ["y"]})),
    ("undeclared", "reads missing in slot X", lambda b: put(b, "t_same", {"X": ["missing"]}, {"Out": ["y"]})),
    ("undeclared", "writes missing in slot Out", lambda b: put(b, "t_same", {"X": ["x"]}, {"Out": ["missing"]})),
    ("read-before-write", "reads y in slot X before anything writes it", lambda b: b.desc.ops.reverse()),
    ("duplicate-output", "writes y twice", lambda b: put(b, "t_loop", {}, {"Out": ["y", "y"]})),
    ("missing-attr", "t_source needs attribute shape", lambda b: put(b, "t_source", {}, {"Out": ["y"]})),
    ("missing-input", "t_same needs input X", lambda b: put(b, "t_same", {}, {"Out": ["y"]})),
    ("block-attr", "runs block 9 by sub_block", lambda b: b.desc.ops[1].set_block_attr("sub_block", 9)),
    ("block-tree", "its parent cannot be block 4", lambda b: setattr(b.program.desc.blocks[1], "parent_idx", 4)),
    ("block-tree", "cannot walk block 1 backwards", lambda b: b.program.block(1).set_forward_block_idx(1)),
    ("block-tree", "says that it is block 3", lambda b: setattr(b.program.desc.blocks[1], "idx", 3)),
]


@pytest.mark.parametrize(("kind", "text", "spoil"), MISTAKES)
def test_what_is_wrong_is_found(block: Block, kind: str, text: str, spoil: Callable[[Block], object]) -> None:
    spoil(block)
    found = [f for f in lint(block.program) if f.kind == kind]
    assert found and text in str(found[0])


def test_a_block_that_walks_another_backwards_sees_its_variables(block: Block) -> None:
    program = block.program
    with program.block_guard() as backward:
        backward.set_forward_block_idx(1)
        backward.append_op("t_same", {"X": "z"}, {"Out": "z@GRAD"})
    assert list(backward.vars) == ["z@GRAD"]
    assert lint(program) == []


def test_findings_know_block_operator_and_line(block: Block) -> None:
    block.desc.vars.pop("x")
    finding = lint(block.program)[0]
    assert (finding.kind, finding.block, finding.op) == ("undeclared", 0, 0)
    assert finding.where is not None and "test_lint_diff.py" in str(finding)


def test_equal_programs_do_not_differ(block: Block) -> None:
    found = diff(block.program, block.program.clone())
    assert not found and str(found) == "no difference"


def test_what_differs(block: Block) -> None:
    before, after = block.program, block.program.clone()
    top = after.global_block()
    top.append_op("t_same", {"X": "y"}, {"Out": "w"}, {"factor": 2.0})
    top.var("x").desc.set_shape([-1, 4])
    after.block(1).remove_op(0)
    after.block(1).remove_var("z")
    found = diff(before, after)
    assert [b.block for b in found.blocks] == [0, 1]
    assert found.blocks[0].added_vars == ["var w : LOD_TENSOR.shape(-1, 3).dtype(float32)"]
    assert list(found.blocks[0].changed_vars) == ["x"]
    assert [line for mark, line in found.blocks[0].ops if mark == "+"] == ["w = t_same(X=y) [factor=2]"]
    assert str(found).splitlines() == [
        "block 0",
        "  + var w : LOD_TENSOR.shape(-1, 3).dtype(float32)",
        "  - var x : LOD_TENSOR.shape(-1, 3).dtype(float32)",
        "  + var x : LOD_TENSOR.shape(-1, 4).dtype(float32)",
        "    y = t_same(X=x) [factor=1]",
        "    t_loop(X=y) [sub_block=block[1]]",
        "  + w = t_same(X=y) [factor=2]",
        "block 1",
        "  - var z : LOD_TENSOR.shape(-1, 3).dtype(float32)",
        "  - z = t_same(X=y) [factor=1]",
    ]


def test_a_block_that_only_one_has(block: Block) -> None:
    after = block.program.clone()
    after.desc.append_block(after.desc.block(0)).append_op(OpDesc("t_same", {"X": ["y"]}, {"Out": ["z"]}))
    found = diff(block.program, after)
    assert [b.block for b in found.blocks] == [2]
    assert diff(after, block.program).blocks[0].ops == [("-", "z = t_same(X=y)")]


def test_who_made_an_operator_counts_only_with_details(block: Block) -> None:
    after = block.program.clone()
    after.global_block().ops[0].set_attr("op_role", 2)
    assert not diff(block.program, after)
    assert diff(block.program, after, details=True)
