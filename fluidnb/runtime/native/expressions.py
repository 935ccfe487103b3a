"""C expressions of numpy's functions, with the same result to the bit, and C types of dtypes."""

import platform
from typing import Any

import numpy as np

from fluidnb.op.scalar_fast_path import UFUNCS
from fluidnb.runtime.native.exact_functions import NAMES, agrees

#: Type character of a dtype, as in ``np.dtype(...).char`` -> type of C.
TYPES = {
    "?": "uint8_t", "b": "int8_t", "B": "uint8_t", "h": "int16_t", "H": "uint16_t", "i": "int32_t", "I": "uint32_t",
    "l": f"int{8 * np.dtype('l').itemsize}_t", "L": f"uint{8 * np.dtype('l').itemsize}_t", "q": "int64_t",
    "Q": "uint64_t", "f": "float", "d": "double",
}  # fmt: skip
_REAL, _WHOLE, _ALL = "fd", "bBhHiIlLqQ", "?bBhHiIlLqQfd"
_BUILTIN = {"f": "f", "d": ""}

#: ufunc -> rows of (type characters of its operands, expression). ``{s}`` is the suffix of C's functions for floats,
#: ``{t}`` the type.
_ROWS: dict[Any, list[tuple[str, str]]] = {
    np.add: [(_REAL + _WHOLE, "{0} + {1}")],
    np.subtract: [(_REAL + _WHOLE, "{0} - {1}")],
    np.multiply: [(_REAL + _WHOLE, "{0} * {1}")],
    np.divide: [(_REAL, "{0} / {1}")],
    np.negative: [(_REAL + _WHOLE, "-{0}")],
    np.positive: [(_REAL + _WHOLE, "{0}")],
    np.square: [(_REAL + _WHOLE, "{0} * {0}")],
    np.reciprocal: [(_REAL, "1 / {0}")],
    np.absolute: [(_REAL, "__builtin_fabs{s}({0})"), ("bhilq", "{0} < 0 ? -{0} : {0}")],
    np.sqrt: [(_REAL, "__builtin_sqrt{s}({0})")],
    np.floor: [(_REAL, "__builtin_floor{s}({0})")],
    np.ceil: [(_REAL, "__builtin_ceil{s}({0})")],
    np.trunc: [(_REAL, "__builtin_trunc{s}({0})")],
    np.rint: [(_REAL, "__builtin_rint{s}({0})")],
    np.sign: [(_REAL, "{0} > 0 ? 1 : {0} < 0 ? -1 : {0} == 0 ? 0 : {0}")],
    np.maximum: [(_WHOLE, "{0} >= {1} ? {0} : {1}")],
    np.minimum: [(_WHOLE, "{0} <= {1} ? {0} : {1}")],
    np.less: [(_ALL, "{0} < {1}")],
    np.less_equal: [(_ALL, "{0} <= {1}")],
    np.greater: [(_ALL, "{0} > {1}")],
    np.greater_equal: [(_ALL, "{0} >= {1}")],
    np.equal: [(_ALL, "{0} == {1}")],
    np.not_equal: [(_ALL, "{0} != {1}")],
    np.logical_and: [(_ALL, "({0} != 0) & ({1} != 0)")],
    np.logical_or: [(_ALL, "({0} != 0) | ({1} != 0)")],
    np.logical_not: [(_ALL, "{0} == 0")],
    np.isnan: [(_REAL, "{0} != {0}")],
    np.isfinite: [(_REAL, "{0} - {0} == 0")],
    np.isinf: [(_REAL, "__builtin_fabs{s}({0}) == __builtin_inf{s}()")],
}
if platform.machine() in ("x86_64", "AMD64"):  # elsewhere numpy's own loops compute these
    _ROWS[np.maximum].append((_REAL, "max_{t}({0}, {1})"))
    _ROWS[np.minimum].append((_REAL, "min_{t}({0}, {1})"))

#: ufunc -> the sign between a second and a first operand where the second is the result.
_LIMITS = {np.maximum: ">", np.minimum: "<"}

#: Functions of one element -> the ufunc that they stand for.
ON_ONE = UFUNCS


def expression(ufunc: Any, chars: str) -> str | None:
    """The C expression of a ufunc for operands of one type; ``{0}`` and ``{1}`` are the operands.

    Args:
        chars: type characters of the operands.

    Returns:
        The expression, or None where there is none with numpy's bits.

    Example:
        >>> expression(np.sqrt, "f"), expression(np.tanh, "f")
        ('__builtin_sqrtf({0})', None)
    """
    if len(set(chars)) == 1:
        for types, text in _ROWS.get(ufunc, ()):
            if chars[0] in types:
                return text.replace("{s}", _BUILTIN.get(chars[0], "")).replace("{t}", TYPES[chars[0]])
    if chars == "f" and ufunc in NAMES and agrees(ufunc):
        return NAMES[ufunc] + "({0})"
    return None


def limit(ufunc: Any, by: Any) -> str | None:
    """The shorter expression of `maximum` and `minimum` by a constant that is neither 0 nor NaN; None for others.

    The result is the first operand where that is NaN. With this order of the operands it is one instruction.

    Example:
        >>> limit(np.maximum, np.float32(2)), limit(np.maximum, np.float32(0))
        ('{1} > {0} ? {1} : {0}', None)
    """
    sign = _LIMITS.get(ufunc)
    if sign is None or by.flags.writeable or not by.size:
        return None
    number = by.flat[0]
    usual = number != 0 and bool((by == number).all())  # NaN is not equal to itself
    return f"{{1}} {sign} {{0}} ? {{1}} : {{0}}" if usual else None
