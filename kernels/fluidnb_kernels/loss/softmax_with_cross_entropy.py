"""softmax_with_cross_entropy: the loss of logits against labels, stable because both steps are one."""

from __future__ import annotations

import numpy as np

from fluidnb.errors import EnforceNotMet
from fluidnb.op import Array, Attr, Binder, Context, default_grad, grad_op, op, product
from fluidnb_kernels.activation.softmax import along, emit_softmax
from fluidnb_kernels.cuda import of_dtype
from fluidnb_kernels.emit import FLOATS, apply, reading, writing, written
from fluidnb_kernels.rules import agree, alike, kept, one_axis


def _infer(c: Context) -> None:
    x, label, name = c["Logits"], c["Label"], c.definition.type
    axis = one_axis(c, c.attr("axis"), x.ndim)
    want = list(x.shape) if c.attr("soft_label") else kept(x.shape, axis)
    c.require(
        agree(label.shape, want), f"Input(Label) of {name} does not fit Input(Logits).",
        expected=f"shape {want}" + ("" if c.attr("soft_label") else ": a class number for each row"),
        received=f"shape {list(label.shape)}",
        hint="soft_label=True takes a probability for each class, False a class number.",
    )  # fmt: skip
    kind = np.dtype(label.dtype).kind
    c.require(
        kind == ("f" if c.attr("soft_label") else "i"), f"Input(Label) of {name} has the wrong dtype.",
        expected=f"{np.dtype(x.dtype)}, with soft_label" if c.attr("soft_label") else "int64 class numbers",
        received=np.dtype(label.dtype),
    )  # fmt: skip
    c.set("Softmax", x.shape, x.dtype, c.lod("Logits"))
    c.set("Loss", kept(x.shape, axis), x.dtype, c.lod("Logits"))


def label_places(labels: Array, shape: tuple[int, int, int], ignore: int | None, out: Array, counts: Array) -> None:
    """Write the flat index of each row's label, and whether the row counts.

    ``shape`` is (outer, classes, inner). Rows that do not count get the index of class 0; ``ignore`` None: all count.
    """
    outer, classes, inner = shape
    counts[...] = True if ignore is None else labels != ignore
    inside = (labels >= 0) & (labels < classes)
    wrong = counts & ~inside
    if wrong.any():
        raise EnforceNotMet(
            f"A label is out of range: it should be from 0 to {classes - 1}.",
            expected=f"0 to {classes - 1}" + ("" if ignore is None else f", or {ignore} (ignore_index)"),
            received=int(labels[wrong][0]),
        )  # fmt: skip
    rows = np.arange(outer)[:, None] * (classes * inner) + np.arange(inner)
    np.add(rows.ravel(), np.where(inside & counts, labels, 0) * inner, out=out)


def take(flat: Array, at: Array, counts: Array, out: Array) -> None:
    """Write the elements at some places, 0 for rows that do not count."""
    np.multiply(flat[at], counts, out=out)


def subtract_labels(rows: Array, at: Array, counts: Array) -> None:
    """Take 1 off at the labels of rows [outer, classes, inner], and make rows that do not count zero."""
    rows.reshape(-1)[at] -= 1
    if not counts.all():
        outer, _, inner = rows.shape
        rows *= counts.reshape(outer, 1, inner)


def _split(x: Array, axis: int) -> tuple[int, int, int]:
    axis %= x.ndim
    return product(x.shape[:axis]), x.shape[axis], product(x.shape[axis + 1 :])


def _labels(b: Binder, shape: tuple[int, int, int]) -> tuple[Array, Array]:
    """Emit the places of the labels, and which rows count."""
    n = shape[0] * shape[2]
    at, counts = b.tmp((n,), np.int64), b.tmp((n,), bool)
    b(label_places, reading(b, b["Label"], (n,)), shape, b.attr("ignore_index", -100), at, counts)
    return at, counts


@op(
    "softmax_with_cross_entropy",
    inputs={
        "Logits: float": "any shape",
        "Label: int64 | float": "classes, size 1 along axis; or with soft_label probabilities like Logits",
    },
    outputs={"Softmax~": "probabilities, of the shape of Logits", "Loss": "the loss of each row, size 1 along axis"},
    attrs={
        "soft_label": Attr("bool", False, "whether Label holds a probability for each class"),
        "ignore_index": Attr("int", -100, "label of rows whose loss is 0"),
        "axis": Attr("int", -1, "the dimension of the classes"),
        "numeric_stable_mode": Attr("bool", True, "ignored (compatibility); it always is"),
        "use_softmax": Attr("bool", True, "Paddle 2: whether Logits are logits; nothing else is done here"),
    },
    check=lambda a: None if a["use_softmax"] else "use_softmax=False is the operator cross_entropy.",
    cost="6 * Logits",
    infer=_infer,
    grad=default_grad("Softmax", "Label", "Loss@GRAD", wrt=["Logits"]),
    dtypes=FLOATS,
    dtype_slot="Logits",
    cuda=FLOATS,
)
def softmax_with_cross_entropy(b: Binder) -> None:
    """Softmax = softmax(Logits); Loss = -log Softmax[Label], or -sum(Label · log Softmax) with soft_label.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("softmax_with_cross_entropy", {"Logits": [[0.0, 0.0]], "Label": [[1]]})["Loss"].round(4)
        array([[0.6931]])

    Source: Fluid's softmax_with_cross_entropy_op; a class less likely than exp(-64) of the likeliest counts as that.
    """
    if b.on_cuda:  # NaN where a label is no class
        x, axis, loss = b["Logits"], b.attr("axis"), b["Loss"]
        p = b["Softmax"] if b.wants("Softmax") else np.uintp(0)
        if b.attr("soft_label"):
            return along(b, "soft_loss", axis, x, of_dtype(b, b["Label"], x.dtype), p, loss)
        labels, ignore = of_dtype(b, b["Label"], np.int64), np.int64(b.attr("ignore_index", -100))
        return along(b, "hard_loss", axis, x, labels, p, loss, ignore)
    x, loss, axis = b["Logits"], b["Loss"], b.attr("axis")
    probabilities = b["Softmax"] if b.wants("Softmax") else b.like(x)
    t, total = emit_softmax(b, x, probabilities, axis)
    level = apply(b, np.log, total)
    if b.attr("soft_label"):
        b(np.subtract, level, t, out=t)
        b(np.multiply, t, b["Label"], out=t)
        return b(np.add.reduce, t, axis, None, loss, True)
    shape = _split(x, axis)
    at, counts = _labels(b, shape)
    rows = b.tmp(at.shape, x.dtype)
    b(take, reading(b, t, (x.size,)), at, counts, rows)
    out = writing(b, loss, at.shape)
    b(np.multiply, reading(b, level, at.shape), counts, out=out)
    b(np.subtract, out, rows, out=out)
    return written(b, loss, out)


@grad_op("softmax_with_cross_entropy_grad", infer=alike("Softmax", "Logits@GRAD"), dtype_slot="Softmax", cuda=FLOATS)
def softmax_with_cross_entropy_grad(b: Binder) -> None:
    """dLogits = dLoss · (Softmax - Label), Label as a distribution; 0 in rows that are ignored."""
    if b.on_cuda:  # NaN where a label is no class
        p, g, dx = b["Softmax"], b["Loss@GRAD"], b["Logits@GRAD"]
        axis = b.attr("axis", -1)
        if b.attr("soft_label", False):
            return along(b, "soft_loss_grad", axis, p, of_dtype(b, b["Label"], p.dtype), g, dx)
        labels, ignore = of_dtype(b, b["Label"], np.int64), np.int64(b.attr("ignore_index", -100))
        return along(b, "hard_loss_grad", axis, p, labels, g, dx, ignore)
    p, g, dx = b["Softmax"], b["Loss@GRAD"], b["Logits@GRAD"]
    if b.attr("soft_label", False):
        return b(np.multiply, apply(b, np.subtract, p, b["Label"]), g, out=dx)
    shape = _split(p, b.attr("axis", -1))
    at, counts = _labels(b, shape)
    rows = b.tmp(shape, p.dtype)
    b(np.copyto, rows.reshape(p.shape), p)
    b(subtract_labels, rows, at, counts)
    return b(np.multiply, rows.reshape(p.shape), g, out=dx)
