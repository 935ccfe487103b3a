"""linear_chain_crf and crf_decoding: a conditional random field over tags."""

import numpy as np

from fluidnb.op import Array, Binder, Context, default_grad, grad_op, kernel, op, values_of
from fluidnb.values.copies import on_host
from fluidnb_kernels.cuda import Source, block_of, ctype, each, each_line, typed
from fluidnb_kernels.cuda.dtypes import allocate, of_dtype, settle, wide_dtype, writing_as, written_as
from fluidnb_kernels.emit import FLOATS, reading, writing, written
from fluidnb_kernels.rnn.batches import Batches
from fluidnb_kernels.rnn.launch import over_rows
from fluidnb_kernels.rules import agree, check_below, whole_numbers
from fluidnb_kernels.sequences import offsets_of, one_dtype, ranges, require_lod, within
from fluidnb_kernels.tensor.row_indexing import numbers
from fluidnb_kernels.tensor.strided_copy import fill


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


def _linear_chain_crf_infer(c: Context) -> None:
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
    infer=_linear_chain_crf_infer,
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


def _crf_decoding_infer(c: Context) -> None:
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
    infer=_crf_decoding_infer,
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
