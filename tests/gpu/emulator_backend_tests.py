"""Tests about the CUDA emulator backend: they use its inner parts, depend on how it works, or expect its name."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any

import pytest

_BACKEND = "fluidnb_kernels.cuda_emulator_backend"
_NAME = "emulator"


def is_about_the_emulator_backend(item: pytest.Function) -> bool:
    """Whether a test is marked so, or names something of the emulator backend: itself, parameters, fixtures, helpers.

    Args:
        item: the test.

    Returns:
        True where it would fail on a GPU, or show nothing.
    """
    if item.get_closest_marker("emulator_backend"):
        return True
    given = item.callspec.params.values() if hasattr(item, "callspec") else ()
    defs = (made for several in item._fixtureinfo.name2fixturedefs.values() for made in several)
    fixtures = [made.func for made in defs if made.func.__module__ == item.function.__module__]
    reached = _reached([item.function, *fixtures])
    return any(map(_is_of_the_emulator_backend, given)) or any(map(_names_it, reached))


def _is_of_the_emulator_backend(value: Any) -> bool:
    name = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
    return isinstance(name, str) and (name + ".").startswith(_BACKEND + ".")


def _names_it(function: FunctionType) -> bool:
    for code in _codes(function.__code__):
        if any(isinstance(const, str) and _NAME in const for const in code.co_consts[_has_docstring(code) :]):
            return True
        if any(_is_of_the_emulator_backend(function.__globals__.get(name)) for name in code.co_names):
            return True
    return False


def _has_docstring(code: CodeType) -> bool:
    """Whether the first constant of a function is what is said of it."""
    return bool(code.co_flags & inspect.CO_NEWLOCALS) and len(code.co_consts) > 0 and isinstance(code.co_consts[0], str)


def _codes(code: CodeType) -> Iterator[CodeType]:
    """A function's code, and that of what is defined in it."""
    yield code
    for const in code.co_consts:
        if isinstance(const, CodeType):
            yield from _codes(const)


def _reached(open_: list[Any]) -> Iterator[FunctionType]:
    """Functions, and the functions of tests that they name, directly or not."""
    seen: set[Any] = set()
    while open_:
        found = inspect.unwrap(open_.pop())
        if found in seen or not str(getattr(found, "__module__", "")).startswith("tests."):
            continue
        seen.add(found)
        if inspect.isclass(found):
            open_ += [member for member in vars(found).values() if inspect.isfunction(member)]
        elif inspect.isfunction(found):
            yield found
            names = {name for code in _codes(found.__code__) for name in code.co_names}
            held = [found.__globals__.get(name) for name in names]
            open_ += [value for value in held if inspect.isclass(value) or inspect.isroutine(value)]
