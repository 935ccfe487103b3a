"""Shared parts of lessons: isolated programs, steps, captions."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from fluidnb.errors import FluidError
from fluidnb.program import Program, program_guard, unique_name
from fluidnb.utils.escapes import escape


def without_line(error: FluidError) -> FluidError:
    """An error without the user's line, where no line of the user's causes it."""
    error.where = None
    return error


@contextmanager
def isolated_programs() -> Iterator[tuple[Program, Program]]:
    """Builds in new programs with separate names, so that programs of the user do not change."""
    main, startup = Program(), Program()
    try:
        with unique_name.guard(), program_guard(main, startup):
            yield main, startup
    except FluidError as error:
        without_line(error)
        raise


def nearest_step(step: int, count: int) -> int:
    """The existing step nearest to a requested one, which counts from the end if negative.

    Example:
        >>> nearest_step(9, 4), nearest_step(-1, 4), nearest_step(0, 0)
        (3, 3, 0)
    """
    return max(0, min(step + count if step < 0 else step, count - 1))


def caption(term: str, words: str) -> str:
    """A term and its explanation as HTML."""
    return f'<div style="max-width:62em;margin:3px 0"><b>{escape(term)}</b>  {escape(words)}</div>'


def legend(terms: Mapping[str, str]) -> str:
    """The collapsed legend of a lesson: terms and their explanations as HTML."""
    captions = "".join(caption(term, words) for term, words in terms.items())
    return f'<details><summary style="cursor:pointer">Legend</summary>{captions}</details>'
