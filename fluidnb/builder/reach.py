"""The candidates for inputs: the variables that a block sees, those that fit first."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from fluidnb.builder.arguments import Argument
from fluidnb.op import has_grad, has_op
from fluidnb.program import Program, Variable
from fluidnb.program.stale_handles import is_live
from fluidnb.viz.program.model import VarRow
from fluidnb.viz.program.reader import read_var

#: kind of a variable that is no tensor -> its name in specifications of inputs
_CONTAINERS = {
    "lod_tensor_array": "array", "lod_rank_table": "table", "reader": "reader", "selected_rows": "rows",
    "feed_minibatch": "list", "fetch_list": "list",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Candidate:
    """A variable that an input can be."""

    source: str  # the expression that means it: a Python name where one is bound to it
    row: VarRow
    named: bool  # whether a Python name is bound to it
    made_by: str = ""  # the type of the operator that wrote it last; empty when none did


def in_reach(program: Program, block: int, names: Mapping[str, Any], hidden: Collection[str] = ()) -> list[Candidate]:
    """The variables that a block sees.

    Args:
        names: the Python names.
        hidden: Python names that do not count.

    Returns:
        Those that have a Python name, the latest first; then the parameters without one.

    Example:
        >>> x = fluid.layers.data("x", [4]); h = fluid.layers.fc(x, 2)
        >>> [c.source for c in in_reach(fluid.default_main_program(), 0, {"x": x, "h": h})][:2]
        ['h', 'x']
    """
    seen = _blocks(program, block)
    order = {desc: i for b in program.desc.blocks for i, desc in enumerate(b.vars.values())}
    python: dict[Any, str] = {}
    for name, value in names.items():
        if isinstance(value, Variable) and not name.startswith("_") and name not in hidden and name.isidentifier():
            if value.block.program is program and value.block.idx in seen and is_live(value):
                python.setdefault(value.desc, name)
    named = sorted(python, key=lambda desc: (seen.index(desc.block.idx), -order[desc]))
    here = "fluid.default_main_program().current_block()"
    others = [
        desc for index in seen for name, desc in program.desc.blocks[index].vars.items()
        if desc not in python and desc.is_parameter()
    ]  # fmt: skip
    writers = {name: op.optype for i in seen for op in program.desc.blocks[i].ops for name in op.output_arg_names()}
    candidates = [Candidate(python[desc], read_var(desc), True, writers.get(desc.name(), "")) for desc in named]
    return candidates + [Candidate(f'{here}.var_recursive("{d.name()}")', read_var(d), False) for d in others]


def ordered(argument: Argument, candidates: Iterable[Candidate]) -> list[tuple[Candidate, bool]]:
    """The candidates for an input, those that fit first, and whether each fits the declared dtype, axes and LoD.

    It only changes the order, for the layer itself refuses what it cannot take.
    """
    rows = [(candidate, _kind_index(argument, candidate)) for candidate in candidates]
    rows.sort(key=lambda row: len(argument.specs) + 1 if row[1] is None else row[1])
    return [(candidate, index is not None) for candidate, index in rows]


def fits(argument: Argument, candidate: Candidate) -> bool:
    """Whether a variable has a dtype, a number of axes and a LoD that are declared for an input."""
    return _kind_index(argument, candidate) is not None


def _kind_index(argument: Argument, candidate: Candidate) -> int | None:
    """The index of the first declared kind that a variable is; None where it is none of them."""
    row = candidate.row
    container = _CONTAINERS.get(row.kind)
    if argument.name == "loss":
        made_by = candidate.made_by
        is_number = row.dtype.startswith("float") and row.shape in ((1,), ())
        return 0 if is_number and has_op(made_by) and has_grad(made_by) else None
    if container or row.shape is None:
        return next((i for i, spec in enumerate(argument.specs) if spec.dtype == container), None)
    rank = len(row.shape)
    for i, spec in enumerate(argument.specs):
        if spec.fits(row.dtype, rank, row.lod_level):
            return i
    return None if argument.specs else 0


def _blocks(program: Program, index: int) -> list[int]:
    """A block and those around it, from the inside out."""
    blocks = [index]
    while index > 0:
        index = program.desc.blocks[index].parent_idx
        blocks.append(index)
    return blocks
