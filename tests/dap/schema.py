"""The protocol's own JSON schema, as debugpy carries it, and what a message has that the schema does not know."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import jsonschema
import pytest

Message = dict[str, Any]

#: Where the schema is in debugpy.
_PLACE = "_vendored/pydevd/_pydevd_bundle/_debug_adapter/debugProtocol.json"


@cache
def protocol() -> dict[str, Any]:
    """The definitions of the protocol."""
    found = find_spec("debugpy")
    if found is None or found.origin is None:
        pytest.skip("debugpy, which has the schema of the protocol, is not installed: make test-more")
    return json.loads((Path(found.origin).parent / _PLACE).read_text())["definitions"]


@cache
def _names() -> dict[tuple[str, str], str]:
    """(``command`` or ``event``, its name) -> the definition."""
    rows = {}
    for name, definition in protocol().items():
        for key in ("command", "event"):
            own = definition.get("allOf", [{}])[-1].get("properties", {})
            for word in own.get(key, {}).get("enum", ()):
                rows[key, word] = name
    return rows


def definition_of(message: Message) -> str:
    """The name of the definition that a message must fit."""
    kind = message["type"]
    if kind == "event":
        return _names()["event", message["event"]]
    if kind == "response" and not message["success"]:
        return "ErrorResponse"
    name = _names()["command", message["command"]]
    return name if kind == "request" else name.removesuffix("Request") + "Response"


@cache
def _validator(name: str) -> Any:
    return jsonschema.Draft4Validator({"$ref": f"#/definitions/{name}", "definitions": protocol()})


def problems(message: Message) -> list[str]:
    """The mistakes in a message, with keys that the schema does not know.

    What `attach` and `launch` say beyond the protocol is the adapter's own affair.
    """
    name = definition_of(message)
    wrong = [f"{name}: {error.message}" for error in _validator(name).iter_errors(message)]
    if message["type"] != "request":
        wrong += [f"{name} does not know {key}" for key in _unknown({"$ref": f"#/definitions/{name}"}, message)]
    return wrong


def _unknown(schema: Any, value: Any, path: str = "") -> Iterator[str]:
    known = _properties(schema)
    if isinstance(value, dict) and known:
        for key, inner in value.items():
            if key in known:
                yield from _unknown(known[key], inner, f"{path}.{key}")
            else:
                yield f"{path}.{key}"
    items = schema.get("items") if isinstance(schema, dict) else None
    if isinstance(value, list) and items:
        for inner in value:
            yield from _unknown(items, inner, f"{path}[]")


def _properties(schema: Any) -> dict[str, Any]:
    if "$ref" in schema:
        schema = protocol()[schema["$ref"].rpartition("/")[2]]
    rows = dict(schema.get("properties", {}))
    for part in schema.get("allOf", ()):
        for key, inner in _properties(part).items():
            rows[key] = inner if key not in rows or inner != {} else rows[key]
    return rows
