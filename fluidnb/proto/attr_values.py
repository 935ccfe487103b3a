"""Attribute values: between a Python value and the one field of OpDesc.Attr that its AttrType names."""

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from fluidnb.errors import OpTypeError, OpValueError
from fluidnb.proto import framework_pb2 as pb2

#: What an attribute reads as in Python.
AttrValue = bool | int | float | complex | str | list[bool] | list[int] | list[float] | list[complex] | list[str]


def _fits(number: int, bits: int) -> bool:
    return -(1 << bits - 1) <= number < 1 << bits - 1


def _int(value: Any, bits: int) -> int:
    number = int(operator.index(value))
    if not _fits(number, bits):
        raise OverflowError(f"{number} needs more than {bits} bits")
    return number


def _int32(value: Any) -> int:
    return _int(value, 32)


def _int64(value: Any) -> int:
    return _int(value, 64)


def _float(value: Any) -> float:
    if isinstance(value, (str, bytes)):  # float() would read them as text
        raise TypeError("a text is not a number")
    return float(value)


def _text(value: Any) -> str | bytes:
    if isinstance(value, str):
        return str(value)
    if isinstance(value, bytes):  # protobuf gives bytes for what is not UTF-8, and takes only text
        return value.decode()
    raise TypeError("not a text")


def _bool(value: Any) -> bool:
    if value in (0, 1) and not isinstance(value, float):
        return bool(value)
    raise TypeError("neither True nor False")


def _block(value: Any) -> int:
    return _int32(getattr(value, "idx", value))


def _scalar(value: Any) -> Any:
    value = plain(value)
    kinds = pb2.Scalar
    if isinstance(value, bool):
        return pb2.Scalar(type=kinds.BOOLEAN, b=value)
    if isinstance(value, int):
        return pb2.Scalar(type=kinds.LONG, i=_int64(value))
    if isinstance(value, float):
        return pb2.Scalar(type=kinds.FLOAT64, r=value)
    if isinstance(value, complex):
        return pb2.Scalar(type=kinds.COMPLEX128, c=pb2.Complex(r=value.real, i=value.imag))
    raise TypeError("not a number")


def _from_scalar(scalar: Any) -> bool | int | float | complex:
    values = {1: scalar.b, 2: scalar.i, 3: scalar.r, 4: complex(scalar.c.r, scalar.c.i)}
    value: bool | int | float | complex = values[scalar.type]
    return value


#: AttrType -> (field of OpDesc.Attr, whether it is a list, what makes one value fit).
_FIELDS: dict[int, tuple[str, bool, Callable[[Any], Any]]] = {
    pb2.INT: ("i", False, _int32),
    pb2.FLOAT: ("f", False, _float),
    pb2.STRING: ("s", False, _text),
    pb2.INTS: ("ints", True, _int32),
    pb2.FLOATS: ("floats", True, _float),
    pb2.STRINGS: ("strings", True, _text),
    pb2.BOOLEAN: ("b", False, _bool),
    pb2.BOOLEANS: ("bools", True, _bool),
    pb2.BLOCK: ("block_idx", False, _block),
    pb2.LONG: ("l", False, _int64),
    pb2.BLOCKS: ("blocks_idx", True, _block),
    pb2.LONGS: ("longs", True, _int64),
    pb2.FLOAT64S: ("float64s", True, _float),
    pb2.VAR: ("var_name", False, _text),
    pb2.VARS: ("vars_name", True, _text),
    pb2.FLOAT64: ("float64", False, _float),
    pb2.SCALAR: ("scalar", False, _scalar),
    pb2.SCALARS: ("scalars", True, _scalar),
}
_FLOAT32 = (pb2.FLOAT, pb2.FLOATS)
_SCALAR = (pb2.SCALAR, pb2.SCALARS)


def plain(value: Any) -> Any:
    """A numpy number or array as Python numbers and lists; anything else as it is."""
    return value.tolist() if hasattr(value, "tolist") else value


def guess_type(value: Any, name: str = "") -> int:
    """The AttrType of a Python value, for attributes that nothing else gives a type.

    Args:
        value: a bool, int, float, complex, str, a block (anything with an ``idx``), or a list or tuple of one of these.
            Integers beyond 32 bits are LONG; an empty list is INTS; ints among floats are floats.
    """
    value = plain(value)
    if isinstance(value, (list, tuple)):
        return _guess_list_type(value, name)
    if isinstance(value, bool):
        return pb2.BOOLEAN
    if isinstance(value, int):
        return pb2.INT if _fits(value, 32) else pb2.LONG
    if isinstance(value, float):
        return pb2.FLOAT
    if isinstance(value, (str, bytes)):
        return pb2.STRING
    if isinstance(value, complex):
        return pb2.SCALAR
    if isinstance(getattr(value, "idx", None), int):
        return pb2.BLOCK
    raise _unfit(value, name)


def _guess_list_type(values: Sequence[Any], name: str) -> int:
    if any(isinstance(v, list | tuple) for v in values):  # which may have itself as an element
        raise _unfit(values, name)
    kinds = {guess_type(v, name) for v in values}
    for members, kind in (
        ({pb2.INT}, pb2.INTS),
        ({pb2.INT, pb2.LONG}, pb2.LONGS),
        ({pb2.BOOLEAN}, pb2.BOOLEANS),
        ({pb2.STRING}, pb2.STRINGS),
        ({pb2.BLOCK}, pb2.BLOCKS),
        ({pb2.INT, pb2.LONG, pb2.FLOAT}, pb2.FLOATS),
        ({pb2.INT, pb2.LONG, pb2.FLOAT, pb2.BOOLEAN, pb2.SCALAR}, pb2.SCALARS),
    ):
        if kinds <= members:
            return kind
    raise _unfit(values, name)


def _unfit(value: Any, name: str) -> OpTypeError:
    return OpTypeError(
        f'Attribute "{name}" cannot hold this value.',
        expected="a bool, int, float, complex, str or block, or a list of one of these",
        received=f"{value!r}, a {type(value).__name__}",
    )


def encode(entry: pb2.OpDesc.Attr, name: str, kind: int, value: Any) -> Any:
    """Fills an empty OpDesc.Attr; returns the value as it is read back: FLOAT in 32 bits, a block as its index."""
    if kind not in _FIELDS:
        raise OpValueError(f'Attribute "{name}": there is no AttrType {kind!r}.')
    field, is_list, fit = _FIELDS[kind]
    try:
        entry.name = name
        entry.type = kind  # type: ignore[assignment]
        if is_list:
            if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Iterable):
                raise TypeError("not a list")
            values = [fit(v) for v in value]
            getattr(entry, field).extend(values)
        elif kind == pb2.SCALAR:
            entry.scalar.CopyFrom(fit(value))
        else:
            value = fit(value)
            setattr(entry, field, value)
    except (TypeError, ValueError, OverflowError) as why:
        error = OpTypeError if isinstance(why, TypeError) else OpValueError
        raise error(
            f'Attribute "{name}" cannot hold this value: {why}.', expected=pb2.AttrType.Name(kind),
            received=f"{value!r}, a {type(value).__name__}",
        ) from None  # fmt: skip
    if kind in _FLOAT32 or kind in _SCALAR:
        return decode(entry)
    return values if is_list else value


def decode(entry: pb2.OpDesc.Attr) -> Any:
    """The plain Python value in an OpDesc.Attr; lists are new lists."""
    kind = entry.type
    field, is_list, _ = _FIELDS[kind]
    value = getattr(entry, field)
    if kind in _SCALAR:
        return [_from_scalar(v) for v in value] if is_list else _from_scalar(value)
    return value[:] if is_list else value
