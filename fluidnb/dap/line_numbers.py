"""Line and column numbers for clients that count from 0."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_LINES, _COLUMNS = ("line", "endLine", "lines"), ("column", "endColumn")


def shifts(hello: Mapping[str, Any]) -> dict[str, int]:
    """The offsets that make the numbers of a client count from 1.

    Args:
        hello: the arguments of its ``initialize``.

    Returns:
        Key of a message -> 1; empty for most clients.

    Example:
        >>> shifts({"linesStartAt1": False})
        {'line': 1, 'endLine': 1, 'lines': 1}
    """
    keys = _LINES if hello.get("linesStartAt1") is False else ()
    return dict.fromkeys((*keys, *(_COLUMNS if hello.get("columnsStartAt1") is False else ())), 1)


def shifted(thing: Any, by: Mapping[str, int], sign: int = 1) -> Any:
    """Shift the lines and columns in a part of a message.

    Args:
        thing: the part.
        by: the result of `shifts`.
        sign: 1 for what comes from a client, -1 for what goes to it.

    Returns:
        A copy; without shifts the part itself.

    Example:
        >>> shifted({"breakpoints": [{"line": 3, "verified": True}], "lines": [3]}, {"line": 1, "lines": 1}, -1)
        {'breakpoints': [{'line': 2, 'verified': True}], 'lines': [2]}
    """
    if not by:
        return thing
    if isinstance(thing, list):
        return [shifted(part, by, sign) for part in thing]
    if not isinstance(thing, dict):
        return thing
    return {key: _moved(part, by[key] * sign) if key in by else shifted(part, by, sign) for key, part in thing.items()}


def _moved(number: Any, by: int) -> Any:
    if isinstance(number, list):
        return [_moved(n, by) for n in number]
    return max(0, number + by) if isinstance(number, int) else number
