"""Programs as text: protobuf text, the pseudo code of Fluid's debugger."""

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from fluidnb.arguments import checked
from fluidnb.errors import OpTypeError, typed
from fluidnb.program import pseudo_code as codes
from fluidnb.program.constants import OpRole
from fluidnb.proto import attr_values
from fluidnb.proto import framework_pb2 as pb2
from fluidnb.proto.desc import BlockDesc, OpDesc, ProgramDesc, VarDesc
from fluidnb.proto.text import to_text
from fluidnb.proto.wire import uninitialized
from fluidnb.utils.source_location import capture
from fluidnb.values.dtypes import dtype_name

T = TypeVar("T")


def proto_text(message: Any, throw_on_error: bool = True) -> str:
    """A message as protobuf text, the same on every protobuf runtime."""
    if throw_on_error and not message.IsInitialized():
        raise uninitialized(message, message.DESCRIPTOR.name)
    return to_text(message)


def described(value: Any, kind: type[T]) -> T:
    """The description of an object that is to be printed or drawn."""
    desc = getattr(value, "desc", value)
    if not isinstance(desc, kind):
        what = {"ProgramDesc": "a program", "BlockDesc": "a block", "OpDesc": "an operator", "VarDesc": "a variable"}
        wanted = what[kind.__name__]
        raise OpTypeError(
            f"This is not {wanted}.", where=capture(), expected=f"{wanted}, or its desc", received=typed(value)
        )
    return desc


def is_backward(op: OpDesc) -> bool:
    """Whether an operator is part of backward, by its role or its name."""
    role = op.attrs.get("op_role")
    if isinstance(role, int) and role & ~OpRole.Loss in (OpRole.Backward, OpRole.Optimize):
        return True
    return op.optype.endswith("_grad")


def pprint_block_codes(block_desc: Any, show_backward: bool = False) -> str:
    """A block as pseudo code.

    Args:
        block_desc: a Block or BlockDesc, or a protobuf message of one.
        show_backward: whether to show gradients and optimizers too.

    Source: fluid.debugger.pprint_block_codes.
    """
    desc = getattr(block_desc, "desc", block_desc)
    if isinstance(desc, pb2.BlockDesc):  # a view takes the message over
        desc = BlockDesc.over(pb2.BlockDesc.FromString(desc.SerializePartialToString()), ProgramDesc())
    return "\n".join(_block(described(desc, BlockDesc), show_backward)) + "\n"


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


def _constant(optype: str, inputs: list[str], outputs: list[str], attrs: dict[str, Any]) -> str | None:
    """The line of fill_constant, which is about a value: ``loss@GRAD = 1 [shape=[1]]``."""
    if optype != "fill_constant" or not {"value", "shape"} <= attrs.keys():
        return None
    return f"{','.join(outputs)} = {codes.value_code(attrs['value'])} [shape={attrs['shape']}]"


#: ``handler(type, inputs, outputs, attrs)`` gives the line of an operator, or None where another one is to decide:
#: inputs as ``X=x``, the names of outputs, attribute -> value. Users put their own in.
op_repr_handlers: list[Callable[[str, list[str], list[str], dict[str, Any]], str | None]] = [_constant]


def repr_op(opdesc: Any) -> str:
    """An operator as a line of pseudo code.

    Args:
        opdesc: an Operator or OpDesc, or a protobuf message of one.

    Returns:
        The first line that `op_repr_handlers` give, else ``out = type(X=x) [{attr=value}]``.

    Example:
        >>> from fluidnb.proto.desc import OpDesc
        >>> scale = OpDesc("scale", {"X": ["x"]}, {"Out": ["y"]}, {"scale": 2.0}); repr_op(scale)
        'y = scale(X=x) [{scale=2}]'
        >>> op_repr_handlers.append(lambda type, ins, outs, attrs: f"{outs[0]} is scaled" if type == "scale" else None)
        >>> repr_op(scale), op_repr_handlers.pop() is None
        ('y is scaled', False)

    Source: fluid.debugger.repr_op.
    """
    desc = getattr(opdesc, "desc", opdesc)
    op = OpDesc.over(desc) if isinstance(desc, pb2.OpDesc) else described(desc, OpDesc)
    outs = [n for _, names in sorted(op.outs.items()) for n in names]
    for handler in op_repr_handlers:
        ins = [codes.slot_code({slot: names}) for slot, names in sorted(op.ins.items()) if names]
        line = handler(op.optype, ins, list(outs), dict(op.attrs))
        if line:
            return line
    left = f"{', '.join(outs)} = " if outs else ""
    inputs = ", ".join(filter(None, (codes.slot_code(op.ins), "is_target" if op.is_target() else "")))
    return f"{left}{op.optype}({inputs}) [{{{','.join(codes.attr_codes(op))}}}]"


@checked
def repr_attr(desc: pb2.OpDesc.Attr) -> tuple[str, tuple[str, Any]]:
    """An attribute of an operator: (``name=value``, (name, value)); ``dtype`` by the name of the dtype.

    Args:
        desc: a protobuf message of an attribute.

    Source: fluid.debugger.repr_attr.
    """
    value = attr_values.decode(desc)
    if desc.name == "dtype" and isinstance(value, int):
        value = dtype_name(value)
        return f"{desc.name}={value}", (desc.name, value)
    return f"{desc.name}={codes.value_code(value)}", (desc.name, value)


def repr_var(vardesc: Any) -> str:
    """A variable as a line of pseudo code.

    Args:
        vardesc: a Variable or VarDesc, or a protobuf message of one.

    Example:
        >>> repr_var(fluid.layers.data("x", [13]))
        'var x : LOD_TENSOR.shape(-1, 13).dtype(float32)  // stop_gradient'

    Source: fluid.debugger.repr_var.
    """
    desc = getattr(vardesc, "desc", vardesc)
    return codes.var_code(VarDesc.over(desc) if isinstance(desc, pb2.VarDesc) else described(desc, VarDesc))


def pprint_program_codes(program_desc: Any, show_backward: bool = False) -> str:
    """A program as pseudo code, block after block; see `pprint_block_codes`.

    Source: fluid.debugger.pprint_program_codes.
    """
    blocks = described(program_desc, ProgramDesc).blocks
    return "\n".join(pprint_block_codes(block, show_backward) for block in blocks)
