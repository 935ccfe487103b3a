"""Operators beside their functions: of a generated folder, or of one operator of a program."""

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from fluidnb.code_generator.functions import Functions
from fluidnb.code_generator.model_text import ModelText
from fluidnb.errors import OpValueError
from fluidnb.program import Program
from fluidnb.program.pseudo_code import op_code
from fluidnb.program.shapes import with_shapes
from fluidnb.proto.desc import OpDesc

#: The file of a generated folder that lists its operators.
INDEX = "operators.json"
_FUNCTION = re.compile(r"^static (?:inline )?[\w *]+?(\w+)\([^;{]*?\) \{\n.*?^\}\n", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Row:
    """An operator of a generated program.

    Attributes:
        block: index of its block.
        operator: the operator as text.
        line: the user's line that appended it; empty where it is not known.
        function: name of its function; of a block's for control flow.
    """

    block: int
    operator: str
    line: str
    function: str


def _line(op: OpDesc) -> str:
    where = None if op.view is None else op.view.where
    return "" if where is None else f"{where.short()}: {where.source}"


def index_of(text: ModelText) -> str:
    """The operators of a generated program with their functions, as JSON."""
    rows = [
        Row(block, op_code(call.op), _line(call.op), call.function or f"block_{call.block}")
        for block, calls in sorted(text.plan.calls.items())
        for call in calls
    ]
    return json.dumps({"title": text.title, "operators": [asdict(row) for row in rows]}, indent=1) + "\n"


def is_generated(path: str | os.PathLike[str]) -> bool:
    """Whether a folder is that of a generated program."""
    return os.path.isfile(os.path.join(path, INDEX))


def read_folder(path: str | os.PathLike[str]) -> tuple[str, list[Row], dict[str, str]]:
    """The title of a generated program, its operators, and the text of each function in ``model.c`` by name.

    Raises:
        OpValueError: the list of operators or the source is damaged.
    """
    name, expected = INDEX, "a title and operators"
    try:
        with open(os.path.join(path, name), encoding="utf-8") as file:
            found = json.load(file)
        title, rows = str(found["title"]), [Row(**row) for row in found["operators"]]
        name, expected = "model.c", "the source of a program"
        with open(os.path.join(path, name), encoding="utf-8") as file:
            return title, rows, {match[1]: match[0] for match in _FUNCTION.finditer(file.read())}
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise OpValueError(
            f"{name} in {os.fspath(path)} is damaged.", expected=expected, received=str(error),
            hint="generate the source again: fluidnb compile.",
        ) from None  # fmt: skip


def operator_in_c(program: Program, sizes: Mapping[str, Sequence[int]], block: int, index: int) -> tuple[Row, Any]:
    """An operator of a program, and the C functions that compute it, helpers first.

    Args:
        program: the program.
        sizes: the sizes of what is fed.
        block: index of its block.
        index: its index in the block.

    Raises:
        OpValueError: it has no C code.
    """
    op = with_shapes(program, {name: tuple(shape) for name, shape in sizes.items()}).desc.blocks[block].ops[index]
    functions = Functions()
    if functions.missing(op):
        raise OpValueError(
            f"{op.optype} has no C code.", expected="an operator with C code", received=op.optype,
            hint="step shows its calls; fluidnb.op.c_code.all_c_code() lists the operators that have some.",
        )  # fmt: skip
    name, _ = functions.add(op, 1)
    shown = program.desc.blocks[block].ops[index]
    return Row(block, op_code(shown), _line(shown), name), functions.texts
