"""The Python names that a cell reads and binds: a changed ``size = 64`` rebuilds the cells that use it."""

import dis
import re
from collections.abc import Iterator, Mapping
from types import CodeType, FunctionType
from typing import Any

_LOADS = {"LOAD_NAME", "LOAD_GLOBAL"}
_STORES = {"STORE_NAME", "STORE_GLOBAL"}


def names_read(code: CodeType, namespace: Mapping[str, Any]) -> set[str]:
    """The names that a cell's code may read, also through functions that it calls and in line magics."""
    names: set[str] = set()
    waiting, seen = [code], {code}
    while waiting:
        new = _loads(waiting.pop()) - names
        for value in map(namespace.get, new):
            if isinstance(value, FunctionType) and value.__globals__ is namespace and value.__code__ not in seen:
                seen.add(value.__code__)
                waiting.append(value.__code__)
        names |= new
    return names


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
