"""linear_chain_crf: how unlikely the tags of each sequence are."""

from __future__ import annotations

import numpy as np

from fluidnb.op import Array, Binder, Context, default_grad, grad_op, kernel, op, values_of
from fluidnb_kernels.cuda import (
    Source,
    allocate,
    block_of,
    ctype,
    each,
    each_line,
    of_dtype,
    settle,
    typed,
    wide_dtype,
    writing_as,
    written_as,
)
from fluidnb_kernels.emit import FLOATS, reading, writing, written
from fluidnb_kernels.rnn.launch import over_rows
from fluidnb_kernels.rules import check_below
from fluidnb_kernels.sequence.tagged_sequences import Tagged, check, emissions
from fluidnb_kernels.tensor.row_indexing import numbers
from fluidnb_kernels.tensor.strided_copy import fill


def _infer(c: Context) -> None:
    x, transition = c["Emission"], c["Transition"]
    check(c)
    lod = c.lod("Emission")
    count = x.shape[0] if c.has("Length") else len(lod[0]) - 1 if c.runtime else -1
    for slot in ("Alpha", "EmissionExps"):
        c.set(slot, x.shape, x.dtype)
    c.set("TransitionExps", transition.shape, x.dtype)
    c.set("LogLikelihood", (count, 1), x.dtype)


def tags_of(label: Array, rows: Array, tags: int) -> Array:
    """The tag of each packed row."""
    numbers = label.reshape(-1)[rows]
    hint = "the emission has a column for each tag, counted from 0."
    check_below(numbers, tags, "Input(Label) of linear_chain_crf must name tags.", hint)
    return numbers


def likelihood(
    tagged: Tagged, x: Array, transition: Array, label: Array, outs: tuple[Array, Array, Array, Array]
) -> None:
    """Write the negative log likelihood of each sequence, and what the gradient reads."""
    alpha, exps, weights, nll = outs
    batches, rows = tagged.batches, tagged.rows
    top = x.max(1, keepdims=True) if x.size else x[:, :1]
    np.exp(np.subtract(x, top, exps), exps)
    np.exp(transition, weights)
    tags = tags_of(label, rows, x.shape[1])
    emitted, packed = exps[rows], np.empty((len(rows), x.shape[1]), x.dtype)
    norms = np.empty((len(rows), 1), x.dtype)
    for now, before in batches:
        a = packed[now]
        np.multiply(weights[0] if before is None else np.dot(packed[before], weights[2:]), emitted[now], a)
        np.add.reduce(a, 1, out=norms[now], keepdims=True)
        a /= norms[now]
    total = np.zeros(tagged.count, x.dtype)  # the logarithm of the sum over all ways, less the score of this one
    score = np.log(norms[:, 0]) + top[rows, 0] - x[rows, tags]
    score[: batches.first] -= transition[0, tags[: batches.first]]
    score[batches.first :] -= transition[tags[batches.before] + 2, tags[batches.first :]]
    np.add.at(total, tagged.sequence, score)
    order = batches.order[: batches.first]
    total[order] += np.log((packed[tagged.last] * weights[1]).sum(1)) - transition[1, tags[tagged.last]]
    nll[...] = total[:, None]
    alpha.fill(0)
    alpha[rows] = packed


def likelihood_grad(
    tagged: Tagged, values: tuple[Array, ...], label: Array, g: Array, dx: Array | None, dtransition: Array | None
) -> None:
    """Write the gradients of the negative log likelihood, expected tags less the tags; either may be None."""
    batches, rows = tagged.batches, tagged.rows
    alpha, exps, weights = values[0][rows], values[1][rows], values[2]
    tags, first = tags_of(label, rows, alpha.shape[1]), batches.first
    beta = np.empty_like(alpha)
    for now, _, going_on in batches.backwards():
        ahead = slice(now.stop, now.stop + going_on)
        beta[now][:going_on] = np.dot(exps[ahead] * beta[ahead], weights[2:].T)
        beta[now][going_on:] = weights[1]
        beta[now] /= beta[now].sum(1, keepdims=True)
    share = g.reshape(-1)[tagged.sequence][:, None]
    expected = alpha * beta
    expected *= share / expected.sum(1, keepdims=True)
    expected[np.arange(len(rows)), tags] -= share[:, 0]
    if dx is not None:
        dx.fill(0)
        dx[rows] = expected
    if dtransition is not None:
        dtransition[0] = expected[:first].sum(0)
        dtransition[1] = expected[tagged.last].sum(0)
        coming, ahead = alpha[batches.before], exps[first:] * beta[first:]
        scale = share[first:] / (np.dot(coming, weights[2:]) * ahead).sum(1, keepdims=True)
        np.multiply(np.dot((coming * scale).T, ahead), weights[2:], dtransition[2:])
        np.subtract.at(dtransition, (tags[batches.before] + 2, tags[first:]), share[first:, 0])


_BY_LENGTH = values_of("Length")


@op(
    "linear_chain_crf",
    inputs={
        "Emission: float[n, tags] lod | float[batch, steps, tags]": "without LoD Length has the lengths",
        "Transition: float[tags + 2, tags]": "start weights, end weights, then the weights from tag to tag",
        "Label: int64[n, 1] | int64[batch, steps, 1]": "the tags",
        "Length?: int64[batch, 1]": "how many steps are a sequence's own",
    },
    outputs={
        "Alpha~": "like Emission: probabilities of the tags as far as a position, for the gradient",
        "EmissionExps~": "like Emission: exp(Emission - the row's maximum)",
        "TransitionExps~": "exp(Transition)",
        "LogLikelihood": "[sequences, 1]: the negative logarithm of the likelihood",
    },
    cost="Emission * Emission[-1:]",
    infer=_infer,
    dtypes=FLOATS,
    dtype_slot="Emission",
    grad=default_grad(
        "Emission", "Transition", "Label", "Length", "Alpha", "EmissionExps", "TransitionExps", "LogLikelihood@GRAD",
        wrt=["Emission", "Transition"],
    ),
    guard=_BY_LENGTH,
)  # fmt: skip
def linear_chain_crf(b: Binder) -> None:
    """LogLikelihood = log Σ over all ways of tagging exp(score) - the score of Label, for each sequence.

    A score is the start weight of the first tag, the emissions and the weights from tag to tag along the sequence, and
    the end weight of the last tag. It is a cost: the smaller, the likelier. A sequence without rows gives 0.

    Example:
        >>> from fluidnb.testing import run_op
        >>> x, label = (np.zeros((3, 2)), [[1, 2]]), [[0], [1], [0]]
        >>> out = run_op("linear_chain_crf", {"Emission": x, "Transition": np.zeros((4, 2)), "Label": label})
        >>> np.exp(-out["LogLikelihood"]).round(4).ravel()
        array([0.5 , 0.25])

    Source: Fluid's linear_chain_crf_op (Lafferty et al. 2001).
    """
    x, transition, tagged = emissions(b), b["Transition"], Tagged(b)
    slots = {"Alpha": x.shape, "EmissionExps": x.shape, "TransitionExps": transition.shape}
    outs = {s: b.tmp(shape, x.dtype) if b[s] is None else writing(b, b[s], shape) for s, shape in slots.items()}
    b(likelihood, tagged, x, transition, b["Label"], (*outs.values(), b["LogLikelihood"]))
    for slot, flat in outs.items():
        if b[slot] is not None:
            written(b, b[slot], flat)


@grad_op("linear_chain_crf_grad", guard=_BY_LENGTH, dtype_slot="Emission")
def linear_chain_crf_grad(b: Binder) -> None:
    """Expected tags and pairs of tags less those of Label, times the sequence's gradient."""
    values = emissions(b, "Alpha"), emissions(b, "EmissionExps"), b["TransitionExps"]
    dx = b["Emission@GRAD"]
    flat = None if dx is None else writing(b, dx, values[0].shape)
    g = reading(b, b["LogLikelihood@GRAD"], (b["LogLikelihood@GRAD"].size,))
    b(likelihood_grad, Tagged(b), values, b["Label"], g, flat, b["Transition@GRAD"])
    if flat is not None:
        written(b, dx, flat)


_REAL = ("float32", "float64")
CUDA = Source(__file__, "crf.cu", typed(
    ("crf_exps exps_of ends_back pairs_back", _REAL), ("crf_forward crf_back", _REAL, ("int32", "int64")),
))  # fmt: skip


def _emit_on_cuda(b: Binder) -> None:
    """Emit the costs of sequences, and what their gradient reads."""
    tagged, dtype, tags = Tagged(b), wide_dtype(b["Emission"].dtype), b["Transition"].shape[1]
    x, transition = of_dtype(b, b["Emission"], dtype), of_dtype(b, b["Transition"], dtype)
    likes = {"Alpha": x, "EmissionExps": x, "TransitionExps": transition, "LogLikelihood": b["LogLikelihood"]}
    outs = {slot: allocate(b, slot, like.shape, dtype) for slot, like in likes.items()}
    alpha, exps, weights, cost = outs.values()
    rows, name = x.size // max(tags, 1), ctype(dtype)
    top = b.tmp((rows,), dtype)
    each_line(b, CUDA, f"crf_exps<{name}>", rows, tags, 1, x, exps, top)
    each(b, CUDA, f"exps_of<{name}>", weights.size, transition, weights)
    label, where = numbers(b, b["Label"]), _where(b, tagged)
    arrays = x, exps, top, transition, weights, label, *where, alpha, cost
    _along(b, f"crf_forward<{name}, {ctype(label.dtype)}>", tagged.count, tags, *arrays)
    for slot, array in outs.items():
        settle(b, slot, array)


def _emit_back_on_cuda(b: Binder) -> None:
    """Emit the gradients of emissions and transitions."""
    tagged, dtype, tags = Tagged(b), wide_dtype(b["Alpha"].dtype), b["TransitionExps"].shape[1]
    alpha, exps, weights = (of_dtype(b, b[s], dtype) for s in ("Alpha", "EmissionExps", "TransitionExps"))
    shape = (alpha.size // max(tags, 1), tags)
    dx = allocate(b, "Emission@GRAD", shape, dtype)
    beta, came, ahead = (b.tmp(shape, dtype) for _ in range(3))
    label_pairs, label, where = b.tmp((tags, tags), dtype), numbers(b, b["Label"]), _where(b, tagged)
    fill(b, label_pairs)
    g, name = of_dtype(b, b["LogLikelihood@GRAD"], dtype), ctype(dtype)
    arrays = alpha, exps, weights, label, g, *where, beta, dx, came, ahead, label_pairs
    _along(b, f"crf_back<{name}, {ctype(label.dtype)}>", tagged.count, tags, *arrays)
    settle(b, "Emission@GRAD", dx)
    if b.wants("Transition@GRAD"):
        out, expected = writing_as(b, b["Transition@GRAD"], dtype), b.tmp((tags, tags), dtype)
        each(b, CUDA, f"ends_back<{name}>", tags, dx, *where, out, np.int64(tagged.count))
        over_rows(b, came, ahead, expected)
        each(b, CUDA, f"pairs_back<{name}>", expected.size, expected, weights[2:], label_pairs, out[2:])
        written_as(b, b["Transition@GRAD"], out)


def _where(b: Binder, tagged: Tagged) -> tuple[Array, Array]:
    """The starts of the positions of each sequence and where the last ones end, and their numbers."""
    return b.table(np.ascontiguousarray(tagged.starts)), b.table(np.ascontiguousarray(tagged.lengths))


def _along(b: Binder, kernel: str, count: int, tags: int, *arrays: Array) -> None:
    """Emit a launch of a block for each sequence, with a thread for each tag as far as they go."""
    if count:
        b(CUDA[kernel], (count,), block_of(max(tags, 1)), 0, *arrays, np.int64(tags))


kernel("linear_chain_crf", place="cuda", dtypes=FLOATS)(_emit_on_cuda)
kernel("linear_chain_crf_grad", place="cuda", dtypes=FLOATS)(_emit_back_on_cuda)
