"""warpctc and ctc_align: a label sequence that is shorter than its input."""

import numpy as np

from fluidnb.op import Array, Attr, Binder, Context, default_grad, grad_op, like_forward, op, values_of
from fluidnb.values.copies import on_host
from fluidnb_kernels.cuda import Source, block_of, by_rows, ctype, each_line, typed
from fluidnb_kernels.cuda.dtypes import allocate, of_dtype, settle, wide_dtype, writing_as, written_as
from fluidnb_kernels.emit import FLOATS, reading, writing, written
from fluidnb_kernels.rnn.batches import Batches
from fluidnb_kernels.rules import agree, check_below, fits, same_shape, whole_numbers
from fluidnb_kernels.sequence import token_ids
from fluidnb_kernels.sequences import all_given, as_level, offsets_of, owners, require_lod
from fluidnb_kernels.tensor.row_indexing import numbers


class Times:
    """The time steps of sequences that follow each other, or are the columns of a matrix of ``steps`` columns."""

    __slots__ = ("batches", "lengths", "rows", "sequence")

    def __init__(self, lengths: Array, steps: int = 0) -> None:
        self.lengths = lengths
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        self.batches = Batches(offsets)
        owner = owners(lengths)
        self.sequence = owner[self.batches.rows]
        within = np.arange(offsets[-1]) - offsets[owner]
        places = within * steps + owner if steps else np.arange(offsets[-1])
        self.rows = places[self.batches.rows]


class Alphabet:
    """The labels of sequences with a blank around each."""

    __slots__ = ("last", "skips", "states")

    def __init__(self, labels: list[Array], blank: int) -> None:
        longest = max((len(label) for label in labels), default=0)
        self.states = np.full((len(labels), 2 * longest + 1), blank, np.int64)
        for row, label in zip(self.states, labels, strict=True):
            row[1 : 2 * len(label) : 2] = label
        self.last = np.array([2 * len(label) for label in labels], np.int64)  # the last state of each
        # whether a state can follow the one two before it
        self.skips = self.states != blank
        self.skips[:, 2:] &= self.states[:, 2:] != self.states[:, :-2]
        self.skips[:, :2] = False


def cost(
    times: Times, logits: Array, labels: Array, parts: list[slice], blank: int, loss: Array, grads: Array | None
) -> None:
    """Write the cost of each sequence [sequences, 1], and its gradient."""
    classes = logits.shape[1]
    flat = labels.reshape(-1)
    hint = "the logits have a column for each class, counted from 0."
    check_below(flat, classes, "Input(Label) of warpctc must name classes of Input(Logits).", hint)
    order, first = times.batches.order, times.batches.first
    alphabet = Alphabet([flat[parts[i]] for i in order[:first]], blank)
    logs = logits[times.rows]
    logs -= logs.max(1, keepdims=True) if logs.size else 0
    logs -= np.log(np.exp(logs).sum(1, keepdims=True))
    alpha = _alphas(times, alphabet, logs)
    ends = np.array(times.batches.starts)[times.lengths[order[:first]] - 1] + np.arange(first)
    total = _both_ends(alpha[ends], alphabet.last)
    possible = np.isfinite(total)
    loss.fill(0)
    loss[order[:first], 0] = np.where(possible, -total, 0)
    if grads is None:
        return
    grads.fill(0)
    position = np.empty(len(times.lengths), np.int64)
    position[order] = np.arange(len(order))
    mine = position[times.sequence]
    weight = np.exp(alpha + _betas(times, alphabet, logs) - total[mine][:, None])
    shares = np.exp(logs)
    np.subtract.at(shares, (np.arange(len(mine))[:, None], alphabet.states[mine]), weight)
    grads[times.rows] = np.where(possible[mine][:, None], shares, 0)


def _both_ends(values: Array, last: Array) -> Array:
    """The sum of the two states in which a sequence may end, as a logarithm."""
    here = np.arange(len(values))
    final = values[here, last]
    return np.where(last > 0, np.logaddexp(final, values[here, np.maximum(last - 1, 0)]), final)


def _alphas(times: Times, alphabet: Alphabet, logs: Array) -> Array:
    """For each packed row and state the logarithm of the sum over all ways to get there."""
    alpha = np.full((len(logs), alphabet.states.shape[1]), -np.inf, logs.dtype)
    for now, before in times.batches:
        n = now.stop - now.start
        spoken = np.take_along_axis(logs[now], alphabet.states[:n], 1)
        if before is None:
            alpha[now, :2] = spoken[:, :2]
            continue
        old, new = alpha[before], alpha[now]
        new[...] = old
        np.logaddexp(new[:, 1:], old[:, :-1], new[:, 1:])
        skipped = np.where(alphabet.skips[:n, 2:], old[:, :-2], -np.inf)
        np.logaddexp(new[:, 2:], skipped, new[:, 2:])
        new += spoken
    return alpha


def _betas(times: Times, alphabet: Alphabet, logs: Array) -> Array:
    """For each packed row and state the logarithm of the sum over all ways to continue from there."""
    beta = np.full((len(logs), alphabet.states.shape[1]), -np.inf, logs.dtype)
    for now, _, going_on in times.batches.backwards():
        new = beta[now]
        ended = np.arange(going_on, len(new))
        new[ended, alphabet.last[ended]] = 0
        new[ended, np.maximum(alphabet.last[ended] - 1, 0)] = 0
        if going_on:
            ahead = slice(now.stop, now.stop + going_on)
            old = beta[ahead] + np.take_along_axis(logs[ahead], alphabet.states[:going_on], 1)
            new = new[:going_on]
            new[...] = old
            np.logaddexp(new[:, :-1], old[:, 1:], new[:, :-1])
            skipped = np.where(alphabet.skips[:going_on, 2:], old[:, 2:], -np.inf)
            np.logaddexp(new[:, :-2], skipped, new[:, :-2])
    return beta


def _warpctc_infer(c: Context) -> None:
    x, padded = c["Logits"], c.has("LogitsLength")
    whole_numbers(c, "Label")
    c.require(
        padded == c.has("LabelLength"), "Input(LogitsLength) and Input(LabelLength) are given both or not at all.",
        expected="two lengths", received="one",
    )  # fmt: skip
    c.require(
        x.ndim == (3 if padded else 2), "Input(Logits) of warpctc must have a row of classes for each time step.",
        expected="[steps, batch, classes]" if padded else "[n, classes] with sequences", received=list(x.shape),
    )  # fmt: skip
    c.require(
        0 <= c.attr("blank") and (c.attr("blank") < x.shape[-1] or x.shape[-1] < 0),
        "Attr(blank) of warpctc must name a class.", expected=f"0 to {x.shape[-1] - 1}", received=c.attr("blank"),
    )  # fmt: skip
    count = x.shape[1] if padded else -1
    if not padded:
        for slot in ("Logits", "Label"):
            require_lod(c, slot, levels=1)
    if c.runtime:
        counts = [len(_lengths(c, slot)) for slot in ("Logits", "Label")]
        count = counts[0]
        c.require(
            counts[0] == counts[1], "Input(Label) of warpctc must have a sequence for each of Input(Logits).",
            expected=counts[0], received=counts[1],
        )  # fmt: skip
        label = c["Label"]
        fitting = label.ndim == 2 if padded else label.shape[:1] == (label.size,)
        c.require(
            fitting, "Input(Label) of warpctc must hold labels.",
            expected="[batch, labels]" if padded else "[n, 1]", received=list(label.shape),
        )  # fmt: skip
    c.set("Loss", (count, 1), x.dtype)
    c.set("WarpCTCGrad", x.shape, x.dtype)


def _lengths(c: Context, slot: str) -> Array:
    if not c.has(slot + "Length"):
        return np.diff(offsets_of(c, slot))
    lengths = on_host(c[slot + "Length"]).reshape(-1).astype(np.int64)
    steps, batch = c[slot].shape[:2] if slot == "Logits" else c[slot].shape[:2][::-1]
    c.require(
        len(lengths) == batch and (not batch or 0 <= lengths.min() and lengths.max() <= steps),
        f"Input({slot}Length) of warpctc must have a length for each sequence.",
        expected=f"{batch} numbers from 0 to {steps}", received=lengths.tolist()[:20],
    )  # fmt: skip
    return lengths


_BY_LENGTH = values_of("LogitsLength", "LabelLength")


@op(
    "warpctc",
    inputs={
        "Logits: float[n, classes] lod | float[steps, batch, classes]": "scores before the softmax",
        "Label: int[m, 1] lod | int[batch, labels]": "labels without blanks; without LoD LabelLength has the lengths",
        "LogitsLength?: int64[batch]": "how many time steps are a sequence's own",
        "LabelLength?: int64[batch]": "how many labels are",
    },
    outputs={
        "WarpCTCGrad~": "like Logits: the gradient for a gradient of 1",
        "Loss": "[sequences, 1]: the negative logarithm of the likelihood",
    },
    attrs={
        "blank": Attr("int", 0, "the class that means no label"),
        "norm_by_times": Attr("bool", False, "whether gradients are divided by the number of time steps"),
    },
    cost="6 * Logits",
    infer=_warpctc_infer,
    dtypes=FLOATS,
    dtype_slot="Logits",
    grad=default_grad("Logits", "LogitsLength", "WarpCTCGrad", "Loss@GRAD", wrt=["Logits"]),
    guard=_BY_LENGTH,
    cuda=FLOATS,
)
def warpctc(b: Binder) -> None:
    """Loss = -log Σ over all alignments of Label of Π softmax(Logits)[t, symbol at t].

    At each time step a class is emitted; repeated it is the same label, unless a blank is between. A label sequence
    that is too long for its time steps costs 0 and has no gradient, as in the library of that name.

    Example:
        >>> from fluidnb.testing import run_op
        >>> inputs = {"Logits": (np.zeros((2, 2)), [[2]]), "Label": (np.array([[1]]), [[1]])}
        >>> np.exp(-run_op("warpctc", inputs)["Loss"]).round(4)  # 3 of 4 ways say it
        array([[0.75]])

    Source: Fluid's warpctc_op (Graves et al. 2006).
    """
    if b.on_cuda:
        return _emit_on_cuda(b, _lengths(b, "Logits"), _lengths(b, "Label"))
    x, label = b["Logits"], b["Label"]
    rows = (x.size // x.shape[-1], x.shape[-1])
    times = Times(_lengths(b, "Logits"), x.shape[1] if b.has("LogitsLength") else 0)
    counts = _lengths(b, "Label")
    starts = np.arange(len(counts)) * label.shape[1] if b.has("LabelLength") else np.cumsum(counts) - counts
    parts = [slice(s, s + n) for s, n in zip(starts.tolist(), counts.tolist(), strict=True)]
    grads = None if b["WarpCTCGrad"] is None else writing(b, b["WarpCTCGrad"], rows)
    loss = b.tmp((len(counts), 1), x.dtype) if b["Loss"] is None else b["Loss"]
    b(cost, times, reading(b, x, rows), label, parts, b.attr("blank"), loss, grads)
    if grads is not None:
        written(b, b["WarpCTCGrad"], grads)


def _warpctc_grad_infer(c: Context) -> None:
    if c.runtime:  # a program from a file need not declare the shape of WarpCTCGrad
        same_shape(c, "Logits", "WarpCTCGrad")
        count = len(_lengths(c, "Logits"))
        fits(c, "Loss@GRAD", (count, 1), "Input(Loss@GRAD) of warpctc_grad must have a number for each sequence.")
    like_forward(c)


@grad_op("warpctc_grad", infer=_warpctc_grad_infer, guard=values_of("LogitsLength"), dtype_slot="Logits", cuda=FLOATS)
def warpctc_grad(b: Binder) -> None:
    """dLogits = (softmax(Logits) - the expected count of each class at a time step) · dLoss."""
    if b.on_cuda:
        return _emit_back_on_cuda(b, _lengths(b, "Logits"))
    x, g, dx = b["Logits"], b["Loss@GRAD"], b["Logits@GRAD"]
    lengths = _lengths(b, "Logits")
    share = b.tmp(g.shape, g.dtype)
    scale = np.maximum(lengths, 1) if b.attr("norm_by_times", False) else np.ones(len(lengths))
    b(np.divide, g, scale.astype(g.dtype).reshape(g.shape), out=share)
    if b.has("LogitsLength"):
        b(np.multiply, b["WarpCTCGrad"], share, out=dx)
    elif len(x):
        spread = b.tmp((len(x), 1), g.dtype)
        b(np.ndarray.take, share, owners(lengths), 0, spread, "clip")
        b(np.multiply, b["WarpCTCGrad"], spread, out=dx)


_REAL = ("float32", "float64")
CUDA = Source(__file__, "ctc.cu", typed(
    ("ctc_tops", _REAL), ("ctc_paths ctc_shares", _REAL, ("int32", "int64")), ("ctc_scaled", FLOATS),
))  # fmt: skip


def _emit_on_cuda(b: Binder, steps: Array, counts: Array) -> None:
    """Emit the costs of sequences, and the gradients for a gradient of 1 where they are wanted."""
    padded, classes, dtype = b.has("LogitsLength"), b["Logits"].shape[-1], wide_dtype(b["Logits"].dtype)
    x, label, count = of_dtype(b, b["Logits"], dtype), numbers(b, b["Label"]), len(steps)
    firsts = np.arange(count) if padded else np.cumsum(steps) - steps
    labels = np.arange(count) * label.shape[1] if padded else np.cumsum(counts) - counts
    states = 2 * counts + 1
    ways, places = np.cumsum(steps * states), np.cumsum(states)
    rows, total = x.size // classes, int(places[-1]) if count else 0
    sequences = b.table(np.stack([firsts, steps, labels, counts, ways - steps * states, places - states], 1))
    top, size = b.tmp((rows,), dtype), b.tmp((rows,), dtype)
    alpha, beta = b.tmp((int(ways[-1]) if count else 0,), dtype), b.tmp((2, total), dtype)
    order, back = b.tmp((total,), np.int64), b.wants("WarpCTCGrad")
    loss = allocate(b, "Loss", (count, 1), dtype)
    types, stride = f"<{ctype(dtype)}, {ctype(label.dtype)}>", np.int64(count if padded else 1)
    settings = stride, np.int64(classes), np.int64(b.attr("blank", 0))
    each_line(b, CUDA, f"ctc_tops<{ctype(dtype)}>", rows, classes, 1, x, top, size)
    if count:
        arrays = x, top, size, label, sequences, alpha, beta, order, loss
        block = block_of(int(states.max()))
        b(CUDA["ctc_paths" + types], (count,), block, 0, *arrays, *settings, np.int64(total), np.int32(back))
    if back:
        out = writing_as(b, b["WarpCTCGrad"], dtype)
        if rows:
            owner = np.full(rows, -1)
            within = np.arange(steps.sum()) - np.repeat(np.cumsum(steps) - steps, steps)
            owner[np.repeat(firsts, steps) + within * int(stride)] = owners(steps)
            arrays = x, top, size, label, sequences, b.table(owner), alpha, order, out
            b(CUDA["ctc_shares" + types], (rows,), block_of(max(classes, int(counts.max()) + 1)), 0, *arrays, *settings)
        written_as(b, b["WarpCTCGrad"], out)
    settle(b, "Loss", loss)


def _emit_back_on_cuda(b: Binder, steps: Array) -> None:
    """Emit the gradient of the logits."""
    kept, g, dx = b["WarpCTCGrad"], b["Loss@GRAD"], b["Logits@GRAD"]
    scale = np.maximum(steps, 1) if b.attr("norm_by_times", False) else np.ones(len(steps))
    width = dx.shape[-1]
    rows = dx.size // width
    owner = np.arange(rows) % len(steps) if b.has("LogitsLength") and rows else owners(steps)
    tables = b.table(scale.astype(wide_dtype(g.dtype))), b.table(owner)
    by_rows(b, CUDA, f"ctc_scaled<{ctype(dx.dtype)}>", rows, width, kept, g, *tables, dx, np.int64(width))


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


def _ctc_align_infer(c: Context) -> None:
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
    infer=_ctc_align_infer,
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
