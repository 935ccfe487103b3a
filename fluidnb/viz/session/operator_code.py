"""The C functions of an operator of a paused run."""

from dataclasses import dataclass

from fluidnb.code_generator.listing import Row, operator_in_c
from fluidnb.debug.debugger import Debugger
from fluidnb.debug.snapshot import op_location, still_there
from fluidnb.errors import NotFound
from fluidnb.program import Program
from fluidnb.values.tensor import LoDTensor


@dataclass(frozen=True, slots=True)
class OperatorCode:
    """An operator and what computes it in C.

    Attributes:
        row: the operator.
        text: its function, after those that it calls.
    """

    row: Row
    text: str


def read_code(debugger: Debugger, program: Program, index: int | None = None) -> OperatorCode:
    """The C code of an operator in the block where a run is paused.

    Args:
        index: the operator's number in the block; default the next one.

    Raises:
        NotFound: there is no such operator.
        OpValueError: it has no C code.
    """
    location = debugger.snapshot.op
    if location is None:
        raise NotFound(
            "There is no current operator.", received=debugger.snapshot.text, hint="step back, or restart.",
        )  # fmt: skip
    index = location.index if index is None else index
    ops = {op.index: op for op in debugger.tape.interpreter.lowered.blocks[location.block].ops}
    if index not in ops:
        raise NotFound(f"This block has no operator {index}.", expected=f"{min(ops)} to {max(ops)}", received=index)
    if still_there(op_location(ops[index]), program) is None:
        raise NotFound(
            "The program was changed since this run began, and has another operator there.",
            received=op_location(ops[index]).text, hint="begin another run, then code shows its operators.",
        )  # fmt: skip
    row, functions = operator_in_c(program, _sizes_of_feeds(debugger), location.block, index)
    return OperatorCode(row, "\n".join(functions.values()))


def _sizes_of_feeds(debugger: Debugger) -> dict[str, tuple[int, ...]]:
    """The sizes of the variables of the main block that no operator writes."""
    main = debugger.tape.interpreter.stack[0]
    written = {name for op in main.block.desc.ops for name in op.output_arg_names()}
    found = {}
    for name, var in main.block.desc.vars.items():
        value = None if var.persistable() else getattr(main.scope.find_var(name), "value", None)
        if name not in written and isinstance(value, LoDTensor) and value.array is not None:
            found[name] = tuple(value.array.shape)
    return found
