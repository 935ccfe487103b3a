"""Arithmetic with sequences, and calls over each of them.

The LoD is part of what a binding is made for, so whatever follows from it (offsets, row numbers) is computed while
binding and goes into the calls as constants.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fluidnb.op import Array, Binder, Context
from fluidnb.values.copies import on_host

#: Elements of a sequence from which a call of its own is quicker than a share in one call for all.
LONG = 600


def require_lod(c: Context, slot: str = "X", levels: int = 0) -> None:
    """Require, while running, an input with sequences, of so many LoD levels if not 0."""
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


def within(c: Context, slot: str, most: int, what: str) -> Array:
    """Require that lengths are from 0 to a number of steps; gives them as an array of the host."""
    lengths = on_host(c[slot]).reshape(-1)
    c.require(
        not lengths.size or 0 <= lengths.min() and lengths.max() <= most,
        f"Input({slot}) of {c.definition.type} must fit {what}.", expected=f"0 to {most}",
        received=lengths.tolist()[:20],
    )  # fmt: skip
    return lengths


def one_sequence_each(c: Context, slot: str, images: int, expected: Any = None, level: int = -1) -> None:
    """Require that an input has as many sequences as there are images."""
    count = len(c.lod(slot)[level]) - 1
    c.require(
        count == images, f"Input({slot}) of {c.definition.type} must have a sequence for each image.",
        expected=expected or images, received=count,
    )  # fmt: skip


def one_dtype(c: Context, *slots: str) -> None:
    """Require that inputs have one dtype, as far as they are given."""
    dtypes = {slot: c[slot].dtype for slot in slots if c.has(slot) and c[slot] is not None}
    first = next(iter(dtypes.values()), None)
    for dtype in dtypes.values():
        if dtype != first:
            c.fail(
                f"DataType of Paddle Op {c.definition.type} must be the same. Get ({first}) != ({dtype})",
                expected=f"{', '.join(dtypes)} of one dtype", received=", ".join(map(str, dtypes.values())),
                hint="cast one of them with layers.cast.",
            )  # fmt: skip


def all_given(b: Context, *slots: str) -> bool:
    """Whether inputs have values; for guards, which run before an operator's checks."""
    return all(b[slot] is not None for slot in slots)


def offsets_of(c: Context, slot: str = "X") -> Array:
    """The offsets of an input's sequences, by its last level, int64."""
    require_lod(c, slot)
    return np.array(c.lod(slot)[-1], np.int64)


def as_level(lengths: Sequence[int] | Array) -> tuple[int, ...]:
    """Lengths as one level of a LoD: [2, 0, 3] gives (0, 2, 2, 5)."""
    return (0, *np.cumsum(np.asarray(lengths, np.int64)).tolist())


def sized(c: Context, counts: Callable[[Any], Sequence[int]]) -> tuple[int, tuple[Any, ...]]:
    """Rows and LoD of an output whose sequences depend on values; -1 and unknown while building."""
    if not c.runtime:
        return -1, (None,)
    level = as_level(counts(c))
    return level[-1], (level,)


def slices(offsets: Sequence[int]) -> list[slice]:
    """The rows of each sequence."""
    return [slice(i, j) for i, j in zip(offsets[:-1], offsets[1:], strict=True)]


def ranges(starts: Array, lengths: Array) -> Array:
    """The numbers ``start, start + 1, …`` of each range, one range after the other."""
    starts, lengths = np.asarray(starts, np.int64), np.asarray(lengths, np.int64)
    ends = np.cumsum(lengths)
    return np.repeat(starts - ends + lengths, lengths) + np.arange(ends[-1] if ends.size else 0)


def owners(lengths: Array) -> Array:
    """For each row the number of its sequence."""
    return np.repeat(np.arange(len(lengths)), lengths)


def column(numbers: Array, like: Array) -> Array:
    """A number for each row, with the dtype of an array and a shape [n, 1, …] that broadcasts with it."""
    return np.asarray(numbers).astype(like.dtype).reshape(-1, *[1] * (like.ndim - 1))


def emit_rows(b: Binder, x: Array, rows: Array, out: Array) -> None:
    """Emit ``out[i] = x[rows[i]]``; the rows are a constant."""
    if len(rows):
        b(np.ndarray.take, x, rows, 0, out, "clip")  # numpy takes a copy of the whole result in the mode that checks


def emit_put(b: Binder, x: Array, rows: Array, out: Array) -> None:
    """Emit ``out[rows[i]] = x[i]``, or one element for all; the rows are a constant."""
    if len(rows):
        b(np.ndarray.__setitem__, out, rows, x)


def reduce_each(ufunc: np.ufunc, x: Array, parts: Array, out: Array) -> None:
    """Reduce parts of an array along its first dimension: each is the row of the result, its first row and its end."""
    for i, start, end in parts.tolist():
        ufunc.reduce(x[start:end], 0, None, out[i])


def parts_of(offsets: Array) -> Array:
    """Number, first row and row behind the last of each sequence that has rows."""
    full = np.flatnonzero(np.diff(offsets))
    return np.stack([full, offsets[full], offsets[full + 1]], 1)


def emit_reduce(b: Binder, ufunc: np.ufunc, x: Array, offsets: Array, out: Array, empty: Any = 0) -> None:
    """Emit ``out[i] = ufunc over rows offsets[i] to offsets[i + 1] of x``, and ``empty`` where there are none."""
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
    """Emit ``out[r] = the sum of all g[i] with rows[i] == r``: the gradient of `emit_rows`."""
    order = np.argsort(rows, kind="stable")
    if (np.diff(order) != 1).any():
        sorted_rows = b.tmp(g.shape, g.dtype)
        emit_rows(b, g, order, sorted_rows)
        g = sorted_rows
    emit_reduce(b, np.add, g, np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=len(out)))]), out)
