"""Summary of a program: parameters, multiply-adds and activation memory, by layer hierarchy, operator or block."""

from collections.abc import Callable
from dataclasses import dataclass
from math import prod

from fluidnb.errors import OpValueError, near
from fluidnb.memory import size_text
from fluidnb.program.cost import CostRow, batch_shapes, cost_rows
from fluidnb.program.program import Program
from fluidnb.program.shapes import FeedShapes, with_shapes
from fluidnb.program.sub_blocks import own_blocks
from fluidnb.proto.desc import BlockDesc, OpDesc
from fluidnb.proto.framework_pb2 import VarType
from fluidnb.utils.representations import repr_html, repr_pretty
from fluidnb.values import dtypes

#: What a summary can be grouped by.
SUMMARY_GROUPS = ("layer", "op", "block")
#: Operators that only mark the ends of a program.
_ENDS = ("feed", "fetch")


@dataclass(frozen=True, slots=True)
class SummaryRow:
    """Some operators of a program, together."""

    name: str  # the layer, the operator's type or the block
    depth: int = 0  # how deep the layer is in others
    operators: int = 0  # how many there are
    parameters: int = 0  # numbers in their parameters; a parameter counts where it is read first
    multiply_adds: int = 0  # of all repetitions
    activations: int = 0  # bytes of what they compute, without changed parameters
    dtypes: tuple[str, ...] = ()  # of what they compute
    exact: bool = True  # whether all sizes and repetitions are known; unknown ones count as 1


@dataclass(frozen=True, slots=True)
class ProgramSummary:
    """A summary of a program."""

    group: str  # one of `SUMMARY_GROUPS`
    rows: tuple[SummaryRow, ...]  # in order of first appearance; layers before those inside them
    total: SummaryRow  # all operators together

    def table(self) -> list[tuple[str, ...]]:
        """The summary as rows of text: a head, a row for each, the total; the last column marks lower bounds."""
        rows: list[tuple[str, ...]] = [
            (self.group, "operators", "parameters", "multiply-adds", "activations", "dtype", "")
        ]
        for row in (*self.rows, self.total):
            rows.append((
                "  " * row.depth + row.name, f"{row.operators:,}", f"{row.parameters:,}", f"{row.multiply_adds:,}",
                size_text(row.activations), " ".join(row.dtypes), "" if row.exact else "at least",
            ))  # fmt: skip
        return rows

    def __repr__(self) -> str:
        return f"ProgramSummary({self.total.operators:,} operators, {self.total.parameters:,} parameters)"

    _repr_html_ = repr_html
    _repr_pretty_ = repr_pretty

    def __str__(self) -> str:
        rows = self.table()
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = []
        for name, *numbers, kinds, mark in rows:
            cells = (text.rjust(width) for text, width in zip(numbers, widths[1:], strict=False))
            lines.append("  ".join([name.ljust(widths[0]), *cells, kinds.ljust(widths[-2]), mark]).rstrip())
        return "\n".join(lines)


def summarize(
    program: Program, by: str = "layer", feed_shapes: FeedShapes | None = None, depth: int | None = None
) -> ProgramSummary:
    """Summarizes a program: parameters, multiply-adds and activation memory.

    The layers are those that the program's operators name (``op_namescope``, Paddle 3's ``struct_name``), else the
    beginnings of the names of parameters and results: ``fc_0`` of ``fc_0.w_0``.

    Args:
        program: the program.
        by: ``layer``, ``op`` or ``block``.
        feed_shapes: name of a data variable -> its sizes, batch included; None for a batch of one.
        depth: layers inside deeper ones are part of these; None for all.

    Raises:
        OpValueError: another group.

    Example:
        >>> h = fluid.layers.fc(fluid.layers.data("x", [4]), 3)
        >>> summarize(fluid.default_main_program()).rows[0].parameters
        15
    """
    if by not in SUMMARY_GROUPS:
        raise OpValueError(f"A summary cannot be grouped by {by!r}.", expected=", ".join(SUMMARY_GROUPS), received=by,
                           hint=near(by, SUMMARY_GROUPS))  # fmt: skip
    copy = with_shapes(program, batch_shapes(program, 1) if feed_shapes is None else feed_shapes)
    key: Callable[[OpDesc, CostRow], tuple[str, ...]] = {
        "layer": lambda op, row: _layers(op, row, copy.desc.blocks[row.block])[:depth] or ("(no layer)",),
        "op": lambda op, row: (op.optype,),
        "block": lambda op, row: (f"block {row.block}",),
    }[by]
    counted: set[str] = set()
    groups: dict[tuple[str, ...], _Sums] = {(): _Sums()}
    for row in cost_rows(program, copy):
        block = copy.desc.blocks[row.block]
        op = block.ops[row.index]
        if op.optype in _ENDS:
            continue
        path = key(op, row)
        parameters = [n for n in op.input_arg_names() if n not in counted and _is_parameter(block, n)]
        counted.update(parameters)
        for end in range(len(path) + 1):
            groups.setdefault(path[:end], _Sums()).add(op, row, block, parameters)
    rows = {path: sums.row(path[-1] if path else "total", max(len(path) - 1, 0)) for path, sums in groups.items()}
    total = rows.pop(())
    return ProgramSummary(by, tuple(_in_order(rows)), total)


def _in_order(rows: dict[tuple[str, ...], SummaryRow]) -> list[SummaryRow]:
    """Rows so that each layer is followed by those inside it."""
    place = {path: i for i, path in enumerate(rows)}
    return [rows[path] for path in sorted(rows, key=lambda p: [place[p[: i + 1]] for i in range(len(p))])]


def _layers(op: OpDesc, row: CostRow, block: BlockDesc) -> tuple[str, ...]:
    """The layers that an operator belongs to, the outermost first."""
    scope = str(op.attrs.get("op_namescope", "")).strip("/")
    if scope:
        return tuple(scope.split("/"))
    named = [n.rpartition(".")[0] for n in op.input_arg_names() if _is_parameter(block, n)]
    return next(((name,) for name in (*named, row.layer) if name), ())


def _is_parameter(block: BlockDesc, name: str) -> bool:
    var = block.find_var_recursive(name)
    return var is not None and var.persistable() and var.type() == VarType.LOD_TENSOR


class _Sums:
    """Sums of a group of operators while they are counted."""

    def __init__(self) -> None:
        self.operators = self.parameters = self.multiply_adds = self.activations = 0
        self.dtypes: dict[str, None] = {}
        self.exact = True

    def add(self, op: OpDesc, row: CostRow, block: BlockDesc, parameters: list[str]) -> None:
        """Counts an operator."""
        self.operators += 1
        self.multiply_adds += row.multiply_adds
        self.exact &= row.exact
        for name in parameters:
            var = block.find_var_recursive(name)
            self.parameters += 0 if var is None else prod(var.shape())
        for name in () if own_blocks(op) else op.output_arg_names():
            var = block.find_var_recursive(name)
            if var is None or var.persistable() or var.type() != VarType.LOD_TENSOR:
                continue
            kind = dtypes.np_dtype(var.dtype())
            self.dtypes[str(kind)] = None
            self.activations += row.calls * kind.itemsize * prod(1 if size < 0 else size for size in var.shape())

    def row(self, name: str, depth: int) -> SummaryRow:
        """The sums as a row."""
        return SummaryRow(
            name, depth, self.operators, self.parameters, self.multiply_adds, self.activations, tuple(self.dtypes),
            self.exact,
        )  # fmt: skip
