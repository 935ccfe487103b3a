"""Reads a program or its description into a `ProgramPicture`."""

from __future__ import annotations

import sys
from itertools import takewhile
from typing import Any

from fluidnb.op import EMPTY, get_op, has_op
from fluidnb.op.attr import GENERATED, SWITCHES
from fluidnb.program.constants import role_of
from fluidnb.proto.desc import BlockDesc, OpDesc, ProgramDesc, VarDesc
from fluidnb.proto.framework_pb2 import AttrType
from fluidnb.values.dtypes import VarType, dtype_name
from fluidnb.viz.program.model import BlockRow, OpRow, ProgramPicture, SlotRow, VarRow

_BLOCKS = (AttrType.BLOCK, AttrType.BLOCKS)
_HIDDEN = {*GENERATED, *SWITCHES}
_WITH_ELEMENTS = (VarType.LOD_TENSOR, VarType.SELECTED_ROWS, VarType.LOD_TENSOR_ARRAY)


def read_program(program: Any, title: str = "program", limit: int = 0) -> ProgramPicture:
    """Reads a program as plain data; blocks belong to the operators that run them.

    Args:
        program: a Program, a ProgramDesc, or the bytes of one.
        limit: operators read at most, the others are counted; 0 for all.
    """
    if isinstance(program, bytes):
        program = ProgramDesc.parse_from_string(program)
    desc: ProgramDesc = getattr(program, "desc", program)
    reader = _Reader(limit)
    rows = [reader.block(b, set()) for b in desc.blocks if b.idx not in reader.met]
    return ProgramPicture(rows[0], tuple(rows[1:]), title)


def read_block(block: Any) -> BlockRow:
    """Reads a block and its nested blocks; a block that runs itself (an invalid program) is read once."""
    return _Reader().block(getattr(block, "desc", block), set())


def read_op(operator: Any, index: int | None = None) -> OpRow:
    """Reads an operator without the blocks that it runs; ``index`` is its index, for a copy that no block has."""
    desc: OpDesc = getattr(operator, "desc", operator)
    block = desc.block
    if block is None:
        return OpRow(-1, -1, desc.optype, role_of(desc), attrs=_attrs(desc))
    if index is None:
        index = next(i for i, op in enumerate(block.ops) if op is desc)
    return _Reader().op(desc, index, block, set(range(len(block.program.blocks))))


def read_var(desc: VarDesc) -> VarRow:
    """Reads a declared variable as plain data."""
    kind = VarType(desc.type())
    dtype, shape, lod = "", None, 0
    if kind in _WITH_ELEMENTS:
        dtype, shape = dtype_name(desc.dtype()), tuple(desc.shape())
        lod = desc.lod_level() if kind is not VarType.SELECTED_ROWS else 0
    origin = getattr(desc.view, "origin", None)
    return VarRow(
        desc.name(), kind.name.lower(), dtype, shape, lod, desc.persistable(), _is_parameter(desc),
        _is_data(desc), f"cell {origin.title}" if origin else "",
        -1 if desc.block is None else desc.block.idx,
    )  # fmt: skip


class _Reader:
    """Reads blocks, each variable once; ``limit`` operators at most, 0 for all."""

    def __init__(self, limit: int = 0) -> None:
        self.met: set[int] = set()
        self._remaining = limit or sys.maxsize
        self._limit = limit
        self._vars: dict[VarDesc, VarRow] = {}

    def block(self, desc: BlockDesc, seen: set[int]) -> BlockRow:
        """Reads a block inside those of ``seen``."""
        self.met.add(desc.idx)
        seen, ops = seen | {desc.idx}, []
        for i, op in enumerate(desc.ops):
            if not self._remaining:
                break
            self._remaining -= 1
            ops.append(self.op(op, i, desc, seen))
        met = len(self.met)
        has_inner = any(b.parent_idx == desc.idx for b in desc.program.blocks)
        rest = desc.ops[len(ops) :]
        left = sum(self._count(op, desc, seen) for op in rest) if has_inner else len(rest)
        variables = list(desc.vars.values())
        if self._limit:
            variables = [v for v in variables if _is_data(v) or _is_parameter(v)]
        read = variables[: self._limit or None]
        parameters = sum(map(_is_parameter, variables[len(read) :]))
        return BlockRow(
            desc.idx, desc.parent_idx, tuple(ops), tuple(map(self._var, read)), left, len(self.met) - met, parameters
        )

    def op(self, desc: OpDesc, index: int, block: BlockDesc, seen: set[int]) -> OpRow:
        """Reads an operator and the blocks that it runs, except those in ``seen``."""
        blocks = tuple(self.block(b, seen) for b in _inner(desc, block, seen))
        where = getattr(desc.view, "where", None)
        return OpRow(
            block.idx, index, desc.optype, role_of(desc), self._slots(desc.ins, block),
            self._slots(_main_first(desc), block), _attrs(desc), "" if where is None else where.short(),
            "" if where is None else where.source, blocks,
        )  # fmt: skip

    def _count(self, op: OpDesc, block: BlockDesc, seen: set[int]) -> int:
        """Counts an operator and those inside it without reading them."""
        inner = _inner(op, block, seen)
        self.met.update(b.idx for b in inner)
        return 1 + sum(self._count(each, b, seen | {b.idx}) for b in inner for each in b.ops)

    def _slots(self, slots: dict[str, list[str]], block: BlockDesc) -> tuple[SlotRow, ...]:
        def row(name: str) -> VarRow:
            var = block.find_var_recursive(name)
            return VarRow(name) if var is None else self._var(var)

        filled = ((slot, [n for n in names if n != EMPTY]) for slot, names in slots.items())
        return tuple(SlotRow(slot, tuple(row(n) for n in names)) for slot, names in filled if names)

    def _var(self, desc: VarDesc) -> VarRow:
        if desc not in self._vars:
            self._vars[desc] = read_var(desc)
        return self._vars[desc]


def _inner(op: OpDesc, block: BlockDesc, seen: set[int]) -> list[BlockDesc]:
    return [block.program.blocks[i] for i in sub_blocks(op, block) if i not in seen]


def _main_first(op: OpDesc) -> dict[str, list[str]]:
    """Outputs in the order of the definition; intermediates for the gradient last."""
    known = get_op(op.optype).outputs if has_op(op.optype) else {}
    order = sorted(known, key=lambda slot: known[slot].intermediate)
    return dict(sorted(op.outs.items(), key=lambda item: order.index(item[0]) if item[0] in known else len(order)))


def _attrs(desc: OpDesc) -> tuple[tuple[str, str], ...]:
    """The attributes except generated ones, blocks, defaults, and those that only other builds of Paddle have."""
    names = (name for name in (desc.optype.removesuffix("_grad"), desc.optype) if has_op(name))
    known = next(map(get_op, names), None)
    rows = []
    for name, value in desc.attrs.items():
        attr = known.attrs.get(name) if known else None
        if name in _HIDDEN or desc.attr_type(name) in _BLOCKS or (known and attr is None):
            continue
        if attr is not None and attr.default == value:
            continue
        text = f"{value:.6g}" if isinstance(value, float) else repr(value)
        if attr is not None and attr.kind == "dtype":
            text = dtype_name(value)
        rows.append((name, text if len(text) <= 40 else text[:37] + "..."))
    return tuple(rows)


def sub_blocks(op: OpDesc, block: BlockDesc) -> list[int]:
    """Indices of the nested blocks of an operator (a gradient also names the block of its forward operator)."""
    indices: list[int] = []
    for name, value in op.attrs.items():
        if op.attr_type(name) in _BLOCKS:
            indices += value if isinstance(value, list) else [value]
    blocks = block.program.blocks
    return [i for i in indices if 0 <= i < len(blocks) and blocks[i].parent_idx == block.idx]


def _is_parameter(desc: VarDesc) -> bool:
    return desc.is_parameter() or type(desc.view).__name__ == "Parameter"


def _is_data(desc: VarDesc) -> bool:
    """Whether it is declared as data, or written by a leading ``feed`` operator."""
    if desc.is_data():
        return True
    feeds = takewhile(lambda op: op.optype == "feed", desc.block.ops if desc.block else ())
    return any(desc.name() in op.outs.get("Out", ()) for op in feeds)
