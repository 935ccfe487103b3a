"""Graphs written by hand: what DOT gets, the file and the drawing, marks."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

import fluidnb as fluid
from fluidnb import graphviz
from fluidnb.errors import NotFound


def drawn() -> graphviz.GraphPreviewGenerator:
    draw = graphviz.GraphPreviewGenerator('a "fc" layer')
    w, x = draw.add_param("w", "float32 <13, 1>", highlight=True), draw.add_arg('say "x"\\')
    mul = draw.add_op("mul", highlight=True, tooltip="x w")
    draw.add_edge(w, mul, highlight=True)
    draw.add_edge(x, mul, label="X")
    return draw


def test_names_are_unique_and_the_text_stays_the_same() -> None:
    graph = drawn().graph
    assert graph.code() == str(graph) == graph.code()
    names = [node.name for node in (*graph.nodes, *drawn().graph.nodes)]
    assert len(set(names)) == 6
    assert [re.sub(r"\d+$", "", name) for name in names[:3]] == ["param_", "arg_", "op_"]
    assert [node.description for node in graph.nodes] == ["w", 'say "x"\\', "mul"]


def test_marks_and_attributes() -> None:
    param, arg, op = drawn().graph.nodes
    assert [node.attrs["color"] for node in (param, arg, op)] == ["orange", "#dddddd", "orange"]
    assert op.attrs["tooltip"] == "x w" and "highlight" not in op.attrs
    assert [edge.attrs["color"] for edge in drawn().graph.edges] == ["orange", "#000000"]


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")
def test_graphviz_reads_it() -> None:
    graph = drawn().graph
    same = graph.rank_group("same", 1)
    low, high = (graph.node(graphviz.quoted(name), "n", rank=same) for name in ("low", "high"))
    graph.edge(low, high)
    text = subprocess.run(["dot", "-Tplain"], input=graph.code(), capture_output=True, text=True, check=True).stdout
    lines = [line.split() for line in text.splitlines()]
    heights = {line[1]: line[3] for line in lines if line[0] == "node"}
    assert len(heights) == 5 and heights[low.name] == heights[high.name]
    assert sum(line[0] == "edge" for line in lines) == 3


def test_groups_come_by_priority_and_without_the_empty_ones() -> None:
    graph = graphviz.Graph("ranks")
    late, _, early = graph.rank_group("max", 2), graph.rank_group("same", 1), graph.rank_group("min", 0)
    a, b = graph.node("a", "n", rank=late), graph.node("b", "n", rank=early)
    assert graph.code().splitlines()[2:4] == [f"  {{rank=min; {b.name}}}", f"  {{rank=max; {a.name}}}"]
    with pytest.raises(NotFound, match=r"no rank group 'rankgroup-9'.*"):
        graph.node("c", "n", rank="rankgroup-9")
    assert len(graph.nodes) == 2


@pytest.mark.parametrize("installed", [True, False])
def test_the_file_is_written_and_drawn_where_graphviz_is(
    installed: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    if installed and shutil.which("dot") is None:
        pytest.skip("Graphviz is not installed")
    if not installed:
        monkeypatch.setattr(shutil, "which", lambda name: None)
    draw, path = drawn(), tmp_path / "temp.dot"
    draw(str(path), show=not installed)
    assert path.read_text() == draw.graph.code() + "\n"
    assert (tmp_path / "temp.pdf").exists() == installed
    said = capsys.readouterr().err
    assert said == "" if installed else said.endswith("temp.pdf is not, for Graphviz is not installed.\n")


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")
def test_what_graphviz_cannot_draw_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    graph = graphviz.Graph("broken")
    graph.node("<<b>not closed>", "n")
    graph.compile(str(tmp_path / "temp.dot"))
    assert "fluidnb: Graphviz does not draw" in capsys.readouterr().err


def test_it_is_fluids_module() -> None:
    assert fluid.graphviz is graphviz
