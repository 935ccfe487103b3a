"""nce: noise-contrastive estimation, a choice among few classes instead of all."""

from typing import Any

import numpy as np

from fluidnb.op import Array, Attr, Binder, Context, Stream, default_grad, grad_op, kernel, op
from fluidnb.values import SelectedRows
from fluidnb.values.copies import on_host
from fluidnb_kernels.cuda import ctype, each, each_line, of_dtype, wide_dtype
from fluidnb_kernels.cuda.upload import upload
from fluidnb_kernels.emit import FLOATS
from fluidnb_kernels.loss.launch import NOTHING
from fluidnb_kernels.loss.sampled_products import CUDA, dots, dots_grad, joined, slopes_of, sparse_rows
from fluidnb_kernels.rows.values import dtype_of, places_of, shape_of, sparse_slopes, spread, value_array
from fluidnb_kernels.rules import agree, check_classes

UNIFORM, LOG_UNIFORM, CUSTOM = range(3)  # the samplers


def _infer(c: Context) -> None:
    x, w, label = c["Input"], c["Weight"], c["Label"]
    c.check_inputs("Input", "Label")
    classes, negatives = c.attr("num_total_classes"), c.attr("num_neg_samples")
    c.require(
        agree(shape_of(w), (classes, x.shape[1])), "Input and Weight of nce do not fit.",
        expected=f"[N, D] and [{classes}, D]", received=f"{list(x.shape)} and {list(shape_of(w))}",
    )  # fmt: skip
    if c.has("Bias"):
        c.require(
            c["Bias"].size in (classes, -1), "Bias of nce has a number for each class.", expected=[classes],
            received=list(c["Bias"].shape),
        )  # fmt: skip
    c.require(
        c.attr("sampler") != CUSTOM or c.has("CustomDistProbs"), "A custom sampler needs CustomDistProbs.",
        expected=f"probabilities [{classes}]", received="none",
    )  # fmt: skip
    for slot, size in (("CustomDistProbs", classes), ("SampleWeight", x.shape[0])):
        if c.has(slot):
            c.require(
                -1 in (size, c[slot].size) or c[slot].size == size,
                f"{slot} of nce has a number for each {'row' if slot == 'SampleWeight' else 'class'}.",
                expected=[size], received=list(c[slot].shape),
            )  # fmt: skip
    width = -1 if label.shape[1] < 0 else label.shape[1] + negatives
    c.set("Cost", (x.shape[0], 1), x.dtype)
    c.set("SampleLogits", (x.shape[0], width), x.dtype)
    c.set("SampleLabels", (x.shape[0], width), np.int64)


def probabilities(labels: Array, kind: int, classes: int, custom: Array | None) -> Array:
    """The sampler's probabilities of classes, float64; as in Fluid, log-uniform never draws the last one."""
    if kind == CUSTOM:
        assert custom is not None
        found: Array = custom.reshape(-1)[labels]
        return found
    if kind == LOG_UNIFORM:
        return np.log((labels + 2.0) / (labels + 1.0)) / np.log(classes)
    return np.full(labels.shape, 1.0 / classes)


def draw(stream: Stream, kind: int, classes: int, custom: Array | None, shape: tuple[int, ...]) -> Array:
    """Draw classes."""
    u = stream.rewind().random(shape)
    if kind == CUSTOM:
        assert custom is not None
        ladder = np.cumsum(custom.reshape(-1), dtype=np.float64)
        return np.minimum(np.searchsorted(ladder / ladder[-1], u, side="right"), classes - 1)
    if kind == LOG_UNIFORM:
        return np.minimum((np.exp(u * np.log(classes)) - 1).astype(np.int64), classes - 1)
    return np.minimum((u * classes).astype(np.int64), classes - 1)


def weights_of(w: Array | SelectedRows, labels: Array) -> Array:
    """Gathers the weights of classes, of a tensor or of SelectedRows with the rows of some classes."""
    if not isinstance(w, SelectedRows):
        return w[labels]
    found: Array = value_array(w)[places_of(w.rows_, labels.reshape(-1)).reshape(labels.shape)]
    return found


def costs(
    x: Array, label: Array, w: Array | SelectedRows, bias: Array | None, row_weight: Array | None,
    sampler: tuple[Any, ...], stream: Stream | None, logits: Array, labels: Array, cost: Array,
) -> None:  # fmt: skip
    """Write logits s(w · x + bias) of true classes, then samples; these labels; and the cost of each row [N, 1]."""
    kind, classes, negatives, custom, fixed = sampler
    true = label.shape[1]
    check_classes(label, classes)
    labels[:, :true] = label
    if fixed:
        labels[:, true:] = fixed
    elif stream is not None:
        labels[:, true:] = draw(stream, kind, classes, custom, (len(x), negatives))
    z = np.einsum("nd,nkd->nk", x, weights_of(w, labels))
    if bias is not None:
        z = z + bias.reshape(-1)[labels]
    logits[...] = 1 / (1 + np.exp(-z))
    noise = probabilities(labels, kind, classes, custom) * negatives
    chosen = np.where(np.arange(labels.shape[1]) < true, logits, noise)
    terms = -np.log(chosen / (logits + noise))
    cost[:, 0] = terms.sum(1) * (1 if row_weight is None else row_weight.reshape(-1))


def _sampler(b: Binder) -> tuple[Any, ...]:
    names = ("sampler", "num_total_classes", "num_neg_samples")
    return (*(b.attr(n) for n in names), b["CustomDistProbs"], list(b.attr("custom_neg_classes", [])))


@op(
    "nce",
    inputs={
        "Input: float[N, D]": "", "Label: int64[N, T]": "true classes",
        "Weight: float[num_total_classes, D] | rows": "of all classes, or SelectedRows with the rows of some",
        "Bias?: float[num_total_classes]": "", "SampleWeight?: float[N, 1]": "what a row counts",
        "CustomDistProbs?: float": "probability of each class, for sampler 2", "CustomDistAlias?": "not needed here",
        "CustomDistAliasProbs?": "not needed here",
    },
    outputs={
        "Cost": "[N, 1]", "SampleLogits~": "[N, T + samples]: s(Weight · Input + Bias)",
        "SampleLabels~": "int64, the same shape: true classes, then samples",
    },
    attrs={
        "num_total_classes": Attr("int", doc="how many classes there are"),
        "num_neg_samples": Attr("int", 10, "how many classes are drawn for each row"),
        "sampler": Attr("int", 0, "0 uniform, 1 log-uniform, 2 by CustomDistProbs", enum=(0, 1, 2)),
        "seed": Attr("int", 0, "0 for the program's"),
        "is_sparse": Attr("bool", False, "whether the gradient of Weight is SelectedRows"),
        "remote_prefetch": Attr("bool", False, "accepted, without effect"),
        "trainer_id": Attr("int", 0, "accepted, without effect"),
        "height_sections": Attr("longs", [], "accepted, without effect"),
        "epmap": Attr("strings", [], "accepted, without effect"),
        "table_names": Attr("strings", [], "accepted, without effect"),
        "custom_neg_classes": Attr("ints", [], "samples that are not drawn but given, for tests"),
        "is_test": Attr("bool", False, "accepted, without effect"),
    },
    check=lambda a: None if a["num_neg_samples"] > 0 < a["num_total_classes"] else "nce needs classes and samples.",
    cost="SampleLogits * Input[1:] + 3 * SampleLogits",
    infer=_infer,
    grad=default_grad(
        "Input", "Label", "Weight", "Bias", "SampleWeight", "CustomDistProbs", "CustomDistAlias",
        "CustomDistAliasProbs", "SampleLogits", "SampleLabels", "Cost@GRAD", wrt=["Input", "Weight", "Bias"],
    ),
    random=True,
    dtypes=FLOATS,
    dtype_slot="Input",
)  # fmt: skip
def nce(b: Binder) -> None:
    """Cost = -log(o / (o + q)) over true classes, -log(q / (o + q)) over samples; o = s(w · x + b), q = k · P(class).

    Example:
        >>> from fluidnb.testing import run_op
        >>> few = {"Input": np.zeros((1, 2)), "Label": [[0]], "Weight": np.zeros((4, 2))}
        >>> run_op("nce", few, {"num_total_classes": 4, "num_neg_samples": 2})["Cost"].round(3)
        array([[2.079]])

    Source: Gutmann and Hyvärinen, "Noise-contrastive estimation" (AISTATS 2010); Fluid's nce_op.
    """
    shape = len(b["Input"]), b["Label"].shape[1] + b.attr("num_neg_samples")
    logits = b["SampleLogits"] if b.wants("SampleLogits") else b.tmp(shape, b["Input"].dtype)
    labels = b["SampleLabels"] if b.wants("SampleLabels") else b.tmp(shape, np.int64)
    b(
        costs, b["Input"], b["Label"], b["Weight"], b["Bias"], b["SampleWeight"], _sampler(b),
        None if b.attr("custom_neg_classes") else b.rng, logits, labels, b["Cost"],
    )  # fmt: skip


def costs_back(
    x: Array, w: Array | SelectedRows, row_weight: Array | None, sampler: tuple[Any, ...], true: int,
    logits: Array, labels: Array, grad: Array, outs: tuple[Array | None, Array | SelectedRows | None, Array | None],
) -> None:  # fmt: skip
    """Write the gradients of `costs`: of x, w (whole or in rows) and the bias; None without a consumer."""
    kind, classes, negatives, custom, _ = sampler
    noise = probabilities(labels, kind, classes, custom) * negatives
    is_true = np.arange(labels.shape[1]) < true
    slope = np.where(is_true, noise * (logits - 1), logits * (1 - logits)) / (logits + noise) * grad
    if row_weight is not None:
        slope = slope * row_weight.reshape(-1, 1)
    dx, dw, dbias = outs
    if dx is not None:
        dx[...] = np.einsum("nk,nkd->nd", slope, weights_of(w, labels))
    if dw is not None:
        products = (slope[:, :, None] * x[:, None, :]).astype(dtype_of(w))
        spread(dw, labels.reshape(-1), products.reshape(-1, x.shape[1]))
    if dbias is not None:
        spread(dbias.reshape(-1), labels.reshape(-1), slope.astype(dbias.dtype).reshape(-1))


@grad_op("nce_grad", infer=sparse_slopes("Weight"), dtype_slot="Input", rows=sparse_rows("Weight"), cuda=FLOATS)
def nce_grad(b: Binder) -> None:
    """dz = dCost · q (o - 1) / (o + q) for true classes, dCost · o (1 - o) / (o + q) for samples; then a product's.

    With is_sparse, dWeight is SelectedRows with a row for each class of the batch.
    """
    if b.on_cuda:  # the gradient of each product, which goes to rows of Input and of Weight
        _require_tensor(b)
        x, logits, picks = b["Input"], b["SampleLogits"], of_dtype(b, b["SampleLabels"], np.int64)
        slopes, (arrays, numbers) = b.tmp(picks.shape, wide_dtype(x.dtype)), _law(b)
        operands = logits, picks, *arrays, b["Cost@GRAD"], slopes, *numbers, np.int64(picks.shape[1])
        each(b, CUDA, f"nce_slopes<{ctype(x.dtype)}>", picks.size, *operands)
        return dots_grad(b, slopes, picks, (x, b["Weight"]), slopes_of(b, "Input", "Weight", "Bias"))
    b(
        costs_back, b["Input"], b["Weight"], b["SampleWeight"], _sampler(b), b["Label"].shape[1], b["SampleLogits"],
        b["SampleLabels"], b["Cost@GRAD"], slopes_of(b, "Input", "Weight", "Bias"),
    )  # fmt: skip


def draw_up(stream: Stream, kind: int, classes: int, custom: Array | None, samples: Array) -> None:
    """Draw classes on the host and copy them to a device: every place has the same ones."""
    given = None if custom is None else on_host(custom)
    upload(draw(stream, kind, classes, given, samples.shape).astype(np.int64, copy=False), samples)


def _require_tensor(b: Binder) -> None:
    """Refuses SelectedRows."""
    b.require(
        not b.is_rows("Weight"), "nce on a GPU takes a Weight that is a tensor.", expected="a tensor",
        received="SelectedRows", hint="run it on fluid.CPUPlace(), as Fluid does.",
    )  # fmt: skip


def _law(b: Binder) -> tuple[list[Array], list[Any]]:
    """The sampler's arrays and numbers, as the kernels of costs take them."""
    x, kind, classes = b["Input"], b.attr("sampler", 0), b.attr("num_total_classes")
    custom = of_dtype(b, b["CustomDistProbs"], x.dtype) if kind == CUSTOM else NOTHING
    weights = of_dtype(b, b["SampleWeight"], x.dtype) if b.has("SampleWeight") else NOTHING
    scale = np.log(classes) if kind == LOG_UNIFORM else classes
    numbers = np.int64(b["Label"].shape[1]), np.int32(kind), np.float64(scale), np.float64(b.attr("num_neg_samples"))
    return [custom, weights], [*numbers, np.int64(classes)]


@kernel("nce", place="cuda", dtypes=FLOATS)
def nce_on_cuda(b: Binder) -> None:
    """Samples of the host, products with their classes, and costs; NaN where a label is no class."""
    _require_tensor(b)
    x, labels, negatives = b["Input"], of_dtype(b, b["Label"], np.int64), b.attr("num_neg_samples")
    shape, fixed = (len(x), labels.shape[1] + negatives), b.attr("custom_neg_classes")
    picks = b["SampleLabels"] if b.wants("SampleLabels") else b.tmp(shape, np.int64)
    logits = b["SampleLogits"] if b.wants("SampleLogits") else b.tmp(shape, x.dtype)
    if fixed:
        joined(b, labels, b.table(np.broadcast_to(np.array(fixed, np.int64), (negatives,)).copy()), picks, True)
    else:
        samples = b.tmp((len(x), negatives), np.int64)
        custom = b["CustomDistProbs"] if b.attr("sampler") == CUSTOM else None
        b(draw_up, b.rng, b.attr("sampler"), b.attr("num_total_classes"), custom, samples)
        joined(b, labels, samples, picks, False)
    arrays, numbers = _law(b)
    z = dots(b, x, b["Weight"], b["Bias"], picks)
    each_line(b, CUDA, f"nce_cost<{ctype(x.dtype)}>", *shape, 1, z, picks, *arrays, logits, b["Cost"], *numbers)
