"""Objects that several cells fill, an IfElse or a user's list for example: saved before a cell and put back.

A cell that fills one and runs again must find it as it was.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeGuard

_MODULES = ("fluidnb.layers.", "fluidnb.compat.")
#: Containers of the user's that cells may change in place.
_CONTAINERS = {list, dict, set, deque, OrderedDict, defaultdict}
_COLLECTIONS = {*_CONTAINERS, tuple}
#: A value with more items than this is data: it is not copied before each cell.
_MOST_ITEMS = 1_000


@dataclass(frozen=True, slots=True, eq=False)
class SavedObject:
    """An object of a layer, or a container of the user's, at one moment.

    Args:
        thing: the object.
        state: an object's attributes, with copies of lists, dicts and sets; a container's items.

    Example:
        >>> i = fluid.layers.zeros([1], "int64")
        >>> loop = fluid.layers.While(fluid.layers.less_than(i, i))
        >>> before = take([loop])[0]
        >>> loop.is_test = True
        >>> before.holds()
        False
        >>> before.put_back(); loop.is_test
        False
        >>> parts = [i]; before = take([parts])[0]
        >>> parts.append(i); before.put_back(); len(parts)
        1
    """

    thing: Any
    state: Any

    @property
    def is_container(self) -> bool:
        """Whether it is a container of the user's."""
        return type(self.thing) in _CONTAINERS

    def holds(self) -> bool:
        """Whether the object is still as it was."""
        return _same(_state(self.thing), self.state)

    def same(self, other: SavedObject) -> bool:
        """Whether another moment is alike."""
        return _same(self.state, other.state)

    def put_back(self) -> None:
        """Make the object what it was."""
        if self.is_container:
            self.thing.clear()
            (self.thing.extend if isinstance(self.state, list) else self.thing.update)(self.state)
            return
        self.thing.__dict__.clear()
        self.thing.__dict__.update(_copy(self.state))


def take(values: Iterable[object]) -> list[SavedObject]:
    """The objects of layers and containers among some values, and those inside of them.

    Args:
        values: any values; containers with many items are left out.

    Returns:
        Each object once.
    """
    found: dict[int, SavedObject] = {}
    for value in values:
        kind = type(value)  # most are numbers, texts and modules
        if (kind in _COLLECTIONS or kind.__module__.startswith(_MODULES)) and id(value) not in found:
            found.update(_take_one(value, found))
    return list(found.values())


def reached(values: Iterable[object], saved: Iterable[SavedObject]) -> list[SavedObject]:
    """The saved objects that some values led to at that moment.

    Args:
        values: any values.
        saved: what `take` gave.
    """
    by_id = {id(held.thing): held for held in saved}
    found: list[SavedObject] = []
    waiting = list(values)
    while waiting:
        value = waiting.pop()
        if isinstance(value, tuple):
            waiting += value
        elif (held := by_id.pop(id(value), None)) is not None:
            found.append(held)
            state = held.state.values() if isinstance(held.state, dict) else held.state
            waiting += state if held.is_container else _inside(held.state)
    return found


def _take_one(value: object, known: Mapping[int, SavedObject]) -> dict[int, SavedObject]:
    """A value with what is inside of it; only its objects of layers where it has too many items."""
    found: dict[int, SavedObject] = {}
    seen: set[int] = set()
    waiting, items = [value], 0
    while waiting:
        value = waiting.pop()
        if id(value) in known or id(value) in found or id(value) in seen:
            continue
        if _is_held(value):
            found[id(value)] = SavedObject(value, _copy(value.__dict__))
            waiting += _inside(value.__dict__)
        elif _is_collection(value):
            seen.add(id(value))
            items += len(value)
            if items > _MOST_ITEMS:
                return {key: held for key, held in found.items() if not held.is_container}
            if not isinstance(value, tuple):
                found[id(value)] = SavedObject(value, _state(value))
            waiting += value.values() if isinstance(value, dict) else value
    return found


def _is_held(value: object) -> TypeGuard[Any]:
    return type(value).__module__.startswith(_MODULES) and hasattr(value, "__dict__")


def _is_collection(value: object) -> TypeGuard[Any]:
    return type(value) in _COLLECTIONS


def _state(value: Any) -> Any:
    """The contents of an object: a container's items, an object's attributes."""
    if type(value) not in _CONTAINERS:
        return value.__dict__
    return dict(value) if isinstance(value, dict) else set(value) if isinstance(value, set) else list(value)


def _inside(value: Any) -> Iterator[object]:
    """The nested elements of lists, tuples, dicts and sets."""
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
        return len(a) == len(b) and all(map(_same, a.items(), b.items()))
    if type(a) in (list, tuple):
        return len(a) == len(b) and all(map(_same, a, b))
    return isinstance(a, str | bytes | int | float | set | frozenset) and bool(a == b)
