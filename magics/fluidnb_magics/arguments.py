"""Parses the arguments of magics: options, Python expressions, variable names, ``NAME=EXPR`` pairs."""

from __future__ import annotations

import re
from argparse import ArgumentTypeError
from collections.abc import Iterable, Mapping
from typing import Any

from IPython.core import magic_arguments
from IPython.core.error import UsageError

from fluidnb.errors import FluidError, NotFound, near
from fluidnb.expressions import code_of, tree_of
from fluidnb.program import Program, Variable


def parse_argstring(magic: Any, line: str) -> Any:
    """The arguments of a magic, as IPython parses them.

    Args:
        magic: the function with its declared arguments.
        line: what follows its name.

    Raises:
        UsageError: they do not fit, or a quote is not closed.
    """
    try:
        return magic_arguments.parse_argstring(magic, line)
    except ValueError as error:  # of shlex
        raise UsageError(f"{error}: {line!r}. Close every quote, or write a \\ before it.") from None


def evaluate(text: str, names: Mapping[str, Any]) -> Any:
    """The value of a Python expression.

    Args:
        text: the expression.
        names: the user's names; ``np`` and ``fluid`` are there in any case.

    Returns:
        The value.

    Raises:
        UsageError: it is not an expression, or has no value.

    Example:
        >>> evaluate("np.ones(n).shape", {"n": 2})
        (2,)
    """
    import numpy as np

    import fluidnb as fluid

    try:
        code = code_of(text, "<option>")
    except SyntaxError:
        raise UsageError(f"{text!r} is not a Python expression; put quotes around it if it has spaces.") from None
    try:
        return eval(code, {"np": np, "fluid": fluid, **names})
    except FluidError:
        raise
    except Exception as error:
        raise UsageError(f"{text}: {type(error).__name__}: {error}") from error


def pairs(words: Iterable[str]) -> dict[str, str]:
    """``NAME=EXPR`` pairs from the words of a line, whose expressions may have had spaces.

    Args:
        words: what the line was split into.

    Returns:
        name -> expression.

    Raises:
        UsageError: the first word starts no pair.

    Example:
        >>> pairs(["x=np.ones((2,", "3))", "y=1"])
        {'x': 'np.ones((2, 3))', 'y': '1'}
    """
    found: dict[str, str] = {}
    name = ""
    for word in words:
        start = re.match(r"([\w.@/-]+)=(?!=)", unquoted(word))
        if start and (not name or _is_whole(found[name])):
            name = start[1]
            found[name] = unquoted(word)[start.end() :]
        elif not name:
            raise UsageError(f"{word!r} is no NAME=EXPR.")
        else:
            found[name] += " " + word
    return found


def variables(words: Iterable[str], program: Program, names: Mapping[str, Any]) -> list[Variable]:
    """The variables that words mean: Python names of variables, or names in the program.

    Args:
        words: the words; one may hold several, with commas.
        program: the program.
        names: the user's names.

    Returns:
        The variables.

    Raises:
        NotFound: a word means none.
    """
    block = program.global_block()
    found = []
    for word in (w for text in words for w in unquoted(text).split(",") if w):
        value = names.get(word)
        if isinstance(value, Variable) and value.block.program is program:
            found.append(value)
        elif block.has_var(word):
            found.append(block.var(word))
        else:
            known = list(program.desc.blocks[0].vars)
            raise NotFound(
                f"the program has no variable {word}.", received=word, hint=near(word, known) or "%fluid show draws it."
            )
    return found


def unquoted(text: str) -> str:
    """A word without the quotes around it."""
    if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'" and text[0] not in text[1:-1]:
        return text[1:-1]
    return text


def positive(text: str) -> int:
    """A number of times, for argparse.

    Args:
        text: what the user wrote.

    Returns:
        The number, 1 or more.

    Raises:
        ArgumentTypeError: it is no such number.

    Example:
        >>> positive("3")
        3
    """
    if not text.isdecimal() or int(text) < 1:
        raise ArgumentTypeError(f"1 or more is expected, not {text!r}")
    return int(text)


def _is_whole(text: str) -> bool:
    try:
        tree_of(text)
    except SyntaxError:
        return False
    return True
