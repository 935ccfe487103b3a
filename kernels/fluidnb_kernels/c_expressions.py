"""Expressions of ``.cu`` files as expressions of C: each function of one element has one text for all targets."""

import re
from functools import cache
from pathlib import Path


@cache
def rows_of(file: Path, macro: str) -> dict[str, list[str]]:
    """The arguments of all calls ``MACRO(name, expression, ...)`` of a ``.cu`` file, in C, by name.

    Args:
        file: the file.
        macro: name of the macro.

    Returns:
        name -> its expressions, in which ``T`` is the dtype.
    """
    text = file.read_text(encoding="utf-8")
    found: dict[str, list[str]] = {}
    for match in re.finditer(rf"^{macro}\(", text, re.MULTILINE):
        name, *expressions = _arguments(text, match.end())
        found[name] = [in_c(each) for each in expressions]
    return found


def in_c(expression: str) -> str:
    """An expression of CUDA C++ in C: casts to the type ``C`` and functions of the global namespace.

    Example:
        >>> in_c("C(1) / (C(1) + ::exp(-x))")
        '(T)1 / ((T)1 + exp(-x))'
    """
    expression = re.sub(r"\bC\((-?[\d.]+)\)", r"(T)\1", " ".join(expression.split()))
    return re.sub(r"\bC\(", "(T)(", expression).replace("::", "")


def _arguments(text: str, at: int) -> list[str]:
    """The arguments of a call from behind its opening parenthesis on."""
    found: list[str] = []
    depth, start = 0, at
    while True:
        char = text[at]
        if char == "(":
            depth += 1
        elif char == ")" and not depth:
            return [*found, text[start:at].strip()]
        elif char == ")":
            depth -= 1
        elif char == "," and not depth:
            found.append(text[start:at].strip())
            start = at + 1
        at += 1
