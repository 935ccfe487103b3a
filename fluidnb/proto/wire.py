"""Bytes in and out, and errors with the position of the fault."""

from contextlib import suppress
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import DecodeError

from fluidnb.errors import OpTypeError, OpValueError


def text_of(name: Any) -> Any:
    """A name as a text where it is the bytes of one, as scripts for Python 2 and 3 write names; else as it is."""
    if isinstance(name, bytes):
        with suppress(UnicodeDecodeError):
            return name.decode()
    return name


def parse(message: Any, data: Any, what: str) -> Any:
    """A message from its bytes, or from anything with the buffer protocol."""
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise OpTypeError(f"A {what} is read from bytes.", received=f"a {type(data).__name__}")
    data = bytes(data)
    summary = f"Fail to parse {what} from binary string."
    try:
        parsed = message.FromString(data)
    except (DecodeError, UnicodeDecodeError):  # the latter where protobuf runs without its C library
        expected, received = broken_at(data, message.DESCRIPTOR) or (None, f"{len(data)} bytes: {data[:16]!r}...")
        hint = f"these bytes are cut off, or of another kind; {what} bytes come from serialize_to_string()."
        raise OpValueError(summary, expected=expected, received=received, hint=hint) from None
    if not parsed.IsInitialized():
        raise uninitialized(parsed, summary)
    return parsed


def uninitialized(message: Any, what: str) -> OpValueError:
    """The error of a message that lacks required fields."""
    missing = message.FindInitializationErrors()
    shown = missing[:5] + (["..."] if len(missing) > 5 else [])
    return OpValueError(f"{what.removesuffix('.')}: {shown} are not initialized.")


def broken_at(data: bytes, message: Descriptor, path: str = "", start: int = 0) -> tuple[str, str] | None:
    """Expected and actual content where bytes break a message type; None where they are sound."""
    at = 0
    seen: dict[int, int] = {}
    while at < len(data):
        key, body = _varint(data, at)
        if key is None:
            return f"a field of {path or message.name} at byte {start + at}", "the end"
        number, kind = key >> 3, key & 7
        field = message.fields_by_number.get(number)
        name = path + (field.name if field else f"field {number}")
        if field and is_repeated(field):
            seen[number] = seen.get(number, -1) + 1
            name += f"[{seen[number]}]"
        size: int | None
        if kind == 2:
            size, body = _varint(data, body)
        else:
            size = {0: _varint(data, body)[1] - body, 1: 8, 5: 4}.get(kind)
            if size is None or number == 0:
                return f"a field of {path or message.name} at byte {start + at}", f"{data[at : at + 8]!r}"
        if size is None or body + size > len(data):
            return f"{size or 'the'} bytes of {name} at byte {start + body}", f"{len(data) - body} bytes before the end"
        if kind == 2 and field and field.message_type:
            inner = broken_at(data[body : body + size], field.message_type, name + ".", start + body)
            if inner:
                return inner
        at = body + size
    return None


def is_repeated(field: FieldDescriptor) -> bool:
    """Whether a field is a list; protobuf 7 spells it in another way than protobuf 4."""
    known: bool | None = getattr(field, "is_repeated", None)
    return field.label == 3 if known is None else known  # type: ignore[attr-defined]


def _varint(data: bytes, at: int) -> tuple[int | None, int]:
    """The number at a place and where the next thing starts; no number where it does not end within ten bytes."""
    value = 0
    for i in range(at, min(at + 10, len(data))):
        value |= (data[i] & 0x7F) << (7 * (i - at))
        if data[i] < 0x80:
            return value, i + 1
    return None, len(data) + 1
