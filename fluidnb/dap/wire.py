"""Messages as bytes: a header with the length, then JSON."""

import json
from typing import Any, Protocol

from fluidnb.errors import OpValueError

#: The most bytes of a message, and of a line of its header.
MOST, MOST_HEADER = 8 << 20, 1 << 10
#: Lines of a header.
_LINES = 16


class Reader(Protocol):
    """A binary stream to read from."""

    def readline(self, size: int, /) -> bytes:
        """Read a line."""

    def read(self, size: int, /) -> bytes:
        """Read bytes, fewer at the end."""


def read_message(stream: Reader) -> dict[str, Any] | None:
    """Read one message; None at the end of the stream."""
    length = -1
    for _ in range(_LINES):
        line = stream.readline(MOST_HEADER)
        if not line:
            return None
        if not line.strip():
            break
        name, colon, value = line.decode("latin-1").partition(":")
        # The protocol has one field. Others (Origin, Host, a path with a colon) come from a browser: its page must not
        # reach a debugger with a message as the body of a request.
        if not colon or not line.endswith(b"\n") or name.strip().lower() != "content-length":
            raise _refused(line)
        digits = value.strip()
        if not digits.isascii() or not digits.isdigit():
            raise _refused(line)
        length = int(digits)  # int() refuses separators that strip() takes away
    else:
        raise OpValueError("The header of a message is too long.", expected=f"at most {_LINES} lines")
    if not 0 <= length <= MOST:
        raise OpValueError(
            "A message has no length, or is too long.", expected=f"Content-Length: at most {MOST:,}", received=length
        )
    body = stream.read(length)
    if len(body) < length:
        return None
    try:
        message = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise OpValueError("The message is not JSON.", received=str(error)) from None
    if not isinstance(message, dict):
        raise OpValueError("The message is not a JSON object.", received=type(message).__name__)
    return message


def encoded(message: dict[str, Any]) -> bytes:
    """A message as bytes."""
    body = json.dumps(message, ensure_ascii=False).encode("utf-8", "replace")
    return b"Content-Length: %d\r\n\r\n" % len(body) + body


def _refused(line: bytes) -> OpValueError:
    return OpValueError(
        "That is not a message of the Debug Adapter Protocol.", expected="Content-Length: and a number",
        received=repr(line[:60]),
    )  # fmt: skip
