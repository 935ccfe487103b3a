"""Python functions that operators call, by the numbers under which programs name them."""

from collections.abc import Callable
from typing import Any

from fluidnb.errors import NotFound

Function = Callable[..., Any]
_functions: list[Function] = []


def callable_id(function: Function) -> int:
    """The number of a function; it is kept as long as Python runs."""
    for i, known in enumerate(_functions):
        if known is function:
            return i
    _functions.append(function)
    return len(_functions) - 1


def callable_of(number: int) -> Function:
    """The function with a number."""
    if not 0 <= number < len(_functions):
        raise NotFound(
            f"There is no Python function number {number}.",
            expected=f"one of the {len(_functions)} that layers.py_func was given", received=number,
            hint="functions are not saved with a program: build it again with layers.py_func.",
        )  # fmt: skip
    return _functions[number]
