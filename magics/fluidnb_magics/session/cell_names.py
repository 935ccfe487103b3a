"""The Python names that a cell reads and binds: a changed ``size = 64`` rebuilds the cells that use it."""

import dis
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from fluidnb.cells.dependencies import Attribute
from fluidnb.cells.saved_layer_objects import attributes, is_record

_OPERATIONS = {f"{verb}_{what}" for verb in ("LOAD", "STORE") for what in ("NAME", "GLOBAL", "ATTR")}
_OPERATIONS |= {"LOAD_METHOD", "LOAD_SUPER_ATTR"}
#: Values that are searched for functions; a container with more is data.
_MOST_VALUES = 2_000


def names_read(code: CodeType, namespace: Mapping[str, Any]) -> set[str]:
    """The names that a cell's code may read, also through functions that it calls and in line magics."""
    return reads_of(code, namespace)[0]


def reads_of(code: CodeType, namespace: Mapping[str, Any]) -> tuple[set[str], list[Attribute]]:
    """The names that a cell's code may read, and the attributes of classes and modules; without those that it sets."""
    names: set[str] = set()
    loaded: set[str] = set()
    stored: set[str] | None = None  # by the cell's own code
    owners: dict[int, type | ModuleType] = {}
    waiting, seen = [code], {code}
    while waiting:
        named = _named(waiting.pop())
        new = (named["LOAD_NAME"] | named["LOAD_GLOBAL"]) - names
        loaded |= named["LOAD_ATTR"] | named["LOAD_METHOD"] | named["LOAD_SUPER_ATTR"]
        stored = named["STORE_ATTR"] if stored is None else stored
        for value in _searched([namespace[name] for name in new if name in namespace]):
            if not isinstance(value, FunctionType):
                owners[id(value)] = value
            elif value.__globals__ is namespace and value.__code__ not in seen:
                seen.add(value.__code__)
                waiting.append(value.__code__)
        names |= new
    return names, [Attribute(owner, name) for owner in owners.values() for name in sorted(loaded - (stored or set()))]


def _searched(values: Iterable[Any]) -> Iterator[FunctionType | type | ModuleType]:
    """The functions that code with these values may call, and the classes and modules whose attributes it may read.

    Methods of the notebook's classes are among them, and functions in containers, in a ``partial`` and in what a
    decorator gives. A module is not searched.
    """
    waiting, seen = list(values), set[int]()
    while waiting and len(seen) < _MOST_VALUES:
        value = waiting.pop()
        if id(value) in seen or isinstance(value, str | bytes | int | float):
            continue
        if isinstance(value, dict | list | tuple | set | frozenset) and len(value) > _MOST_VALUES:
            continue
        seen.add(id(value))
        if isinstance(value, FunctionType):
            yield value
            for cell in value.__closure__ or ():
                try:
                    waiting.append(cell.cell_contents)
                except ValueError:  # a name of the function around it that is not bound yet
                    continue
        elif isinstance(value, MethodType):
            waiting += [value.__func__, value.__self__]
        elif isinstance(value, partial):
            waiting += [value.func, *value.args, *value.keywords.values()]
        elif isinstance(value, dict):
            waiting += dict.values(value)
        elif type(value) in (list, tuple, set, frozenset):
            waiting += value
        elif isinstance(value, property):
            waiting += [value.fget]
        elif isinstance(value, staticmethod | classmethod):
            waiting += [value.__func__]
        elif isinstance(value, ModuleType):
            yield value
        else:
            made = value if isinstance(value, type) else type(value)
            own = [c for c in made.__mro__ if c.__module__ == "__main__"]
            if own or made is value:
                yield made
            waiting += [part for c in own for part in vars(c).values()]
            if is_record(value):
                waiting += attributes(value).values()


def names_bound(code: CodeType) -> set[str]:
    """The names that a cell's code may bind, those that its functions declare global included."""
    named = _named(code)
    return named["STORE_NAME"] | named["STORE_GLOBAL"]


def _named(code: CodeType) -> defaultdict[str, set[str]]:
    """The names in code and in the functions inside it, by the operation of the instruction; line magics load names."""
    named: defaultdict[str, set[str]] = defaultdict(set)
    for part in _nested(code):
        for step in dis.get_instructions(part):
            if step.opname in _OPERATIONS:
                named[step.opname].add(str(step.argval))
        if "get_ipython" in part.co_names:
            texts = (c for c in part.co_consts if isinstance(c, str))
            named["LOAD_NAME"] |= {word for text in texts for word in re.findall(r"[^\W\d]\w*", text)}
    return named


def _nested(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _nested(constant)
