"""Messages as text, in protobuf's text format, the same whichever protobuf runtime prints it.

The runtime's own printing changes between versions (spaces, floats, even on purpose), so it cannot be compared with a
text that was written down.
"""

from collections.abc import Iterator
from functools import cache
from struct import pack, unpack
from typing import Any

from google.protobuf.descriptor import FieldDescriptor

from fluidnb.proto.wire import is_repeated
from fluidnb.utils.escapes import ACTING


@cache
def _escapes() -> dict[int, str]:
    """Character -> how it is written: those that act on a terminal or reorder a line as their bytes in UTF-8."""
    escapes = {ord(c): e for c, e in zip("\n\r\t\"'\\", (r"\n", r"\r", r"\t", r"\"", r"\'", r"\\"), strict=True)}
    escapes |= {i: f"\\{i:03o}" for i in (*range(32), 127) if i not in escapes}
    escapes |= {
        i: "".join(f"\\{b:03o}" for b in chr(i).encode("utf-8", "surrogatepass"))
        for first, last in ACTING if last > 127 for i in range(max(first, 128), last + 1)
    }  # fmt: skip
    return escapes


def to_text(message: Any) -> str:
    """A message in protobuf's text format, fields by number, without unset and unknown ones."""
    return "".join(_lines(message, ""))


def _lines(message: Any, indent: str) -> Iterator[str]:
    for field, content in message.ListFields():
        for value in content if is_repeated(field) else (content,):
            if field.message_type:
                yield f"{indent}{field.name} {{\n"
                yield from _lines(value, indent + "  ")
                yield f"{indent}}}\n"
            else:
                yield f"{indent}{field.name}: {_scalar(field, value)}\n"


def _scalar(field: FieldDescriptor, value: Any) -> str:
    if field.enum_type:
        return str(field.enum_type.values_by_number[value].name)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f'"{value.translate(_escapes())}"'
    if isinstance(value, bytes):  # a text that is not UTF-8
        return '"' + "".join(chr(b).translate(_escapes()) if b < 128 else f"\\{b:03o}" for b in value) + '"'
    return _shortest32(value) if field.type == FieldDescriptor.TYPE_FLOAT else str(value)


def _shortest32(value: float) -> str:
    """The fewest digits that still give the same 32-bit float."""
    for digits in range(6, 9):
        short = float(f"{value:.{digits}g}")
        if unpack("f", pack("f", short))[0] == value:
            return str(short)
    return str(float(f"{value:.9g}"))
