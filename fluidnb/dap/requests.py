"""Capabilities of the adapter, arguments of each request with their check, and lines and columns counted from 0."""

from collections.abc import Mapping
from typing import Annotated, Any

from fluidnb.arguments import NO, Rule, kind_of, shown
from fluidnb.errors import OpValueError

_SUPPORTED = """supportsConfigurationDoneRequest supportsFunctionBreakpoints supportsConditionalBreakpoints
    supportsHitConditionalBreakpoints supportsLogPoints supportsDataBreakpoints supportsBreakpointLocationsRequest
    supportsEvaluateForHovers supportsSetVariable supportsSetExpression supportsStepBack supportsSteppingGranularity
    supportsRestartRequest supportsRestartFrame supportsCompletionsRequest supportsExceptionInfoRequest
    supportsExceptionFilterOptions supportsLoadedSourcesRequest supportsTerminateRequest
    supportTerminateDebuggee""".split()
CAPABILITIES: dict[str, Any] = {
    **dict.fromkeys(_SUPPORTED, True),
    "exceptionBreakpointFilters": [
        {
            "filter": "error", "label": "An operator fails", "default": True,
            "description": "Pauses at the operator, before anything has changed.",
        },
        {
            "filter": "nan", "label": "NaN or infinity", "default": False, "supportsCondition": True,
            "description": "Stops after the operator that writes the first number that is not finite.",
            "conditionDescription": "the largest absolute value allowed, for example 1e6",
        },
    ],
}  # fmt: skip

#: An object is a dict of its fields, a list has the type of its elements; a field with ``!`` is required.
_Path = Annotated[str, Rule("a path without a null character", lambda path: "\0" not in path)]
_SOURCE = {"path": _Path, "name": _Path, "sourceReference": int}
_CONDITIONS = {"condition": str, "hitCondition": str, "logMessage": str}
_FRAME = {"frameId": int}
ARGUMENTS: dict[str, dict[str, Any]] = {
    "initialize": {"linesStartAt1": bool, "columnsStartAt1": bool},
    "launch": {"stopOnEntry": bool},
    "attach": {"stopOnEntry": bool, "role": str, "token": str},
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

    Example:
        >>> checked_arguments("stackTrace", {"threadId": 1, "levels": 2.0, "startFrame": None})
        {'threadId': 1, 'levels': 2}
        >>> checked_arguments("setBreakpoints", {"source": {"path": 3}})
        Traceback (most recent call last):
        fluidnb.errors.OpValueError: source.path of setBreakpoints must be a path without a null character.
          expected: a path without a null character
          received: 3 (int)
    """
    return _object(ARGUMENTS.get(command, {}), arguments, "", command)


def _object(fields: Mapping[str, Any], value: Any, at: str, command: str) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise _wrong(at, command, "an object", value)
    present = {name: row for name, row in value.items() if row is not None}
    for field, kind in fields.items():
        name = field.rstrip("!")
        inner = f"{at}.{name}" if at else name
        if name in present:
            present[name] = _part(kind, present[name], inner, command)
        elif name != field:
            raise OpValueError(f"{command} needs {inner}.", expected=", ".join(f.rstrip("!") for f in fields))
    return present


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


#: Numbers of lines and of columns in messages.
_LINES, _COLUMNS = ("line", "endLine", "lines"), ("column", "endColumn")


def shifts(hello: Mapping[str, Any]) -> dict[str, int]:
    """Keys of messages -> 1 for a client that counts from 0; empty for most clients."""
    keys = _LINES if hello.get("linesStartAt1") is False else ()
    return dict.fromkeys((*keys, *(_COLUMNS if hello.get("columnsStartAt1") is False else ())), 1)


def shifted(thing: Any, by: Mapping[str, int], sign: int = 1) -> Any:
    """Shift lines and columns of a message; ``sign`` is 1 for what comes from a client, else -1."""
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
