"""Parts of programs: search, roles, folds, the writers and readers of a variable, the tree of blocks."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fluidnb as fluid
from fluidnb import viz
from fluidnb.errors import NotFound, OpValueError
from fluidnb.program import Program
from fluidnb.proto.desc import OpDesc, ProgramDesc
from fluidnb.viz.program.collapse import FOLDS, unfold
from fluidnb.viz.program.model import ROLES, BlockRow, OpRow, ProgramPicture, SlotRow, VarRow
from tests.viz.programs import PROGRAMS

NAMES = st.sampled_from(["x", "fc_0.tmp_0", "fc_0.w_0", "fc_0.tmp_0@GRAD", "fc_1.tmp_0"])
SLOTS = st.lists(NAMES, max_size=2).map(lambda names: (SlotRow("X", tuple(map(VarRow, names))),) if names else ())


@st.composite
def blocks(draw: st.DrawFn, numbers: Iterator[int] | None = None, parent: int = -1) -> BlockRow:
    """A block with operators of all kinds and blocks inside."""
    numbers = numbers or iter(range(1000))
    index = next(numbers)
    ops = []
    for i in range(draw(st.integers(0, 7))):
        inner = parent < 2 and index < 6 and draw(st.integers(0, 5)) == 0
        ops.append(OpRow(
            index, i, draw(st.sampled_from(["mul", "relu", "while", "mul_grad"])), draw(st.sampled_from(ROLES)),
            draw(SLOTS), draw(SLOTS), (("axis", str(draw(st.integers(0, 2)))),),
            draw(st.sampled_from(["", "cell net, line 2", "cell net, line 3", "train.py:7"])), "",
            (draw(blocks(numbers, index)),) if inner else (),
        ))  # fmt: skip
    return BlockRow(index, parent, tuple(ops))


PICTURES = blocks().map(ProgramPicture)
SEARCHES = st.sampled_from(
    ["", "mul", "op:mul", "op:mul*", "var:fc_0.*", "w_0", "attr:axis=1", "cell:net", "cell:'net, line 3'", "mul net"]
)


def key(op: OpRow) -> tuple[int, int]:
    """The operator."""
    return op.block, op.index


@given(PICTURES, SEARCHES, st.sets(st.sampled_from(ROLES)))
@settings(max_examples=60, deadline=None)
def test_a_filter_invents_nothing_and_keeps_all_that_fits(
    picture: ProgramPicture, search: str, roles: set[str]
) -> None:
    part = viz.select(picture, search, sorted(roles))
    whole = {key(op): op for op in picture.each()}
    kept = [key(op) for op in part.each()]
    assert [k for k in whole if k in set(kept)] == kept
    for op in part.each():
        before = whole[key(op)]
        assert (op.type, op.role, op.ins, op.outs, op.attrs) == (
            before.type, before.role, before.ins, before.outs, before.attrs,
        )  # fmt: skip
    fits = {
        key(op) for op in picture.each()
        if (not roles or op.role in roles) and viz.select(alone(op), search).size
    }  # fmt: skip
    around = {key(op) for op in picture.each() if fits & {key(inner) for inner in op.each()}}
    assert set(kept) == around


def alone(op: OpRow) -> ProgramPicture:
    """A picture of one operator without the blocks that it runs."""
    bare = OpRow(op.block, op.index, op.type, op.role, op.ins, op.outs, op.attrs, op.location, op.source)
    return ProgramPicture(BlockRow(op.block, -1, (bare,)))


@given(PICTURES, st.lists(st.sampled_from(FOLDS), max_size=3))
@settings(max_examples=60, deadline=None)
def test_unfolding_gives_the_whole_and_folds_count_it(picture: ProgramPicture, folds: list[str]) -> None:
    part = viz.select(picture, fold=folds)
    assert unfold(part) == picture
    assert [key(op) for op in part.each()] == [key(op) for op in picture.each()]
    assert part.counts == picture.counts
    for block in part.blocks:
        for _, op in block.walk():
            if op.hides:
                assert len({o.role for o in op.hides}) == 1
                assert int(op.hidden.split()[0]) == sum(1 for _ in op.each()) >= 2
    text = viz.plain(viz.program_lines(part))
    assert text.count("▸") == sum(bool(op.hides or op.folded) for b in part.blocks for _, op in b.walk())


@given(PICTURES, SEARCHES, st.sampled_from(FOLDS))
@settings(max_examples=30, deadline=None)
def test_folds_and_searches_in_either_order(picture: ProgramPicture, search: str, fold: str) -> None:
    one = viz.select(viz.select(picture, search), fold=fold)
    other = viz.select(viz.select(picture, fold=fold), search)
    assert [key(op) for op in one.each()] == [key(op) for op in other.each()]
    assert one.note == other.note


def test_what_a_word_may_be(trained: Program) -> None:
    picture = viz.read_program(trained)

    def found(search: str) -> list[str]:
        return [op.type for op in viz.select(picture, search).each()]

    assert found("op:sgd") == ["sgd", "sgd"]
    assert found("op:mul") == ["mul", "mul_grad"]
    assert found("op:MUL op:mu?") == ["mul"]
    assert found("var:y") == ["elementwise_sub", "elementwise_sub_grad"]
    assert found("attr:axis=1") == ["elementwise_add", "elementwise_add_grad"]
    assert found("attr:'shape=[1]'") == ["fill_constant"]
    assert len(found("cell:conftest.py")) == 13
    assert found("nothing") == []
    assert viz.select(picture, "sgd").counts == "1 block, 2 ops, 2 parameters   of 13 ops: sgd"
    mul = viz.select(picture, "op:mul")
    assert [v.name for v in mul.root.vars if v.data or v.parameter] == ["x", "fc_0.w_0"]


def test_what_cannot_be_selected(trained: Program) -> None:
    picture = viz.read_program(trained)
    with pytest.raises(OpValueError, match='there is no role backwards.*"backward"'.replace(".*", "(.|\n)*")):
        viz.select(picture, role="backwards")
    with pytest.raises(OpValueError, match="cells"):
        viz.select(picture, fold="cell")
    with pytest.raises(OpValueError, match="unterminated"):
        viz.select(picture, "'relu")


def test_layers_of_a_program_without_lines() -> None:
    desc = ProgramDesc()
    names = ["x", "fc_0.tmp_0", "fc_0.tmp_1", "t"]
    for kind, ins, out in zip(["mul", "relu", "tanh"], names[:-1], names[1:], strict=True):
        desc.block(0).append_op(OpDesc(kind, {"X": [ins]}, {"Out": [out]}))
    layers = viz.select(viz.read_program(desc), fold="layers").root.ops
    assert [(op.type, op.hidden, op.types) for op in layers] == [("fc_0", "2 ops", "mul, relu"), ("tanh", "", "")]
    assert [v.name for v in layers[0].reads] == ["x"]
    assert layers[0].writes[0].name == "fc_0.tmp_1"


def test_a_listing_of_5000_operators_reads_400() -> None:
    desc = ProgramDesc()
    loop = desc.append_block(desc.block(0))
    desc.block(0).append_op(OpDesc("while")).set_block_attr("sub_block", loop)
    for i in range(4000):
        desc.block(0).append_op(OpDesc("relu", {"X": [f"v{i}"]}, {"Out": [f"v{i + 1}"]}))
    for _ in range(999):
        loop.append_op(OpDesc("increment", {"X": ["i"]}, {"Out": ["i"]}))
    whole, first = viz.read_program(desc), viz.read_program(desc, limit=400)
    assert first.counts == whole.counts == "2 blocks, 5,000 ops"
    assert sum(1 for _ in first.each()) == 400
    for picture in (whole, first):
        text = viz.plain(viz.program_lines(picture, 100, 400))
        assert "… 4,600 more ops" in text
        assert len(re.findall(r"^ +\d+ ", text, re.M)) == 400
        svg = viz.program_svg(picture, limit=400)
        assert 390 < (drawn := svg.count("fluidnb-op")) <= 400
        assert f"… {5000 - drawn:,} more ops" in svg


def test_parameters_that_are_not_read_are_counted() -> None:
    with fluid.fresh():
        for _ in range(15):
            fluid.layers.create_parameter([2], "float32")
        whole, first = (viz.read_program(fluid.default_main_program(), limit=limit) for limit in (0, 13))
    assert (len(whole.root.vars), len(first.root.vars)) == (15, 13)
    assert whole.counts == first.counts == "1 block, 15 parameters"
    faces = [viz.plain(viz.program_lines(picture)) for picture in (whole, first)]
    assert faces[0] == faces[1]
    assert "3 more variables" in faces[0]


def test_blocks_that_are_not_read_are_counted() -> None:
    with fluid.fresh():
        PROGRAMS["nested"]()
        whole, first = (viz.read_program(fluid.default_main_program(), limit=limit) for limit in (0, 2))
    assert first.counts == whole.counts == "3 blocks, 11 ops"
    assert (first.root.left, first.root.left_blocks, first.loose) == (9, 2, ())


def test_html_opens_without_a_script(trained: Program) -> None:
    folded = viz.program_html(viz.select(viz.read_program(trained), fold="layers"))
    body = ET.fromstring(folded)
    details = list(body.iter("details"))
    assert len(details) == 3
    assert not any(d.get("open") for d in details)
    assert sum(len(d.findall("div")) for d in details) == 13
    assert "<script" not in folded
    assert "http" not in folded


def test_html_of_folded_blocks(looped: Program) -> None:
    loop = ET.fromstring(viz.program_html(viz.select(viz.read_program(looped), fold="blocks")))
    [block] = loop.iter("details")
    assert "increment" in "".join(block.itertext())
    assert "2 ops in block 1" in "".join(block.find("summary").itertext())  # type: ignore[union-attr]


def test_a_large_fold_is_cut_and_the_rows_after_it_are_there() -> None:
    ops = [OpRow(0, i, "relu", "forward", location="cell a, line 1") for i in range(50)]
    ops += [OpRow(0, 50 + i, "tanh", "forward", location="cell b, line 1") for i in range(2)]
    picture = viz.select(ProgramPicture(BlockRow(0, -1, tuple(ops))), fold="cells")
    html = viz.program_html(picture, limit=10)
    assert "… 40 more ops" in html
    assert html.count("<details>") == 2
    assert "cell b" in html


def test_ids_on_a_page_with_ten_pictures() -> None:
    ids: Counter[str] = Counter()
    for build in PROGRAMS.values():
        with fluid.fresh():
            build()
            ids.update(re.findall(r'\bid="([^"]+)"', viz.program_html(viz.read_program(fluid.default_main_program()))))
    assert len(ids) > 100
    assert set(ids.values()) == {1}


def test_who_writes_and_who_reads_in_a_loop(looped: Program) -> None:
    [i] = viz.uses_of(viz.read_program(looped), "fill_constant_0.tmp_0")
    assert [(u.op.block, u.op.index, u.op.type, u.slot) for u in i.writers] == [
        (0, 0, "fill_constant", "Out"), (0, 3, "while", "Out"), (1, 0, "increment", "Out"),
    ]  # fmt: skip
    assert [(u.op.block, u.op.index) for u in i.readers] == [(0, 2), (0, 3), (1, 0), (1, 1)]


def test_who_writes_and_who_reads(trained: Program) -> None:
    [w] = viz.uses_of(viz.read_program(trained), "fc_0.w_0")
    assert w.gradients == ("fc_0.w_0@GRAD",)
    assert [u.op.type for u in w.uses] == ["mul", "mul_grad", "sgd", "sgd"]
    assert [u.slot for u in w.writers] == ["ParamOut"]
    folded = viz.select(viz.read_program(trained), fold="layers")
    assert viz.uses_of(folded, "fc_0.w_0") == viz.uses_of(viz.read_program(trained), "fc_0.w_0")
    [words] = viz.uses_of(viz.read_program(trained), "words")
    assert words.uses == ()
    assert viz.plain(viz.uses_lines((words,))).splitlines() == [
        "words  int64[-1, 1] lod 1  data  block 0", "fed", "read by no operator",
    ]  # fmt: skip
    with pytest.raises(NotFound, match='"fc_0.w_0"'):
        viz.uses_of(viz.read_program(trained), "fc_0.w_9")


def test_two_blocks_with_variables_of_one_name() -> None:
    desc = ProgramDesc()
    inner = desc.append_block(desc.block(0))
    desc.block(0).append_op(OpDesc("while")).set_block_attr("sub_block", inner)
    for block in (desc.block(0), inner):
        block.var("x")
        block.append_op(OpDesc("relu", {"X": ["x"]}, {"Out": ["y"]}))
    found = viz.uses_of(viz.read_program(desc), "x")
    assert [(u.var.block, [use.op.block for use in u.readers]) for u in found] == [(0, [0]), (1, [1])]


def test_tree() -> None:
    PROGRAMS["dynamic_rnn"]()
    tree = viz.read_tree(fluid.default_main_program())
    assert [line.roles for line in tree] == [(16, 11, 6), (12, 0, 0), (0, 13, 0)]
    assert [sum(line.roles) for line in tree] == [line.ops for line in tree]
    text = viz.plain(viz.tree_lines(tree, roles=True))
    assert "16 forward, 11 backward, 6 optimizer" in text
    assert "└─ block 2  while_grad" in text


def test_a_card(trained: Program) -> None:
    op = viz.read_program(trained).root.ops[1]
    text = viz.plain(viz.card_lines(op, 100))
    assert text.startswith("0:1  elementwise_add  forward  conftest.py:")
    for part in ("reads   X    fc_0.tmp_0  float32[-1, 1]", "with    axis=1", "kernels", "elementwise_add_grad"):
        assert part in text
    unknown = OpRow(0, 0, "of_somebody", "forward")
    assert viz.plain(viz.card_lines(unknown)) == "0:0  of_somebody  forward"
