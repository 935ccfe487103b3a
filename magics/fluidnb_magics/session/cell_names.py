"""The Python names that a cell reads and binds: a changed ``size = 64`` rebuilds the cells that use it."""

import dis
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from types import CodeType, FunctionType, MethodType
from typing import Any

from fluidnb.cells.saved_layer_objects import attributes, is_record

_LOADS = {"LOAD_NAME", "LOAD_GLOBAL"}
_STORES = {"STORE_NAME", "STORE_GLOBAL"}
#: Values that are searched for functions; a container with more is data.
_MOST_VALUES = 2_000


def names_read(code: CodeType, namespace: Mapping[str, Any]) -> set[str]:
    """The names that a cell's code may read, also through functions that it calls and in line magics."""
    names: set[str] = set()
    waiting, seen = [code], {code}
    while waiting:
        new = _loads(waiting.pop()) - names
        for function in _functions([namespace[name] for name in new if name in namespace]):
            if function.__globals__ is namespace and function.__code__ not in seen:
                seen.add(function.__code__)
                waiting.append(function.__code__)
        names |= new
    return names


def _functions(values: Iterable[Any]) -> Iterator[FunctionType]:
    """The functions that code may call which has these values.

    Methods of the notebook's classes are among them, and functions in containers, in a ``partial`` and in what a
    decorator gives.
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
        else:
            made = value if isinstance(value, type) else type(value)
            waiting += [part for c in made.__mro__ if c.__module__ == "__main__" for part in vars(c).values()]
            if is_record(value):
                waiting += attributes(value).values()


def names_bound(code: CodeType) -> set[str]:
    """The names that a cell's code may bind, those that its functions declare global included."""
    return {str(step.argval) for part in _nested(code) for step in dis.get_instructions(part) if step.opname in _STORES}


def _loads(code: CodeType) -> set[str]:
    names: set[str] = set()
    for part in _nested(code):
        names |= {str(step.argval) for step in dis.get_instructions(part) if step.opname in _LOADS}
        if "get_ipython" in part.co_names:
            texts = (c for c in part.co_consts if isinstance(c, str))
            names |= {word for text in texts for word in re.findall(r"[^\W\d]\w*", text)}
    return names


def _nested(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _nested(constant)
