"""Arithmetic with sequences, and calls over each of them.

The LoD is part of what a binding is made for, so whatever follows from it (offsets, row numbers) is computed while
binding and goes into the calls as constants.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fluidnb.op import Binder, Context

Array = Any

#: Elements of a sequence from which a call of its own is quicker than a share in one call for all.
LONG = 600


def require_lod(c: Context, slot: str = "X", levels: int = 0) -> None:
    """Require, while running, that an input has sequences; while building a program they may not be known yet.

    Args:
        levels: how many levels the LoD must have; 0 for at least one.

    Raises:
        RuleError: it has none, or another number of levels.
    """
    if not c.runtime:
        return
    found = len(c.lod(slot))
    if not found:
        c.fail(
            f"Input({slot}) of {c.definition.type} does not contain LoD information: it is one batch of rows.",
            expected="rows that belong to sequences", received="a tensor without LoD",
            hint="give layers.data a lod_level and feed a LoDTensor; an operator in between may have dropped the LoD, "
            "layers.lod_reset sets it.", batch=(slot,),
        )  # fmt: skip
    c.require(
        not levels or found == levels, f"Input({slot}) of {c.definition.type} has sequences of another depth.",
        expected=f"a LoD of {levels} level{'s' * (levels > 1)}", received=f"a LoD of {found} levels",
    )  # fmt: skip


def one_dtype(c: Context, *slots: str) -> None:
    """Require that inputs have one dtype, as far as they are given.

    Raises:
        RuleError: two differ.
    """
    dtypes = {slot: c[slot].dtype for slot in slots if c.has(slot) and c[slot] is not None}
    first = next(iter(dtypes.values()), None)
    for dtype in dtypes.values():
        c.require(
            dtype == first, f"DataType of Paddle Op {c.definition.type} must be the same. Get ({first}) != ({dtype})",
            expected=f"{', '.join(dtypes)} of one dtype", received=", ".join(map(str, dtypes.values())),
            hint="cast one of them with layers.cast.",
        )  # fmt: skip


def all_given(b: Context, *slots: str) -> bool:
    """Whether inputs have values; for guards, which run before an operator's checks."""
    return all(b[slot] is not None for slot in slots)


def offsets_of(c: Context, slot: str = "X") -> Array:
    """Where the sequences of an input start and end, by its last level.

    Returns:
        int64 [sequences + 1].

    Raises:
        RuleError: the input has no sequences.
    """
    require_lod(c, slot)
    return np.array(c.lod(slot)[-1], np.int64)


def as_level(lengths: Sequence[int] | Array) -> tuple[int, ...]:
    """Lengths as one level of a LoD.

    Example:
        >>> as_level([2, 0, 3])
        (0, 2, 2, 5)
    """
    return (0, *np.cumsum(np.asarray(lengths, np.int64)).tolist())


def ranges(starts: Array, lengths: Array) -> Array:
    """The numbers ``start, start + 1, …`` of each range, one range after the other.

    Args:
        starts: int [n].
        lengths: int [n].

    Returns:
        int64 [sum of lengths].

    Example:
        >>> ranges(np.array([5, 0]), np.array([2, 3]))
        array([5, 6, 0, 1, 2])
    """
    starts, lengths = np.asarray(starts, np.int64), np.asarray(lengths, np.int64)
    ends = np.cumsum(lengths)
    return np.repeat(starts - ends + lengths, lengths) + np.arange(ends[-1] if ends.size else 0)


def owners(lengths: Array) -> Array:
    """For each row the number of its sequence.

    Example:
        >>> owners(np.array([2, 0, 1]))
        array([0, 0, 2])
    """
    return np.repeat(np.arange(len(lengths)), lengths)


def column(numbers: Array, like: Array) -> Array:
    """A number for each row, in a shape that broadcasts over the row's elements.

    Args:
        numbers: [n].
        like: the array whose rank and dtype it takes.

    Returns:
        [n, 1, …].

    Example:
        >>> column(np.array([1, 2]), np.zeros((2, 3))).shape
        (2, 1)
    """
    return np.asarray(numbers).astype(like.dtype).reshape(-1, *[1] * (like.ndim - 1))


def emit_rows(b: Binder, x: Array, rows: Array, out: Array) -> None:
    """Emit ``out[i] = x[rows[i]]``.

    Args:
        x: [n, …].
        rows: int [m], numbers of rows of ``x``; a constant.
        out: [m, …], written.
    """
    if len(rows):
        b(np.ndarray.take, x, rows, 0, out, "clip")  # numpy takes a copy of the whole result in the mode that checks


def emit_put(b: Binder, x: Array, rows: Array, out: Array) -> None:
    """Emit ``out[rows[i]] = x[i]``.

    Args:
        x: [m, …], or one element.
        rows: int [m]; a constant.
        out: [n, …], written in these rows.
    """
    if len(rows):
        b(np.ndarray.__setitem__, out, rows, x)


def reduce_each(ufunc: np.ufunc, x: Array, parts: Array, out: Array) -> None:
    """Reduce parts of an array along its first dimension.

    Args:
        x: [n, …].
        parts: int [parts, 3]: row of the result, first row and row behind the last of each.
        out: [m, …], written in these rows.

    Example:
        >>> total = np.zeros((1, 2)); reduce_each(np.add, np.ones((3, 2)), np.array([[0, 1, 3]]), total); total
        array([[2., 2.]])
    """
    for i, start, end in parts.tolist():
        ufunc.reduce(x[start:end], 0, None, out[i])


def parts_of(offsets: Array) -> Array:
    """Number, first row and row behind the last of each sequence that has rows.

    Example:
        >>> parts_of(np.array([0, 2, 2, 3]))
        array([[0, 0, 2],
               [2, 2, 3]])
    """
    full = np.flatnonzero(np.diff(offsets))
    return np.stack([full, offsets[full], offsets[full + 1]], 1)


def emit_reduce(b: Binder, ufunc: np.ufunc, x: Array, offsets: Array, out: Array, empty: Any = 0) -> None:
    """Emit ``out[i] = ufunc over rows offsets[i] to offsets[i + 1] of x``.

    Args:
        x: [n, …].
        offsets: int [m + 1], ascending.
        out: [m, …], written.
    """
    lengths = np.diff(offsets)
    full = np.flatnonzero(lengths)
    if len(full) < len(lengths):
        emit_put(b, b.const(empty, out.dtype), np.flatnonzero(lengths == 0), out)
    if not len(full):
        return
    width = x[0].size
    if x.ndim > 1 and width * len(x) > LONG * len(full):
        b(reduce_each, ufunc, x, parts_of(offsets), out)
        return
    target = out if len(full) == len(lengths) else b.tmp((len(full), *out.shape[1:]), out.dtype)
    b(ufunc.reduceat, x, offsets[full], 0, None, target)
    if target is not out:
        emit_put(b, target, full, out)


def emit_sum_rows(b: Binder, g: Array, rows: Array, out: Array) -> None:
    """Emit ``out[r] = the sum of all g[i] with rows[i] == r``: the gradient of `emit_rows`.

    Args:
        g: [m, …].
        rows: int [m]; a constant.
        out: [n, …], written.
    """
    order = np.argsort(rows, kind="stable")
    if (np.diff(order) != 1).any():
        sorted_rows = b.tmp(g.shape, g.dtype)
        emit_rows(b, g, order, sorted_rows)
        g = sorted_rows
    emit_reduce(b, np.add, g, np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=len(out)))]), out)
