"""Parsing of the arguments of magics: options, Python expressions, variable names, ``NAME=EXPR`` pairs."""

import re
import shlex
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from IPython.core.error import UsageError

import fluidnb as fluid
from fluidnb.debug.expressions import code_of, tree_of
from fluidnb.errors import FluidError, NotFound, near
from fluidnb.program import Program, Variable

#: Digits of a size at most.
_DIGITS = 15


def parse_argstring(magic: Any, line: str) -> Any:
    """The arguments of a magic, as IPython parses them."""
    try:
        words = shlex.split(line, posix=False)
    except ValueError as error:  # of shlex
        raise UsageError(f"{error}: {line!r}. Close every quote, or write a \\ before it.") from None
    args, rest = magic.parser.parse_known_args(words)
    if rest:
        options = options_of(magic.parser)
        hint = near(rest[0], options) or f"It has {', '.join(options) or 'no options'}."
        raise UsageError(f"%{magic.parser.prog} does not take {' '.join(rest)}. {hint}")
    return args


def options_of(parser: ArgumentParser) -> list[str]:
    """The long options of a parser."""
    actions = parser._actions  # argparse has no public list of a parser's arguments
    return [option for action in actions for option in action.option_strings if option.startswith("--")]


def evaluate(text: str, names: Mapping[str, Any]) -> Any:
    """The value of a Python expression."""
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
    """``NAME=EXPR`` pairs from the words of a line, whose expressions may have had spaces."""
    texts: dict[str, str] = {}
    name = ""
    for word in words:
        start = re.match(r"([\w.@/-]+)=(?!=)", unquoted(word))
        if start and (not name or _is_whole(texts[name])):
            name = start[1]
            texts[name] = unquoted(word)[start.end() :]
        elif not name:
            raise UsageError(f"{word!r} is no NAME=EXPR.")
        else:
            texts[name] += " " + word
    return texts


def variables(words: Iterable[str], program: Program, names: Mapping[str, Any]) -> list[Variable]:
    """The variables that words mean: Python names of variables, or names in the program."""
    block = program.global_block()
    result = []
    for word in (w for text in words for w in unquoted(text).split(",") if w):
        value = names.get(word)
        if isinstance(value, Variable) and value.block.program is program:
            result.append(value)
        elif block.has_var(word):
            result.append(block.var(word))
        else:
            known = list(program.desc.blocks[0].vars)
            raise NotFound(
                f"the program has no variable {word}.", received=word, hint=near(word, known) or "%fluid show draws it."
            )
    return result


def unquoted(text: str) -> str:
    """A word without the quotes around it."""
    if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'" and text[0] not in text[1:-1]:
        return text[1:-1]
    return text


def positive(text: str) -> int:
    """A number of times, for argparse."""
    if not text.isdecimal() or int(text) < 1:
        raise ArgumentTypeError(f"1 or more is expected, not {text!r}")
    return int(text)


def size(text: str) -> int:
    """A number of bytes, for argparse: ``300000``, ``500kB``, ``2MB``."""
    number = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(k|M)?B?", text, re.IGNORECASE)
    if number is None:
        raise ArgumentTypeError(f"a size such as 500kB or 2MB is expected, not {text!r}")
    if len(number[1].partition(".")[0]) > _DIGITS:
        raise ArgumentTypeError(f"a size of {_DIGITS} digits at most is expected")
    return round(float(number[1]) * {"": 1, "k": 1000, "m": 1_000_000}[(number[2] or "").lower()])


def _is_whole(text: str) -> bool:
    try:
        return bool(tree_of(text))
    except SyntaxError:
        return False
