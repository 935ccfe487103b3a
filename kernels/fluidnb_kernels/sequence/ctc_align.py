"""ctc_align: from a label for each time step to the labels that are meant."""

from __future__ import annotations

import numpy as np

from fluidnb.op import Array, Attr, Binder, Context, op
from fluidnb.values.copies import on_host
from fluidnb_kernels.rules import agree, fits, whole_numbers
from fluidnb_kernels.sequence import token_ids
from fluidnb_kernels.sequences import all_given, as_level, offsets_of, require_lod


def stays(labels: Array, firsts: Array, blank: int, merge: bool) -> Array:
    """Whether the label of each time step is kept."""
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
    """The number of labels kept of each sequence: the LoD of the result. With lengths its shape is fixed."""
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
    """Write the labels that are kept, [m, 1], or with lengths [batch, steps] and their numbers [batch, 1]."""
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
    fits(c, "Input", (-1, 1), "Input(Input) of ctc_align should be a 2-D LoDTensor of one column.", "[n, 1]")
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
        "Input: int[n, 1] lod | int[batch, steps]": "a label for each time step",
        "InputLength?: int[batch, 1]": "number of steps of each sequence, in place of a LoD",
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
    cuda=token_ids.INDEXES,
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
    x, length, blank, merge = b["Input"], b["InputLength"], b.attr("blank"), bool(b.attr("merge_repeated"))
    padding, outs = b.attr("padding_value"), (b["Output"], b["OutputLength"])
    if not b.on_cuda:
        b(align, x, length, _firsts(b), blank, merge, padding, outs)
    elif length is not None:
        token_ids.align_steps(b, x, length, blank, merge, padding, *outs)
    elif b.wants("Output"):
        token_ids.align(b, x, offsets_of(b, "Input"), as_level(_counts(b)), blank, merge, b["Output"])
