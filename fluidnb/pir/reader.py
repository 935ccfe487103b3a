"""The JSON of a PIR program as dataclasses: a module of blocks, operations, values and their types.

Paddle 3.0 to 3.3 write it as ``inference.json``. Names are short: an operation has ``#`` (dialect and name), ``I``
(operands), ``O`` (results), ``A`` (attributes) and ``regions``; a value is a number ``%`` with a type ``TT``.
"""

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

from fluidnb.errors import EnforceNotMet

#: Dialects by the number that names begin with.
_DIALECTS = {"0": "builtin", "1": "pd_op", "2": "cf"}
_DTYPES = {
    "t_bool": "bool", "t_i8": "int8", "t_ui8": "uint8", "t_i16": "int16", "t_i32": "int32", "t_i64": "int64",
    "t_f16": "float16", "t_bf16": "bfloat16", "t_f32": "float32", "t_f64": "float64", "t_c64": "complex64",
    "t_c128": "complex128", "t_index": "int64",
}  # fmt: skip
#: Programs are small: the parameters are in another file.
LIMIT = 256 << 20


@dataclass(frozen=True, slots=True)
class Type:
    """The type of a value.

    Args:
        dtype: name of the elements' dtype; empty for no tensor.
        shape: sizes, -1 where they are unknown.
        items: of a vector of values, their types; None for a tensor.
    """

    dtype: str = ""
    shape: tuple[int, ...] = ()
    items: "tuple[Type, ...] | None" = None


@dataclass(frozen=True, slots=True)
class Value:
    """A result or an argument of a block: its number, which operands name, and its type."""

    number: int
    type: Type


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation.

    Args:
        name: dialect and name: ``pd_op.conv2d``.
        operands: numbers of values; 0 for an optional one that is left out.
        results: what it computes.
        attrs: attributes by name, as Python values.
        blocks: blocks that it runs, one of each region.
    """

    name: str
    operands: tuple[int, ...]
    results: tuple[Value, ...]
    attrs: dict[str, Any]
    blocks: tuple["Block", ...] = ()


@dataclass(frozen=True, slots=True)
class Block:
    """A sequence of operations."""

    arguments: tuple[Value, ...]
    operations: tuple[Operation, ...]


@dataclass(frozen=True, slots=True)
class Module:
    """A whole program."""

    version: int
    block: Block
    path: str  # of the file

    def each(self) -> Iterator[Operation]:
        """All operations, each followed by those of its blocks."""
        waiting = [iter(self.block.operations)]
        while waiting:
            operation = next(waiting[-1], None)
            if operation is None:
                waiting.pop()
                continue
            yield operation
            waiting += [iter(block.operations) for block in reversed(operation.blocks)]


def read(path: str) -> Module:
    """Reads a program.

    Args:
        path: the file, for example ``inference.json``.

    Raises:
        EnforceNotMet: the file cannot be read, or holds no PIR program.
    """
    try:
        size = os.path.getsize(path)
        if size > LIMIT:
            _refuse(path, f"at most {LIMIT >> 20} MB", f"{size >> 20} MB")
        with open(path, "rb") as file:
            data = json.loads(file.read())
    except OSError as error:
        raise EnforceNotMet(f"Cannot read {path}.", received=error.strerror, hint="correct the path.") from None
    except RecursionError:
        _refuse(path, "blocks that are nested less deeply", "brackets inside brackets, hundreds deep")
    except ValueError as error:
        _refuse(path, "JSON", str(error)[:120])
    if not isinstance(data, dict) or not isinstance(data.get("base_code"), dict):
        _refuse(path, '"base_code" with the magic word "pir"', _brief(data))
    if data["base_code"].get("magic") != "pir":
        _refuse(path, 'the magic word "pir"', repr(data["base_code"].get("magic"))[:40])
    try:
        (region,) = data["program"]["regions"]
        return Module(int(data["base_code"].get("version", 0)), _block(region), path)
    except RecursionError:
        _refuse(path, "blocks that are nested less deeply", "blocks inside blocks, hundreds deep")
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        _refuse(path, "a complete PIR program", f"{type(error).__name__} {error}"[:120])


def _refuse(path: str, expected: str, received: str) -> NoReturn:
    raise EnforceNotMet(
        f"{path} is no program of Paddle 3.", expected=expected, received=received,
        hint="export it again: paddle.jit.save writes NAME.json and NAME.pdiparams.",
    ) from None  # fmt: skip


def _brief(data: Any) -> str:
    return f"an object with {', '.join(map(str, list(data)[:5])) or 'nothing'}" if isinstance(data, dict) else "a list"


def _block(region: dict[str, Any]) -> Block:
    (block,) = region["blocks"]
    arguments = tuple(Value(int(a["#"] if "#" in a else a["%"]), _type(a["TT"])) for a in block["args"])
    return Block(arguments, tuple(map(_operation, block["ops"])))


def _operation(data: dict[str, Any]) -> Operation:
    name = data["#"]
    if name == "p":  # a parameter, whose form is shorter
        kept, _, trainable = map(bool, data["OA"])
        attrs = {"parameter_name": str(data["A"][3]), "trainable": trainable, "persistable": kept}
        return Operation("builtin.parameter", (), (_value(data["O"]),), attrs)
    number, _, short = name.partition(".")
    attrs = {str(a["N"]): _attribute(a["AT"]) for a in data.get("A", ())}
    blocks = tuple(_block(region) for region in data.get("regions", ()))
    operands = tuple(int(i["%"]) for i in data.get("I", ()))
    return Operation(
        f"{_DIALECTS.get(number, number)}.{short}", operands, tuple(map(_value, data["O"])), attrs, blocks
    )


def _value(data: dict[str, Any]) -> Value:
    return Value(int(data["%"]), _type(data.get("TT")))


def _type(data: dict[str, Any] | None) -> Type:
    if not data:
        return Type()
    kind = data["#"].partition(".")[2]
    if kind == "t_vec":
        return Type(items=tuple(map(_type, data["D"])))
    if "D" not in data or not isinstance(data["D"][0], dict):
        return Type(_DTYPES.get(kind, ""))
    dtype = data["D"][0]["#"].partition(".")[2]
    return Type(_DTYPES[dtype], tuple(int(n) for n in data["D"][1]))


def _attribute(data: dict[str, Any]) -> Any:
    """The value of an attribute: a number, text, or a list of these."""
    if "VD" in data:  # numbers that JSON does not have: INF, -INF, NaN
        return float(data["VD"])
    value = data.get("D")
    if data["#"].endswith(".a_array"):
        return [_attribute(item) for item in value or ()]
    return value
