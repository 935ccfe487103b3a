"""sample_logits: of many classes the true ones and a few that are drawn, for a softmax over these alone."""

import numpy as np

from fluidnb.op import Array, Attr, Binder, Context, Stream, default_grad, grad_op, kernel, op
from fluidnb_kernels.cuda import ctype, each, of_dtype
from fluidnb_kernels.cuda.upload import upload
from fluidnb_kernels.loss.nce import LOG_UNIFORM, probabilities
from fluidnb_kernels.loss.sampled_products import CUDA, joined
from fluidnb_kernels.rules import check_classes, fits
from fluidnb_kernels.tensor import row_indexing
from fluidnb_kernels.tensor.strided_copy import fill, move

_FAR = 1e20  # represents infinity


def _infer(c: Context) -> None:
    logits, labels = c["Logits"], c["Labels"]
    c.check_inputs("Logits", "Labels")
    classes, count = logits.shape[1], c.attr("num_samples")
    custom = c.attr("use_customized_samples")
    c.require(
        custom or not c.attr("uniq") or classes < 0 or count <= classes,
        "sample_logits cannot draw more classes than there are, each once.", expected=f"num_samples up to {classes}",
        received=count,
    )  # fmt: skip
    shape = (max(logits.shape[0], labels.shape[0]), labels.shape[1] + count if labels.shape[1] >= 0 else -1)
    for slot in ("CustomizedSamples", "CustomizedProbabilities"):
        c.require(
            c.has(slot) or not custom, f"use_customized_samples of sample_logits needs {slot}.",
            expected=list(shape), received="none",
        )  # fmt: skip
        fits(c, slot, shape, f"{slot} of sample_logits has the true classes and then the samples.")
    c.set("Samples", shape, np.int64)
    c.set("Probabilities", shape, logits.dtype)
    c.set("SampledLogits", shape, logits.dtype)
    c.set("SampledLabels", (shape[0], labels.shape[1]), np.int64)
    c.set("LogitsDim", (0, *logits.shape), logits.dtype)
    c.set("LabelsDim", (0, *labels.shape), labels.dtype)


def drawn(stream: Stream, classes: int, count: int, once: bool) -> tuple[Array, int]:
    """Draw classes, the first ones most often, with ``once`` each at most once; gives them and the number of tries."""
    generator = stream.rewind()
    tried = np.zeros(0, np.int64)
    while True:
        more = np.expm1(generator.random(max(2 * count, 64)) * np.log(classes + 1.0)).astype(np.int64)
        tried = np.concatenate([tried, np.minimum(more, classes - 1)])
        if not once:
            return tried[:count], count
        firsts = np.sort(np.unique(tried, return_index=True)[1])[:count]
        if len(firsts) == count:
            return tried[firsts], int(firsts[-1]) + 1


def expected_counts(labels: Array, classes: int, count: int, tries: int) -> Array:
    """The expected counts of classes among the samples, float64.

    ``tries`` is the number of samples where a class may come twice.
    """
    p = probabilities(labels, LOG_UNIFORM, classes + 1, None)
    return p * count if count == tries else -np.expm1(tries * np.log1p(-p))


def draw(labels: Array, classes: int, once: bool, stream: Stream, samples: Array, prob: Array) -> None:
    """Write the true classes, and the same samples behind those of every row, with their expected counts."""
    check_classes(labels, classes)
    true = labels.shape[1]
    count = samples.shape[1] - true
    samples[:, :true] = labels
    samples[:, true:], tries = drawn(stream, classes, count, once)
    prob[...] = expected_counts(samples, classes, count, tries)


def gather(logits: Array, samples: Array, prob: Array, true: int, remove: bool, out: Array) -> None:
    """Write the logits of the samples, less the logarithm of their expected counts.

    With ``remove``, a sample that is a true class of its row goes to minus infinity.
    """
    check_classes(samples, logits.shape[1])
    found = np.take_along_axis(logits, samples, 1)
    if remove:
        hits = (samples[:, true:, None] == samples[:, None, :true]).any(2)
        found[:, true:] -= _FAR * hits.astype(found.dtype)
    with np.errstate(divide="ignore"):
        found -= np.clip(np.log(prob), -_FAR, _FAR)
    np.clip(found, -_FAR, _FAR, out)


@op(
    "sample_logits",
    inputs={
        "Logits: float[N, classes]": "", "Labels: int64[N, T]": "true classes",
        "CustomizedSamples?: int64[N, T + S]": "true classes and samples, instead of drawing",
        "CustomizedProbabilities?: float[N, T + S]": "how often each is expected among the samples",
    },
    outputs={
        "Samples~": "int64 [N, T + S]: true classes, then samples, the same for all rows",
        "Probabilities~": "[N, T + S]: how often each is expected among the samples",
        "LogitsDim~": "no elements: [0, the shape of Logits]", "LabelsDim~": "no elements: [0, the shape of Labels]",
        "SampledLogits~": "[N, T + S]: their logits", "SampledLabels": "int64 [N, T]: 0 … T - 1, the true ones of them",
    },
    attrs={
        "use_customized_samples": Attr("bool", False, "take the samples that are given"),
        "uniq": Attr("bool", True, "draw each class once at most"),
        "remove_accidental_hits": Attr("bool", True, "rule out samples that are true classes of their row"),
        "num_samples": Attr("int", doc="S, how many classes are drawn", gt=0),
        "seed": Attr("int", 0, "0 for the program's"),
    },
    cost="2 * SampledLogits",
    infer=_infer,
    grad=default_grad("LogitsDim", "LabelsDim", "Samples", "SampledLogits@GRAD", wrt=["Logits"]),
    random=True,
    dtypes=("float32", "float64"),
    dtype_slot="Logits",
)  # fmt: skip
def sample_logits(b: Binder) -> None:
    """SampledLogits = Logits[class] - log Q(class), over the true classes of a row and S drawn by a log-uniform law.

    P(class) = log((class + 2) / (class + 1)) / log(classes + 1). Q = S · P, or, where each class is drawn once and that
    took t tries, 1 - (1 - P)^t. A sample that is a true class of its row goes to -1e20.

    Example:
        >>> from fluidnb.testing import run_op
        >>> few = {"Logits": [[1.0, 2.0, 3.0]], "Labels": [[2]], "CustomizedSamples": [[2, 0]]}
        >>> few["CustomizedProbabilities"] = [[1.0, 1.0]]
        >>> run_op("sample_logits", few, {"num_samples": 1, "use_customized_samples": True})["SampledLogits"]
        array([[3., 1.]])

    Source: Jean et al., "On Using Very Large Target Vocabulary" (ACL 2015); Fluid's sample_logits_op.
    """
    logits, true = b["Logits"], b["Labels"].shape[1]
    shape = (len(logits), true + b.attr("num_samples"))
    samples = b["Samples"] if b.wants("Samples") else b.tmp(shape, np.int64)
    prob = b["Probabilities"] if b.wants("Probabilities") else b.tmp(shape, logits.dtype)
    if b.attr("use_customized_samples"):
        b(np.copyto, samples, b["CustomizedSamples"])
        b(np.copyto, prob, b["CustomizedProbabilities"])
    else:
        b(draw, b["Labels"], logits.shape[1], b.attr("uniq"), b.rng, samples, prob)
    if b.wants("SampledLogits"):
        b(gather, logits, samples, prob, true, b.attr("remove_accidental_hits"), b["SampledLogits"])
    if b.wants("SampledLabels"):
        b(np.copyto, b["SampledLabels"], np.arange(true))


def spread(samples: Array, grad: Array, out: Array) -> None:
    """Add the gradient of each sample to that of its class."""
    out.fill(0)
    np.add.at(out, (np.arange(len(out))[:, None], samples), grad)


def _slope_infer(c: Context) -> None:
    c.set("Logits@GRAD", c["LogitsDim"].shape[-2:], c["SampledLogits@GRAD"].dtype)


@grad_op("sample_logits_grad", infer=_slope_infer, dtype_slot="SampledLogits@GRAD", cuda=("float32", "float64"))
def sample_logits_grad(b: Binder) -> None:
    """dLogits[class] = the sum of dSampledLogits over the samples that are this class."""
    if not b.on_cuda:
        return b(spread, b["Samples"], b["SampledLogits@GRAD"], b["Logits@GRAD"])
    # with atomics: a class may come twice
    samples, g, dx = b["Samples"], b["SampledLogits@GRAD"], b["Logits@GRAD"]
    fill(b, dx)
    return row_indexing.along(b, "added", g, samples, dx, dx, 1)


def draw_up(stream: Stream, classes: int, once: bool, samples: Array) -> None:
    """Draw classes on the host and copy them to a device, then the number of tries: every place has the same ones."""
    upload(np.append(*drawn(stream, classes, samples.size - 1, once)), samples)


@kernel("sample_logits", place="cuda", dtypes=("float32", "float64"))
def sample_logits_on_cuda(b: Binder) -> None:
    """Samples of the host, how often they are expected, and their logits; NaN where a label is no class."""
    logits, labels, count = b["Logits"], of_dtype(b, b["Labels"], np.int64), b.attr("num_samples")
    (rows, classes), true, t = logits.shape, labels.shape[1], ctype(logits.dtype)
    many, width = np.int64(true + count), np.int64(classes)
    samples = b["Samples"] if b.wants("Samples") else b.tmp((rows, true + count), np.int64)
    prob = b["Probabilities"] if b.wants("Probabilities") else b.tmp(samples.shape, logits.dtype)
    if b.attr("use_customized_samples"):
        move(b, samples, of_dtype(b, b["CustomizedSamples"], np.int64))
        move(b, prob, of_dtype(b, b["CustomizedProbabilities"], logits.dtype))
    else:
        given = b.tmp((count + 1,), np.int64)
        b(draw_up, b.rng, classes, b.attr("uniq"), given)
        joined(b, labels, given, samples, True)
        each(b, CUDA, f"expected<{t}>", samples.size, samples, given, prob, width, np.int64(count))
    if b.wants("SampledLogits"):
        numbers = np.int64(true), np.int32(b.attr("remove_accidental_hits")), many, width
        operands = logits, samples, prob, b["SampledLogits"], *numbers
        each(b, CUDA, f"sampled_logits<{t}>", samples.size, *operands)
    if b.wants("SampledLabels"):
        out = b["SampledLabels"]
        joined(b, out[:, :0], b.table(np.arange(true)), out, True)
