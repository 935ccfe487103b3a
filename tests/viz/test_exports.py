"""Pictures of programs as files, and the listing that folds and searches without a kernel."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

import fluidnb as fluid
from fluidnb.cli.picture_files import HELP
from fluidnb.errors import EnforceNotMet
from fluidnb.viz import read_program, select
from fluidnb.viz.base.display_object import Picture
from fluidnb.viz.program import exports
from fluidnb.viz.program.html import folding_html
from fluidnb.viz.program.mermaid import mermaid_text
from fluidnb.viz.program.svg import file_svg
from tests.viz.programs import counting, nested, sequences
from tests.viz.test_hostile_names import hostile

STARTS = {"svg": b"<svg", "png": b"\x89PNG", "pdf": b"%PDF", "dot": b"digraph", "mermaid": b"flowchart"}


def picture(build: Callable[[], None]) -> fluid.viz.ProgramPicture:
    build()
    return read_program(fluid.default_main_program())


def test_each_option_of_the_commands_is_a_kind_of_file() -> None:
    assert set(HELP) == set(exports._KINDS) == set(STARTS)


@pytest.mark.parametrize("kind", ["svg", "dot", "mermaid"])
def test_files(kind: str, tmp_path: Path) -> None:
    check_file(kind, tmp_path)


def check_file(kind: str, tmp_path: Path) -> None:
    """Writes a program and a part of it; `test_graphviz` does so for the kinds that Graphviz draws."""
    shown = picture(counting)
    sentence = exports.export(shown, kind, str(tmp_path / "a"))
    data = (tmp_path / "a").read_bytes()
    assert data.startswith(STARTS[kind]) and sentence == f"{tmp_path / 'a'}: {len(data) / 1024:.1f} KB"
    part = select(shown, "increment")
    exports.export(part, kind, str(tmp_path / "part"))
    assert 0 < len((tmp_path / "part").read_bytes()) < len(data)


def test_text_goes_to_stdout() -> None:
    assert exports.export(picture(counting), "mermaid", "-").startswith("flowchart TD")


def test_without_graphviz_the_error_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EnforceNotMet, match="no dot on PATH"):
        exports.export(picture(counting), "png", str(tmp_path / "a.png"))
    assert list(tmp_path.iterdir()) == []


def test_an_svg_file_has_colours_of_its_own() -> None:
    text = file_svg(picture(counting))
    assert "prefers-color-scheme:dark" in text and ElementTree.fromstring(text).tag.endswith("svg")


def test_mermaid_has_each_operator_and_nested_blocks() -> None:
    lines = mermaid_text(picture(nested)).splitlines()
    ops = [op for block in fluid.default_main_program().blocks for op in block.ops]
    assert sum(":::" in line for line in lines) == len(ops)
    assert [line.strip() for line in lines if "subgraph" in line] == [
        'subgraph block_1 ["block 1"]', 'subgraph block_2 ["block 2"]',
    ]  # fmt: skip
    assert sum(line.strip() == "end" for line in lines) == 2


def test_mermaid_shows_hostile_names_as_text() -> None:
    text = mermaid_text(read_program(hostile()[0]))
    for line in text.splitlines()[1:]:
        assert re.sub(r"#\d+;", "", line).count('"') in (0, 2) and "<" not in line
    assert "#60;img src=x" in text and "\u202e" not in text


def test_the_folding_listing_has_a_search() -> None:
    shown = folding_html(select(picture(sequences), fold=["layers"]))
    assert 'type="search"' in shown and "<script" not in shown and "<details>" in shown


def test_a_picture_gives_notebooks_an_image_where_there_is_one() -> None:
    plain, drawn = Picture([[("x", "")]]), Picture([[("x", "")]], svg=lambda: "<svg/>")
    assert plain._repr_svg_() is None and drawn._repr_svg_() == "<svg/>"
