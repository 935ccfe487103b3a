"""Working with SelectedRows while a program runs.

How many rows there are may change from run to run, so calls take the object itself and look inside when they are made.
What a kernel may know while it binds is the height, the shape of a row and the dtype.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fluidnb.errors import EnforceNotMet
from fluidnb.op import Binder, Context
from fluidnb.op.rules import Rule
from fluidnb.values import LoDTensor, SelectedRows, VarType

Array = Any


def shape_of(value: Any) -> tuple[int, ...]:
    """The shape of a tensor, or of the whole tensor of which SelectedRows holds some rows.

    Args:
        value: an array, a description of one, or SelectedRows.

    Example:
        >>> shape_of(np.zeros((2, 3))), shape_of(SelectedRows([1], 9, LoDTensor(np.zeros((1, 4)))))
        ((2, 3), (9, 4))
    """
    return tuple(value.shape()) if isinstance(value, SelectedRows) else tuple(value.shape)


def value_array(source: SelectedRows) -> Array:
    """The values of the rows that SelectedRows holds now.

    Example:
        >>> value_array(SelectedRows([1], 9, LoDTensor(np.zeros((1, 4))))).shape
        (1, 4)
    """
    return source.value.array


def dtype_of(value: Any) -> Any:
    """The dtype of a tensor or of SelectedRows.

    Args:
        value: an array, a description of one, or SelectedRows.

    Example:
        >>> dtype_of(np.zeros(1)), dtype_of(SelectedRows([1], 9, LoDTensor(np.zeros((1, 4), "float32"))))
        (dtype('float64'), dtype('float32'))
    """
    return value_array(value).dtype if isinstance(value, SelectedRows) else value.dtype


def put_rows(b: Binder, slot: str, shape: tuple[int, ...], dtype: Any) -> SelectedRows:
    """Make an output SelectedRows that holds no row yet.

    Args:
        dtype: its dtype.

    Returns:
        The object; a call fills it with `fill`.
    """
    rows = SelectedRows((), shape[0], LoDTensor(np.empty((0, *shape[1:]), dtype), (), b.memory.place))
    b.put(slot, rows)
    return rows


def fill(target: SelectedRows, ids: Array, values: Array) -> None:
    """Give SelectedRows new content.

    Args:
        ids: row numbers [n]; kept, so it must not be an array that others write.
        values: [n, …], kept too.

    Example:
        >>> s = SelectedRows((), 9); fill(s, np.array([4]), np.ones((1, 2))); s
        SelectedRows(rows=[4], height=9, value=[1, 2] float64)
    """
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
    """Give an output that is SelectedRows values of a shape, for a kernel to write; rows it has none get 0, 1, ….

    Args:
        dtype: their dtype.

    Returns:
        Whether it is SelectedRows.
    """
    rows = rows_output(b, slot)
    if rows is None:
        return False
    values = b.memory.alloc_on(b.memory.place_kind, shape, np.dtype(dtype))
    ids = rows.rows_ if len(rows.rows_) == shape[0] else np.arange(shape[0])
    rows.height_ = max(rows.height_, shape[0])
    fill(rows, ids, values)  # now, for who reads its shape, and in every run, as others may have filled it since
    b.put(slot, rows)
    b(fill, rows, ids, values)
    return True


def values_of_output(b: Binder, slot: str = "Out") -> Array:
    """Array that a kernel writes for an output: a tensor, or SelectedRows of `put_whole`."""
    out = b[slot]
    return value_array(out) if isinstance(out, SelectedRows) else out


def places_of(table: Array, ids: Array) -> Array:
    """Where the rows of some numbers are among those of a table.

    Args:
        ids: numbers that are looked for [n].

    Returns:
        int64 [n].

    Raises:
        EnforceNotMet: the table does not hold one of them.

    Example:
        >>> places_of(np.array([7, 2, 5]), np.array([5, 7]))
        array([2, 0])
    """
    order = table.argsort(kind="stable")
    spots = np.minimum(np.searchsorted(table, ids, sorter=order), max(len(table) - 1, 0))
    found = order[spots] if len(table) else np.zeros(len(ids), np.int64)
    missing = np.flatnonzero(table[found] != ids) if len(table) else np.arange(len(ids))
    if len(missing):
        raise EnforceNotMet(
            f"The table of SelectedRows does not hold row {ids[missing[0]]}.",
            expected=f"one of its {len(table)} rows", received=int(ids[missing[0]]),
            hint="table.set_rows(...) says which rows a SelectedRows holds.",
        )  # fmt: skip
    return found


def merged(ids: Array, values: Array) -> tuple[Array, Array]:
    """Rows with the same number added up.

    Args:
        ids: row numbers [n].
        values: [n, …].

    Returns:
        Rising row numbers, each once, and their sums.

    Example:
        >>> merged(np.array([4, 0, 4]), np.array([[1.0], [2.0], [3.0]]))
        (array([0, 4]), array([[2.],
               [4.]]))
    """
    if len(ids) == 0:
        return ids, values
    order = ids.argsort(kind="stable")
    ordered = ids[order]
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    return ordered[starts], np.add.reduceat(values[order], starts, axis=0)


def add_rows(total: Array, ids: Array, values: Array) -> None:
    """Add rows to those of a tensor that their numbers name, as often as they name them.

    Args:
        ids: row numbers [n].
        values: [n, …].

    Example:
        >>> x = np.zeros((2, 1)); add_rows(x, np.array([1, 1]), np.ones((2, 1))); x
        array([[0.],
               [2.]])
    """
    rows, sums = merged(ids, values)
    total[rows] += sums


def spread(target: Array | SelectedRows | None, ids: Array, values: Array) -> None:
    """Write a gradient that comes in rows: the sum for each row of a tensor, or the rows that have one.

    Args:
        target: a whole tensor, written; or SelectedRows, filled; or None.
        ids: row numbers [n].
        values: [n, …].

    Example:
        >>> x, s = np.empty((3, 1)), SelectedRows((), 3); ids, values = np.array([1, 1]), np.ones((2, 1))
        >>> spread(x, ids, values); spread(s, ids, values); x.tolist(), s
        ([[0.0], [2.0], [0.0]], SelectedRows(rows=[1], height=3, value=[1, 1] float64))
    """
    if isinstance(target, SelectedRows):
        fill(target, *merged(ids, values))
    elif target is not None:
        target.fill(0)
        add_rows(target, ids, values)


def sparse_slopes(table: str) -> Rule:
    """The shape rule of a gradient operator that gives the gradient of a table in rows where ``is_sparse`` says so.

    Args:
        table: the slot of the table; the kernel makes its gradient then, see `put_rows`.

    Returns:
        The rule: gradients look like what they belong to.
    """

    def infer(c: Context) -> None:
        sparse = c.attr("is_sparse", False)
        for slot in c.outputs:
            source = slot.removesuffix("@GRAD")
            if c.wants(slot) and not (sparse and source == table):
                c.set(slot, shape_of(c[source]), dtype_of(c[source]), c.lod(source))

    return infer


def densify(source: SelectedRows, out: Array) -> None:
    """Write the whole tensor of which SelectedRows holds some rows.

    Example:
        >>> x = np.empty((2, 1)); densify(SelectedRows([1], 2, LoDTensor(np.ones((1, 1)))), x); x
        array([[0.],
               [1.]])
    """
    out[...] = 0
    add_rows(out, source.rows_, value_array(source))


def transform(
    source: SelectedRows, target: SelectedRows, function: Callable[..., None], merge: bool, *args: Any
) -> None:
    """Fill SelectedRows with a function of the rows of another.

    Args:
        target: what is filled; may be the source.
        function: ``function(values, *args, out)`` writes the new rows.
        merge: whether rows with the same number are added up before.

    Example:
        >>> a, b = SelectedRows([1], 2, LoDTensor(np.ones((1, 1)))), SelectedRows((), 2)
        >>> transform(a, b, np.multiply, False, 3.0); b.to_dense()
        array([[0.],
               [3.]])
    """
    ids, values = source.rows_, value_array(source)
    if merge:
        ids, values = merged(ids, values)
    out = np.empty_like(values)
    function(values, *args, out)
    fill(target, ids.copy(), out)


def on_rows(b: Binder, function: Callable[..., None], *args: Any, merge: bool = False) -> None:
    """Emit an operator from X to Out for SelectedRows, as a function of their values.

    Args:
        function: ``function(values, *args, out)`` writes the new values.
        merge: whether rows with the same number are added up before, as a function that is not linear needs.
    """
    source = b["X"]
    target = put_rows(b, "Out", shape_of(source), dtype_of(source))
    b(transform, source, target, function, merge, *args)


def or_rows(rule: Rule) -> Rule:
    """A shape rule that leaves SelectedRows to the kernel.

    Returns:
        The rule, for ``infer=``.
    """

    def infer(c: Context) -> None:
        if not (c.runtime and c.is_rows("X")):
            rule(c)

    return infer


def as_x(c: Context) -> bool:
    """Whether the outputs are SelectedRows because X is, for ``rows=``."""
    return c.is_rows("X")
