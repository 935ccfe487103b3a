"""The lesson about sequences as a widget: type lengths, move through the steps of a recurrent network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import traitlets

from fluidnb.viz.base.styled_text import Line
from fluidnb.viz.lessons.common import nearest_step
from fluidnb.viz.lessons.lod.model import parse_lengths, read_lod_lesson
from fluidnb.viz.lessons.lod.renderings import lod_lesson_html, lod_lesson_lines
from fluidnb_magics.widgets.widget import NotebookWidget, script, style


class LodLessonWidget(NotebookWidget):
    """The widget.

    Args:
        text: the lengths, as `parse_lengths` takes them.
        level: the level whose sequences are ranked.
        step: the step shown first.

    Attributes:
        shown: what the page draws.
        lesson: what the operators did.

    Raises:
        FluidError: the lengths do not fit.
    """

    _esm = script("lod_lesson")
    _css = style("lod_lesson")
    shown = traitlets.Dict().tag(sync=True)

    def __init__(self, text: str, level: int = 0, step: int = 0, **traits: Any) -> None:
        super().__init__(**traits)
        self._read(text, level, step)

    def lines(self) -> Sequence[Line]:
        """All steps as text."""
        return lod_lesson_lines(self.lesson)

    def html(self) -> str:
        """The step that is shown."""
        return lod_lesson_html(self.lesson, self.shown["step"])

    def do_type(self, text: str) -> None:
        """Other lengths; the level stays where there is one.

        Args:
            text: what was typed.
        """
        self._read(text, min(self.lesson.level, len(parse_lengths(text)) - 1), self.shown["step"])

    def do_level(self, level: int) -> None:
        """Rank the sequences of another level.

        Args:
            level: the level.
        """
        self._read(self.shown["text"], level, self.shown["step"])

    def do_go(self, step: int) -> None:
        """Show another step.

        Args:
            step: the step, from 0.
        """
        self._show(self.shown["text"], step)

    def _read(self, text: str, level: int, step: int) -> None:
        self.lesson = read_lod_lesson(parse_lengths(text), level)
        self._show(text, step)
        self.renew_still()

    def _show(self, text: str, step: int) -> None:
        lesson = self.lesson
        step = nearest_step(step, lesson.longest)
        self.shown = {
            "text": text, "step": step, "steps": lesson.longest, "level": lesson.level, "levels": len(lesson.offsets),
            "picture": lod_lesson_html(lesson, step),
        }  # fmt: skip
        self.tell("")
