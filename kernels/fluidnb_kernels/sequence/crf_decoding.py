"""crf_decoding: the likeliest tags of each sequence."""

from __future__ import annotations

import numpy as np

from fluidnb.op import Array, Binder, Context, op, values_of
from fluidnb_kernels.emit import FLOATS
from fluidnb_kernels.sequence.tagged_sequences import Tagged, check, emissions


def _infer(c: Context) -> None:
    shape = check(c)
    c.set("ViterbiPath", shape if c.has("Length") else (*shape, 1), np.int64, c.lod("Emission"))


def decode(tagged: Tagged, x: Array, transition: Array, label: Array | None, path: Array) -> None:
    """Write the likeliest tags, or whether they are those of ``label``; 0 beyond a length."""
    batches, emitted = tagged.batches, x[tagged.rows]
    score, came_from = np.empty_like(emitted), np.zeros(emitted.shape, np.int64)
    for now, before in batches:
        if before is None:
            np.add(emitted[now], transition[0], score[now])
            continue
        ways = score[before][:, :, None] + transition[2:]
        came_from[now] = ways.argmax(1)
        np.add(ways.max(1), emitted[now], score[now])
    tags = np.empty(len(emitted), np.int64)
    tags[tagged.last] = (score[tagged.last] + transition[1]).argmax(1)
    for now, before, _ in batches.backwards():
        if before is not None:
            here = np.arange(now.start, now.stop)
            tags[before] = came_from[here, tags[now]]
    flat = path.reshape(-1)
    flat.fill(0)
    flat[tagged.rows] = tags if label is None else label.reshape(-1)[tagged.rows] == tags


@op(
    "crf_decoding",
    inputs={
        "Emission: float[n, tags] lod | float[batch, steps, tags]": "without LoD Length has the lengths",
        "Transition: float[tags + 2, tags]": "as linear_chain_crf has learned it",
        "Label?: int64[n, 1] | int64[batch, steps, 1]": "the right tags",
        "Length?: int64[batch, 1]": "how many steps are a sequence's own",
    },
    outputs={"ViterbiPath": "int64 [n, 1], or [batch, steps]: the tags; with Label whether each is right, 1 or 0"},
    cost="Emission * Emission[-1:]",
    infer=_infer,
    dtypes=FLOATS,
    guard=values_of("Length"),
    dtype_slot="Emission",
    host_only="searches step by step: each step depends on the one before",
)
def crf_decoding(b: Binder) -> None:
    """ViterbiPath = the tags with the highest score, by the scores of ``linear_chain_crf``.

    Example:
        >>> from fluidnb.testing import run_op
        >>> x = ([[0.0, 1.0], [3.0, 0.0], [1.0, 0.0]], [[2, 1]])
        >>> run_op("crf_decoding", {"Emission": x, "Transition": np.zeros((4, 2))})["ViterbiPath"].array.ravel()
        array([1, 0, 0])

    Source: Fluid's crf_decoding_op.
    """
    b(decode, Tagged(b), emissions(b), b["Transition"], b["Label"], b["ViterbiPath"])
