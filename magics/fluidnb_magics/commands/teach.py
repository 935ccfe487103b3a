"""``%fluid teach``: interactive lessons."""

from __future__ import annotations

from typing import Any

from IPython.core.magic_arguments import argument, magic_arguments

from fluidnb.extras import is_installed
from fluidnb.program import Program
from fluidnb.viz.lessons.backward.examples import EXAMPLES, likely_loss
from fluidnb.viz.lessons.backward.model import read_backward_example, read_backward_lesson
from fluidnb.viz.lessons.backward.renderings import backward_lesson_html, backward_lesson_lines
from fluidnb.viz.lessons.lod.model import parse_lengths, read_lod_lesson
from fluidnb.viz.lessons.lod.renderings import lod_lesson_html, lod_lesson_lines
from fluidnb.viz.lessons.optimizer.choices import DECAYS, OPTIMIZERS, SCHEDULES, SURFACES
from fluidnb.viz.lessons.optimizer.model import parse_choice, read_optimizer_lesson
from fluidnb.viz.lessons.optimizer.renderings import optimizer_lesson_html, optimizer_lesson_lines
from fluidnb_magics.arguments import parse_argstring, positive, unquoted
from fluidnb_magics.commands._command import Section, UsageError, command, show, show_widget, width
from fluidnb_magics.session.workbench import DEFAULT, Workbench


def lesson_words(bench: Workbench, words: list[str]) -> list[str]:
    """The names of the lessons, and their options."""
    if not words:
        return list(LESSONS)
    if words[-1] == "--example":
        return list(EXAMPLES)
    shared = ["--step", "--text"]
    if words[0] == "optimizer":
        return [*SURFACES, *OPTIMIZERS, "--steps", *shared]
    if words[0] == "backward":
        cells = [placed.title for placed in bench.cells]
        return [*bench.programs, *cells, *EXAMPLES, "--loss", "--no-grad", "--example", *shared]
    return ["--level", *shared] if words[0] == "lod" else []


@command(Section.INSPECT, "teach backward", lesson_words, raw=True)
def teach(bench: Workbench, line: str) -> None:
    """::

      %fluid teach lod [LENGTHS] [--level N] [--step N]
      %fluid teach optimizer [SURFACE] [NAME[:RATE[:SCHEDULE[:PENALTY]]] ...] [--steps N] [--step N]
      %fluid teach backward [CELL|PROGRAM] [--loss NAME] [--no-grad NAME ...] [--example NAME] [--step N]

    Interactive lessons: LoD sequences, optimizers on a surface, append_backward.

    ``%fluid teach LESSON --help`` describes one of them.
    """
    word, _, rest = line.strip().partition(" ")
    lesson = LESSONS.get(word)
    if lesson is None:
        raise UsageError(f"Unknown lesson {word!r}; choose {', '.join(LESSONS)}." if word else teach.help)
    if rest.strip() in ("--help", "-h"):
        print((lesson.__doc__ or "").removeprefix("::\n"))
    else:
        lesson(bench, rest)


@magic_arguments("fluid teach lod")
@argument("lengths", nargs="*", help="of the sequences: 5 3 2 4, or with two levels 2 1 / 2 3 1")
@argument("--level", type=int, default=0, help="the level whose sequences are ranked (0)")
@argument("--step", type=int, help="one step of the network, from 0; all of them if left out")
@argument("--text", action="store_true", help="as text, also in a notebook")
def lod(bench: Workbench, line: str) -> None:
    """Sequences of different lengths in a recurrent network: LoD, rank table, batch of each step, shrinking memory.

    The lesson runs the real operators.
    """
    args = parse_argstring(lod, line)
    text = unquoted(" ".join(args.lengths)) or "5 3 2 4"
    if _by_widget(bench, args.text):
        from fluidnb_magics.widgets.lessons import LodLessonWidget

        show_widget(bench.shell, LodLessonWidget(text, args.level, args.step or 0))
        return
    lesson = read_lod_lesson(parse_lengths(text), args.level)
    lines = lod_lesson_lines(lesson, args.step, width(bench.shell))
    show(bench.shell, lines, None if args.text else lambda: lod_lesson_html(lesson, args.step or 0))


@magic_arguments("fluid teach optimizer")
@argument(
    "what", nargs="*",
    help=f"a surface ({', '.join(SURFACES)}), then optimizers ({', '.join(OPTIMIZERS)}), each as "
    f"NAME[:RATE[:SCHEDULE[:PENALTY]]]; schedules: {', '.join(SCHEDULES)}; penalties: {', '.join(DECAYS)}",
)  # fmt: skip
@argument("--steps", type=positive, default=60, help="how many steps each takes (60)")
@argument("--step", type=int, default=-1, help="show the state after this many steps; all if left out")
@argument("--text", action="store_true", help="as text, also in a notebook")
def optimizer(bench: Workbench, line: str) -> None:
    """Optimizers compared on a surface: their paths, their accumulators, the operators that they append.

    Each optimizer is a Fluid program that is run step by step.
    """
    args = parse_argstring(optimizer, line)
    named = args.what[:1] if args.what and args.what[0].lower() in SURFACES else []
    words = args.what[len(named) :] or ["SGD", "Momentum", "Adam"]
    surface, choices = (*named, "bowl")[0], [parse_choice(word) for word in words]
    if _by_widget(bench, args.text):
        from fluidnb_magics.widgets.lessons import OptimizerLessonWidget

        show_widget(bench.shell, OptimizerLessonWidget(surface, choices, args.steps, args.step))
        return
    lesson = read_optimizer_lesson(surface, choices, args.steps)
    lines = optimizer_lesson_lines(lesson, args.step, width(bench.shell))
    show(bench.shell, lines, None if args.text else lambda: optimizer_lesson_html(lesson, args.step))


@magic_arguments("fluid teach backward")
@argument("what", nargs="?", help="a cell, a program or an example; default the program if it has a loss")
@argument("--loss", metavar="NAME", help="the loss, where there are several")
@argument("--no-grad", nargs="+", default=[], metavar="NAME", help="variables that get no gradient")
@argument("--example", choices=tuple(EXAMPLES), help="a program of the lesson's own")
@argument("--step", type=int, help="one step, from 0; all of them if left out, or those of the cell")
@argument("--text", action="store_true", help="as text, also in a notebook")
def backward(bench: Workbench, line: str) -> None:
    """The steps by which append_backward appends gradient operators.

    Each step shows the forward operator, the result of its gradient maker, the variables that are renamed and summed,
    and those without a gradient. Your program does not change.
    """
    args = parse_argstring(backward, line)
    cell = next((p for p in bench.cells if p.is_called(args.what)), None) if args.what else None
    wanted = args.example or (args.what if cell is None and args.what not in bench.programs else None)
    name = cell.cell.program or DEFAULT if cell is not None else args.what or DEFAULT
    program = bench.existing(DEFAULT if wanted in EXAMPLES else name)[0]
    if wanted in EXAMPLES or (args.what is None and args.loss is None and likely_loss(program) is None):
        lesson = read_backward_example(wanted or "shared", args.no_grad)
    else:
        lesson = read_backward_lesson(program, args.loss, name, args.no_grad)
    chosen = None if cell is None else lesson.steps_of_cell(cell.title)
    chosen = chosen if args.step is None else [args.step]
    first = (chosen or [0])[0]
    if _by_widget(bench, args.text):
        from fluidnb_magics.widgets.lessons import BackwardLessonWidget

        def programs() -> dict[str, Program]:
            return {name: main for name, (main, _) in bench.programs.items()}

        show_widget(bench.shell, BackwardLessonWidget(programs, lesson, first))
        return
    lines = backward_lesson_lines(lesson, chosen, width(bench.shell))
    show(bench.shell, lines, None if args.text else lambda: backward_lesson_html(lesson, first))


def _by_widget(bench: Workbench, text: bool) -> bool:
    """Whether a lesson is a widget here: in a notebook where widgets are installed, unless text is wanted."""
    return not (text or getattr(bench.shell, "kernel", None) is None) and is_installed("anywidget")


#: lesson -> command
LESSONS: dict[str, Any] = {"lod": lod, "optimizer": optimizer, "backward": backward}
