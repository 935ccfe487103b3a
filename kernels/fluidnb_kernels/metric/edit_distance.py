"""edit_distance: how many words must change to make one sequence another."""

import numpy as np

from fluidnb.errors import EnforceNotMet
from fluidnb.op import Array, Attr, Binder, Context, op, values_of
from fluidnb_kernels.sequences import offsets_of, require_lod, slices


def distance(one: Array, other: Array) -> int:
    """The Levenshtein distance: insertions, deletions and substitutions of single words."""
    steps = np.arange(len(other) + 1)
    row = steps
    for i, word in enumerate(one, 1):
        best = np.append(i, np.minimum(row[1:] + 1, row[:-1] + (other != word)))
        row = np.minimum.accumulate(best - steps) + steps  # insertions, along the row
    return int(row[-1])


def measure(
    hyps: Array, refs: Array, hyp_parts: list[slice], ref_parts: list[slice], normalized: bool, out: Array
) -> None:
    """Write the distance of each pair of sequences."""
    for i, (mine, theirs) in enumerate(zip(hyp_parts, ref_parts, strict=True)):
        ref = refs.reshape(-1)[theirs]
        found = distance(hyps.reshape(-1)[mine], ref)
        if normalized and not len(ref):
            raise EnforceNotMet(
                "Reference string is empty, and edit_distance is to be normalized by its length.",
                expected="at least one word", received=f"sequence {i} of Input(Refs) without words",
                hint="normalized=False counts words instead.",
            )  # fmt: skip
        out[i] = found / len(ref) if normalized else found


def _infer(c: Context) -> None:
    for slot in ("Hyps", "Refs"):
        padded = c.has(slot + "Length")
        c.check_inputs(slot)
        c.require(
            padded == c.has("RefsLength"), "Input(HypsLength) and Input(RefsLength) are given both or not at all.",
            expected="two lengths", received="one",
        )  # fmt: skip
        if not padded:
            require_lod(c, slot, levels=1)
    count = -1
    if c.runtime:
        counts = [len(_parts(c, slot)) for slot in ("Hyps", "Refs")]
        count = counts[0]
        c.require(
            counts[0] == counts[1], "The numbers of sequences of Input(Hyps) and Input(Refs) must be the same.",
            expected=counts[1], received=counts[0],
        )  # fmt: skip
    c.set("Out", (count, 1), np.float32)
    c.set("SequenceNum", (1,), np.int64)


def _parts(c: Context, slot: str) -> list[slice]:
    """The slices of an input's words that are its sequences."""
    if not c.has(slot + "Length"):
        return slices(offsets_of(c, slot).tolist())
    lengths, steps = np.asarray(c[slot + "Length"]).reshape(-1).tolist(), c[slot].shape[1]
    c.require(
        len(lengths) == c[slot].shape[0] and all(0 <= n <= steps for n in lengths),
        f"Input({slot}Length) of edit_distance must have a length for each row of Input({slot}).",
        expected=f"{c[slot].shape[0]} numbers from 0 to {steps}", received=lengths[:20],
    )  # fmt: skip
    return [slice(i * steps, i * steps + n) for i, n in enumerate(lengths)]


@op(
    "edit_distance",
    inputs={
        "Hyps: int[n, 1] lod | int[batch, steps]": "words found; without LoD HypsLength has the lengths",
        "Refs: int[n, 1] lod | int[batch, steps]": "the right words",
        "HypsLength?: int64[batch]": "how many steps are a sequence's own",
        "RefsLength?: int64[batch]": "alike",
    },
    outputs={"Out": "float32 [sequences, 1]: the distances", "SequenceNum": "int64 [1]: how many sequences there are"},
    attrs={"normalized": Attr("bool", False, "whether to divide by the length of the right sequence")},
    infer=_infer,
    guard=values_of("HypsLength", "RefsLength"),
    host_only="counts matches of a whole pass, one after the other",
)
def edit_distance(b: Binder) -> None:
    """Out[i] = how many words must be inserted, deleted or replaced to make sequence i of Hyps that of Refs.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("edit_distance", {"Hyps": ([[1], [2]], [[2]]), "Refs": ([[1], [3], [3]], [[3]])})["Out"]
        array([[2.]], dtype=float32)

    Source: Fluid's edit_distance_op.
    """
    parts = _parts(b, "Hyps"), _parts(b, "Refs")
    if b.wants("SequenceNum"):
        b(np.copyto, b["SequenceNum"], b.const(len(parts[0]), np.int64))
    if b.wants("Out"):
        b(measure, b["Hyps"], b["Refs"], *parts, bool(b.attr("normalized")), b["Out"])
