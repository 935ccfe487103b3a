"""Objects that several cells fill, an IfElse or a user's list for example, saved before a cell and restored.

The user's objects are lists, dicts, sets, and instances of classes of the notebook (`is_record`). Arrays and instances
of other classes are not restored: a copy of them is too large, or their state is not in their attributes alone.
"""

from __future__ import annotations

from abc import ABC
from argparse import Namespace
from collections import OrderedDict, defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MemberDescriptorType, SimpleNamespace
from typing import Any, Generic, Protocol

_MODULES = ("fluidnb.layers.", "fluidnb.compat.")
#: Containers of the user's that cells may change in place.
_CONTAINERS = {list, dict, set, deque, OrderedDict, defaultdict}
_COLLECTIONS = {*_CONTAINERS, tuple}
#: Classes of the standard library whose instances have attributes and nothing else.
_NAMESPACES = {SimpleNamespace, Namespace}
#: Base classes without state.
_STATELESS = {object, ABC, Generic, Protocol}
#: A value with more items than this is data: it is not copied before each cell.
_MOST_ITEMS = 1_000


@dataclass(frozen=True, slots=True, eq=False)
class SavedObject:
    """An object of a layer, or a container or record of the user's, at one moment.

    Example:
        >>> i = fluid.layers.zeros([1], "int64")
        >>> loop = fluid.layers.While(fluid.layers.less_than(i, i))
        >>> before = take([loop])[0]; loop.is_test = True
        >>> before.put_back(); loop.is_test
        False
    """

    thing: Any  # the object
    # a layer object's attributes, with copies of lists, dicts and sets; a container's items; a record's attributes
    state: Any

    @property
    def is_users(self) -> bool:
        """Whether it is a container or a record of the user's."""
        return type(self.thing) in _CONTAINERS or is_record(self.thing)

    def holds(self) -> bool:
        """Whether the object is still as it was."""
        return _same(_state(self.thing), self.state)

    def same(self, other: SavedObject) -> bool:
        """Whether another moment is alike."""
        return _same(self.state, other.state)

    def put_back(self) -> None:
        """Make the object what it was."""
        if type(self.thing) in _CONTAINERS:
            self.thing.clear()
            (self.thing.extend if isinstance(self.state, list) else self.thing.update)(self.state)
        elif is_record(self.thing):
            _set_attributes(self.thing, self.state)
        else:
            self.thing.__dict__.clear()
            self.thing.__dict__.update(_copy(self.state))


def take(values: Iterable[object]) -> list[SavedObject]:
    """The objects of layers, containers and records among some values, and those inside of them."""
    objects: dict[int, SavedObject] = {}
    for value in values:
        kind = type(value)  # most are numbers, texts and modules
        wanted = kind in _COLLECTIONS or kind.__module__.startswith(_MODULES) or is_record(value)
        if wanted and id(value) not in objects:
            objects.update(_take_one(value, objects))
    return list(objects.values())


def is_record(value: object) -> bool:
    """Whether a value is an instance of a class of the notebook, with attributes and no other state.

    Classes that inherit from others, from a list or a thread for example, may have state elsewhere.

    Example:
        >>> is_record(SimpleNamespace(width=32)), is_record([32])
        (True, False)
    """
    kind = type(value)
    if kind in _NAMESPACES:
        return True
    return kind.__module__ == "__main__" and all(c.__module__ == "__main__" or c in _STATELESS for c in kind.__mro__)


def attributes(record: Any) -> dict[str, Any]:
    """The attributes of a record, those in slots included."""
    slots = {}
    for name, slot in _slots(record):
        try:
            slots[name] = slot.__get__(record)
        except AttributeError:
            continue
    return {**(_dict(record) or {}), **slots}


def _set_attributes(record: Any, state: Mapping[str, Any]) -> None:
    """Gives a record exactly these attributes, past its own ``__setattr__``."""
    now, rest = attributes(record), dict(state)
    for name, slot in _slots(record):
        if name in rest:
            slot.__set__(record, rest.pop(name))
        elif name in now:
            slot.__delete__(record)
    own = _dict(record)
    if own is not None:
        own.clear()
        own.update(rest)


def _dict(record: object) -> dict[str, Any] | None:
    """The ``__dict__`` of a record, past its own ``__getattr__``; None where it has slots only."""
    try:
        own: dict[str, Any] = object.__getattribute__(record, "__dict__")
    except AttributeError:
        return None
    return own


def _slots(record: object) -> Iterator[tuple[str, MemberDescriptorType]]:
    for cls in type(record).__mro__:
        if "__slots__" in vars(cls):
            yield from ((name, slot) for name, slot in vars(cls).items() if isinstance(slot, MemberDescriptorType))


def reached(values: Iterable[object], saved: Iterable[SavedObject]) -> list[SavedObject]:
    """The saved objects that some values led to at that moment."""
    by_id = {id(one.thing): one for one in saved}
    objects: list[SavedObject] = []
    waiting = list(values)
    while waiting:
        value = waiting.pop()
        if isinstance(value, tuple):
            waiting += value
        elif (one := by_id.pop(id(value), None)) is not None:
            objects.append(one)
            state = one.state.values() if isinstance(one.state, dict) else one.state
            waiting += state if one.is_users else _inside(one.state)
    return objects


def _take_one(value: Any, known: Mapping[int, SavedObject]) -> dict[int, SavedObject]:
    """A value with its nested values; only its layer objects where it has too many items or attributes."""
    objects: dict[int, SavedObject] = {}
    seen: set[int] = set()
    waiting: list[Any] = [value]
    items = 0
    while waiting:
        value = waiting.pop()
        if id(value) in known or id(value) in objects or id(value) in seen:
            continue
        if type(value).__module__.startswith(_MODULES) and hasattr(value, "__dict__"):
            objects[id(value)] = SavedObject(value, _copy(value.__dict__))
            waiting += _inside(value.__dict__)
        elif type(value) in _COLLECTIONS or is_record(value):
            seen.add(id(value))
            shown: Any = attributes(value) if is_record(value) else value
            items += len(shown)
            if items > _MOST_ITEMS:
                return {key: one for key, one in objects.items() if not one.is_users}
            if not isinstance(value, tuple):
                objects[id(value)] = SavedObject(value, _state(value))
            waiting += shown.values() if isinstance(shown, dict) else shown
    return objects


def _state(value: Any) -> Any:
    """The contents of an object: a container's items, an object's attributes."""
    if type(value) not in _CONTAINERS:
        return attributes(value) if is_record(value) else value.__dict__
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
