"""The parts that operators of a linear chain CRF share: sequences of tags, with LoD or padded, packed by steps."""

from __future__ import annotations

import numpy as np

from fluidnb.op import Array, Binder, Context
from fluidnb.values.copies import on_host
from fluidnb_kernels.emit import reading
from fluidnb_kernels.rnn.batches import Batches
from fluidnb_kernels.rules import agree, whole_numbers
from fluidnb_kernels.sequences import offsets_of, one_dtype, ranges, require_lod, within


def check(c: Context) -> tuple[int, ...]:
    """Check emission, transition, label and length; gives the shape of the positions: [n], or [batch, steps]."""
    one_dtype(c, "Emission", "Transition")
    x, transition, padded, type = c["Emission"], c["Transition"], c.has("Length"), c.definition.type
    tags = transition.shape[1] if transition.ndim == 2 else -1
    c.require(
        transition.ndim == 2 and agree(transition.shape, (tags + 2 if tags >= 0 else -1, tags)),
        f"An invalid dimension for Input(Transition) of {type}: it must have a row for each tag and two more.",
        expected="[tags + 2, tags]: start weights, end weights, then the weights from tag to tag",
        received=list(transition.shape),
    )  # fmt: skip
    c.require(
        x.ndim == (3 if padded else 2) and (x.shape[-1] == tags or -1 in (x.shape[-1], tags)),
        f"Input(Emission) of {type} must have a number for each tag at each position.",
        expected=f"[{'batch, steps' if padded else 'n'}, {tags}]", received=list(x.shape),
    )  # fmt: skip
    if c.has("Label"):
        whole_numbers(c, "Label")
        label = tuple(c["Label"].shape)
        c.require(
            agree(label, x.shape[:-1]) or agree(label, (*x.shape[:-1], 1)),
            f"Input(Label) of {type} must have a tag at each position.", expected=[*x.shape[:-1], 1],
            received=list(label),
        )  # fmt: skip
        tagged, read = c.lod("Label"), c.lod("Emission")
        c.require(
            padded or not c.runtime or not tagged or not read or tagged[-1] == read[-1],
            f"The sequences of Input(Label) of {type} must be those of Input(Emission).", expected=read[-1:],
            received=tagged[-1:], hint="each position of a sequence has one tag; feed both with the same lengths.",
        )  # fmt: skip
    if padded:
        c.require(
            c["Length"].size in (-1, x.shape[0]) or x.shape[0] < 0, f"Input(Length) of {type} must have a length each.",
            expected=[x.shape[0], 1], received=list(c["Length"].shape),
        )  # fmt: skip
        if c.runtime:
            within(c, "Length", x.shape[1], "the steps of Input(Emission)")
    else:
        require_lod(c, "Emission", levels=1)
    return tuple(x.shape[:-1])


class Tagged:
    """The positions of sequences, packed by steps."""

    __slots__ = ("batches", "count", "last", "lengths", "rows", "sequence", "starts")

    def __init__(self, b: Binder) -> None:
        if b.has("Length"):
            lengths = on_host(b["Length"]).reshape(-1).astype(np.int64)
            self.starts = np.arange(len(lengths) + 1) * b["Emission"].shape[1]
        else:
            self.starts = offsets_of(b, "Emission")
            lengths = np.diff(self.starts)
        self.lengths = lengths
        self.batches, self.count = Batches(np.concatenate([[0], np.cumsum(lengths)])), len(lengths)
        self.rows = ranges(self.starts[:-1], lengths)[self.batches.rows]
        starts = np.array(self.batches.starts)
        order = self.batches.order[: self.batches.first]
        # of each sequence with rows, in the order of `batches`, its last packed row
        self.last = starts[lengths[order] - 1] + np.arange(len(order)) if len(order) else np.zeros(0, np.int64)
        sizes = np.diff(starts)
        self.sequence = self.batches.order[np.arange(starts[-1]) - np.repeat(starts[:-1], sizes)]


def emissions(b: Binder, slot: str = "Emission") -> Array:
    """An input with a number for each tag, as rows [positions, tags]."""
    x = b[slot]
    return reading(b, x, (x.size // x.shape[-1], x.shape[-1]))
