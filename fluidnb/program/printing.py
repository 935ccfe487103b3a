"""Programs as text: protobuf text, the pseudo code of Fluid's debugger."""

from __future__ import annotations

from collections.abc import Callable, Iterator
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
            yield repr_op(op)


#: ``handler(type, inputs, outputs, attrs)`` gives the line of an operator, or None where another one is to decide:
#: inputs as ``X=x``, the names of outputs, attribute -> value. Users put their own in.
op_repr_handlers: list[Callable[[str, list[str], list[str], dict[str, Any]], str | None]] = []


def repr_op(op_desc: Any) -> str:
    """An operator as a line of pseudo code.

    Args:
        op_desc: an Operator or OpDesc.

    Returns:
        What the first of `op_repr_handlers` says that has something to say, else ``out = type(X=x) [{attr=value}]``.

    Example:
        >>> from fluidnb.proto.desc import OpDesc
        >>> scale = OpDesc("scale", {"X": ["x"]}, {"Out": ["y"]}, {"scale": 2.0})
        >>> repr_op(scale)
        'y = scale(X=x) [{scale=2}]'
        >>> op_repr_handlers.append(lambda type, ins, outs, attrs: f"{outs[0]} is scaled" if type == "scale" else None)
        >>> repr_op(scale)
        'y is scaled'
        >>> gone = op_repr_handlers.pop()

    Source: fluid.debugger.repr_op.
    """
    op: OpDesc = getattr(op_desc, "desc", op_desc)
    outs = [n for _, names in sorted(op.outs.items()) for n in names]
    for handler in op_repr_handlers:
        ins = [codes.slot_code({slot: names}) for slot, names in sorted(op.ins.items()) if names]
        line = handler(op.optype, ins, list(outs), dict(op.attrs))
        if line:
            return line
    left = f"{', '.join(outs)} = " if outs else ""
    return f"{left}{op.optype}({codes.slot_code(op.ins)}) [{{{','.join(codes.attr_codes(op))}}}]"


def repr_attr(op_desc: Any, name: str) -> str:
    """An attribute of an operator as ``name=value``.

    Args:
        op_desc: an Operator or OpDesc.
        name: the attribute.

    Returns:
        The text.

    Raises:
        FluidError: the operator has no such attribute.

    Example:
        >>> from fluidnb.proto.desc import OpDesc
        >>> repr_attr(OpDesc("scale", {}, {}, {"scale": 0.1}), "scale")
        'scale=0.1'
    """
    op: OpDesc = getattr(op_desc, "desc", op_desc)
    return f"{name}={codes.value_code(op.attr(name))}"


def repr_var(var_desc: Any) -> str:
    """A variable as a line of pseudo code.

    Args:
        var_desc: a Variable or VarDesc.

    Returns:
        The line.

    Example:
        >>> repr_var(fluid.layers.data("x", [13]))
        'var x : LOD_TENSOR.shape(-1, 13).dtype(float32)  // stop_gradient'

    Source: fluid.debugger.repr_var.
    """
    return codes.var_code(getattr(var_desc, "desc", var_desc))


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
