"""Paddle's ``paddle.compat``: conversions of texts, bytes and numbers for Python 2 and 3.

Example:
    >>> from fluidnb.compat import texts
    >>> texts.to_text(b"cat"), texts.round(2.5)
    ('cat', 3.0)
"""

import math
from typing import Any

from fluidnb.errors import FluidError, OpTypeError

__all__ = ["floor_division", "get_exception_message", "int_type", "long_type", "round", "to_bytes", "to_text"]

int_type = long_type = int


def to_text(obj: Any, encoding: str = "utf-8", inplace: bool = False) -> Any:
    """Bytes as text, also inside lists and sets.

    Args:
        obj: bytes, a text, a list or set of them; anything else stays what it is.
    """
    return _each(obj, lambda v: v.decode(encoding) if isinstance(v, bytes) else v, inplace)


def to_bytes(obj: Any, encoding: str = "utf-8", inplace: bool = False) -> Any:
    """Texts as bytes, also inside lists and sets; arguments as `to_text`."""
    return _each(obj, lambda v: v.encode(encoding) if isinstance(v, str) else v, inplace)


def _each(obj: Any, change: Any, inplace: bool) -> Any:
    if not isinstance(obj, list | set):
        return change(obj)
    changed = [change(v) for v in obj]
    if not inplace:
        return type(obj)(changed)
    obj.clear()
    (obj.extend if isinstance(obj, list) else obj.update)(changed)
    return obj


def round(x: float, d: int = 0) -> float:
    """A number rounded as Python 2 did: halves away from zero."""
    power = 10**d
    return math.copysign(math.floor(abs(x) * power + 0.5) / power, x)


def floor_division(x: float, y: float) -> float:
    """``x // y``."""
    return x // y


def get_exception_message(exc: BaseException) -> str:
    """The first sentence of an exception, which scripts compare with Fluid's.

    Returns:
        Its text; of our errors, without the lines about the operator, its operands and the user's line.
    """
    if not isinstance(exc, BaseException):
        raise OpTypeError(
            "get_exception_message takes an exception.", expected="an exception", received=repr(exc)[:200]
        )
    return exc.summary if isinstance(exc, FluidError) else str(exc)
