"""The arguments of each request, as a table, and their check."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from fluidnb.arguments import NO, Rule, kind_of, shown
from fluidnb.errors import OpValueError

#: An object is a dict of its fields, a list has the type of its elements; a field with ``!`` is required.
_Path = Annotated[str, Rule("a path without a null character", lambda path: "\0" not in path)]
_SOURCE = {"path": _Path, "name": _Path, "sourceReference": int}
_CONDITIONS = {"condition": str, "hitCondition": str, "logMessage": str}
_FRAME = {"frameId": int}
ARGUMENTS: dict[str, dict[str, Any]] = {
    "initialize": {"linesStartAt1": bool, "columnsStartAt1": bool},
    "restartFrame": {"frameId!": int},
    "stepBack": {"granularity": str},
    "setBreakpoints": {
        "source!": _SOURCE, "breakpoints": [{"line!": int, "column": int, **_CONDITIONS}], "lines": [int],
    },
    "setFunctionBreakpoints": {"breakpoints!": [{"name!": str, **_CONDITIONS}]},
    "setDataBreakpoints": {"breakpoints!": [{"dataId!": str, "accessType": str, **_CONDITIONS}]},
    "setExceptionBreakpoints": {"filters": [str], "filterOptions": [{"filterId!": str, "condition": str}]},
    "stackTrace": {"startFrame": int, "levels": int},
    "scopes": {"frameId!": int},
    "variables": {"variablesReference!": int, "filter": str, "start": int, "count": int},
    "evaluate": {"expression!": str, "context": str, **_FRAME},
    "setVariable": {"variablesReference!": int, "name!": str, "value!": str},
    "setExpression": {"expression!": str, "value!": str, **_FRAME},
    "dataBreakpointInfo": {"name!": str, "variablesReference": int, **_FRAME},
    "completions": {"text!": str, "column!": int, "line": int, **_FRAME},
    "source": {"sourceReference": int, "source": _SOURCE},
    "breakpointLocations": {"source!": _SOURCE, "line!": int, "endLine": int},
}  # fmt: skip


def checked_arguments(command: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Check the arguments of a request.

    Args:
        command: the request.
        arguments: its arguments; those that the table does not name are not checked.

    Returns:
        A copy without fields that are null.

    Raises:
        OpValueError: one is missing, or has a wrong type.

    Example:
        >>> checked_arguments("stackTrace", {"threadId": 1, "levels": 2.0, "startFrame": None})
        {'threadId': 1, 'levels': 2}
        >>> checked_arguments("setBreakpoints", {"source": {"path": 3}})
        Traceback (most recent call last):
        fluidnb.errors.OpValueError: source.path of setBreakpoints must be a path without a null character.
          expected: a path without a null character
          received: 3 (int)
    """
    found: dict[str, Any] = _object(ARGUMENTS.get(command, {}), arguments, "", command)
    return found


def _object(fields: Mapping[str, Any], value: Any, at: str, command: str) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise _wrong(at, command, "an object", value)
    found = {name: row for name, row in value.items() if row is not None}
    for field, kind in fields.items():
        name = field.rstrip("!")
        inner = f"{at}.{name}" if at else name
        if name in found:
            found[name] = _part(kind, found[name], inner, command)
        elif name != field:
            raise OpValueError(f"{command} needs {inner}.", expected=", ".join(f.rstrip("!") for f in fields))
    return found


def _part(kind: Any, value: Any, at: str, command: str) -> Any:
    if isinstance(kind, Mapping):
        return _object(kind, value, at, command)
    if isinstance(kind, list):
        if not isinstance(value, list):
            raise _wrong(at, command, "a list", value)
        return [_part(kind[0], row, f"{at}[{i}]", command) for i, row in enumerate(value)]
    declared = kind_of(kind)
    taken = value if declared is None else declared.convert(value)
    if taken is NO and declared is not None:
        raise _wrong(at, command, declared.one, value)
    return taken


def _wrong(at: str, command: str, expected: str, value: Any) -> OpValueError:
    return OpValueError(f"{at} of {command} must be {expected}.", expected=expected, received=shown(value))
