"""C code of operators: which function of a ``.c`` file computes an operator, and the constants in it.

The file stands beside the Python file with the kernels. A function takes a pointer for each slot that it uses, named
like the slot (``Out@GRAD`` is ``Out_GRAD``); a list slot is a pointer to pointers, an output without a consumer is
NULL. ``X_LOD`` is the offsets of the sequences in X, of which there are ``SEQUENCES``; such a function writes zeros
into the rows behind the last one. Sizes and attributes are constants in capitals, which a rule computes from the
operands. In the text, ``T`` and ``I`` stand for the dtypes of the operands that are declared with them.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from fluidnb.errors import NotFound
from fluidnb.op.context import Context
from fluidnb.values import kernel_packages

#: A constant of a function: a number, a list of numbers, or an expression that stands for its name.
Constant = int | float | str | Sequence[int]
Constants = Callable[[Context], Mapping[str, Constant]]

_FUNCTION = re.compile(r"^(static )?(\w[\w ]*?[ *]+)(\w+)\(([^)]*)\) \{\n(.*?)^\}\n", re.MULTILINE | re.DOTALL)
_COMMENT = re.compile(r"((?:^//.*\n)+)\Z", re.MULTILINE)
_INCLUDE = re.compile(r'^#include "(.+)"$', re.MULTILINE)


class Parameter(NamedTuple):
    """A parameter of a function: a slot of the operator.

    Attributes:
        slot: the slot, as in the OpDesc.
        name: its name in C.
        type: type of its elements in the text: ``T``, ``I`` or a type of C.
        is_input: whether the function only reads it.
        is_list: whether it is a pointer for each variable of the slot.
        is_lod: whether it is the offsets of the slot's sequences.
    """

    slot: str
    name: str
    type: str
    is_input: bool
    is_list: bool
    is_lod: bool = False


class CText(NamedTuple):
    """A function of a ``.c`` file.

    Attributes:
        name: its name.
        comment: the comment above it.
        result: the type that it returns.
        parameters: its parameters as text.
        body: the lines between the braces.
    """

    name: str
    comment: str
    result: str
    parameters: str
    body: str

    @property
    def slots(self) -> list[Parameter]:
        """Its parameters as slots."""
        found = []
        for text in self.parameters.split(","):
            words = text.replace("*", " * ").split()
            if not words or words == ["void"]:
                continue
            type = next(word for word in words if word not in ("const", "*"))
            name = words[-1]
            is_lod = name.endswith("_LOD")
            slot = re.sub(r"_GRAD$", "@GRAD", name.removesuffix("_LOD"))
            found.append(Parameter(slot, name, type, words[0] == "const", words.count("*") == 2, is_lod))
        return found


class CCode(NamedTuple):
    """The C code of an operator.

    Attributes:
        function: name of the function in the file.
        file: the ``.c`` file.
        constants: gives the constants for the operands of one operator.
    """

    function: str
    file: Path
    constants: Constants

    @property
    def text(self) -> CText:
        """The function."""
        return functions_of(self.file)[self.function]


_registry: dict[str, CCode] = {}


def c_code(*types: str, function: str = "", file: str = "") -> Callable[[Constants], Constants]:
    """Registers C code of operators; the function below it gives the constants.

    Args:
        types: types of operators.
        function: name of the C function; default the operator's type.
        file: the ``.c`` file, relative to the Python file's folder; default the Python file's name.

    Returns:
        A decorator that returns the function itself.
    """

    def register(constants: Constants) -> Constants:
        python = Path(str(sys.modules[constants.__module__].__file__))
        path = Path(os.path.normpath(python.parent / file)) if file else python.with_suffix(".c")
        for type in types:
            _registry[type] = CCode(function or type, path, constants)
        return constants

    return register


def has_c_code(type: str) -> bool:
    """Whether an operator has C code."""
    kernel_packages.load()
    return type in _registry


def c_code_of(type: str) -> CCode:
    """The C code of an operator.

    Raises:
        NotFound: it has none.
    """
    if not has_c_code(type):
        raise NotFound(
            f'Operator "{type}" has no C code.', expected="an operator with C code", received=type,
            hint="fluidnb.op.c_code.all_c_code() lists the operators that have some.",
        )  # fmt: skip
    return _registry[type]


def all_c_code() -> list[str]:
    """Types of the operators that have C code, sorted."""
    kernel_packages.load()
    return sorted(_registry)


@cache
def functions_of(file: Path) -> dict[str, CText]:
    """The functions of a ``.c`` file, and of those that it includes, by name."""
    text = file.read_text(encoding="utf-8")
    found: dict[str, CText] = {}
    for match in _INCLUDE.finditer(text):
        found |= functions_of(file.parent / match[1])
    for match in _FUNCTION.finditer(text):
        above = _COMMENT.search(text, 0, match.start())
        comment = "\n".join(line.removeprefix("//").strip() for line in above[1].splitlines()) if above else ""
        found[match[3]] = CText(match[3], comment, match[2].strip(), match[4], match[5])
    return found
