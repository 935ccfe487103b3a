"""sequence_reshape, _reverse, _concat, _expand and _expand_as: rows in another order, or repeated."""

from typing import Any

import numpy as np

from fluidnb.op import Array, Attr, Binder, Context, default_grad, grad_op, op, second_grad
from fluidnb_kernels import verbs
from fluidnb_kernels.emit import FLOATS, reading
from fluidnb_kernels.rules import fits
from fluidnb_kernels.sequences import as_level, offsets_of, owners, ranges, require_lod


def _concat_infer(c: Context) -> None:
    xs, lods = c.all("X"), c.lods("X")
    for i, (x, lod) in enumerate(zip(xs, lods, strict=True)):
        c.require(
            x.shape[1:] == xs[0].shape[1:], "The inputs of sequence_concat must have rows of one shape.",
            expected=list(xs[0].shape[1:]), received=f"{list(x.shape[1:])}, those of {c.name('X', i)}",
        )  # fmt: skip
        c.require(
            not c.runtime or len(lod) == 1 and len(lod[0]) == len(lods[0][0]),
            "The inputs of sequence_concat must have as many sequences each.",
            expected=f"one level of LoD, with as many sequences as {c.name('X')} has",
            received=f"{[list(level) for level in lod] if c.runtime and lod else 'no LoD'}, that of {c.name('X', i)}",
        )  # fmt: skip
    rows, lod = -1, lods[0]
    if c.runtime:
        lod = (as_level(np.diff(np.array(lods)[:, 0]).sum(0)),)
        rows = lod[0][-1]
    c.set("Out", (rows, *xs[0].shape[1:]), xs[0].dtype, lod)


def _places(b: Binder) -> list[Array]:
    """For each input where its rows go."""
    lengths: Array = np.diff(np.array(b.lods("X"))[:, 0])
    starts = np.concatenate([[0], np.cumsum(lengths.sum(0))[:-1]])
    return [ranges(starts + lengths[:i].sum(0), mine) for i, mine in enumerate(lengths)]


@op(
    "sequence_concat",
    inputs={"X*: any[n, …] lod": "as many sequences each"},
    outputs={"Out": "[sum of n, …]"},
    infer=_concat_infer,
    grad=default_grad("X", "Out@GRAD"),
    cuda=True,
)
def sequence_concat(b: Binder) -> None:
    """Out = sequence i of every input, one after the other, for each i.

    Example:
        >>> from fluidnb.testing import run_op
        >>> xs = [(np.array([[1.0], [2.0], [3.0]]), [[2, 1]]), (np.array([[7.0], [8.0]]), [[1, 1]])]
        >>> run_op("sequence_concat", {"X": xs})["Out"].array.ravel()
        array([1., 2., 7., 3., 8.])

    Source: Fluid's sequence_concat_op.
    """
    for x, rows in zip(b.all("X"), _places(b), strict=True):
        verbs.scatter(b, x, rows, b["Out"])


@grad_op("sequence_concat_grad", dtype_slot="Out@GRAD", cuda=True)
def sequence_concat_grad(b: Binder) -> None:
    """dX = the rows of dOut at which those of X are."""
    for i, rows in enumerate(_places(b)):
        if b.wants("X@GRAD", i):
            verbs.gather(b, b["Out@GRAD"], rows, b.all("X@GRAD")[i])


def _reshape_infer(c: Context) -> None:
    x, width = c["X"], c.attr("new_dim")
    fits(c, "X", (-1, -1), "Input(X) of sequence_reshape should be a 2-D tensor.", "[rows, width]")
    require_lod(c, levels=1)
    rows, lod = -1, c.lod("X")
    if c.runtime:
        sizes = np.array(lod[0]) * x.shape[1]
        c.require(
            not (sizes % width).any(), "Please make sure (sequence_length * dimension) can be divided by new_dim with "
            "no remainder for each sequence.",
            expected=f"multiples of {width}", received=f"sequences of {np.diff(sizes).tolist()} elements",
        )  # fmt: skip
        lod = (tuple((sizes // width).tolist()),)
        rows = lod[0][-1]
    c.set("Out", (rows, width), x.dtype, lod)


@op(
    "sequence_reshape",
    inputs={"X: float[n, width] lod": ""},
    outputs={"Out": "[n · width / new_dim, new_dim], the same elements"},
    attrs={"new_dim": Attr("int", doc="the new width", gt=0)},
    infer=_reshape_infer,
    grad=default_grad("X", "Out@GRAD"),
    cuda=True,
)
def sequence_reshape(b: Binder) -> None:
    """Out = X with rows of another width; sequences become longer or shorter.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("sequence_reshape", {"X": (np.zeros((3, 4)), [[1, 2]])}, {"new_dim": 2})["Out"]
        LoDTensor(shape=[6, 2], dtype=float64, lod=[[0, 2, 6]], place=CPUPlace)

    Source: Fluid's sequence_reshape_op.
    """
    verbs.copy(b, b["Out"], reading(b, b["X"], b["Out"].shape))


@grad_op("sequence_reshape_grad", dtype_slot="Out@GRAD", cuda=True)
def sequence_reshape_grad(b: Binder) -> None:
    """dX = dOut with rows of the old width."""
    verbs.copy(b, b["X@GRAD"], reading(b, b["Out@GRAD"], b["X@GRAD"].shape))


def _reverse_infer(c: Context) -> None:
    require_lod(c)
    c.set("Y", c["X"].shape, c["X"].dtype, c.lod("X"))


def _mirrored(offsets: Array) -> Array:
    """The source row of each row."""
    return np.repeat(offsets[:-1] + offsets[1:] - 1, np.diff(offsets)) - np.arange(offsets[-1])


@op(
    "sequence_reverse",
    inputs={"X: any[n, …] lod": ""},
    outputs={"Y": "like X"},
    infer=_reverse_infer,
    grad=second_grad("sequence_reverse", {}, {"X": "Y"}, {"Y": "X"}),
    cuda=True,
)
def sequence_reverse(b: Binder) -> None:
    """Y = the rows of each sequence of the last level from its last to its first. Its gradient is itself.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("sequence_reverse", {"X": ([[1.0], [2.0], [3.0]], [[2, 1]])})["Y"].array.ravel()
        array([2., 1., 3.])

    Source: Fluid's sequence_reverse_op.
    """
    verbs.gather(b, b["X"], _mirrored(offsets_of(b)), b["Y"])


def _counts(c: Context) -> Array:
    """The repetitions of each row or sequence of X: the lengths of Y's level that ``ref_level`` names."""
    lod, level = c.lod("Y"), c.attr("ref_level", -1)
    require_lod(c, "Y")
    c.require(
        -1 <= level < len(lod), "Invalid Attr(ref_level): it must name a level of the LoD of Input(Y).",
        expected=f"-1 to {len(lod) - 1}", received=level, hint="-1 is the last level.",
    )  # fmt: skip
    return np.diff(lod[level])


def _rows(c: Context) -> tuple[Array, tuple[Any, ...]]:
    """Indices of the result's rows in X, in order, and the LoD of the result."""
    counts, lod = _counts(c), c.lod("X")
    if not lod:
        return owners(counts), ()
    offsets = np.array(lod[0], np.int64)
    repeated = owners(counts)
    lengths = np.diff(offsets)[repeated]
    return ranges(offsets[:-1][repeated], lengths), (as_level(lengths),)


def _infer(c: Context) -> None:
    x, lod = c["X"], c.lod("X")
    c.require(
        len(lod) <= 1, "Level number of Input(X)'s lod should not be greater than 1.",
        expected="rows, or sequences of rows", received=f"a LoD of {len(lod)} levels",
    )  # fmt: skip
    if not c.runtime:
        return c.set("Out", (-1, *x.shape[1:]), x.dtype, lod)
    repeats, items = len(_counts(c)), len(lod[0]) - 1 if lod else x.shape[0]
    c.require(
        items == repeats,
        "Input(X) of sequence_expand must have one " + ("sequence" if lod else "row")
        + " for each sequence of Input(Y) at ref_level.",
        expected=f"{repeats}, as Input(Y) has", received=items,
    )  # fmt: skip
    rows, out_lod = _rows(c)
    return c.set("Out", (len(rows), *x.shape[1:]), x.dtype, out_lod)


@op(
    "sequence_expand",
    inputs={"X: any[n, …]": "with sequences or without", "Y: any lod": "its LoD counts, not its values"},
    outputs={"Out": "the rows or sequences of X, each as often as Y says; with LoD when X has one"},
    attrs={"ref_level": Attr("int", -1, "the level of Y whose lengths count; -1 is the last", ge=-1)},
    infer=_infer,
    grad=default_grad("X", "Y", "Out@GRAD", wrt=["X"]),
    cuda=True,
)
def sequence_expand(b: Binder) -> None:
    """Out = row i of X, or its sequence i where it has sequences, as often as sequence i of Y is long.

    Lengths are those of level ``ref_level`` of Y. A length of 0 leaves the row or sequence out.

    Example:
        >>> from fluidnb.testing import run_op
        >>> y = (np.zeros((3, 1)), [[2, 0, 1]])
        >>> run_op("sequence_expand", {"X": [[1.0], [2.0], [3.0]], "Y": y})["Out"].ravel()
        array([1., 1., 3.])

    Source: Fluid's sequence_expand_op.
    """
    verbs.gather(b, b["X"], _rows(b)[0], b["Out"])


@grad_op("sequence_expand_grad", dtype_slot="Out@GRAD", cuda=FLOATS)
def sequence_expand_grad(b: Binder) -> None:
    """dX = the sum of the gradients of all copies."""
    verbs.scatter_add(b, b["Out@GRAD"], _rows(b)[0], b["X@GRAD"])


def _as_infer(c: Context) -> None:
    x, lod = c["X"], c.lod("Y")
    require_lod(c, "Y", levels=1)
    rows = -1
    c.check_inputs("X")
    if c.runtime:
        c.require(
            x.shape[0] == len(lod[0]) - 1, "Input(X) of sequence_expand_as must have one row for each sequence of Y.",
            expected=len(lod[0]) - 1, received=x.shape[0],
        )  # fmt: skip
        rows = lod[0][-1]
    c.set("Out", (rows, *x.shape[1:]), x.dtype, lod)


@op(
    "sequence_expand_as",
    inputs={"X: any[sequences, …]": "", "Y: any lod": "its LoD counts, not its values"},
    outputs={"Out": "[rows of Y, …], with the LoD of Y"},
    infer=_as_infer,
    grad=default_grad("X", "Y", "Out@GRAD", wrt=["X"]),
    cuda=True,
)
def sequence_expand_as(b: Binder) -> None:
    """Out = row i of X for each row of sequence i of Y.

    Example:
        >>> from fluidnb.testing import run_op
        >>> y = (np.zeros((3, 1)), [[2, 1]])
        >>> run_op("sequence_expand_as", {"X": [[1.0], [2.0]], "Y": y})["Out"].array.ravel()
        array([1., 1., 2.])

    Source: Fluid's sequence_expand_as_op.
    """
    verbs.gather(b, b["X"], owners(np.diff(offsets_of(b, "Y"))), b["Out"])


@grad_op("sequence_expand_as_grad", dtype_slot="Out@GRAD", cuda=FLOATS)
def sequence_expand_as_grad(b: Binder) -> None:
    """dX = the sum of the gradients of the rows of each sequence."""
    verbs.scatter_add(b, b["Out@GRAD"], owners(np.diff(offsets_of(b, "Y"))), b["X@GRAD"])
