"""Python objects of layers that outlive a cell, an IfElse for example: what is in them, kept and put back.

Such an object collects what several calls give it. A cell that fills one and runs again must find it as it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

_MODULES = ("fluidnb.layers.", "fluidnb.compat.")


@dataclass(frozen=True, slots=True, eq=False)
class SavedObject:
    """An object of a layer at one moment.

    Args:
        thing: the object.
        state: its attributes, with copies of lists, dicts and sets.

    Example:
        >>> i = fluid.layers.zeros([1], "int64")
        >>> loop = fluid.layers.While(fluid.layers.less_than(i, i))
        >>> before = take([loop])[0]
        >>> loop.is_test = True
        >>> before.holds()
        False
        >>> before.put_back(); loop.is_test
        False
    """

    thing: Any
    state: dict[str, Any]

    def holds(self) -> bool:
        """Whether the object is still as it was."""
        return _same(self.thing.__dict__, self.state)

    def same(self, other: SavedObject) -> bool:
        """Whether another moment is alike."""
        return _same(self.state, other.state)

    def put_back(self) -> None:
        """Make the object what it was."""
        self.thing.__dict__.clear()
        self.thing.__dict__.update(_copy(self.state))


def take(values: Iterable[object]) -> list[SavedObject]:
    """The objects of layers among some values, and those that they hold.

    Args:
        values: any values.

    Returns:
        Each object once.
    """
    found: dict[int, SavedObject] = {}
    waiting = list(values)
    while waiting:
        value = waiting.pop()
        if id(value) not in found and _is_held(value):
            found[id(value)] = SavedObject(value, _copy(value.__dict__))
            waiting += _inside(value.__dict__)
    return list(found.values())


def _is_held(value: object) -> bool:
    return type(value).__module__.startswith(_MODULES) and hasattr(value, "__dict__")


def _inside(value: Any) -> Iterator[object]:
    """What lists, tuples, dicts and sets hold, however deep."""
    for item in value.values() if isinstance(value, dict) else value:
        if isinstance(item, dict | list | tuple | set):
            yield from _inside(item)
        else:
            yield item


def _copy(value: Any) -> Any:
    if type(value) is dict:
        return {name: _copy(item) for name, item in value.items()}
    if type(value) in (list, tuple, set):
        return type(value)(_copy(item) for item in value)
    return value


def _same(a: Any, b: Any) -> bool:
    """Whether two values agree; objects by identity, since == of variables appends an operator."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if type(a) is dict:
        return list(a) == list(b) and all(_same(item, b[name]) for name, item in a.items())
    if type(a) in (list, tuple):
        return len(a) == len(b) and all(map(_same, a, b))
    return isinstance(a, str | bytes | int | float | set | frozenset) and bool(a == b)
