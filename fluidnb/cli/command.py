"""Definition of a subcommand of ``fluidnb``."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Command:
    """One word of ``fluidnb``.

    Args:
        summary: what it does, one line.
        arguments: declares its arguments.
        run: does it; returns the exit status. Errors are FluidErrors.
        rest: what arguments that it does not know are for, when it hands them on; they come as ``options.rest``.
        example: lines for the end of its help.

    Example:
        >>> Command("Say hello.", lambda parser: None, lambda options: 0).run(Namespace())
        0
    """

    summary: str
    arguments: Callable[[ArgumentParser], None]
    run: Callable[[Namespace], int]
    rest: str = ""
    example: str = ""
