"""SelectedRows while a program runs: their values, sums and functions of them.

The number of rows may change from run to run, so calls take the object itself and read it when they run.
While it binds, a kernel knows the height, the shape of a row and the dtype.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fluidnb.errors import EnforceNotMet
from fluidnb.op import Array, Binder, Context
from fluidnb.op.rules import Rule
from fluidnb.values import LoDTensor, SelectedRows, VarType


def shape_of(value: Any) -> tuple[int, ...]:
    """The shape of a tensor, or of the whole tensor of which SelectedRows has some rows."""
    return tuple(value.shape()) if isinstance(value, SelectedRows) else tuple(value.shape)


def value_array(source: SelectedRows) -> Array:
    """The values of the current rows of SelectedRows."""
    return source.value.array


def dtype_of(value: Any) -> Any:
    """The dtype of a tensor or of SelectedRows."""
    return value_array(value).dtype if isinstance(value, SelectedRows) else value.dtype


def put_rows(b: Binder, slot: str, shape: tuple[int, ...], dtype: Any) -> SelectedRows:
    """Make an output SelectedRows without rows; a call fills it with `fill`."""
    rows = SelectedRows((), shape[0], LoDTensor(np.empty((0, *shape[1:]), dtype), (), b.memory.place))
    b.put(slot, rows)
    return rows


def fill(target: SelectedRows, ids: Array, values: Array) -> None:
    """Give SelectedRows new content; both arrays are kept, so nothing else may write them."""
    target.rows_, target.value.array = ids, values


def rows_output(b: Binder, slot: str, i: int = 0) -> SelectedRows | None:
    """The SelectedRows that an output holds, or new ones where it is declared so; None for a tensor."""
    name = b.outputs[slot][i]
    value = b.scope.cell(name)[0].value
    if isinstance(value, SelectedRows):
        return value
    block = b.op.desc.block
    declared = None if block is None else block.find_var_recursive(name)
    if value is None and declared is not None and declared.type() == VarType.SELECTED_ROWS:
        return SelectedRows((), 0, LoDTensor(place=b.memory.place))
    return None


def put_whole(b: Binder, slot: str, shape: tuple[int, ...], dtype: Any) -> bool:
    """Give an output that is SelectedRows values of a shape, for a kernel to write; rows it has none get 0, 1, …."""
    rows = rows_output(b, slot)
    if rows is None:
        return False
    values = b.memory.alloc_on(b.memory.place_kind, shape, np.dtype(dtype))
    ids = rows.rows_ if len(rows.rows_) == shape[0] else np.arange(shape[0])
    rows.height_ = max(rows.height_, shape[0])
    # while binding, for readers of its shape, and in every run, as others may have filled it since
    fill(rows, ids, values)
    b.put(slot, rows)
    b(fill, rows, ids, values)
    return True


def values_of_output(b: Binder, slot: str = "Out") -> Array:
    """Array that a kernel writes for an output: a tensor, or SelectedRows of `put_whole`."""
    out = b[slot]
    return value_array(out) if isinstance(out, SelectedRows) else out


def places_of(table: Array, ids: Array) -> Array:
    """The indices of row numbers among those of a table, int64."""
    order = table.argsort(kind="stable")
    spots = np.minimum(np.searchsorted(table, ids, sorter=order), max(len(table) - 1, 0))
    places = order[spots] if len(table) else np.zeros(len(ids), np.int64)
    missing = np.flatnonzero(table[places] != ids) if len(table) else np.arange(len(ids))
    if len(missing):
        raise EnforceNotMet(
            f"The table of SelectedRows does not hold row {ids[missing[0]]}.",
            expected=f"one of its {len(table)} rows", received=int(ids[missing[0]]),
            hint="table.set_rows(...) says which rows a SelectedRows holds.",
        )  # fmt: skip
    return places


def merged(ids: Array, values: Array) -> tuple[Array, Array]:
    """Rows with the same number added up: rising row numbers, each once, and their sums."""
    if len(ids) == 0:
        return ids, values
    order = ids.argsort(kind="stable")
    ordered = ids[order]
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    return ordered[starts], np.add.reduceat(values[order], starts, axis=0)


def add_rows(total: Array, ids: Array, values: Array) -> None:
    """Add rows to those of a tensor that their numbers name, as often as they name them."""
    rows, sums = merged(ids, values)
    total[rows] += sums


#: Fewer elements than these are added one by one.
_FEW = 4096


def sum_rows(total: Array, ids: Array, values: Array) -> None:
    """Add rows to those of a dense tensor that their numbers name, in their order.

    In each turn the first row that is left of every number is added, for all numbers at once.
    """
    if not values.size:
        return
    width = total[0].size
    table, rows, left = total.reshape(-1, width), values.reshape(-1, width), np.arange(len(ids))
    seats = np.empty(len(total), np.int64)
    while len(left) * width > _FEW:
        numbers = ids[left]
        seats[numbers[::-1]] = left[::-1]  # of what is written to one place, the last one stays
        first = seats[numbers] == left
        if np.count_nonzero(first) * width < _FEW:  # few numbers again and again
            break
        table[numbers[first]] += rows[left[first]]
        left = left[~first]
    np.add.at(total.reshape(-1), (ids[left][:, None] * width + np.arange(width)).reshape(-1), rows[left].reshape(-1))


def spread(target: Array | SelectedRows | None, ids: Array, values: Array) -> None:
    """Write a gradient that comes in rows: the sum for each row of a tensor, or the rows of SelectedRows; or None."""
    if isinstance(target, SelectedRows):
        fill(target, *merged(ids, values))
    elif target is not None:
        target.fill(0)
        sum_rows(target, ids, values)


def sparse_slopes(table: str) -> Rule:
    """Rule of a gradient operator whose kernel creates a table's gradient as rows where ``is_sparse``."""

    def infer(c: Context) -> None:
        sparse = c.attr("is_sparse", False)
        for slot in c.outputs:
            source = slot.removesuffix("@GRAD")
            if c.wants(slot) and not (sparse and source == table):
                c.set(slot, shape_of(c[source]), dtype_of(c[source]), c.lod(source))

    return infer


def densify(source: SelectedRows, out: Array) -> None:
    """Write the whole tensor of which SelectedRows has some rows."""
    out[...] = 0
    add_rows(out, source.rows_, value_array(source))


def transform(
    source: SelectedRows, target: SelectedRows, function: Callable[..., None], merge: bool, *args: Any
) -> None:
    """Fill SelectedRows with a function of the rows of another."""
    ids, values = source.rows_, value_array(source)
    if merge:
        ids, values = merged(ids, values)
    out = np.empty_like(values)
    function(values, *args, out)
    fill(target, ids.copy(), out)


def on_rows(b: Binder, function: Callable[..., None], *args: Any, merge: bool = False) -> None:
    """Emit a function of the values of SelectedRows from X to Out; ``merge``: repeated rows are summed before."""
    source = b["X"]
    target = put_rows(b, "Out", shape_of(source), dtype_of(source))
    b(transform, source, target, function, merge, *args)


def or_rows(rule: Rule) -> Rule:
    """A shape rule that leaves SelectedRows to the kernel."""

    def infer(c: Context) -> None:
        if not (c.runtime and c.is_rows("X")):
            rule(c)

    return infer


def as_x(c: Context) -> bool:
    """Whether the outputs are SelectedRows because X is, for ``rows=``."""
    return c.is_rows("X")


def join(sources: Sequence[SelectedRows], target: SelectedRows) -> None:
    """Fill SelectedRows with the sum of several, each row once, in rising order."""
    ids = np.concatenate([s.rows_ for s in sources])
    fill(target, *merged(ids, np.concatenate([value_array(s) for s in sources])))


def add_source(total: Array, source: SelectedRows) -> None:
    """Add SelectedRows to a tensor."""
    add_rows(total, source.rows_, value_array(source))


def emit_sum(b: Binder, terms: Sequence[Any]) -> None:
    """Emit the sum of X into Out: SelectedRows when all terms are, else a tensor."""
    if b.is_rows("X"):
        first = terms[0]
        return b(join, list(terms), put_rows(b, "Out", shape_of(first), dtype_of(first)))
    whole = [x for x in terms if not isinstance(x, SelectedRows)]
    total = b.like(b["Out"])
    b(np.copyto, total, whole[0])
    for x in whole[1:]:
        b(np.add, total, x, out=total)
    for x in terms:
        if isinstance(x, SelectedRows):
            b(add_source, total, x)
    return b(np.copyto, b["Out"], total)
