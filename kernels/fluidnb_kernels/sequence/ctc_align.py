"""ctc_align: from a label for each time step to the labels that are meant."""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidnb.op import Attr, Binder, Context, kernel, op
from fluidnb.values.copies import on_host
from fluidnb_kernels.rules import agree, whole_numbers
from fluidnb_kernels.sequence import token_ids
from fluidnb_kernels.sequences import all_given, as_level, offsets_of, require_lod

Array = Any


def stays(labels: Array, firsts: Array, blank: int, merge: bool) -> Array:
    """Which time steps' labels stay.

    Args:
        labels: integers [n].
        merge: whether a label that repeats that of the step before goes.

    Returns:
        bool [n].

    Example:
        >>> stays(np.array([0, 2, 2, 0, 2]), np.array([0]), 0, True)
        array([False,  True, False, False,  True])
    """
    out: Array = labels != blank
    if merge:
        again = np.zeros(len(labels), bool)
        again[1:] = labels[1:] == labels[:-1]
        again[firsts[firsts < len(labels)]] = False
        out &= ~again
    return out


def _firsts(c: Context) -> Array:
    x = c["Input"]
    return np.arange(x.shape[0]) * x.shape[1] if c.has("InputLength") else offsets_of(c, "Input")[:-1]


def _counts(c: Context) -> tuple[int, ...]:
    """How many labels stay in each sequence: the LoD of the result. With lengths its shape is fixed."""
    if not all_given(c, "Input") or c.has("InputLength"):
        return ()
    _check(c)
    labels = on_host(c["Input"]).reshape(-1)
    mask = stays(labels, _firsts(c), c.attr("blank"), bool(c.attr("merge_repeated")))
    total = np.concatenate([[0], np.cumsum(mask)])
    return tuple(np.diff(total[offsets_of(c, "Input")]).tolist())


def align(
    x: Array, length: Array | None, firsts: Array, blank: int, merge: bool, fill: int, outs: tuple[Array, Array]
) -> None:
    """Write the labels that stay.

    Args:
        x: integers: [n, 1], or [batch, steps] with lengths.
        length: integers [batch, 1], or None.
        merge: whether repeated labels become one.
        outs: the labels [m, 1], or [batch, steps]; with lengths also how many there are [batch, 1]. Written where
            wanted.
    """
    out, counts = outs
    mask = stays(x.reshape(-1), firsts, blank, merge).reshape(x.shape)
    if length is None:
        kept = x.reshape(-1)[mask.reshape(-1)]
        if out is not None:
            out[...] = kept[:, None] if len(kept) else -1
        return
    mask &= np.arange(x.shape[1]) < length.reshape(-1, 1)
    if out is not None:
        out.fill(fill)
        out[np.arange(x.shape[1]) < mask.sum(1, keepdims=True)] = x[mask]
    if counts is not None:
        counts[...] = mask.sum(1, keepdims=True)


def _check(c: Context) -> None:
    x = c["Input"]
    whole_numbers(c, "Input")
    if c.has("InputLength"):
        c.require(
            x.ndim == 2 and agree(c["InputLength"].shape, (x.shape[0], 1)),
            "Input(InputLength) of ctc_align must have a length for each row of Input(Input).",
            expected="Input [rows, steps] and InputLength [rows, 1]",
            received=f"{list(x.shape)} and {list(c['InputLength'].shape)}",
        )  # fmt: skip
        return
    c.require(
        x.ndim == 2 and x.shape[1] in (1, -1), "Input(Input) of ctc_align should be a 2-D LoDTensor of one column.",
        expected="[n, 1]", received=list(x.shape),
    )  # fmt: skip
    require_lod(c, "Input", levels=1)


def _infer(c: Context) -> None:
    x = c["Input"]
    _check(c)
    if c.has("InputLength"):
        c.set("Output", x.shape, x.dtype)
        c.set("OutputLength", (x.shape[0], 1), c["InputLength"].dtype)
    elif not c.runtime:
        c.set("Output", (-1, 1), x.dtype, c.lod("Input"))
    else:
        level = as_level(_counts(c))
        c.set("Output", (max(level[-1], 1), 1), x.dtype, (level,))  # a tensor without rows is none in Fluid


@op(
    "ctc_align",
    inputs={
        "Input: int[n, 1] lod | int[batch, steps]":
            "a label for each time step; without LoD InputLength has the lengths",
        "InputLength?: int[batch, 1]": "how many steps are a sequence's own",
    },
    outputs={
        "Output": "the labels: [m, 1] with sequences, or like Input with padding behind; one -1 in no sequence where "
        "nothing stays",
        "OutputLength?": "like InputLength: how many labels there are",
    },
    attrs={
        "blank": Attr("int", 0, "the label that means none"),
        "merge_repeated": Attr("bool", True, "whether a label that repeats that of the step before goes"),
        "padding_value": Attr("int", 0, "what follows the labels, with InputLength"),
    },
    infer=_infer,
    guard=_counts,
    data_shape=True,
)
def ctc_align(b: Binder) -> None:
    """Output = Input with repeated labels merged, and then without blanks.

    Example:
        >>> from fluidnb.testing import run_op
        >>> steps = [[0], [2], [2], [0], [2], [3]], [[4, 2]]
        >>> out = run_op("ctc_align", {"Input": steps}, outputs=["Output"])["Output"]
        >>> out.array.ravel(), out.recursive_sequence_lengths()
        (array([2, 2, 3]), [[1, 2]])

    Source: Fluid's ctc_align_op (Graves et al. 2006).
    """
    settings = b.attr("blank"), bool(b.attr("merge_repeated")), b.attr("padding_value")
    b(align, b["Input"], b["InputLength"], _firsts(b), *settings, (b["Output"], b["OutputLength"]))


@kernel("ctc_align", place="cuda", dtypes=token_ids.INDEXES)
def ctc_align_on_cuda(b: Binder) -> None:
    """The labels that stay, a warp for each sequence."""
    x, blank, merge = b["Input"], b.attr("blank"), bool(b.attr("merge_repeated"))
    if b.has("InputLength"):
        outs = b["Output"], b["OutputLength"]
        token_ids.align_steps(b, x, b["InputLength"], blank, merge, b.attr("padding_value"), *outs)
    elif b.wants("Output"):
        token_ids.align(b, x, offsets_of(b, "Input"), as_level(_counts(b)), blank, merge, b["Output"])
