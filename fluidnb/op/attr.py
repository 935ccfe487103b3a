"""Attributes of an operator: their type on the wire, default, and checks."""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from fluidnb.errors import OpTypeError, OpValueError, typed
from fluidnb.proto.framework_pb2 import AttrType
from fluidnb.values import dtypes
from fluidnb.values import strict_feeds as declared


class _Required:
    """The default of an attribute that has none."""

    def __repr__(self) -> str:
        return "REQUIRED"


REQUIRED = _Required()

#: Attributes of every operator beside those of its definition: its origin, never its computation.
GENERATED: dict[str, int] = {
    "op_role": AttrType.INT,
    "op_role_var": AttrType.STRINGS,
    "op_namescope": AttrType.STRING,
    "op_callstack": AttrType.STRINGS,
    "op_device": AttrType.STRING,
    "with_quant_attr": AttrType.BOOLEAN,
}

#: Library switches that old scripts write on any operator; they choose a kernel where one is registered.
SWITCHES: dict[str, int] = {
    "use_cudnn": AttrType.BOOLEAN,
    "use_mkldnn": AttrType.BOOLEAN,
    "use_quantizer": AttrType.BOOLEAN,
    "mkldnn_data_type": AttrType.STRING,
}


def _integer(value: Any) -> int:
    if isinstance(value, bool | np.bool_):
        return int(value)
    return operator.index(value)


def _real(value: Any) -> float:
    if isinstance(value, str | bytes) or value is None:
        raise TypeError
    return float(value)


def _boolean(value: Any) -> bool:
    if isinstance(value, bool | np.bool_ | int | np.integer):
        return bool(value)
    raise TypeError


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _scalar(value: Any) -> bool | int | float | complex:
    if isinstance(value, bool | int | float | complex):
        return value
    raise TypeError


def _many(one: Callable[[Any], Any]) -> Callable[[Any], list[Any]]:
    def convert(value: Any) -> list[Any]:
        if isinstance(value, str | bytes) or not hasattr(value, "__iter__"):
            raise TypeError
        return [one(v) for v in value]

    return convert


def _dtype(value: Any) -> int:
    return -1 if value == -1 else int(dtypes.var_type(value))


def _block(value: Any) -> int:
    return _integer(getattr(value, "idx", value))


#: kind -> (AttrType number, conversion of a Python value)
_KINDS: dict[str, tuple[int, Callable[[Any], Any]]] = {
    "int": (AttrType.INT, _integer),
    "dtype": (AttrType.INT, _dtype),
    "long": (AttrType.LONG, _integer),
    "float": (AttrType.FLOAT, _real),
    "float64": (AttrType.FLOAT64, _real),
    "string": (AttrType.STRING, _text),
    "bool": (AttrType.BOOLEAN, _boolean),
    "ints": (AttrType.INTS, _many(_integer)),
    "longs": (AttrType.LONGS, _many(_integer)),
    "floats": (AttrType.FLOATS, _many(_real)),
    "float64s": (AttrType.FLOAT64S, _many(_real)),
    "strings": (AttrType.STRINGS, _many(_text)),
    "bools": (AttrType.BOOLEANS, _many(_boolean)),
    "block": (AttrType.BLOCK, _block),
    "blocks": (AttrType.BLOCKS, _many(_block)),
    "scalars": (AttrType.SCALARS, _many(_scalar)),
}

#: The range of INT and INTS in an OpDesc, which are 32 bits wide.
_LOWEST, _HIGHEST = -(2**31), 2**31 - 1
_LISTS = {"ints", "longs", "floats", "float64s"}


class Attr:
    """Definition of one attribute of an operator.

    Args:
        kind: ``int``, ``long``, ``float``, ``float64``, ``string``, ``bool``, ``dtype``, ``block`` or a list of one
            of these (``ints``, ``floats``, …), or ``scalars``, numbers of any kind; it decides the field in the OpDesc.
        default: the value when the attribute is left out, which is written into the bytes; None for an attribute
            that Paddle does not know, which is written only where it is given; without one it is required.
        doc: one phrase for the documentation.
        ge: smallest value allowed.
        gt: bound that the value must exceed.
        enum: the values allowed.
        check: ``check(value)`` returns None, or the error as a sentence.

    Example:
        >>> Attr("float", 0.5, "drop rate", ge=0).convert("dropout", "dropout_prob", 1)
        1.0
    """

    __slots__ = (
        "_convert", "_has_rules", "_is_int32", "any_value", "check", "default", "doc", "enum", "ge", "gt", "is_list",
        "kind", "number",
    )  # fmt: skip

    def __init__(
        self, kind: str, default: Any = REQUIRED, doc: str = "", *, ge: float | None = None, gt: float | None = None,
        enum: Collection[Any] | None = None, check: Callable[[Any], str | None] | None = None,
    ) -> None:  # fmt: skip
        self.kind, self.default, self.doc = kind, default, doc
        self.ge, self.gt, self.enum, self.check = ge, gt, enum, check
        self.number, self._convert = _KINDS[kind]
        self.is_list = kind.endswith("s")
        self._has_rules = not (ge is None and gt is None and enum is None and check is None)
        #: whether each value of the declared type is valid
        self.any_value = not self._has_rules and kind != "dtype"
        self._is_int32 = self.number in (AttrType.INT, AttrType.INTS)
        if default is not REQUIRED and default is not None:
            self.default = self.convert("an Attr", "default", default)

    def convert(self, op_type: str, name: str, value: Any) -> Any:
        """The checked value for the OpDesc.

        Example:
            >>> Attr("ints").convert("reshape", "shape", (2, -1))
            [2, -1]
        """
        if not declared.binding and self.kind in _LISTS and isinstance(value, int | float):
            value = [value]  # older programs have one number where a list is declared: dim of reduce_sum
        try:
            value = self._convert(value)
        except (TypeError, ValueError, OverflowError, OpTypeError, OpValueError):
            raise OpTypeError(
                f"Cannot get attribute {name} of {op_type} by type {self.kind}, its type is {type(value).__name__}.",
                attrs={name: value}, expected=self.kind, received=typed(value), hint=self._hint(name),
            ) from None  # fmt: skip
        self._check_value(op_type, name, value)
        return value

    def _check_value(self, op_type: str, name: str, value: Any) -> None:
        values = value if self.is_list else (value,)
        wrong, expected = self._broken_rule(op_type, name, value, values) if self._has_rules else (None, "")
        if wrong is None and self._is_int32:
            for v in values:
                if not _LOWEST <= v <= _HIGHEST:
                    wrong, expected = f"Attribute {name} of {op_type} does not fit 32 bits.", f"{_LOWEST} to {_HIGHEST}"
        if wrong is not None:
            raise OpValueError(
                wrong, attrs={name: value}, expected=expected or wrong, received=repr(value), hint=self._hint(name)
            )

    def _broken_rule(self, op_type: str, name: str, value: Any, values: Sequence[Any]) -> tuple[str | None, str]:
        """The first broken rule of the declaration as a sentence, and the values that it allows."""
        wrong, expected = None, ""
        for v in values:
            if self.gt is not None and not v > self.gt:
                wrong, expected = f"larger_than check fails for attribute {name} of {op_type}.", f"> {self.gt}"
            elif self.ge is not None and not v >= self.ge:
                wrong, expected = f"equal_larger_than check fails for attribute {name} of {op_type}.", f">= {self.ge}"
            elif self.enum is not None and v not in self.enum:
                allowed = ", ".join(map(repr, self.enum))
                wrong = f"Value {v!r} of attribute {name} of {op_type} is not in enum container {{{allowed}}}."
                expected = f"one of {allowed}"
        if wrong is None and self.check is not None:
            wrong = self.check(value)
        return wrong, expected

    def _hint(self, name: str) -> str:
        default = "it must be given" if self.default is REQUIRED else f"left out, it is {self.default!r}"
        if self.default is None:
            default = "it may be left out"
        return f"{name}: {self.doc or self.kind}; {default}."
