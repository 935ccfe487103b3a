"""The lesson about optimizers as a widget: choose several, their rates and schedules, and move through the steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import traitlets

from fluidnb.viz.base.curves import PALETTE
from fluidnb.viz.base.styled_text import Line
from fluidnb.viz.lessons.common import nearest_step
from fluidnb.viz.lessons.optimizer.choices import DECAYS, OPTIMIZERS, SCHEDULES, SURFACES
from fluidnb.viz.lessons.optimizer.model import Choice, parse_choice, read_optimizer_lesson
from fluidnb.viz.lessons.optimizer.renderings import optimizer_lesson_html, optimizer_lesson_lines
from fluidnb_magics.widgets.widget import NotebookWidget, script, style


class OptimizerLessonWidget(NotebookWidget):
    """The widget.

    Args:
        surface: a key of `SURFACES`.
        choices: the optimizers.
        steps: how many steps they take.
        step: how many of them are shown at first; -1 for all.

    Attributes:
        kinds: what can be chosen, with a sentence each.
        shown: what the page draws.
        lesson: the ways of the optimizers.

    Raises:
        FluidError: see `read_optimizer_lesson`.
    """

    _esm = script("optimizer_lesson")
    _css = style("optimizer_lesson")
    kinds = traitlets.Dict().tag(sync=True)
    shown = traitlets.Dict().tag(sync=True)

    def __init__(self, surface: str, choices: Sequence[Choice], steps: int = 60, step: int = -1, **traits: Any) -> None:
        super().__init__(**traits)
        tables: dict[str, Any] = {
            "surfaces": SURFACES, "optimizers": OPTIMIZERS, "schedules": SCHEDULES, "decays": DECAYS,
        }  # fmt: skip
        self.kinds = {what: {name: kind.words for name, kind in table.items()} for what, table in tables.items()}
        self._focus = 0
        self._read(surface, choices, steps, step)

    def lines(self) -> Sequence[Line]:
        """The step that is shown as text."""
        return optimizer_lesson_lines(self.lesson, self.shown["step"])

    def html(self) -> str:
        """The step that is shown."""
        return optimizer_lesson_html(self.lesson, self.shown["step"], self._focus)

    def do_surface(self, name: str) -> None:
        """Another surface.

        Args:
            name: a key of `SURFACES`.
        """
        self._read(name, self._choices(), self.lesson.steps, self.shown["step"])

    def do_choose(self, index: int, name: str, rate: str, schedule: str, decay: str) -> None:
        """Change an optimizer; one of another kind begins with its own rate.

        Args:
            index: which one.
            name: a key of `OPTIMIZERS`.
            rate: the learning rate, as typed; empty for the optimizer's own.
            schedule: a key of `SCHEDULES`.
            decay: a key of `DECAYS`.
        """
        choices = self._choices()
        choices[index] = parse_choice(":".join([name, rate.strip(), schedule, decay]))
        self._read(self.lesson.surface, choices, self.lesson.steps, self.shown["step"], index)

    def do_add(self) -> None:
        """Add the first optimizer that is not there yet."""
        there = {choice.name for choice in self._choices()}
        name = next((n for n in OPTIMIZERS if n not in there), "SGD")
        choices = [*self._choices(), parse_choice(name)]
        self._read(self.lesson.surface, choices, self.lesson.steps, self.shown["step"], len(choices) - 1)

    def do_remove(self, index: int) -> None:
        """Take an optimizer away.

        Args:
            index: which one.
        """
        choices = [choice for i, choice in enumerate(self._choices()) if i != index]
        self._read(self.lesson.surface, choices, self.lesson.steps, self.shown["step"], 0)

    def do_steps(self, count: int) -> None:
        """Let them take another number of steps, and show all.

        Args:
            count: how many.
        """
        self._read(self.lesson.surface, self._choices(), count, -1)

    def do_focus(self, index: int) -> None:
        """Show one of them in full.

        Args:
            index: which one.
        """
        self._focus = nearest_step(index, len(self.lesson.tracks))
        self._show(self.shown["step"])

    def do_go(self, step: int) -> None:
        """Show another step.

        Args:
            step: how many steps have been taken; -1 for all.
        """
        self._show(step)

    def _choices(self) -> list[Choice]:
        return [track.choice for track in self.lesson.tracks]

    def _read(self, surface: str, choices: Sequence[Choice], steps: int, step: int, focus: int | None = None) -> None:
        self.lesson = read_optimizer_lesson(surface, choices, steps)
        self._focus = nearest_step(self._focus if focus is None else focus, len(choices))
        self._show(step)
        self.renew_still()

    def _show(self, step: int) -> None:
        lesson = self.lesson
        step = nearest_step(step, lesson.steps + 1)
        self.shown = {
            "surface": lesson.surface, "steps": lesson.steps, "step": step, "focus": self._focus,
            "choices": [
                {"name": c.name, "rate": f"{c.rate:g}", "schedule": c.schedule, "decay": c.decay, "colour": colour}
                for c, colour in zip(self._choices(), PALETTE, strict=False)
            ],
            "picture": optimizer_lesson_html(lesson, step, self._focus),
        }  # fmt: skip
        self.tell("")
