"""sequence_concat, sequence_reshape and sequence_reverse: the same elements in another order or width."""

from collections.abc import Collection

import numpy as np

from fluidnb.op import Array, Attr, Binder, Context, OpDef, OpDesc, default_grad, grad_names, grad_op, op
from fluidnb_kernels import verbs
from fluidnb_kernels.emit import reading
from fluidnb_kernels.rules import fits
from fluidnb_kernels.sequences import as_level, offsets_of, ranges, require_lod


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


def _reverse_grad(desc: OpDesc, definition: OpDef, no_grad: Collection[str]) -> list[OpDesc]:
    return [OpDesc("sequence_reverse", {"X": [desc.outs["Y"][0] + "@GRAD"]}, {"Y": grad_names(desc, "X", no_grad)})]


def _mirrored(offsets: Array) -> Array:
    """The source row of each row."""
    return np.repeat(offsets[:-1] + offsets[1:] - 1, np.diff(offsets)) - np.arange(offsets[-1])


@op(
    "sequence_reverse",
    inputs={"X: any[n, …] lod": ""},
    outputs={"Y": "like X"},
    infer=_reverse_infer,
    grad=_reverse_grad,
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
