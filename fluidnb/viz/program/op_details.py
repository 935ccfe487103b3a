"""Details of one operator of a program: inputs, outputs, attributes, documentation of its type."""

from __future__ import annotations

from fluidnb.op import has_op
from fluidnb.viz.base.styled_text import Line, columns, cut
from fluidnb.viz.program.model import OpRow, SlotRow
from fluidnb.viz.program.op_type import read_op
from fluidnb.viz.program.op_type_text import sheet_lines


def card_lines(op: OpRow, width: int = 0) -> list[Line]:
    """Details of an operator.

    Args:
        op: the operator.
        width: characters a line may have; 0 for any number.

    Returns:
        The lines; documentation, kernels and gradient of its type at the end.

    Example:
        >>> from fluidnb.viz import plain, read_program
        >>> y = fluid.layers.increment(fluid.layers.fill_constant([1], "int64", 0), 2)
        >>> print(plain(card_lines(read_program(fluid.default_main_program()).root.ops[1])[:7]))
        0:1  increment  forward
          reads   X    fill_constant_0.tmp_0  int64[1]
          writes  Out  fill_constant_0.tmp_0  int64[1]
          with    step=2
        <BLANKLINE>
        increment  math operator
          Out = X + step, in the dtype of X. Its backward takes the step back, so that a loop's counter runs
    """
    head: Line = [(f"{op.block}:{op.index}  ", "dim"), (op.type, op.role), (f"  {op.role}", op.role)]
    lines: list[Line] = [[*head, *([(f"  {op.location}", "place")] if op.location else [])]]
    if op.source:
        lines.append(cut([("  " + op.source, "")], width or len(op.source) + 2))
    rows = [*_slot_rows("reads", op.ins), *_slot_rows("writes", op.outs)]
    if op.attrs:
        rows.append([[("  with    ", "dim"), (", ".join(f"{name}={value}" for name, value in op.attrs), "")]])
    if inner := (*op.blocks, *op.folded):
        rows.append([[("  runs    ", "dim"), (", ".join(f"block {b.index}" for b in inner), "")]])
    lines += columns(rows, width)
    return [*lines, [], *sheet_lines(read_op(op.type), width)] if has_op(op.type) else lines


def _slot_rows(word: str, slots: tuple[SlotRow, ...]) -> list[list[Line]]:
    return [
        [[("  " + word, "dim")], [(slot.name, "")], [(v.name, "name")], [(v.facts, "dim")], [(v.location, "place")]]
        for slot in slots for v in slot.vars
    ]  # fmt: skip
