"""Python names that cells bind: unbound when a cell is undone, bound again when it is redone."""

import re
from collections.abc import Collection, Mapping, MutableMapping
from typing import Any

from fluidnb.program.block import Block
from fluidnb.program.operator import Operator
from fluidnb.program.program import Program
from fluidnb.program.variable import Variable

#: The value of a name that is not bound.
MISSING = object()
#: name -> (value before the cell, value after it)
Bound = dict[str, tuple[Any, Any]]

_OF_SHELL = re.compile(r"_{1,3}|_i{1,3}|_i?\d+|_[ido]h|_exit_code|__.*", re.DOTALL)


def is_of_shell(name: str) -> bool:
    """Whether IPython binds a name itself: results, inputs, exit codes, and names with two underscores in front."""
    return name.startswith("_") and _OF_SHELL.fullmatch(name) is not None


def new_names(before: Mapping[str, Any], after: Mapping[str, Any], binds: Collection[str] = ()) -> Bound:
    """The names whose values differ, and those that a cell ``binds``; those of the shell are left out."""
    return {
        name: (before.get(name, MISSING), value)
        for name, value in after.items()
        if not is_of_shell(name) and (name in binds or before.get(name, MISSING) is not value)
    }


def unbind(namespace: MutableMapping[str, Any], bound: Bound) -> Bound:
    """Bind names to their values before a cell, and return them; names that were bound again since are left alone."""
    still = {name: pair for name, pair in bound.items() if namespace.get(name, MISSING) is pair[1]}
    for name, (before, _) in still.items():
        put(namespace, name, before)
    return still


def rebind(namespace: MutableMapping[str, Any], bound: Bound) -> Bound:
    """Bind names to a cell's values, and return these with the values until now."""
    again = {name: (namespace.get(name, MISSING), after) for name, (_, after) in bound.items()}
    for name, (_, after) in again.items():
        namespace[name] = after
    return again


def roll_back(namespace: MutableMapping[str, Any], before: Mapping[str, Any], touched: set[str]) -> None:
    """Restore names after a cell failed or was undone; computed values stay, for data may be slow to load."""
    for name in {*namespace, *before}:
        old, now = before.get(name, MISSING), namespace.get(name, MISSING)
        if old is not now and (name in touched or ours(old) or ours(now)):
            put(namespace, name, old)


def put(namespace: MutableMapping[str, Any], name: str, value: Any) -> None:
    """Bind a name, or unbind it where the value is `MISSING`."""
    if value is MISSING:
        namespace.pop(name, None)
    else:
        namespace[name] = value


def ours(value: object, depth: int = 2) -> bool:
    """Whether a value is, or contains, a piece of a program."""
    if isinstance(value, Variable | Operator | Block | Program):
        return True
    if depth and isinstance(value, list | tuple | dict):
        items = list(value.values() if isinstance(value, dict) else value)
        return any(ours(item, depth - 1) for item in items[:100])
    return type(value).__module__.partition(".")[0] == "fluidnb"
