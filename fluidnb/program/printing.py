"""Programs as text: protobuf text, the pseudo code of Fluid's debugger."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fluidnb.program import codes
from fluidnb.program.constants import OpRole
from fluidnb.proto.desc import BlockDesc, OpDesc, ProgramDesc
from fluidnb.proto.text import to_text
from fluidnb.proto.wire import uninitialized


def proto_text(message: Any, throw_on_error: bool = True) -> str:
    """A message as protobuf text, the same on every protobuf runtime.

    Args:
        message: the message.
        throw_on_error: whether required fields that are not set are an error.

    Returns:
        Several lines.

    Raises:
        OpValueError: required fields are not set.

    Example:
        >>> from fluidnb.proto.desc import OpDesc
        >>> print(proto_text(OpDesc("relu").pb), end="")
        type: "relu"
    """
    if throw_on_error and not message.IsInitialized():
        raise uninitialized(message, message.DESCRIPTOR.name)
    return to_text(message)


def is_backward(op: OpDesc) -> bool:
    """Whether an operator is part of backward, by its role or its name."""
    role = op.attrs.get("op_role")
    if isinstance(role, int) and role & ~OpRole.Loss in (OpRole.Backward, OpRole.Optimize):
        return True
    return op.optype.endswith("_grad")


def pprint_block_codes(block_desc: Any, show_backward: bool = False) -> str:
    """A block as pseudo code.

    Args:
        block_desc: a Block or BlockDesc.
        show_backward: whether to show gradients and optimizers too.

    Returns:
        Several lines.

    Example:
        >>> from fluidnb.program import Program
        >>> print(pprint_block_codes(Program().desc.block(0)), end="")
        // block-0  parent--1
        // variables
        <BLANKLINE>
        // operators

    Source: fluid.debugger.pprint_block_codes.
    """
    return "\n".join(_block(getattr(block_desc, "desc", block_desc), show_backward)) + "\n"


def _block(block: BlockDesc, show_backward: bool) -> Iterator[str]:
    yield f"// block-{block.idx}  parent-{block.parent_idx}"
    yield "// variables"
    for var in block.vars.values():
        if show_backward or "@GRAD" not in var.name():
            yield codes.var_code(var)
    yield ""
    yield "// operators"
    for op in block.ops:
        if show_backward or not is_backward(op):
            yield _pseudo(op)


def _pseudo(op: OpDesc) -> str:
    attrs = codes.attr_codes(op)
    outs = [n for _, names in sorted(op.outs.items()) for n in names]
    left = f"{', '.join(outs)} = " if outs else ""
    return f"{left}{op.optype}({codes.slot_code(op.ins)}) [{{{','.join(attrs)}}}]"


def pprint_program_codes(program_desc: Any, show_backward: bool = False) -> str:
    """A program as pseudo code, block after block.

    Args:
        program_desc: a Program or ProgramDesc.
        show_backward: whether to show gradients and optimizers too.

    Returns:
        Several lines.

    Source: fluid.debugger.pprint_program_codes.
    """
    desc: ProgramDesc = getattr(program_desc, "desc", program_desc)
    return "\n".join(pprint_block_codes(block, show_backward) for block in desc.blocks)
