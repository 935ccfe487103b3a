"""Reading a program (or its description) into a `ProgramPicture`."""

from __future__ import annotations

from typing import Any

from fluidnb.op import EMPTY, OpDef, get_op, has_op
from fluidnb.op.attr import GENERATED, SWITCHES
from fluidnb.proto.desc import BlockDesc, OpDesc, ProgramDesc, VarDesc
from fluidnb.proto.framework_pb2 import AttrType
from fluidnb.values.dtypes import VarType, dtype_name
from fluidnb.viz.model import BlockRow, OpRow, ProgramPicture, SlotRow, VarRow

_BLOCKS = (AttrType.BLOCK, AttrType.BLOCKS)
_HIDDEN = {*GENERATED, *SWITCHES}
_WITH_ELEMENTS = (VarType.LOD_TENSOR, VarType.SELECTED_ROWS, VarType.LOD_TENSOR_ARRAY)


def read_program(program: Any, title: str = "program") -> ProgramPicture:
    """A program as plain data to draw.

    Args:
        program: a Program, a ProgramDesc, or the bytes of one.
        title: how the picture calls it.

    Returns:
        The picture. Blocks hang from the operators that run them.

    Example:
        >>> from fluidnb.proto.desc import OpDesc, ProgramDesc
        >>> desc = ProgramDesc()
        >>> _ = desc.block(0).append_op(OpDesc("relu", {"X": ["x"]}, {"Out": ["y"]}))
        >>> read_program(desc).root.ops[0].text
        'y = relu(x)'
    """
    if isinstance(program, bytes):
        program = ProgramDesc.parse_from_string(program)
    desc: ProgramDesc = getattr(program, "desc", program)
    rows: list[BlockRow] = []
    drawn: set[int] = set()
    for block in desc.blocks:
        if block.idx not in drawn:
            rows.append(read_block(block))
            drawn.update(i for _, op in rows[-1].walk() for i in (op.block, *(b.index for b in op.blocks)))
    return ProgramPicture(rows[0], tuple(rows[1:]), title)


def read_block(block: Any, seen: set[int] | None = None) -> BlockRow:
    """A block, and those that its operators run, as plain data to draw.

    Args:
        block: a Block or a BlockDesc.
        seen: indices of blocks on the way from the root.

    Returns:
        The row; a block that runs itself (a damaged program) is not entered twice.
    """
    desc: BlockDesc = getattr(block, "desc", block)
    ops = tuple(_op(op, i, desc, (seen or set()) | {desc.idx}) for i, op in enumerate(desc.ops))
    return BlockRow(desc.idx, desc.parent_idx, ops, tuple(read_var(v) for v in desc.vars.values()))


def read_op(operator: Any) -> OpRow:
    """An operator as plain data.

    Args:
        operator: an Operator or an OpDesc that is in a block.

    Returns:
        The row, without the blocks that it runs.
    """
    desc: OpDesc = getattr(operator, "desc", operator)
    block = desc.block
    if block is None:
        return OpRow(-1, -1, desc.optype, role_of(desc), attrs=_attrs(desc))
    index = next(i for i, op in enumerate(block.ops) if op is desc)
    return _op(desc, index, block, set(range(len(block.program.blocks))))


def read_var(desc: VarDesc) -> VarRow:
    """A declared variable as plain data.

    Args:
        desc: its description.

    Returns:
        The row.
    """
    kind = VarType(desc.type())
    dtype, shape, lod = "", None, 0
    if kind in _WITH_ELEMENTS:
        dtype, shape = dtype_name(desc.dtype()), tuple(desc.shape())
        lod = desc.lod_level() if kind is not VarType.SELECTED_ROWS else 0
    made_by = getattr(desc.view, "origin", None)
    return VarRow(
        desc.name(), kind.name.lower(), dtype, shape, lod, desc.persistable(), _is_parameter(desc),
        desc.need_check_feed(), f"cell {made_by.title}" if made_by else "",
    )  # fmt: skip


def role_of(op: OpDesc) -> str:
    """The part of the program to which an operator belongs.

    Args:
        op: its description.

    Returns:
        ``forward``, ``backward`` or ``optimizer``.

    Example:
        >>> role_of(OpDesc("sgd", attrs={"op_role": 2})), role_of(OpDesc("mul_grad")), role_of(OpDesc("mul"))
        ('optimizer', 'backward', 'forward')
    """
    role = int(op.attrs.get("op_role", 0))
    if role & 0b10010:
        return "optimizer"
    if role & 1 or op.optype.endswith("_grad"):
        return "backward"
    return "forward"


def _op(desc: OpDesc, index: int, block: BlockDesc, seen: set[int]) -> OpRow:
    inner = [i for i in _sub_blocks(desc, block) if i not in seen]
    blocks = tuple(read_block(block.program.blocks[i], seen) for i in inner)
    place, source = _place(desc.view)
    return OpRow(
        block.idx, index, desc.optype, role_of(desc), _slots(desc.ins, block), _slots(desc.outs, block), _attrs(desc),
        place, source, blocks,
    )  # fmt: skip


def _slots(slots: dict[str, list[str]], block: BlockDesc) -> tuple[SlotRow, ...]:
    def row(name: str) -> VarRow:
        found = block.find_var_recursive(name)
        return VarRow(name) if found is None else read_var(found)

    filled = ((slot, [n for n in names if n != EMPTY]) for slot, names in slots.items())
    return tuple(SlotRow(slot, tuple(row(n) for n in names)) for slot, names in filled if names)


def _attrs(desc: OpDesc) -> tuple[tuple[str, str], ...]:
    """The attributes worth showing: not who made it, not the blocks (they are drawn), not what is as by default,
    not what only other builds of Paddle know."""
    known = _definition(desc.optype)
    rows = []
    for name, value in desc.attrs.items():
        attr = known.attrs.get(name) if known else None
        if name in _HIDDEN or desc.attr_type(name) in _BLOCKS or (known and attr is None):
            continue
        if attr is not None and attr.default == value:
            continue
        rows.append((name, dtype_name(value) if attr is not None and attr.kind == "dtype" else _short(value)))
    return tuple(rows)


def _definition(optype: str) -> OpDef | None:
    forward = optype.removesuffix("_grad")
    for name in (forward, optype):
        if has_op(name):
            return get_op(name)
    return None


def _short(value: Any) -> str:
    text = f"{value:.6g}" if isinstance(value, float) else repr(value)
    return text if len(text) <= 40 else text[:37] + "..."


def _sub_blocks(op: OpDesc, block: BlockDesc) -> list[int]:
    """The indices of the blocks inside ``block`` that an operator runs (a gradient also names its forward's block)."""
    found: list[int] = []
    for name, value in op.attrs.items():
        if op.attr_type(name) in _BLOCKS:
            found += value if isinstance(value, list) else [value]
    blocks = block.program.blocks
    return [i for i in found if 0 <= i < len(blocks) and blocks[i].parent_idx == block.idx]


def _is_parameter(desc: VarDesc) -> bool:
    return desc.is_parameter() or type(desc.view).__name__ == "Parameter"


def _place(operator: Any) -> tuple[str, str]:
    where = getattr(operator, "where", None)
    return ("", "") if where is None else (where.short(), where.source)
