"""Python names that cells bind: unbound when a cell is undone, bound again when it is redone."""

from __future__ import annotations

from collections.abc import Collection, Mapping, MutableMapping
from typing import Any

from fluidnb.program.block import Block
from fluidnb.program.operator import Operator
from fluidnb.program.program import Program
from fluidnb.program.variable import Variable

#: What a name was bound to while it was not bound.
MISSING = object()

#: name -> (value before the cell, value after it)
Bound = dict[str, tuple[Any, Any]]


def made(before: Mapping[str, Any], after: Mapping[str, Any], binds: Collection[str] = ()) -> Bound:
    """Names and values that a cell bound.

    Args:
        before: the names before it ran.
        after: the names now.
        binds: names that the cell assigns, also where they mean the same as before.

    Returns:
        The names that mean something else now; those that begin with ``_`` belong to the shell.

    Example:
        >>> made({"a": 1}, {"a": 1, "b": 2})["b"][1]
        2
    """
    return {
        name: (before.get(name, MISSING), value)
        for name, value in after.items()
        if not name.startswith("_") and (name in binds or before.get(name, MISSING) is not value)
    }


def take_back(namespace: MutableMapping[str, Any], bound: Bound) -> Bound:
    """Bind names to what they were before a cell, where they still mean what the cell bound.

    Args:
        namespace: the names.
        bound: what the cell bound.

    Returns:
        The names that went back. Those that somebody has bound to something else since are no longer the cell's.
    """
    still = {name: pair for name, pair in bound.items() if namespace.get(name, MISSING) is pair[1]}
    for name, (before, _) in still.items():
        put(namespace, name, before)
    return still


def give_again(namespace: MutableMapping[str, Any], bound: Bound) -> Bound:
    """Bind names to what a cell had bound, as if it had run now.

    Args:
        namespace: the names.
        bound: what the cell bound.

    Returns:
        The same with what the names were until now.
    """
    again = {name: (namespace.get(name, MISSING), after) for name, (_, after) in bound.items()}
    for name, (_, after) in again.items():
        namespace[name] = after
    return again


def roll_back(namespace: MutableMapping[str, Any], before: Mapping[str, Any], touched: set[str]) -> None:
    """Bind names to what they were, after a cell failed or was undone.

    What the user merely computed stays: data that took minutes to load is not lost to a mistyped layer.

    Args:
        namespace: the names.
        before: what they were.
        touched: names that cells had bound; they go back whatever they hold.
    """
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
    """Whether a value is, or holds, a piece of a program.

    Args:
        value: the value.
        depth: how deep to look into lists, tuples and dicts.

    Example:
        >>> ours([(Program(), 1)]), ours("text")
        (True, False)
    """
    if isinstance(value, Variable | Operator | Block | Program):
        return True
    if depth and isinstance(value, list | tuple | dict):
        items = list(value.values() if isinstance(value, dict) else value)
        return any(ours(item, depth - 1) for item in items[:100])
    return type(value).__module__.partition(".")[0] == "fluidnb"
