"""The default main and startup programs, and the ways to put others in their place."""

from collections.abc import Iterator
from contextlib import contextmanager

from fluidnb.arguments import checked
from fluidnb.errors import OpTypeError, typed
from fluidnb.program import unique_name as names
from fluidnb.program.program import Program
from fluidnb.program.variable import Variable
from fluidnb.utils.source_location import capture

_main = Program()
_startup = Program()


def default_main_program() -> Program:
    """The program to which layers append."""
    return _main


def default_startup_program() -> Program:
    """The program to which layers append the operators that initialize parameters."""
    return _startup


@checked
def switch_main_program(program: Program) -> Program:
    """Make another program the default main program, and return the former one.

    Example:
        >>> p = Program(); before = switch_main_program(p)
        >>> default_main_program() is p, switch_main_program(before) is p
        (True, True)
    """
    global _main
    before, _main = _main, _checked(program, "main_program")
    return before


@checked
def switch_startup_program(program: Program) -> Program:
    """Make another program the default startup program; as `switch_main_program`."""
    global _startup
    before, _startup = _startup, _checked(program, "startup_program")
    return before


@checked
@contextmanager
def program_guard(main_program: Program, startup_program: Program | None = None) -> Iterator[None]:
    """Make other programs the default ones inside a ``with``.

    Args:
        startup_program: the default startup program inside; unchanged when left out.

    Example:
        >>> main = Program()
        >>> with program_guard(main):
        ...     default_main_program() is main
        True
    """
    _checked(main_program, "main_program")
    if startup_program is not None:
        _checked(startup_program, "startup_program")
    main, startup = _main, _startup
    switch_main_program(main_program)
    if startup_program is not None:
        switch_startup_program(startup_program)
    try:
        yield
    finally:
        switch_main_program(main)
        switch_startup_program(startup)


@contextmanager
def fresh_programs() -> Iterator[tuple[Program, Program]]:
    """New default programs (main, startup), and names that start again, inside a ``with``.

    Example:
        >>> with fresh_programs() as (main, startup):
        ...     default_main_program() is main, names.generate("fc")
        (True, 'fc_0')
    """
    main, startup = Program(), Program()
    with program_guard(main, startup), names.guard():
        yield main, startup


def startup_of(program: Program) -> Program | None:
    """The startup program of the default main program; None for other programs."""
    return _startup if program is _main else None


def called(program: Program) -> str:
    """``the default main program`` and the like, or an empty text for other programs."""
    if program is _main:
        return "the default main program"
    return "the default startup program" if program is _startup else ""


@checked
def get_var(name: str, program: Program | None = None) -> Variable:
    """A variable of the global block of a program, by default the main program; OpValueError when there is none."""
    return _checked(_main if program is None else program, "program").global_block().var(name)


def _checked(program: Program, what: str) -> Program:
    if not isinstance(program, Program):
        raise OpTypeError(
            f"{what} should be a Program.", where=capture(2), expected="a Program",
            received=typed(program), hint="fluid.Program() makes one.",
        )  # fmt: skip
    return program
