"""Programs as text and as SVG."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest

import fluidnb as fluid
from fluidnb import viz
from fluidnb.program import Program
from fluidnb.proto.desc import OpDesc, ProgramDesc
from fluidnb.viz.base.styled_text import COLOURS
from fluidnb.viz.program.model import BlockRow, OpRow, ProgramPicture
from tests.viz.conftest import same_as_golden
from tests.viz.programs import PROGRAMS

SVG = "{http://www.w3.org/2000/svg}"


def without_places(block: BlockRow) -> BlockRow:
    """A block without lines of test files, which move."""
    ops = [(op, tuple(map(without_places, op.blocks))) for op in block.ops]
    return replace(block, ops=tuple(replace(op, location="here, line 1", source="", blocks=b) for op, b in ops))


def picture(program: Program) -> ProgramPicture:
    """A picture that does not change when a test file does."""
    made = viz.read_program(program)
    return replace(made, root=without_places(made.root))


@pytest.mark.parametrize("name", PROGRAMS)
def test_text_and_svg_are_golden(name: str) -> None:
    PROGRAMS[name]()
    drawn = picture(fluid.default_main_program())
    same_as_golden(f"{name}.txt", viz.plain(viz.program_lines(drawn, 160)))
    same_as_golden(f"{name}.svg", viz.program_svg(drawn, "g_").replace("><", ">\n<"))
    same_as_golden(f"{name}.dot", viz.dot_text(drawn, "g_"))
    same_as_golden(f"{name}.graph.txt", viz.plain(viz.graph_lines(drawn, 120)))


def test_svg_is_well_formed_and_complete(looped: Program) -> None:
    root = ET.fromstring(viz.program_svg(viz.read_program(looped), "u_"))
    ids = [e.get("id") for e in root.iter() if e.get("id")]
    assert len(ids) == len(set(ids))
    ops = {f"u_op_{b.idx}_{i}" for b in looped.desc.blocks for i in range(len(b.ops))}
    assert ops <= set(ids)
    assert "u_block_1" in ids
    assert len(root.findall(f".//{SVG}g[@id='u_op_1_0']/{SVG}title")) == 1


def test_ids_differ_between_pictures(looped: Program) -> None:
    drawn = viz.read_program(looped)
    first, second = (set(re.findall(r'id="([^"]+)"', viz.program_svg(drawn))) for _ in range(2))
    assert first
    assert not first & second


def test_roles(trained: Program) -> None:
    drawn = viz.read_program(trained)
    roles = [op.role for op in drawn.root.ops]
    assert [r for r in dict.fromkeys(roles)] == ["forward", "backward", "optimizer"]
    svg = viz.program_svg(drawn)
    for role, colour in COLOURS.items():
        assert svg.count(f'stroke="{colour}"') == roles.count(role)


def test_nested_rows_say_where_they_are(looped: Program) -> None:
    drawn = viz.read_program(looped)
    assert [(depth, op.type) for depth, op in drawn.root.walk()][-3:] == [
        (0, "while"), (1, "increment"), (1, "less_than"),
    ]  # fmt: skip
    assert drawn.counts == "2 blocks, 6 ops"


def test_lines_of_data(trained: Program) -> None:
    from fluidnb.viz.program.data_flow import flows, lanes

    ops = list(enumerate(viz.read_program(trained).root.ops))
    found = {(name, a, b) for name, a, b in flows(ops)}
    for name, a, b in found:
        assert name in {v.name for v in ops[a][1].writes}
        assert name in {v.name for v in ops[b][1].reads}
    drawn = lanes(ops)
    assert {(e.name, e.first, e.last) for e in drawn} <= found
    assert {(a, b) for _, a, b in found if b == a + 1} <= {(e.first, e.last) for e in drawn}, "a short line is missing"
    for lane in {e.lane for e in drawn}:
        here = [e for e in drawn if e.lane == lane]
        spans = {(e.first, max(o.last for o in here if (o.name, o.first) == (e.name, e.first))) for e in here}
        assert all(a[1] <= b[0] or b[1] <= a[0] for a in spans for b in spans if a != b), "lines of two values overlap"


def test_large_programs_are_cut() -> None:
    ops = tuple(OpRow(0, i, "relu", "forward") for i in range(1000))
    drawn = ProgramPicture(BlockRow(0, -1, ops))
    assert len(viz.plain(viz.program_lines(drawn, limit=10)).splitlines()) == 13
    svg = viz.program_svg(drawn, limit=10)
    assert svg.count("fluidnb-op") <= 10
    assert "more op" in svg


def test_narrow_terminals(trained: Program) -> None:
    for line in viz.plain(viz.program_lines(viz.read_program(trained), 60)).splitlines():
        assert len(line) <= 60


def test_text_of_users_is_escaped() -> None:
    desc = ProgramDesc()
    desc.block(0).append_op(OpDesc("relu", {"X": ["<script>&"]}, {"Out": ['a"b']}))
    html = viz.program_html(viz.read_program(desc))
    assert "<script>" not in html
    ET.fromstring(viz.program_svg(viz.read_program(desc)))


def test_a_block_that_runs_itself_is_drawn_once() -> None:
    desc = ProgramDesc()
    inner = desc.append_block(desc.block(0))
    inner.parent_idx = 1
    op = inner.append_op(OpDesc("while"))
    op.set_block_attr("sub_block", inner)
    assert viz.read_program(desc).counts == "2 blocks, 1 op"


def test_colours_of_terminals(trained: Program) -> None:
    lines = viz.program_lines(viz.read_program(trained))
    coloured = viz.ansi(lines, 200)
    assert "\x1b[" in coloured
    bare = re.sub(r"\x1b\[[0-9;]*m", "", coloured)
    assert [row.rstrip() for row in bare.splitlines()] == viz.plain(lines).splitlines()


def test_programs_of_real_paddle_are_drawn() -> None:
    from pathlib import Path

    found = sorted(Path(__file__).parents[1].joinpath("golden").rglob("*.pb"))
    drawn = 0
    for path in found:
        try:
            program = viz.read_program(path.read_bytes())
        except fluid.errors.FluidError:
            continue
        ET.fromstring(viz.program_svg(program))
        assert viz.plain(viz.program_lines(program))
        drawn += 1
    assert drawn or not found


def test_a_row_begins_with_the_result_and_ends_with_what_only_the_gradient_wants() -> None:
    with fluid.fresh():
        words = fluid.layers.data("words", [4], lod_level=1)
        fluid.layers.topk(fluid.layers.sequence_pool(words, "max"), 2)
        fluid.optimizer.Adam(0.1).minimize(fluid.layers.mean(fluid.layers.create_parameter([2], "float32", name="w")))
        rows = {op.type: op for op in viz.read_program(fluid.default_main_program()).root.ops}
    assert [slot.name for slot in rows["sequence_pool"].outs] == ["Out", "MaxIndex"]
    assert rows["sequence_pool"].writes[0].facts == "float32[-1, 4]"
    assert [slot.name for slot in rows["top_k"].outs] == ["Out", "Indices"]
    assert rows["adam"].left.startswith("w, ")


def test_an_operator_is_not_cut_while_columns_beside_it_are_empty() -> None:
    from fluidnb.viz.base.styled_text import columns, plain

    rows = [[[("x" * 60, "")], [], []], [[("y", "")], [("float32[-1, 10]", "")], [("cell net, line 3", "")]]]
    lines = plain(columns(rows, 70)).splitlines()
    assert lines[0] == "x" * 60 and "cell net, line 3" in lines[1]
    assert all(len(line) <= 70 for line in lines)
    attrs = tuple((f"attribute_{i}", "12345") for i in range(5))
    op = OpRow(0, 0, "relu", "forward", attrs=attrs)
    assert len(op.text) > 90 and "…" not in viz.program_svg(ProgramPicture(BlockRow(0, -1, (op,))), "a_")


def channels(colour: str) -> list[float]:
    """A colour's parts from 0 to 1."""
    return [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]


def contrast(one: list[float], other: list[float]) -> float:
    """The contrast of two colours as WCAG defines it."""

    def light(rgb: list[float]) -> float:
        parts = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in rgb]
        return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), parts, strict=True))

    low, high = sorted((light(one), light(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("ground, ink", [("#ffffff", 0.13), ("#111111", 1.0)], ids=["light", "dark"])
def test_texts_have_enough_contrast(ground: str, ink: float) -> None:
    svg = viz.program_svg(viz.read_program(fluid.default_main_program())) + viz.program_svg(
        ProgramPicture(BlockRow(0, -1, (OpRow(0, 0, "relu", "forward", location="cell net, line 1"),)))
    )
    behind = channels(ground)
    for opacity in {float(v) for v in re.findall(r'<t(?:ext|span)[^>]* fill-opacity="([\d.]+)"', svg)}:
        assert contrast([opacity * ink + (1 - opacity) * v for v in behind], behind) >= 4.5, opacity
    hues = set(re.findall(r'<t(?:ext|span)[^>]* fill="(#\w{6})" style="fill:color-mix\(in srgb,#\w{6} 50%', svg))
    assert hues and not re.search(r'<t(?:ext|span)[^>]* fill="#\w{6}"(?! style)', svg)
    for hue in {*hues, *COLOURS.values(), "#d97706"}:
        assert contrast([0.5 * v + 0.5 * ink for v in channels(hue)], behind) >= 4.5, hue
    assert "max-width:none" in svg, "a page may shrink it"
