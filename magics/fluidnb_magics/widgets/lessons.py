"""The lessons as widgets: LoD batches, optimizers, append_backward."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import traitlets

from fluidnb.errors import NotFound
from fluidnb.program import Program
from fluidnb.viz.base.curves import PALETTE
from fluidnb.viz.base.styled_text import Line
from fluidnb.viz.lessons.backward.examples import EXAMPLES
from fluidnb.viz.lessons.backward.model import BackwardLesson, read_backward_example, read_backward_lesson
from fluidnb.viz.lessons.backward.renderings import backward_lesson_html, backward_lesson_lines
from fluidnb.viz.lessons.common import nearest_step
from fluidnb.viz.lessons.lod.model import parse_lengths, read_lod_lesson
from fluidnb.viz.lessons.lod.renderings import lod_lesson_html, lod_lesson_lines
from fluidnb.viz.lessons.optimizer.choices import DECAYS, OPTIMIZERS, SCHEDULES, SURFACES
from fluidnb.viz.lessons.optimizer.model import Choice, parse_choice, read_optimizer_lesson
from fluidnb.viz.lessons.optimizer.renderings import optimizer_lesson_html, optimizer_lesson_lines
from fluidnb_magics.widgets.widget import NotebookWidget, script, style

_OWN = "example "  # prefix of the titles of the lesson's own programs


class LessonWidget(NotebookWidget):
    """A lesson of which the page shows one step; a subclass has `picture` and `state`."""

    shown = traitlets.Dict().tag(sync=True)  # the step, its picture, and the state of the controls
    lesson: Any  # the model

    def __init__(self, lesson: Any, step: int, **traits: Any) -> None:
        self.lesson = lesson
        # Complete when the page hears of it: nbclassic may lose what is sent while it still loads the widget's class.
        super().__init__(shown=self._shown(step), **traits)

    def picture(self, step: int) -> str:
        """The HTML rendering of a step."""
        raise NotImplementedError

    def state(self, step: int) -> dict[str, Any]:
        """The existing step nearest to a requested one, the number of steps, and the state of the other controls."""
        raise NotImplementedError

    def html(self) -> str:
        return self.picture(self.shown["step"])

    def do_go(self, step: int) -> None:
        """Shows another step, from 0; -1 for the last."""
        self.shown = self._shown(step)
        self.report("")

    def _shown(self, step: int) -> dict[str, Any]:
        state = self.state(step)
        return {**state, "picture": self.picture(state["step"])}

    def _show(self, lesson: Any, step: int) -> None:
        """Shows another lesson."""
        self.lesson = lesson
        self.do_go(step)
        self.update_static()


class LodLessonWidget(LessonWidget):
    """The lesson about LoD batches: type lengths, move through the steps of a recurrent network."""

    _esm = script("lesson", "lod_lesson")
    _css = style("lesson", "lod_lesson")

    def __init__(self, text: str, level: int = 0, step: int = 0, **traits: Any) -> None:
        self._text = text
        super().__init__(read_lod_lesson(parse_lengths(text), level), step, **traits)

    def lines(self) -> Sequence[Line]:
        return lod_lesson_lines(self.lesson)

    def picture(self, step: int) -> str:
        return lod_lesson_html(self.lesson, step)

    def state(self, step: int) -> dict[str, Any]:
        lesson = self.lesson
        return {
            "text": self._text, "step": nearest_step(step, lesson.longest), "steps": lesson.longest,
            "level": lesson.level, "levels": len(lesson.offsets),
        }  # fmt: skip

    def do_type(self, text: str) -> None:
        """Shows other lengths; the level stays where there is one."""
        self._read(text, min(self.lesson.level, len(parse_lengths(text)) - 1), self.shown["step"])

    def do_level(self, level: int) -> None:
        """Ranks the sequences of another level."""
        self._read(self._text, level, self.shown["step"])

    def _read(self, text: str, level: int, step: int) -> None:
        lesson = read_lod_lesson(parse_lengths(text), level)
        self._text = text
        self._show(lesson, step)


class OptimizerLessonWidget(LessonWidget):
    """The lesson about optimizers: several of them, their rates and schedules, and their steps."""

    _esm = script("lesson", "optimizer_lesson")
    _css = style("lesson", "optimizer_lesson")
    kinds = traitlets.Dict().tag(sync=True)

    def __init__(self, surface: str, choices: Sequence[Choice], steps: int = 60, step: int = -1, **traits: Any) -> None:
        tables: dict[str, Any] = {
            "surfaces": SURFACES, "optimizers": OPTIMIZERS, "schedules": SCHEDULES, "decays": DECAYS,
        }  # fmt: skip
        kinds = {what: {name: kind.words for name, kind in table.items()} for what, table in tables.items()}
        self._focus = 0
        super().__init__(read_optimizer_lesson(surface, choices, steps), step, kinds=kinds, **traits)

    def lines(self) -> Sequence[Line]:
        return optimizer_lesson_lines(self.lesson, self.shown["step"])

    def picture(self, step: int) -> str:
        return optimizer_lesson_html(self.lesson, step, self._focus)

    def state(self, step: int) -> dict[str, Any]:
        lesson = self.lesson
        return {
            "surface": lesson.surface, "steps": lesson.steps, "step": nearest_step(step, lesson.steps + 1),
            "focus": self._focus,
            "choices": [
                {"name": c.name, "rate": f"{c.rate:g}", "schedule": c.schedule, "decay": c.decay, "colour": colour}
                for c, colour in zip(self._choices(), PALETTE, strict=False)
            ],
        }  # fmt: skip

    def do_surface(self, name: str) -> None:
        self._show(read_optimizer_lesson(name, self._choices(), self.lesson.steps), self.shown["step"])

    def do_choose(self, index: int, name: str, rate: str, schedule: str, decay: str) -> None:
        """Changes an optimizer; without a rate, as for another kind, it gets its own default rate."""
        choices = self._choices()
        choices[index] = parse_choice(":".join([name, rate.strip(), schedule, decay]))
        self._compare(choices, index)

    def do_add(self) -> None:
        """Adds the first optimizer that is not there yet."""
        there = {choice.name for choice in self._choices()}
        choices = [*self._choices(), parse_choice(next((n for n in OPTIMIZERS if n not in there), "SGD"))]
        self._compare(choices, len(choices) - 1)

    def do_remove(self, index: int) -> None:
        self._compare([choice for i, choice in enumerate(self._choices()) if i != index], 0)

    def do_steps(self, count: int) -> None:
        """Takes another number of steps, and shows all."""
        self._show(read_optimizer_lesson(self.lesson.surface, self._choices(), count), -1)

    def do_focus(self, index: int) -> None:
        """Shows one of them in detail."""
        self._focus = nearest_step(index, len(self.lesson.tracks))
        self.do_go(self.shown["step"])

    def _choices(self) -> list[Choice]:
        return [track.choice for track in self.lesson.tracks]

    def _compare(self, choices: Sequence[Choice], focus: int) -> None:
        lesson = read_optimizer_lesson(self.lesson.surface, choices, self.lesson.steps)
        self._focus = nearest_step(focus, len(choices))
        self._show(lesson, self.shown["step"])


class BackwardLessonWidget(LessonWidget):
    """The lesson about append_backward: the steps in which it appends operators."""

    _esm = script("lesson", "backward_lesson")
    _css = style("lesson", "backward_lesson")

    def __init__(
        self, programs: Callable[[], Mapping[str, Program]], lesson: BackwardLesson, step: int = 0, **traits: Any
    ) -> None:
        self._programs = programs
        super().__init__(lesson, step, **traits)

    def lines(self) -> Sequence[Line]:
        return backward_lesson_lines(self.lesson)

    def picture(self, step: int) -> str:
        return backward_lesson_html(self.lesson, step)

    def state(self, step: int) -> dict[str, Any]:
        lesson, count = self.lesson, len(self.lesson.steps)
        theirs = [name for name, program in self._programs().items() if program.desc.blocks[0].ops]
        return {
            "program": lesson.title, "programs": [*theirs, *(_OWN + name for name in EXAMPLES)],
            "step": nearest_step(step, count), "steps": count, "no_grad": " ".join(lesson.no_grad),
        }  # fmt: skip

    def do_program(self, name: str) -> None:
        """Shows another program, from its first step."""
        self._show(self._read(name, None, ()), 0)

    def do_no_grad(self, text: str) -> None:
        """Excludes other variables."""
        names = tuple(text.replace(",", " ").split())
        self._show(self._read(self.lesson.title, self.lesson.loss, names), self.shown["step"])

    def _read(self, title: str, loss: str | None, no_grad: Sequence[str]) -> BackwardLesson:
        example = title.removeprefix(_OWN)
        if title.startswith(_OWN) and example in EXAMPLES:
            return read_backward_example(example, no_grad)
        program = self._programs().get(title)
        if program is None:
            raise NotFound(f"there is no program {title} any more.", received=title)
        return read_backward_lesson(program, loss, title, no_grad)
