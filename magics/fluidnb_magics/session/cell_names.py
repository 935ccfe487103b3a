"""The Python names that a cell reads and binds, so that a changed ``size = 64`` builds the cells that use it again."""

from __future__ import annotations

import dis
import re
from collections.abc import Iterator, Mapping
from types import CodeType, FunctionType
from typing import Any

_LOADS = {"LOAD_NAME", "LOAD_GLOBAL"}
_STORES = {"STORE_NAME", "STORE_GLOBAL"}


def names_read(code: CodeType, namespace: Mapping[str, Any]) -> set[str]:
    """The names that a cell's code may read, also through functions that it calls.

    Args:
        code: the code of the cell.
        namespace: the user's names, among them functions of the user's own.

    Returns:
        Names. What stands in a line magic (``%time h = f(x)``) counts too.

    Example:
        >>> size = 3
        >>> def net(): return size
        >>> sorted(names_read(compile("h = net()", "", "exec"), globals()) & {"h", "net", "size"})
        ['net', 'size']
    """
    found: set[str] = set()
    waiting, seen = [code], {code}
    while waiting:
        names = _loads(waiting.pop())
        for name in names - found:
            value = namespace.get(name)
            if isinstance(value, FunctionType) and value.__globals__ is namespace and value.__code__ not in seen:
                seen.add(value.__code__)
                waiting.append(value.__code__)
        found |= names
    return found


def names_bound(code: CodeType) -> set[str]:
    """The names that a cell's code may bind.

    Args:
        code: the code of the cell.

    Returns:
        Names, those that its functions declare global included.

    Example:
        >>> sorted(names_bound(compile("import os; a = b = 1", "", "exec")))
        ['a', 'b', 'os']
    """
    return {str(step.argval) for part in _nested(code) for step in dis.get_instructions(part) if step.opname in _STORES}


def _loads(code: CodeType) -> set[str]:
    found: set[str] = set()
    for part in _nested(code):
        found |= {str(step.argval) for step in dis.get_instructions(part) if step.opname in _LOADS}
        if "get_ipython" in part.co_names:
            texts = (c for c in part.co_consts if isinstance(c, str))
            found |= {word for text in texts for word in re.findall(r"[^\W\d]\w*", text)}
    return found


def _nested(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _nested(constant)
