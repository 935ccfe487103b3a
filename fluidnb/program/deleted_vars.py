"""Variables that an operator drops before their block ends: another may have lived under their name since."""

from __future__ import annotations

from collections.abc import Iterable

from fluidnb.errors import EnforceNotMet
from fluidnb.program.append_op import operands
from fluidnb.proto.desc import BlockDesc, OpDesc
from fluidnb.where import capture


def dropped(block: BlockDesc) -> dict[str, OpDesc]:
    """The variables that hold nothing when a block is over.

    Args:
        block: the block.

    Returns:
        Name -> the delete_var operator that drops it.

    Example:
        >>> from fluidnb.program import Program
        >>> dropped(Program().desc.block(0))
        {}
    """
    found: dict[str, OpDesc] = {}
    for op in block.ops:
        if op.optype == "delete_var":
            found.update(dict.fromkeys(op.input_arg_names(), op))
        elif found:
            for name in op.output_arg_names():
                found.pop(name, None)
    return found


def refuse_dropped(block: BlockDesc, names: Iterable[str], wanted: str) -> None:
    """Refuse variables that hold nothing when a block is over.

    Args:
        block: the block.
        names: the variables.
        wanted: what they were wanted for, for the message.

    Raises:
        EnforceNotMet: one of them is dropped.

    Example:
        >>> from fluidnb.program import Program
        >>> refuse_dropped(Program().desc.block(0), ["x"], "fetched")
    """
    gone = dropped(block)
    for name in names if gone else ():
        if name in gone:
            label = gone[name].label()
            raise EnforceNotMet(
                f'"{name}" is {wanted}, but {label} drops it before the run ends.', op=label, where=capture(),
                slots=[row for row in operands(block, gone[name]) if row[1] == name],
                expected="a variable that the run keeps", received=f"{name}, which goes after its last use",
                hint="memory_optimize and release_memory leave alone what skip_opt_set names: build the program again, "
                f'then fluid.memory_optimize(program, skip_opt_set=["{name}"]); or clone it before.',
            )  # fmt: skip
