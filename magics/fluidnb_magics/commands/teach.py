"""``%fluid teach``: lessons that run the real thing and show what it does."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from IPython.core.error import UsageError
from IPython.core.magic_arguments import argument, magic_arguments, parse_argstring

from fluidnb.errors import near
from fluidnb.viz import lines_html
from fluidnb.viz.lod_lesson import parse_lengths, read_lod_lesson
from fluidnb.viz.lod_lesson_faces import lod_lesson_html, lod_lesson_lines
from fluidnb_magics.expressions import unquoted
from fluidnb_magics.showing import show
from fluidnb_magics.workbench import Workbench


def teach(bench: Workbench, line: str) -> None:
    """::

      %fluid teach lod [LENGTHS] [--level N] [--step N]

    Learn by trying: sequences and their steps, optimizers on a surface, how gradients are written.

    ``%fluid teach LESSON --help`` says more about one of them.
    """
    word, _, rest = line.strip().partition(" ")
    lesson = LESSONS.get(word)
    if lesson is None:
        raise UsageError(f"There is no lesson {word}. {near(word, LESSONS)}".rstrip() if word else teach.__doc__ or "")
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
    """Sequences of different lengths: the LoD, the rank table, the batch of each step of a recurrent network, and the
    memory that shrinks. The operators themselves are run.
    """
    args = parse_argstring(lod, line)
    text = unquoted(" ".join(args.lengths)) or "5 3 2 4"
    if _by_widget(bench, args.text):
        from fluidnb_magics.widgets.face import show_face
        from fluidnb_magics.widgets.lod_lesson import LodLessonFace

        show_face(bench.shell, LodLessonFace(text, args.level, args.step or 0))
        return
    lesson = read_lod_lesson(parse_lengths(text), args.level)
    lines = lod_lesson_lines(lesson, args.step)
    show(bench.shell, lines, lambda: lines_html(lines) if args.text else lod_lesson_html(lesson, args.step or 0))


def _by_widget(bench: Workbench, text: bool) -> bool:
    """Whether a lesson is a widget here: in a notebook where widgets are installed, unless text is wanted."""
    return not (text or getattr(bench.shell, "kernel", None) is None) and find_spec("anywidget") is not None


#: lesson -> command
LESSONS: dict[str, Any] = {"lod": lod}
