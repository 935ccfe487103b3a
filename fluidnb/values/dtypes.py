"""Element types: VarType numbers, numpy dtypes and names, from any of each other."""

import enum
from typing import Any, TypeVar

import numpy as np

from fluidnb.errors import OpValueError, near
from fluidnb.extras import require

T = TypeVar("T")


class VarType(enum.IntEnum):
    """Types of variables and elements, with the numbers of the file format.

    Source: VarType.Type of Fluid's framework.proto.

    Example:
        >>> VarType.FP32, int(VarType.FP32)
        (<VarType.FP32: 5>, 5)
    """

    BOOL, INT16, INT32, INT64, FP16, FP32, FP64 = range(7)
    LOD_TENSOR, SELECTED_ROWS, FEED_MINIBATCH, FETCH_LIST, STEP_SCOPES = range(7, 12)
    LOD_RANK_TABLE, LOD_TENSOR_ARRAY, PLACE_LIST, READER = range(12, 16)
    RAW, TUPLE, SIZE_T, UINT8, INT8, BF16, COMPLEX64, COMPLEX128 = range(17, 25)
    STRING, STRINGS, VOCAB, FEED_LIST, PSTRING, SPARSE_COO, SPARSE_CSR = range(25, 32)


#: Number -> type. A call of the enumeration takes twenty times as long.
VAR_TYPES: dict[int, VarType] = {int(each): each for each in VarType}

#: Element type -> numpy's name of it.
_NAMES = {
    VarType.BOOL: "bool",
    VarType.INT8: "int8",
    VarType.UINT8: "uint8",
    VarType.INT16: "int16",
    VarType.INT32: "int32",
    VarType.INT64: "int64",
    VarType.FP16: "float16",
    VarType.BF16: "bfloat16",
    VarType.FP32: "float32",
    VarType.FP64: "float64",
    VarType.COMPLEX64: "complex64",
    VarType.COMPLEX128: "complex128",
    VarType.SIZE_T: "uint64",
}
_NUMBERS: dict[Any, VarType] = {name: number for number, name in _NAMES.items()}
# Cache of earlier results, so that hot paths pay one look-up.
_dtypes: dict[tuple[type, Any], np.dtype[Any]] = {}
_types: dict[tuple[type, Any], VarType] = {}


def np_dtype(dtype: Any) -> np.dtype[Any]:
    """The numpy dtype of any spelling of an element type.

    Args:
        dtype: a VarType or its number, a name, a numpy dtype or scalar type, a Python type.

    Example:
        >>> np_dtype(5), np_dtype("int64"), np_dtype(np.bool_)
        (dtype('float32'), dtype('int64'), dtype('bool'))
    """
    known = _recall(_dtypes, dtype)
    if known is None:
        name = dtype_name(dtype)
        known = _dtypes[type(dtype), dtype] = _bfloat16() if name == "bfloat16" else np.dtype(name)
    return known


def var_type(dtype: Any) -> VarType:
    """The VarType number of any spelling of an element type.

    Example:
        >>> var_type("float32"), var_type(np.int64)
        (<VarType.FP32: 5>, <VarType.INT64: 3>)
    """
    known = _recall(_types, dtype)
    if known is None:
        known = _types[type(dtype), dtype] = _find(dtype)
    return known


def dtype_name(dtype: Any) -> str:
    """The name of any spelling of an element type.

    Example:
        >>> dtype_name(VarType.FP16), dtype_name(float)
        ('float16', 'float64')
    """
    return _NAMES[var_type(dtype)]


def is_floating(dtype: Any) -> bool:
    """Whether an element type is one of the floating ones, the only ones that have gradients.

    Example:
        >>> is_floating("float16"), is_floating("int64")
        (True, False)
    """
    return var_type(dtype) in (VarType.FP16, VarType.BF16, VarType.FP32, VarType.FP64)


def holds(dtype: Any, number: Any) -> bool:
    """Whether an element type has a number: an integer type whole numbers in its range, another any 64-bit float.

    Example:
        >>> holds("uint8", 255.0), holds("uint8", 256), holds("int32", 0.5), holds("float32", 0.5)
        (True, False, False, True)
    """
    kind = np_dtype(dtype)
    if isinstance(number, np.generic | np.ndarray) and number.size == 1:
        number = number.item()  # numpy would compare with the limits as rounded floats
    if kind.kind not in "iu":
        return not isinstance(number, int) or abs(number) < 2**1024
    limits = np.iinfo(kind)
    return bool(limits.min <= number <= limits.max and number % 1 == 0)


def _find(dtype: Any) -> VarType:
    if isinstance(dtype, (int, np.integer)) and not isinstance(dtype, bool):
        name: str | None = _NAMES.get(dtype)  # type: ignore[call-overload]
    elif isinstance(dtype, str) and dtype in _NUMBERS:
        name = dtype
    else:
        try:
            name = np.dtype(dtype).name if dtype is not None else None  # numpy reads None as float64
        except (TypeError, ValueError, UnicodeError):  # an object with a foreign ``dtype``, half a surrogate pair
            name = None
    if name not in _NUMBERS:
        hint = near(dtype, map(str, _NUMBERS)) if isinstance(dtype, str) else ""
        shown = dtype if isinstance(dtype, str) else getattr(dtype, "__name__", repr(dtype))
        raise OpValueError(f'"{shown}" is not a dtype that Fluid computes on.', expected=", ".join(_NUMBERS), hint=hint)
    return _NUMBERS[name]


def _recall(cache: dict[tuple[type, Any], T], key: Any) -> T | None:
    # The type is part of the key because True == 1 == 1.0.
    try:
        return cache.get((type(key), key))
    except TypeError:  # not hashable, so no spelling of a dtype either
        return None


def _bfloat16() -> np.dtype[Any]:
    dtype: np.dtype[Any] = np.dtype(require("ml_dtypes", "bfloat16").bfloat16)
    return dtype
