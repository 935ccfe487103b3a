"""The lesson about backward as a widget: step through how append_backward writes its operators."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import traitlets

from fluidnb.errors import NotFound
from fluidnb.program import Program
from fluidnb.viz.base.styled_text import Line
from fluidnb.viz.lessons.backward.examples import EXAMPLES
from fluidnb.viz.lessons.backward.model import BackwardLesson, read_backward_example, read_backward_lesson
from fluidnb.viz.lessons.backward.renderings import backward_lesson_html, backward_lesson_lines
from fluidnb.viz.lessons.common import nearest_step
from fluidnb_magics.widgets.widget import NotebookWidget, script, style

#: How the lesson's own programs are called among those of the user.
OWN = "example "


class BackwardLessonWidget(NotebookWidget):
    """The widget.

    Args:
        programs: gives the user's programs by name.
        lesson: what is shown first.
        step: the step shown first.

    Attributes:
        shown: what the page draws.
        lesson: the steps of backward.
    """

    _esm = script("backward_lesson")
    _css = style("backward_lesson")
    shown = traitlets.Dict().tag(sync=True)

    def __init__(
        self, programs: Callable[[], Mapping[str, Program]], lesson: BackwardLesson, step: int = 0, **traits: Any
    ) -> None:
        super().__init__(**traits)
        self._programs = programs
        self._show(lesson, step)

    def lines(self) -> Sequence[Line]:
        """All steps as text."""
        return backward_lesson_lines(self.lesson)

    def html(self) -> str:
        """The step that is shown."""
        return backward_lesson_html(self.lesson, self.shown["step"])

    def do_program(self, name: str) -> None:
        """Another program, from its first step.

        Args:
            name: one of those that the page was told.
        """
        self._show(self._read(name, None, ()), 0)
        self.renew_still()

    def do_no_grad(self, text: str) -> None:
        """Exclude other variables.

        Args:
            text: their names, with blanks or commas between them.
        """
        names = tuple(text.replace(",", " ").split())
        self._show(self._read(self.lesson.title, self.lesson.loss, names), self.shown["step"])
        self.renew_still()

    def do_go(self, step: int) -> None:
        """Show another step.

        Args:
            step: the step, from 0; -1 for the last.
        """
        self._show(self.lesson, step)

    def _read(self, title: str, loss: str | None, no_grad: Sequence[str]) -> BackwardLesson:
        if title.removeprefix(OWN) in EXAMPLES and title.startswith(OWN):
            return read_backward_example(title.removeprefix(OWN), no_grad)
        program = self._programs().get(title)
        if program is None:
            raise NotFound(f"there is no program {title} any more.", received=title)
        return read_backward_lesson(program, loss, title, no_grad)

    def _show(self, lesson: BackwardLesson, step: int) -> None:
        self.lesson = lesson
        step = nearest_step(step, len(lesson.steps))
        own = [OWN + name for name in EXAMPLES]
        theirs = [name for name, program in self._programs().items() if program.desc.blocks[0].ops]
        self.shown = {
            "program": lesson.title, "programs": [*theirs, *own], "step": step, "steps": len(lesson.steps),
            "no_grad": " ".join(lesson.no_grad), "picture": backward_lesson_html(lesson, step),
        }  # fmt: skip
        self.tell("")
