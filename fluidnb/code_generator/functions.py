"""C functions for operators: the text of an operator with the dtypes and constants of one place where it is used."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fluidnb.errors import EnforceNotMet, OpValueError, near
from fluidnb.op import EMPTY, get_op
from fluidnb.op.c_code import CCode, Constant, CText, Parameter, all_c_code, c_code_of, functions_of, has_c_code
from fluidnb.op.compile_context import CompileContext
from fluidnb.proto.desc import OpDesc

#: dtype -> type of C.
TYPES = {
    "bool": "bool", "uint8": "uint8_t", "int8": "int8_t", "int16": "int16_t", "int32": "int32_t", "int64": "int64_t",
    "float32": "float", "float64": "double",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Argument:
    """The variables that a call passes for one parameter.

    Attributes:
        parameter: the parameter.
        names: the variables, one unless the slot is a list; empty for NULL.
        type: type of C of their elements.
    """

    parameter: Parameter
    names: tuple[str, ...]
    type: str


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable of the generated code.

    Attributes:
        name: its name in the program.
        shape: its sizes.
        dtype: its dtype.
        kind: ``fed``, ``fetched``, ``parameter``, ``temporary``, or ``table`` of constants.
        offset: its first byte in the arena, for temporaries.
        lod: the feed whose offsets of sequences it has; empty without sequences.
    """

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    kind: str
    offset: int = 0
    lod: str = ""

    @property
    def count(self) -> int:
        """The number of its elements."""
        return math.prod(self.shape)

    @property
    def size(self) -> int:
        """The number of its bytes."""
        return self.count * self.dtype.itemsize

    @property
    def type(self) -> str:
        """The type of C of its elements."""
        return TYPES[self.dtype.name]


@dataclass(slots=True)
class Texts:
    """The functions of a generated file; operators that need the same text share one.

    Attributes:
        texts: name -> text, helpers before those that call them.
    """

    texts: dict[str, str] = field(default_factory=dict)
    _names: dict[str, str] = field(default_factory=dict)  # text without its name -> name
    _counts: dict[str, int] = field(default_factory=dict)

    def memory(self) -> dict[str, Variable]:
        """The variables that functions need beside those of the program."""
        return {}

    def shared(self, type: str, comment: str, parameters: str, body: str) -> str:
        """The name of a function of an operator; it is added to the file unless it is there.

        Args:
            type: type of the operator.
            comment: the lines above it.
            parameters: its parameters.
            body: the lines between its braces.
        """
        key = f"{type}({parameters})\n{body}"
        if key not in self._names:
            count = self._counts[type] = self._counts.get(type, 0) + 1
            name = self._names[key] = f"op_{type}" + (f"_{count}" if count > 1 else "")
            above = "".join(f"// {line}\n" for line in comment.splitlines())
            self.texts[name] = f"{above}static void {name}({parameters}) {{\n{body}}}\n"
        return self._names[key]


class NoCode(EnforceNotMet):
    """An operator that has no code for these operands; it is listed with the others."""


class Functions(Texts):
    """The functions of a C file: the operators' C code with the dtypes and constants of each place of use."""

    language = "C"

    def add(self, op: OpDesc, sequences: int) -> tuple[str, list[Argument]]:
        """The function of an operator and what it is called with.

        Args:
            sequences: the number of sequences in a variable that has any.

        Returns:
            The name, and an argument for each parameter.

        Raises:
            OpValueError: the dtypes are none that the C code takes.
        """
        assert op.block is not None
        context = CompileContext(get_op(op.optype), op, op.block)
        code = c_code_of(op.optype)
        text = code.text
        arguments = _arguments(op, context, text)
        types = _types(op, context, arguments)
        constants = {**code.constants(context), "SEQUENCES": sequences}
        body = self._with_helpers(code, _typed(text.body, types), types)
        lines = [*_declared(constants, body, types.get("T", "float"))]
        body = self._with_helpers(code, _typed(_spelled(body, constants), types), types)
        parameters = ", ".join(_parameter(a, op) for a in arguments)
        above = _typed(_spelled(text.comment, constants), types)
        return self.shared(op.optype, above, parameters, "".join(lines) + body), arguments

    @staticmethod
    def missing(op: OpDesc) -> bool:
        """Whether an operator has no C code."""
        return not has_c_code(op.optype)

    @staticmethod
    def hint(type: str) -> str:
        """Advice about an operator without C code."""
        return near(type, all_c_code()) or "clone(for_test=True) and prune drop what inference does not need."

    def _with_helpers(self, code: CCode, body: str, types: Mapping[str, str]) -> str:
        """A body that calls helpers of its dtype; they are added to the file."""
        for name, helper in functions_of(code.file).items():
            if not re.search(rf"\b{name}\(", body) or name == code.function:
                continue
            whole = f"{helper.result} {helper.parameters} {helper.body}"
            generic = any(re.search(rf"\b{t}\b", whole) for t in types)
            typed = f"{name}_{types.get('T', 'float')}" if generic else name
            body = re.sub(rf"\b{name}\(", f"{typed}(", body)
            if typed in self.texts:
                continue
            inner = self._with_helpers(code, _typed(helper.body, types), types)
            above = "".join(f"// {line}\n" for line in helper.comment.splitlines())
            head = _typed(f"{helper.result} {typed}({helper.parameters})", types).replace("* ", "*")
            self.texts[typed] = f"{above}static {head} {{\n{inner}}}\n"
        return body


def _arguments(op: OpDesc, context: CompileContext, text: CText) -> list[Argument]:
    """The variables that an operator passes for each parameter of its function."""
    found = []
    for parameter in text.slots:
        slots = context.inputs if parameter.is_input else context.outputs
        names = tuple(n for n in slots.get(parameter.slot, ()) if n != EMPTY)
        found.append(Argument(parameter, names if parameter.is_list else names[:1], ""))
    return found


def _types(op: OpDesc, context: CompileContext, arguments: list[Argument]) -> dict[str, str]:
    """The types of C that T and I stand for; the arguments get theirs."""
    types: dict[str, str] = {}
    for argument in arguments:
        parameter = argument.parameter
        stated = types.get(parameter.type, parameter.type)
        if parameter.is_lod:
            continue
        for name in argument.names:
            dtype = context._spec(context._var(name)).dtype
            actual = TYPES.get(np.dtype(dtype).name if dtype is not None else "", "")
            if stated in ("T", "I") and actual:
                types[stated] = stated = actual
            if actual != stated:
                raise OpValueError(
                    f"The C code of {op.optype} does not take {parameter.slot} of dtype {dtype}.",
                    op=context.text(), where=context.where(), expected=stated, received=f"{name} of {dtype}",
                    hint="layers.cast changes a dtype.",
                )  # fmt: skip
    for i, argument in enumerate(arguments):
        type = argument.parameter.type
        arguments[i] = Argument(argument.parameter, argument.names, types.get(type, "void" if type in "TI" else type))
    return types


def _typed(text: str, types: Mapping[str, str]) -> str:
    """A text with types of C in the place of T and I; numbers of floats get the suffix of their type."""
    for letter, type in types.items():
        text = re.sub(rf"\({letter}\)(-?)(\d+)\b(?!\.)", rf"\1\2.0{_suffix(type)}" if _is_real(type) else r"\1\2", text)
        text = re.sub(rf"\({letter}\)(-?[\d.]+)", rf"\1{_suffix(type)}", text) if _is_real(type) else text
        text = re.sub(rf"\b{letter}\b", type, text)
    return text


def _spelled(text: str, constants: Mapping[str, Constant]) -> str:
    """A text with the expressions among the constants in the place of their names."""
    for name, value in constants.items():
        if isinstance(value, str):
            text = re.sub(rf"\b{name}\b", value.replace("\\", r"\\"), text)
    return text


def _is_real(type: str) -> bool:
    return type in ("float", "double")


def _suffix(type: str) -> str:
    return "f" if type == "float" else ""


def _declared(constants: Mapping[str, Constant], body: str, type: str) -> list[str]:
    """Declarations of the constants that a body, or one of the expressions in it, uses."""
    used = body + " ".join(value for value in constants.values() if isinstance(value, str))
    there = {name: value for name, value in constants.items() if re.search(rf"\b{name}\b", used)}
    whole = {n: v for n, v in there.items() if isinstance(v, int)}
    lines = []
    if whole:
        lines.append("    enum { " + ", ".join(f"{n} = {int(v)}" for n, v in whole.items()) + " };\n")
    for name, value in there.items():
        if isinstance(value, float):
            lines.append(f"    const {type} {name} = {number(value, type)};\n")
        elif isinstance(value, Sequence) and not isinstance(value, str):
            lines.append(f"    static const ptrdiff_t {name}[] = {{{', '.join(map(str, value))}}};\n")
    return lines


def number(value: float, type: str = "float") -> str:
    """A number as a constant of C.

    Example:
        >>> number(0.1), number(float("inf")), number(2.0, "double")
        ('0.1f', 'INFINITY', '2.0')
    """
    if np.isnan(value):
        return "NAN"
    if np.isinf(value):
        return "-INFINITY" if value < 0 else "INFINITY"
    if type == "float":
        return f"{np.float32(value)!s}f"
    return repr(float(value))


def _parameter(argument: Argument, op: OpDesc) -> str:
    """A parameter of a function as text."""
    parameter = argument.parameter
    const = "const " if parameter.is_input else ""
    stars = "*const *" if parameter.is_list else "*"
    return f"{const}{argument.type} {stars}{parameter.name}"
