"""split_lod_tensor, merge_lod_tensor: split and merge rows or sequences by a mask."""

from typing import Any

import numpy as np

from fluidnb.op import Array, Attr, Binder, Context, op, product
from fluidnb.values.copies import on_host
from fluidnb_kernels import verbs
from fluidnb_kernels.compare.compare import CUDA
from fluidnb_kernels.cuda import each, vector
from fluidnb_kernels.gradients import gradient_by
from fluidnb_kernels.lod.take_sequences import Offsets, cut, level_of, sequences, stacked
from fluidnb_kernels.rules import agree
from fluidnb_kernels.sequence import row_maps
from fluidnb_kernels.tensor import row_indexing

_LEVEL = {"level": Attr("int", 0, "the level whose sequences the mask selects", ge=0)}


def _check_mask(c: Context) -> None:
    mask = c["Mask"]
    c.require(
        mask.dtype == bool and (mask.ndim == 1 or mask.ndim == 2 and mask.shape[1] in (1, -1)),
        f"The mask of {c.definition.type} must be a bool for each row or sequence.",
        expected="bool of shape [N, 1] or [N]", received=f"{mask.dtype} of shape {list(mask.shape)}",
        hint="compare two variables of shape [N, 1], for example with less_than.",
    )  # fmt: skip


def _check_length(b: Binder, lod: Offsets, rows: int, slot: str) -> None:
    """There is one bool for each sequence."""
    n = b["Mask"].size
    b.require(
        sequences(lod, rows) == n, f"The mask of {b.definition.type} must have an element for each "
        f"{'sequence' if lod else 'row'} of {slot}.",
        expected=f"{sequences(lod, rows)} elements", received=f"{n} elements",
    )  # fmt: skip


def _ways(b: Binder, *slots: str) -> Any:
    """The guard. How many rows go each way; where there are sequences, which, since the LoD depends on it."""
    mask = b["Mask"]
    if mask is None:
        return None
    mask = on_host(mask)
    return mask.tobytes() if any(b.lod(s) for s in slots) else int(np.count_nonzero(mask))


def take_marked(x: Array, mask: Array, wanted: bool, out: Array) -> None:
    """Copy the rows that a mask marks."""
    np.compress(mask.reshape(-1) == wanted, x, 0, out)


def put_marked(x: Array, mask: Array, wanted: bool, out: Array) -> None:
    """Copy rows to where a mask has marks, the inverse of `take_marked`."""
    out[mask.reshape(-1) == wanted] = x


def _places(b: Binder, mask: Array, wanted: bool, count: int) -> Array:
    """The rows that a mask marks, ``count`` of them; the mask alone says which, since the guard sees only how many."""
    if not wanted:
        opposite = b.tmp(mask.shape, bool)
        width = vector(mask, opposite)
        each(b, CUDA, f"logical_not<{width}>", mask.size, mask, opposite, per_thread=width)
        mask = opposite
    return row_indexing.places(b, mask, count)


def _take_marked(b: Binder, x: Array, mask: Array, wanted: bool, out: Array) -> None:
    """Emit the rows that a mask marks."""
    if not b.on_cuda:
        return b(take_marked, x, mask, wanted, out)
    return row_indexing.take(b, x, _places(b, mask, wanted, len(out)), out, (1, len(x), product(x.shape[1:])))


def _put_marked(b: Binder, x: Array, mask: Array, wanted: bool, out: Array) -> None:
    """Emit rows to where a mask has marks."""
    if not b.on_cuda:
        return b(put_marked, x, mask, wanted, out)
    return row_maps.place(b, x, _places(b, mask, wanted, len(x)), out)


def _split_infer(c: Context) -> None:
    _check_mask(c)
    if not c.runtime:
        x, lod = c["X"], level_of(c, c.lod("X"))
        for slot in ("OutTrue", "OutFalse"):
            c.set(slot, (-1, *x.shape[1:]), x.dtype, lod)


@op(
    "split_lod_tensor",
    inputs={"X": "rows, or sequences", "Mask: bool[N] | bool[N, 1]": "one for each row or sequence"},
    outputs={"OutTrue": "those marked True", "OutFalse": "the others"},
    attrs=_LEVEL,
    infer=_split_infer,
    grad=gradient_by(
        "merge_lod_tensor", {"X": "X", "Mask": "Mask"}, {"InTrue": "OutTrue", "InFalse": "OutFalse"}, {"Out": "X"}
    ),
    guard=lambda b: _ways(b, "X"),
    dtype_slot="X",
    cuda=True,
)
def split_lod_tensor(b: Binder) -> None:
    """OutTrue = the rows of X where Mask holds, OutFalse = the others; with LoD, whole sequences of a level.

    The levels above ``level`` are left behind. The gradient merges.

    Example:
        >>> from fluidnb.testing import run_op
        >>> both = run_op("split_lod_tensor", {"X": [[1.0], [2.0], [3.0]], "Mask": [[True], [False], [True]]})
        >>> both["OutTrue"].ravel(), both["OutFalse"].ravel()
        (array([1., 3.]), array([2.]))

    Source: Fluid's split_lod_tensor_op.
    """
    x, mask, lod = b["X"], b["Mask"], level_of(b, b.lod("X"))
    _check_length(b, lod, len(x), "X")
    marks = on_host(mask).reshape(-1)
    for slot, wanted in (("OutTrue", True), ("OutFalse", False)):
        if not b.wants(slot):
            continue
        marked = marks == wanted
        if lod:
            levels, rows = cut(lod, np.flatnonzero(marked).tolist())
            verbs.gather(b, x, rows, b.set(slot, (len(rows), *x.shape[1:]), x.dtype, levels))
        else:
            out = b.set(slot, (int(np.count_nonzero(marked)), *x.shape[1:]), x.dtype)
            _take_marked(b, x, mask, wanted, out)


def _merge_infer(c: Context) -> None:
    _check_mask(c)
    true, false = c["InTrue"], c["InFalse"]
    if true is not None and false is not None:
        c.require(
            true.dtype == false.dtype and agree(true.shape[1:], false.shape[1:]),
            f"What {c.definition.type} joins must have rows of one shape and dtype.",
            expected=f"{true.dtype} of shape [-1, {', '.join(map(str, true.shape[1:]))}], as {c.name('InTrue')}",
            received=f"{false.dtype} of shape {list(false.shape)}, {c.name('InFalse')}",
        )  # fmt: skip
    if not c.runtime:
        lod, above = c.lod("InTrue"), c.lod("X")[: c.attr("level")]
        rows = -1 if lod or c.lod("X") else next(iter(c["X"].shape), -1)
        c.set("Out", (rows, *true.shape[1:]), true.dtype, (*above, *lod))


def _sides(b: Binder) -> tuple[list[Array], list[Offsets]]:
    """The value of each side, and its LoD; a side that nothing has written has no rows."""
    values, lods = [b["InTrue"], b["InFalse"]], [b.lod("InTrue"), b.lod("InFalse")]
    known = [i for i in (0, 1) if values[i] is not None]
    b.require(
        known, f"{b.definition.type} has nothing to join: neither {b.name('InTrue')} nor {b.name('InFalse')} has a "
        "value.",
    )  # fmt: skip
    for i in (0, 1):
        other = 1 - i
        if values[i] is None:
            values[i] = b.tmp((0, *values[other].shape[1:]), values[other].dtype)
        if not len(values[i]) and len(lods[i]) != len(lods[other]):
            lods[i] = ((0,),) * len(lods[other])
    b.require(
        len(lods[0]) == len(lods[1]), f"What {b.definition.type} joins must have as many levels of sequences.",
        expected=f"{len(lods[0])} levels, as {b.name('InTrue')}", received=f"{len(lods[1])} levels",
    )  # fmt: skip
    return values, lods


def _merge(b: Binder) -> None:
    """Emit what merge_lod_tensor does."""
    mask = b["Mask"]
    values, lods = _sides(b)
    true, false = values
    marked = on_host(mask).reshape(-1)
    picks = [np.flatnonzero(marked).tolist(), np.flatnonzero(~marked).tolist()]
    whole = level_of(b, b.lod("X"))
    if whole and not lods[0] and sequences(whole, 0) == len(marked) and [*map(len, values)] != [*map(len, picks)]:
        parts = [cut(whole, p) for p in picks]  # gradients without LoD: X says whose rows they are
        if [*map(len, values)] == [len(rows) for _, rows in parts]:
            lods = [lod for lod, _ in parts]
    for slot, value, lod, pick in zip(("InTrue", "InFalse"), values, lods, picks, strict=True):
        b.require(
            sequences(lod, len(value)) == len(pick),
            f"{b.definition.type} must be given as many {'sequences' if lod else 'rows'} as the mask marks for {slot}.",
            expected=len(pick), received=f"{sequences(lod, len(value))} in {b.name(slot)}",
        )  # fmt: skip
    above = b.lod("X")[: b.attr("level")]
    shape = (len(true) + len(false), *true.shape[1:])
    if not lods[0]:
        out = b.set("Out", shape, true.dtype, above)
        for value, wanted in ((true, True), (false, False)):
            _put_marked(b, value, mask, wanted, out)
        return
    levels, rows = cut(stacked(*lods), np.argsort(picks[0] + picks[1]).tolist())
    out = b.set("Out", shape, true.dtype, (*above, *levels))
    for value, places in ((true, rows < len(true)), (false, rows >= len(true))):
        verbs.scatter(b, value, np.flatnonzero(places), out)


for _type, _doc in (
    ("merge_lod_tensor", "a row or sequence of InTrue where Mask holds, the next one of InFalse where it does not"),
    ("merge_lod_tensor_infer", "merge_lod_tensor, as programs that Paddle saved for inference have it"),
):
    op(
        _type,
        inputs={
            "X": "what was split: the levels of its LoD above ``level`` are those of Out",
            "Mask: bool[N] | bool[N, 1]": "one for each row or sequence",
            "InTrue": "what belongs where Mask holds; nothing where it never does",
            "InFalse": "what belongs elsewhere",
        },
        outputs={"Out": "all of them in the order of Mask"},
        attrs=_LEVEL,
        infer=_merge_infer,
        grad=gradient_by(
            "split_lod_tensor", {"Mask": "Mask"}, {"X": "Out"}, {"OutTrue": "InTrue", "OutFalse": "InFalse"}
        ),
        guard=lambda b: _ways(b, "InTrue", "InFalse", "X"),
        unset=("InTrue", "InFalse"),
        dtype_slot="InTrue",
        cuda=True,
        doc=f"""Out = {_doc}. The gradient splits.

    Example:
        >>> from fluidnb.testing import run_op
        >>> sides = {{"InTrue": [[1.0], [3.0]], "InFalse": [[2.0]], "Mask": [True, False, True]}}
        >>> run_op("{_type}", {{"X": np.zeros((3, 1)), **sides}})["Out"].ravel()
        array([1., 2., 3.])

    Source: Fluid's {_type}_op.
    """,
    )(_merge)
