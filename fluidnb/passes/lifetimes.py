"""From where to where a block needs each of its variables."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from math import prod

from fluidnb.passes.uses import Uses, texts
from fluidnb.proto.desc import BlockDesc, VarDesc
from fluidnb.values.dtypes import VarType, np_dtype

#: How many rows a batch is taken to have where a shape leaves it open; only estimates and their comparison need it.
ROWS = 64


@dataclass(slots=True)
class Life:
    """A variable that can go before its block ends.

    Args:
        var: the variable.
        first: the operator that writes it first.
        last: the operator that reads it last.
        size: bytes, see `size_of`.

    Example:
        >>> Life(VarDesc("x"), 0, 1, 4).name
        'x'
    """

    var: VarDesc
    first: int
    last: int
    size: int

    @property
    def name(self) -> str:
        """The variable's name."""
        return self.var.name()


def lives(block: BlockDesc, uses: Uses, skip: Collection[str]) -> list[Life]:
    """The variables of a block that can go before it ends, each with its life.

    Variables without a consumer are excluded, being results that may be fetched. So are parameters and all else
    that outlives a run, fed and fetched ones, arrays of tensors and other values that are no tensors, inputs of
    gradient blocks, and variables that operators read by name.

    Args:
        block: the block.
        uses: the uses in its program.
        skip: names of variables that have to stay.

    Returns:
        The lives in the order in which they begin.

    Example:
        >>> x = fluid.layers.data("x", shape=[4]); y = fluid.layers.tanh(fluid.layers.relu(x))
        >>> desc = fluid.default_main_program().desc
        >>> [(life.first, life.last, life.size) for life in lives(desc.block(0), Uses(desc), set())]
        [(0, 1, 1024)]
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
    found = []
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
            found.append(Life(var, i, last[name], size_of(var)))
    return found


def size_of(var: VarDesc) -> int:
    """The bytes of a variable, with 64 rows where its shape leaves the batch open.

    Args:
        var: the variable.

    Returns:
        Bytes; 0 for what is no dense tensor.

    Example:
        >>> var = VarDesc("x"); var.set_dtype(VarType.FP32); var.set_shape([-1, 3]); size_of(var)
        768
    """
    if var.type() != VarType.LOD_TENSOR:
        return 0
    return prod(ROWS if n < 0 else n for n in var.shape()) * np_dtype(var.dtype()).itemsize
