"""The public API as text, a line for each name with its signature; ``python -m tests.house.public_api`` writes it."""

from __future__ import annotations

import inspect
import re
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Never

import fluidnb as fluid

FILE = Path(__file__).with_name("public_api.txt")


def signature(value: Any) -> str:
    """The arguments of something callable with their defaults, without types."""
    try:
        parameters = inspect.signature(value).parameters.values()
    except (TypeError, ValueError):
        return "(...)"
    taken = [p for p in parameters if p.name != "self" and p.annotation not in (Never, "Never")]
    plain = [p.replace(annotation=inspect.Parameter.empty) for p in taken]
    return re.sub(r" at 0x[0-9a-f]+", "", str(inspect.Signature(plain)))


def members(name: str, value: Any) -> Iterator[str]:
    """A line for something public and, for a class of ours, one for each of its public methods and properties."""
    if not callable(value):
        return
    yield name + signature(value)
    if not isinstance(value, type):
        return
    for attribute in sorted(dir(value)):
        if attribute.startswith("_") or not is_ours(value, attribute):
            continue
        member = inspect.getattr_static(value, attribute)
        if isinstance(member, property):
            yield f"{name}.{attribute}"
        elif isinstance(member, (types.FunctionType, staticmethod, classmethod)):
            yield f"{name}.{attribute}{signature(getattr(value, attribute))}"


def is_ours(cls: type, attribute: str) -> bool:
    """Whether a class of this project, not one of Python's own, brought an attribute."""
    owner = next((c for c in cls.__mro__ if attribute in vars(c)), object)
    return (owner.__module__ or "").partition(".")[0] == "fluidnb"


def listing() -> str:
    """Every public name of fluidnb and of its modules, sorted; what has two names is told once.

    Returns:
        Lines such as ``fluid.layers.fc(input, size, ...)``.

    Example:
        >>> "fluid.seed(n)" in listing().splitlines()
        True
    """
    found = {f"fluid.{name}": getattr(fluid, name) for name in fluid.__all__}
    modules = {name: value for name, value in found.items() if isinstance(value, types.ModuleType)}
    for module, value in modules.items():
        found.update((f"{module}.{name}", getattr(value, name)) for name in getattr(value, "__all__", ()))
    lines: set[str] = set()
    first: dict[int, str] = {}
    for name, value in sorted(found.items(), key=lambda item: (item[0].count("."), item[0])):
        if first.setdefault(id(value), name) == name:
            lines.update(members(name, value))
        elif callable(value):
            lines.add(f"{name} is {first[id(value)]}")
    return "\n".join(sorted(lines)) + "\n"


if __name__ == "__main__":
    FILE.write_text(listing())
