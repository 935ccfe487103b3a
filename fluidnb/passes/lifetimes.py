"""Lifetimes of a block's variables."""

from collections.abc import Collection
from dataclasses import dataclass
from math import prod

from fluidnb.passes.uses import Uses, texts
from fluidnb.proto.desc import BlockDesc, VarDesc
from fluidnb.values.dtypes import VarType, np_dtype

#: Rows of a batch in estimates, where a shape leaves it open.
ROWS = 64


@dataclass(slots=True)
class Life:
    """A variable that can go before its block ends."""

    var: VarDesc  # the variable
    first: int  # the operator that writes it first
    last: int  # the operator that reads it last
    size: int  # bytes, see `size_of`

    @property
    def name(self) -> str:
        """The variable's name."""
        return self.var.name()


def lives(block: BlockDesc, uses: Uses, skip: Collection[str]) -> list[Life]:
    """The variables of a block that can be released before it ends, with their lives, in order of their first writers.

    Variables without a consumer are excluded, being results that may be fetched. So are parameters and all else that
    outlives a run, fed and fetched ones, values that are no tensors, inputs of gradient blocks, and variables that
    operators read by name.
    """
    reads, writes = uses.reads[block.idx], uses.writes[block.idx]
    stay = set(skip) | uses.elsewhere[block.idx]
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    last_write: dict[str, int] = {}
    for i, op in enumerate(block.ops):
        stay.update(texts(op))
        if op.optype in ("feed", "fetch", "delete_var"):
            stay |= reads[i] | writes[i]
        for name in reads[i]:
            last[name] = i
            if name not in first:  # it comes from elsewhere: fed, or held by the scope
                stay.add(name)
        for name in writes[i]:
            first.setdefault(name, i)
            last_write[name] = i
    named = uses.named[block.idx]
    result = []
    for name, i in first.items():
        var = block.vars[name]
        if (
            name not in stay
            and last.get(name, -1) >= last_write[name]
            and name.partition("@")[0] not in named
            and var.type() in (VarType.LOD_TENSOR, VarType.SELECTED_ROWS)
            and not var.persistable()
            and not var.is_data()
        ):
            result.append(Life(var, i, last[name], size_of(var)))
    return result


def size_of(var: VarDesc) -> int:
    """The bytes of a variable, with 64 rows where its shape leaves the batch open; 0 for no dense tensor."""
    if var.type() != VarType.LOD_TENSOR:
        return 0
    return prod(ROWS if n < 0 else n for n in var.shape()) * np_dtype(var.dtype()).itemsize
