"""lod_tensor_to_array, array_to_lod_tensor: a batch of sequences step by step, and sequences again."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from fluidnb.op import Array, Binder, Context, op
from fluidnb.values import LoDTensor, LoDTensorArray
from fluidnb.values.rank_table import LoDRankTable
from fluidnb_kernels import verbs
from fluidnb_kernels.array.tensor_arrays import fill, put_rows, shapes_of
from fluidnb_kernels.gradients import gradient_by
from fluidnb_kernels.lod.rank_table import ranks, steps
from fluidnb_kernels.lod.take_sequences import Offsets, cut
from fluidnb_kernels.sequence import row_maps
from fluidnb_kernels.sequences import as_level

_TABLE = {"RankTable": "a table that lod_rank_table made"}


def at_step(table: LoDRankTable, starts: Sequence[int], step: int) -> list[int]:
    """The rows of the ranked sequences at a step, longest sequence first."""
    return [starts[i] + step for i, length in table.items() if length > step]


def _to_array_infer(c: Context) -> None:
    if not c.runtime:
        x = c["X"]
        c.set("Out", (-1, *x.shape[1:]), x.dtype, c.lod("X")[1:])


@op(
    "lod_tensor_to_array",
    inputs={"X: any lod": "sequences", **_TABLE},
    outputs={"Out": "an array: element t has the t-th row of every sequence that is longer than t"},
    infer=_to_array_infer,
    grad=gradient_by("array_to_lod_tensor", {"RankTable": "RankTable", "X_W": "X"}, {"X": "Out"}, {"Out": "X"}),
    guard=ranks,
    dtype_slot="X",
    cuda=True,
)
def lod_tensor_to_array(b: Binder) -> None:
    """Out[t] = the t-th rows of the sequences of X that have one, the longest sequence first.

    Where a row is itself a sequence (a level below that which was ranked), it goes as a whole. The gradient is
    array_to_lod_tensor.

    Example:
        >>> from fluidnb.testing import run_op
        >>> from fluidnb.values.rank_table import LoDRankTable
        >>> x = (np.array([[1.0], [2.0], [3.0]]), [[1, 2]])
        >>> array = run_op("lod_tensor_to_array", {"X": x, "RankTable": LoDRankTable(((0, 1, 3),))})["Out"]
        >>> [np.ravel(step) for step in array]
        [array([2., 1.]), array([3.])]

    Source: Fluid's lod_tensor_to_array_op.
    """
    x, table, lod = b["X"], b["RankTable"], b.lod("X")
    lengths = [length for _, length in sorted(table.items())]
    starts = as_level(lengths)
    level, below = _ranked(b, table, lod, starts)
    b.require(
        level == starts, f"The sequences of {b.name('X')} are not those of the table.",
        expected=f"lengths {lengths}", received=f"lengths {np.diff(level).tolist()}",
        hint="all sequences that a network steps through together must have the same lengths.",
    )  # fmt: skip
    tensors = []
    for t in range(steps(table)):
        inner, rows = cut(below, at_step(table, starts, t))
        tensor = LoDTensor(b.keep((len(rows), *x.shape[1:]), x.dtype), inner, b.memory.place)
        verbs.gather(b, x, rows, tensor.array)
        tensors.append(tensor)
    b(fill, b.array("Out"), tensors)


def _ranked(b: Binder, table: LoDRankTable, lod: Offsets, starts: tuple[int, ...]) -> tuple[Any, Offsets]:
    """The offsets of the level of X that the table ranked, and the levels below."""
    if not lod and len(b["X"]) == starts[-1]:
        return starts, ()  # a gradient may have lost its LoD on the way
    b.require(
        table.level < len(lod), f"{b.name('X')} has no sequences at the level of the table.",
        expected=f"a LoD of {table.level + 1} levels or more", received=f"{len(lod)} levels",
        hint="feed sequences: layers.data(lod_level=1), and a LoDTensor or (array, lengths).",
    )  # fmt: skip
    return lod[table.level], lod[table.level + 1 :]


def _elements(b: Binder) -> Any:
    """The guard: what the table says, and what is in the array."""
    return ranks(b), shapes_of(b)


def place(array: LoDTensorArray, step: int, rows: Array, out: Array) -> None:
    """Copy an element's rows to where they belong."""
    out[rows] = np.asarray(array[step])


def _from_array_infer(c: Context) -> None:
    if not c.runtime:
        x = c["X"]
        c.set("Out", (-1, *x.shape[1:]), x.dtype, (None, *c.lod("X")))


def _put(b: Binder, array: LoDTensorArray, step: int, rows: Array, out: Array) -> None:
    """Emit an element's rows to where they belong."""
    if b.on_cuda:
        b(put_rows, array, step, row_maps.on_device(b, rows), out)
    else:
        b(place, array, step, rows, out)


def _gradient(b: Binder, array: LoDTensorArray, table: LoDRankTable) -> None:
    """Out like X_W, zero in the steps of which the array has nothing: those that the network never read."""
    like, lod = b["X_W"], b.lod("X_W")
    lengths = [length for _, length in sorted(table.items())]
    b.require(
        table.level < len(lod) and np.diff(lod[table.level]).tolist() == lengths,
        f"{b.name('X_W')} does not have the sequences of the table.",
        expected=f"sequences of the lengths {lengths}", received=[list(level) for level in lod],
    )  # fmt: skip
    starts, below = lod[table.level], lod[table.level + 1 :]
    out = b.set("Out", like.shape, like.dtype, lod)
    there = [(t, x) for t, tensor in enumerate(array) if (x := tensor.array) is not None]
    if len(there) < steps(table):
        verbs.fill(b, out)
    for t, x in there:
        _, rows = cut(below, at_step(table, starts, t))
        shape = (len(rows), *like.shape[1:])
        b.require(
            x.shape == shape and x.dtype == like.dtype, f"Element {t} of {b.name('X')} does not fit {b.name('X_W')}.",
            expected=f"{like.dtype} {list(shape)}", received=f"{x.dtype} {list(x.shape)}",
        )  # fmt: skip
        _put(b, array, t, rows, out)


@op(
    "array_to_lod_tensor",
    inputs={
        "X: array": "its elements as lod_tensor_to_array creates them", **_TABLE,
        "X_W?": "what Out looks like where elements are missing, in a gradient",
    },
    outputs={"Out": "sequences, in the order that they had before they were ranked"},
    infer=_from_array_infer,
    grad=gradient_by("lod_tensor_to_array", {"RankTable": "RankTable"}, {"X": "Out"}, {"Out": "X"}),
    guard=_elements,
    unset=("X",), cuda=True,
)  # fmt: skip
def array_to_lod_tensor(b: Binder) -> None:
    """Out = the sequences whose t-th rows are in X[t]: lod_tensor_to_array the other way, which is its gradient too.

    Example:
        >>> from fluidnb.testing import run_op
        >>> from fluidnb.values import LoDTensorArray
        >>> from fluidnb.values.rank_table import LoDRankTable
        >>> array = LoDTensorArray([np.array([[2.0], [1.0]]), np.array([[3.0]])])
        >>> run_op("array_to_lod_tensor", {"X": array, "RankTable": LoDRankTable(((0, 1, 3),))})["Out"].lod()
        LoD([[0, 1, 3]])

    Source: Fluid's array_to_lod_tensor_op.
    """
    array, table = b["X"] or LoDTensorArray(), b["RankTable"]
    if b.has("X_W"):
        return _gradient(b, array, table)
    b.require(len(array) > 0, "There's no element in the input array.", expected="an element for each step")
    first = _checked(b, array, table)
    starts = as_level([length for _, length in sorted(table.items())])
    where = [at_step(table, starts, t) for t in range(len(array))]
    below, dest = _inside(array, where)
    out = b.set("Out", (sum(map(len, array)), *first.shape[1:]), first.dtype, (*table.coarse_lod, starts, *below))
    for t, rows in enumerate(dest):
        _put(b, array, t, rows, out)


def _checked(b: Binder, array: LoDTensorArray, table: LoDRankTable) -> Array:
    """The first element, after checks that the others have its form and match the table."""
    first: Array = array[0].array
    n = steps(table)
    b.require(
        len(array) == n, f"{b.name('X')} has not as many elements as the longest sequence of the table has steps.",
        expected=n, received=len(array),
    )  # fmt: skip
    for t, tensor in enumerate(array):
        x = tensor.array
        going_on = sum(length > t for _, length in table.items())
        if x is None:
            b.fail(
                f"Nothing has been written to index {t} of {b.name('X')}.", received="nothing",
                expected=f"a value at each index below {n}", hint="array_write fills it in every step.",
            )  # fmt: skip
        b.require(
            x.shape[1:] == first.shape[1:] and x.dtype == first.dtype,
            f"The dimension of the {t}'th element in LoDTensorArray differs from previous ones.",
            expected=f"{first.dtype}[-1, {', '.join(map(str, first.shape[1:]))}]",
            received=f"{x.dtype}{list(x.shape)}",
        )  # fmt: skip
        rows = len(tensor.lod_[0]) - 1 if tensor.lod_ else len(x)
        b.require(
            rows == going_on,
            f"The {t}'th element of {b.name('X')} has not a row for each unfinished sequence.",
            expected=going_on, received=rows,
            hint="what a step writes has as many rows as what it read: shrink the memory to the unfinished sequences.",
        )  # fmt: skip
    return first


def _inside(array: LoDTensorArray, where: list[list[int]]) -> tuple[Offsets, list[Array]]:
    """The levels below that which was ranked, and where the rows of each element belong."""
    depth = len(array[0].lod_)
    if not depth:
        return (), [np.array(rows, np.int64) for rows in where]
    # all elements one after another, then cut in the order of the sequences
    stacked = tuple(
        as_level([b - a for t in array for a, b in zip(t.lod_[k], t.lod_[k][1:], strict=False)]) for k in range(depth)
    )
    order = np.argsort([i for rows in where for i in rows]).tolist()
    below, source = cut(stacked, order)
    dest = np.argsort(source)
    ends = as_level([*map(len, array)])
    return below, [dest[a:b] for a, b in zip(ends, ends[1:], strict=False)]
