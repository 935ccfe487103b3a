"""Cost of a program: multiply-adds and bytes of each operator, by operator type, layer and cell."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fluidnb.memory import size_text
from fluidnb.op import GRAD, Cost, cost_of, has_op
from fluidnb.program.constants import role_of
from fluidnb.program.program import Program
from fluidnb.program.shapes import FeedShapes, with_shapes
from fluidnb.program.sub_blocks import forward_op, own_blocks
from fluidnb.proto.desc import BlockDesc, OpDesc
from fluidnb.proto.framework_pb2 import VarType
from fluidnb.utils.representations import repr_html, repr_pretty

#: What costs can be summed up by.
GROUPS = ("op", "layer", "cell", "role")


@dataclass(frozen=True, slots=True)
class CostRow:
    """Cost of one operator, or of several together."""

    name: str  # the operator's type, or what the operators have in common
    multiply_adds: int  # multiply-adds of all repetitions
    read: int  # bytes read
    written: int  # bytes written
    calls: int = 1  # how often an operator is called
    exact: bool = True  # whether all sizes and repetitions are known; unknown ones count as 1
    block: int = -1  # index of the operator's block; -1 for several operators
    index: int = -1  # the operator's index in its block; -1 for several operators
    role: str = ""  # ``forward``, ``backward``, ``optimizer``; empty where they differ
    layer: str = ""  # the layer whose variables the operator writes, ``fc_0`` for example; empty if unknown
    cell: str = ""  # the cell that appended the operator; empty if unknown

    @property
    def intensity(self) -> float:
        """Arithmetic intensity: operations (two in a multiply-add) for each byte; 0 without bytes."""
        moved = self.read + self.written
        return 2 * self.multiply_adds / moved if moved else 0.0


@dataclass(frozen=True, slots=True)
class ProgramCost:
    """Cost of a program."""

    # one for each operator, in order; those of nested blocks follow the operator that runs them
    rows: tuple[CostRow, ...]

    @property
    def total(self) -> CostRow:
        """All operators together."""
        return _sum("total", self.rows)

    @property
    def multiply_adds(self) -> int:
        """Multiply-adds of all operators."""
        return self.total.multiply_adds

    @property
    def intensity(self) -> float:
        """Arithmetic intensity of all operators."""
        return self.total.intensity

    def by(self, group: str) -> tuple[CostRow, ...]:
        """Costs summed up, the largest first."""
        key: Callable[[CostRow], str] = {
            "op": lambda row: row.name, "layer": lambda row: row.layer, "cell": lambda row: row.cell,
            "role": lambda row: row.role,
        }[group]  # fmt: skip
        groups: dict[str, list[CostRow]] = {}
        for row in self.rows:
            groups.setdefault(key(row), []).append(row)
        sums = [_sum(name, rows) for name, rows in groups.items()]
        return tuple(sorted(sums, key=lambda row: (-row.multiply_adds, -row.read - row.written)))

    def table(self, group: str = "op") -> list[tuple[str, ...]]:
        """Costs summed up as rows of text: a head, a row for each, the total; the last column marks lower bounds."""
        rows: list[tuple[str, ...]] = [(group, "calls", "multiply-adds", "read", "written", "op/byte", "")]
        for row in (*self.by(group), self.total):
            rows.append((
                row.name or "-", f"{row.calls:,}", f"{row.multiply_adds:,}", size_text(row.read),
                size_text(row.written), f"{row.intensity:.2f}", "" if row.exact else "at least",
            ))  # fmt: skip
        return rows

    def __repr__(self) -> str:
        return f"ProgramCost({len(self.rows):,} operators, {self.multiply_adds:,} multiply-adds)"

    _repr_html_ = repr_html
    _repr_pretty_ = repr_pretty

    def __str__(self) -> str:
        rows = self.table()
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = []
        for name, *numbers, mark in rows:
            cells = (text.rjust(width) for text, width in zip(numbers, widths[1:], strict=False))
            lines.append("  ".join([name.ljust(widths[0]), *cells, mark]).rstrip())
        return "\n".join(lines)


def batch_shapes(program: Program, batch: int) -> dict[str, tuple[int, ...]]:
    """name -> sizes for a batch size, of each variable of unknown size that is fed or that no operator writes."""
    top = program.desc.blocks[0]
    ops = (op for block in program.desc.blocks for op in block.ops)
    written = {name for op in ops if op.optype != "feed" for name in op.output_arg_names()}
    shapes: dict[str, tuple[int, ...]] = {}
    for name, var in top.vars.items():
        shape = list(var.shape()) if var.type() == VarType.LOD_TENSOR else []
        if -1 in shape and name not in written and not var.persistable():
            shape[shape.index(-1)] = batch
            shapes[name] = tuple(max(size, 1) if size < 0 else size for size in shape)
    return shapes


def program_cost(program: Program, feed_shapes: FeedShapes | None = None) -> ProgramCost:
    """Multiply-adds and bytes of each operator of a program, for given feeds.

    The body of a ``recurrent`` operator counts once a time step, that of a ``while`` once. Unknown sizes count as 1.

    Args:
        feed_shapes: name of a data variable -> its sizes, batch included; None for a batch of one.
    """
    copy = with_shapes(program, batch_shapes(program, 1) if feed_shapes is None else feed_shapes)
    return ProgramCost(tuple(cost_rows(program, copy)))


def cost_rows(program: Program, copy: Program) -> list[CostRow]:
    """The cost of each operator.

    Args:
        program: the program.
        copy: the same with shapes for feeds, see `with_shapes`.
    """
    rows: list[CostRow] = []
    _count(program.desc.blocks, copy.desc.blocks, 0, 1, True, rows)
    return rows


def _count(
    originals: Sequence[BlockDesc], blocks: Sequence[BlockDesc], index: int, times: int, exact: bool,
    rows: list[CostRow],
) -> None:  # fmt: skip
    """Append the rows of a block that runs a number of times."""
    block = blocks[index]
    for i, (op, original) in enumerate(zip(block.ops, originals[index].ops, strict=True)):
        cost = cost_of(op, block, forward_op(op)) if has_op(op.optype) and not own_blocks(op) else Cost(0, 0, 0)
        made_by = getattr(original.view, "origin", None)
        rows.append(
            CostRow(
                op.optype,
                cost.multiply_adds * times,
                (cost.read or 0) * times,
                (cost.written or 0) * times,
                times,
                cost.exact and exact,
                index,
                i,
                role_of(op),
                _layer(op),
                made_by.title if made_by else "",
            )  # fmt: skip
        )
        for inner in own_blocks(op):
            steps = _steps(op, block)
            _count(originals, blocks, inner, times * (steps or 1), exact and steps is not None, rows)


def _steps(op: OpDesc, block: BlockDesc) -> int | None:
    """The number of iterations of an operator's block; None where it depends on values."""
    if not op.optype.startswith("recurrent"):
        return None
    first = next((block.find_var_recursive(name) for name in op.ins.get("inputs", ())), None)
    return None if first is None or not first.shape() or first.shape()[0] < 0 else int(first.shape()[0])


def _layer(op: OpDesc) -> str:
    """The layer that named what an operator writes, or whose gradient it computes: ``fc_0`` of ``fc_0.tmp_1``."""
    for name in op.output_arg_names():
        base = name.partition(GRAD)[0]
        if "." in base:
            return base.rpartition(".")[0]
    return ""


def _sum(name: str, rows: Sequence[CostRow]) -> CostRow:
    """Several rows as one."""
    roles = {row.role for row in rows}
    return CostRow(
        name, sum(row.multiply_adds for row in rows), sum(row.read for row in rows), sum(row.written for row in rows),
        sum(row.calls for row in rows), all(row.exact for row in rows), role=roles.pop() if len(roles) == 1 else "",
    )  # fmt: skip
