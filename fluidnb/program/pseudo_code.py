"""A program as readable lines: a line for each variable and each operator."""

from collections.abc import Iterator
from typing import Any

from fluidnb.proto.desc import BlockDesc, OpDesc, ProgramDesc, VarDesc
from fluidnb.proto.framework_pb2 import AttrType
from fluidnb.utils.escapes import visible_line
from fluidnb.values import dtypes
from fluidnb.values.dtypes import VarType

#: Attributes that say who made an operator or how, never what it computes.
BOOKKEEPING = frozenset(
    {"op_role", "op_role_var", "op_namescope", "op_callstack", "op_device", "with_quant_attr", "use_mkldnn",
     "use_cudnn", "use_quantizer", "mkldnn_data_type"}
)  # fmt: skip

_TENSORS = (VarType.LOD_TENSOR, VarType.SELECTED_ROWS, VarType.LOD_TENSOR_ARRAY)


def value_code(value: Any) -> str:
    """An attribute's value as short text: floats with the digits of float32, texts in quotes."""
    if isinstance(value, float):
        return f"{value:.7g}"
    if isinstance(value, str):
        return f'"{visible_line(value)}"'
    if isinstance(value, list):
        shown = ", ".join(value_code(v) for v in value[:10])
        return f"[{shown}, … {len(value)} in all]" if len(value) > 10 else f"[{shown}]"
    return str(value)


def attr_codes(op: OpDesc, details: bool = False) -> list[str]:
    """The attributes of an operator as ``name=value``, sorted by name."""
    out = []
    for name in sorted(op.attr_names()):
        if name in BOOKKEEPING and not details:
            continue
        value, kind = op.attrs[name], op.attr_type(name)
        if kind == AttrType.BLOCK:
            out.append(f"{name}=block[{value}]")
        elif kind == AttrType.BLOCKS:
            out.append(f"{name}=[{', '.join(f'block[{v}]' for v in value)}]")
        else:
            out.append(f"{name}={value_code(value)}")
    return out


def slot_code(slots: dict[str, list[str]]) -> str:
    """Slots as ``X=x, Y=[a, b]``; slots without a variable are left out."""
    return ", ".join(f"{s}={n[0] if len(n) == 1 else '[' + ', '.join(n) + ']'}" for s, n in sorted(slots.items()) if n)


def op_code(op: OpDesc, details: bool = False) -> str:
    """An operator as one line."""
    outs = [n for _, n in sorted(op.outs.items()) if n]
    left = outs[0][0] if len(outs) == 1 and len(outs[0]) == 1 else slot_code(op.outs)
    attrs = attr_codes(op, details)
    line = f"{op.optype}({slot_code(op.ins)})" + (f" [{', '.join(attrs)}]" if attrs else "")
    return visible_line(f"{left} = {line}" if left else line)


def elements(var: VarDesc) -> tuple[str | None, list[int] | None]:
    """Dtype and shape of a variable; None for what has no elements."""
    return (dtypes.dtype_name(var.dtype()), var.shape()) if var.type() in _TENSORS else (None, None)


def kind_code(var: VarDesc) -> str:
    """A variable's type as text: ``float32[-1, 13], LoD 1``, or ``STEP_SCOPES``."""
    kind = VarType(var.type())
    if kind not in _TENSORS:
        return kind.name
    text = f"{dtypes.dtype_name(var.dtype())}[{', '.join(map(str, var.shape()))}]"
    if kind != VarType.LOD_TENSOR:
        text = f"{kind.name} {text}"
    return f"{text}, LoD {var.lod_level()}" if kind != VarType.SELECTED_ROWS and var.lod_level() else text


def var_code(var: VarDesc) -> str:
    """A variable as one line."""
    kind = VarType(var.type())
    line = f"{'param' if var.is_parameter() else 'var'} {var.name()} : {kind.name}"
    if kind in _TENSORS:
        line += f".shape({', '.join(map(str, var.shape()))}).dtype({dtypes.dtype_name(var.dtype())})"
        if kind != VarType.SELECTED_ROWS and var.lod_level():
            line += f".lod_level({var.lod_level()})"
    facts = [n for n, v in (("persistable", var.persistable()), ("stop_gradient", var.stop_gradient())) if v]
    return visible_line(f"{line}  // {', '.join(facts)}" if facts else line)


def block_lines(block: BlockDesc, details: bool = False) -> Iterator[str]:
    """A block as lines, in braces."""
    yield f"{{ // block {block.idx}" + (f", in block {block.parent_idx}" if block.parent_idx >= 0 else "")
    for var in block.vars.values():
        yield "    " + var_code(var)
    if block.vars and block.ops:
        yield ""
    for op in block.ops:
        where = op.view.where if details and op.view is not None else None
        yield f"    {op_code(op, details)}" + (f"  // {where.short()}" if where is not None else "")
    yield "}"


def program_lines(program: ProgramDesc, details: bool = False) -> Iterator[str]:
    """A program as lines, block after block; arguments as `block_lines`."""
    for block in program.blocks:
        yield from block_lines(block, details)
