"""What lessons share: programs of their own, so that nothing of the user's changes, and steps as pages."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from fluidnb.errors import FluidError
from fluidnb.program import Program, program_guard, unique_name
from fluidnb.visible import escape


@contextmanager
def isolated_programs() -> Iterator[tuple[Program, Program]]:
    """Build in programs of a lesson: new ones, with names of their own.

    Errors show no line of the user's, who wrote none of these programs.

    Example:
        >>> with isolated_programs() as (main, startup):
        ...     x = fluid.layers.data("x", [1])
        >>> main is fluid.default_main_program()
        False
    """
    main, startup = Program(), Program()
    try:
        with unique_name.guard(), program_guard(main, startup):
            yield main, startup
    except FluidError as error:
        error.where = None
        raise


def nearest_step(step: int, count: int) -> int:
    """The step nearest to a wanted one that there is.

    Args:
        step: what is wanted; a negative one counts from the end.

    Example:
        >>> nearest_step(9, 4), nearest_step(-1, 4), nearest_step(0, 0)
        (3, 3, 0)
    """
    return max(0, min(step + count if step < 0 else step, count - 1))


def caption(term: str, words: str) -> str:
    """A thing that is shown and what it means, as HTML.

    Example:
        >>> caption("offsets", "Where sequences begin.").count("<b>offsets</b>")
        1
    """
    return f'<div style="max-width:62em;margin:3px 0"><b>{escape(term)}</b>  {escape(words)}</div>'
