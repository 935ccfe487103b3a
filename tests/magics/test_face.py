"""Shared by all widgets, without a page: commands from the page, mistakes, the static view; and the selection."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pytest

import fluidnb as fluid
from fluidnb.errors import OpValueError
from fluidnb.viz.base.styled_text import COLOURS, Line
from fluidnb_magics.display import show_widget
from fluidnb_magics.session.selection import Chosen, Selection
from fluidnb_magics.widgets.widget import NotebookWidget, script, style
from tests.magics.conftest import Session


class Counter(NotebookWidget):
    """Counts what the page asks for."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0
        self.told: list[Any] = []

    def lines(self) -> Sequence[Line]:
        return [[(f"counted {self.count}", "bold")]]

    def send(self, content: Any, buffers: Any = None) -> None:
        self.told.append(content)

    def do_add(self, n: int) -> None:
        """Add a number."""
        if n < 0:
            raise OpValueError("Only upwards.", expected="0 or more", received=n)
        self.count += n


def hear(face: NotebookWidget, **content: Any) -> None:
    face._handle_custom_msg(content, [])


def test_the_page_calls_what_begins_with_do() -> None:
    face = Counter()
    hear(face, do="add", n=3)
    assert face.count == 3 and face.told == []


def test_a_mistake_is_told_in_the_page_and_changes_nothing() -> None:
    face = Counter()
    hear(face, do="add", n=-1)
    hear(face, do="add", n="two")
    assert face.count == 0
    assert "Only upwards" in face.told[0]["problem"] and "'<' not supported" in face.told[1]["problem"]


def test_the_page_reaches_nothing_else() -> None:
    face = Counter()
    hear(face, do="close")
    hear(face, do="_on_message")
    hear(face)
    assert face.comm is not None and face.told == []


def test_the_static_face_is_in_the_same_bundle() -> None:
    bundle, _ = Counter()._repr_mimebundle_()
    assert bundle["text/plain"] == "counted 0" and "counted 0</span>" in bundle["text/html"]
    assert "application/vnd.jupyter.widget-view+json" in bundle


def test_a_terminal_shows_the_text_face(session: Session) -> None:
    session.names["face"] = Counter()
    session.names["show"] = lambda face: show_widget(session.shell, face)
    assert "counted 0" in session.run("show(face)")


def test_roles_have_their_colours_in_the_widgets_too() -> None:
    text = re.sub(r"\s+", " ", style("shared"))
    for role, colour in COLOURS.items():
        [variable] = set(re.findall(rf"(--fw-\w+): color-mix\(in srgb, {colour} 50%, var\(--fw-text\)\);", text))
        assert re.search(rf"\.p-{role}[^{{]*{{ color: var\({variable}\); }}", text), role


def test_scripts_fetch_nothing_and_need_no_build() -> None:
    text = script("shared") + style("shared")
    assert not re.search(r"https?://|\bimport\b|\brequire\(|@import", text)


def test_selecting_tells_all_others_once() -> None:
    seen: list[Chosen | None] = []
    selection, program = Selection(), fluid.Program()
    selection.observe(seen.append)
    chosen = Chosen(program, ((0, 1),))
    selection.choose(chosen)
    selection.choose(Chosen(program, ((0, 1),)))
    selection.choose(None)
    selection.forget(seen.append)
    selection.choose(chosen)
    assert seen == [chosen, None]


@pytest.mark.parametrize("name", ["nothing", "../face"])
def test_there_is_no_other_script(name: str) -> None:
    with pytest.raises(FileNotFoundError):
        script(name)
