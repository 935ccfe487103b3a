"""Graphs of programs: one folded level at a time, with Graphviz and without, in SVG and in text."""

from __future__ import annotations

import re
import subprocess
import time
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fluidnb import viz
from fluidnb.errors import NotFound, OpValueError
from fluidnb.program import Program
from fluidnb.viz.program.collapse import unfold
from fluidnb.viz.program.data_flow import flows, lanes
from fluidnb.viz.program.graph_level import FEW, MOST, fold_chains
from fluidnb.viz.program.model import BlockRow, OpRow, ProgramPicture, SlotRow, VarRow


def slot(*names: str) -> tuple[SlotRow, ...]:
    """One slot with variables in it."""
    return (SlotRow("X", tuple(map(VarRow, names))),) if names else ()


def chain(count: int, roles: tuple[str, ...] = ("forward",)) -> ProgramPicture:
    """Operators that each read what the one before wrote."""
    ops = (
        OpRow(0, i, "relu", roles[i % len(roles)], slot(f"v{i}"), slot(f"v{i + 1}")) for i in range(count)
    )  # fmt: skip
    return ProgramPicture(BlockRow(0, -1, tuple(ops)))


def shown(picture: ProgramPicture) -> list[OpRow]:
    """The rows of a picture."""
    return [op for block in picture.blocks for _, op in block.walk()]


@pytest.mark.parametrize("count", [0, 1, MOST, MOST + 1, 2000, 5000])
@pytest.mark.parametrize("roles", [("forward",), ("forward", "backward")])
def test_a_level_has_300_nodes_at_most_and_hides_nothing(count: int, roles: tuple[str, ...]) -> None:
    whole = chain(count, roles)
    level = viz.level(whole)
    assert min(count, 2) <= len(shown(level)) <= MOST
    assert unfold(level).root == whole.root
    assert level.size == count
    assert (level == whole) == (count <= MOST)


def test_every_fold_of_a_level_can_be_opened_down_to_single_operators() -> None:
    whole = chain(2000)
    opened = viz.level(whole)
    depth = 0
    while folds := [op for op in shown(opened) if op.hides]:
        depth += 1
        opened = viz.level(viz.part(whole, folds[-1].type))
    assert 1 <= depth <= 3
    assert shown(opened)[-1].index == 1999


def layered(count: int) -> ProgramPicture:
    """A network of fully connected layers that one line made in a loop, with its backward part and an optimizer."""
    ops: list[OpRow] = []

    def add(type: str, role: str, reads: tuple[str, ...], writes: str) -> None:
        ins = (SlotRow("X", tuple(VarRow(n, "lod_tensor", "float32", (-1, 16), parameter=".w" in n) for n in reads)),)
        ops.append(OpRow(0, len(ops), type, role, ins, slot(writes), location="cell net, line 3", source="h = fc(h)"))

    for i in range(count):
        add("mul", "forward", (f"fc_{i - 1}.tmp_2", f"fc_{i}.w_0"), f"fc_{i}.tmp_0")
        add("elementwise_add", "forward", (f"fc_{i}.tmp_0", f"fc_{i}.b_0"), f"fc_{i}.tmp_1")
        add("relu", "forward", (f"fc_{i}.tmp_1",), f"fc_{i}.tmp_2")
    for i in reversed(range(count)):
        add("relu_grad", "backward", (f"fc_{i}.tmp_2", f"fc_{i}.tmp_2@GRAD"), f"fc_{i}.tmp_1@GRAD")
        add("mul_grad", "backward", (f"fc_{i}.w_0", f"fc_{i}.tmp_1@GRAD"), f"fc_{i - 1}.tmp_2@GRAD")
    for i in range(count):
        add("sgd", "optimizer", (f"fc_{i}.w_0", f"fc_{i}.w_0@GRAD"), f"fc_{i}.w_0")
    return ProgramPicture(BlockRow(0, -1, tuple(ops)))


def test_a_large_program_is_folded_by_layer() -> None:
    whole = layered(90)
    rows = shown(viz.level(whole))
    assert [(op.type, op.hidden) for op in rows[:2]] == [("fc_0", "3 ops"), ("fc_1", "3 ops")]
    assert [(op.type, op.hidden) for op in rows[90:92]] == [("fc_89", "2 ops"), ("fc_88", "2 ops")]
    assert unfold(viz.level(whole)).root == whole.root


def test_layers_that_are_too_many_are_folded_together() -> None:
    whole = layered(900)  # 5,400 operators
    rows = shown(viz.level(whole))
    assert FEW <= len(rows) <= MOST
    assert re.fullmatch(r"0:0-\d+  fc_0 … fc_\d+", rows[0].type)
    ends = [op.hides[-1] for op in rows if op.hides and op.role == "forward"]
    assert all(op.type == "relu" for op in ends), "a layer is cut in two"
    assert unfold(viz.level(whole)).root == whole.root


def test_shapes_on_edges_and_weights_as_nodes() -> None:
    text = viz.dot_text(layered(2), "a_")
    assert 'label="N×16"' in text
    assert 'id="a_var_fc_0.w_0"' in text and text.count("style=dashed]") == 2, "forward operators alone have weights"
    assert "a_var_" not in viz.dot_text(viz.level(layered(900)), "a_")


def test_no_text_is_longer_than_graphviz_takes() -> None:
    text = viz.dot_text(viz.level(layered(3400)))
    assert max(map(len, text.splitlines())) < 16_000


def test_chains_are_folded_before_anything_else() -> None:
    ends = tuple(OpRow(0, 400 + i, "tanh", "forward", slot("v400"), slot(f"w{i}")) for i in range(5))
    whole = chain(400)
    picture = ProgramPicture(BlockRow(0, -1, whole.root.ops + ends))
    rows = shown(viz.level(picture))
    assert [op.type for op in rows] == ["0:0-399", *["tanh"] * 5]
    assert rows[0].hidden == "400 ops"
    assert rows[0].types == "400 relu"
    assert flows(list(enumerate(rows))) == [("v400", 0, i) for i in range(1, 6)]


def test_a_value_that_two_read_ends_a_chain() -> None:
    fork = OpRow(0, 3, "tanh", "forward", slot("v1"), slot("w"))
    picture = ProgramPicture(BlockRow(0, -1, (*chain(3).root.ops, fork)))
    assert [op.type for op in shown(fold_chains(picture))] == ["relu", "0:1-2", "tanh"]


def test_blocks_are_folded_when_there_is_no_room_for_them(looped: Program) -> None:
    picture = viz.read_program(looped)
    assert viz.level(picture, 6) is picture
    level = viz.level(picture, 5)
    assert [op.type for op in shown(level)][-1] == "while"
    assert shown(level)[-1].hidden == "2 ops in block 1"
    assert unfold(level).root == picture.root
    assert level.counts == "2 blocks, 6 ops   folded to 4 nodes"
    assert "while\\n2 ops in block 1" in viz.dot_text(level)


def test_parts(looped: Program) -> None:
    picture = viz.read_program(looped)
    assert [op.type for op in viz.part(picture, "1").root.ops] == ["increment", "less_than"]
    assert [op.index for op in viz.part(picture, "0:1-2").root.ops] == [1, 2]
    assert [op.type for op in viz.part(picture, "0:3").root.ops] == ["while"]
    with pytest.raises(NotFound, match="no block 2"):
        viz.part(picture, "2")
    with pytest.raises(OpValueError, match="0 to 3"):
        viz.part(picture, "0:4-9")
    with pytest.raises(OpValueError, match="0:12-40"):
        viz.part(picture, "0:")


@given(st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=25))
@settings(max_examples=40, deadline=None)
def test_lines_of_data_in_text(pairs: list[tuple[int, int]]) -> None:
    ops = tuple(OpRow(0, i, "op", "forward", slot(f"v{a}"), slot(f"v{b}")) for i, (a, b) in enumerate(pairs))
    rows = viz.plain(viz.graph_lines(ProgramPicture(BlockRow(0, -1, ops)))).splitlines()[1:]
    edges = lanes(list(enumerate(ops)), 8, by_writer=True)
    assert len(rows) == len(ops)
    for i, row in enumerate(rows):
        gutter = re.match(r"[ │╭╰├─┼┬┴▸]*", row)
        assert gutter is not None
        assert ("▸" in gutter[0]) == any(e.last == i for e in edges)
        assert ("─" in gutter[0]) == any(i in (e.first, e.last) for e in edges)
    for i, (above, below) in enumerate(pairwise(rows)):
        crossing = {e.lane for e in edges if e.first <= i < e.last}
        assert sum(a in "│╭├┼┬" and b in "│╰├┼┴" for a, b in zip(above, below, strict=False)) >= len(crossing)


@pytest.mark.parametrize("width", [80, 120])
def test_graphs_of_text_fit(trained: Program, width: int) -> None:
    lines = viz.plain(viz.graph_lines(viz.read_program(trained), width)).splitlines()
    assert max(map(len, lines)) <= width


def script(folder: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> Path:
    """A dot that does what a test wants."""
    dot = folder / "dot"
    dot.write_text(f"#!/bin/sh\n{text}\n")
    dot.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/bin:/usr/bin")
    return dot


def test_graphviz_is_used_when_there_is_one(looped: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    picture = viz.read_program(looped)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "no dot on PATH" in viz.dot_svg(picture).why
    script(tmp_path, monkeypatch, 'echo \'<?xml?><svg><g id="graph0" class="graph"/><g id="node1"/></svg>\'')
    layout = viz.dot_svg(picture, "u_")
    assert 'id="u_graph0"' in layout.svg
    assert 'id="u_node1"' in layout.svg
    script(tmp_path, monkeypatch, "echo 'Error: out of paper' >&2; exit 1")
    assert viz.dot_svg(picture).why == "dot failed: Error: out of paper"
    script(tmp_path, monkeypatch, "").write_bytes(b"\x7fELF nothing")
    assert viz.dot_svg(picture).why.startswith("dot does not start")


def test_a_slow_layout_is_given_up(looped: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script(tmp_path, monkeypatch, f"echo $$ > {tmp_path}/pid; exec sleep 60")
    layout = viz.dot_svg(viz.read_program(looped), patience=0.3)
    assert layout == type(layout)(why="dot took more than 0.3 s")
    assert is_gone(tmp_path)


def test_a_layout_can_be_cancelled(looped: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script(tmp_path, monkeypatch, f"echo $$ > {tmp_path}/pid; exec sleep 60")
    wait = subprocess.Popen.communicate

    def interrupted(self: subprocess.Popen[str], *args: object, **kwargs: object) -> object:
        while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
            time.sleep(0.01)
        raise KeyboardInterrupt

    monkeypatch.setattr(subprocess.Popen, "communicate", interrupted)
    assert viz.dot_svg(viz.read_program(looped)).why == "the layout was cancelled"
    monkeypatch.setattr(subprocess.Popen, "communicate", wait)
    assert is_gone(tmp_path)


def is_gone(folder: Path) -> bool:
    """Whether the process that wrote its number into a folder has ended."""
    pid = (folder / "pid").read_text().strip() if (folder / "pid").exists() else ""
    return not pid or not Path(f"/proc/{pid}").exists()
