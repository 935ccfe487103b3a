"""cross_entropy, cross_entropy2, softmax_with_cross_entropy: the logarithm of the right class."""

import numpy as np

from fluidnb.errors import EnforceNotMet
from fluidnb.op import Array, Attr, Binder, Context, default_grad, grad_op, op, product
from fluidnb.op.c_code import Constant, c_code
from fluidnb_kernels.activation.softmax import along, emit_softmax
from fluidnb_kernels.cuda import ctype, each, each_line, of_dtype
from fluidnb_kernels.cuda.axis_reduction import Fold, fold
from fluidnb_kernels.emit import FLOATS, apply, outside, reading, writing, written, zeros
from fluidnb_kernels.loss.launch import LINES, NOTHING, wanted
from fluidnb_kernels.rules import agree, class_numbers_hint, kept, one_axis


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
        received=np.dtype(label.dtype), hint="" if c.attr("soft_label") else class_numbers_hint(c),
    )  # fmt: skip
    c.set("Softmax", x.shape, x.dtype, c.lod("Logits"))
    c.set("Loss", kept(x.shape, axis), x.dtype, c.lod("Logits"))


def _split(x: Array, axis: int) -> tuple[int, int, int]:
    axis %= x.ndim
    return product(x.shape[:axis]), x.shape[axis], product(x.shape[axis + 1 :])


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
    labels = reading(b, b["Label"], (loss.size,))
    own, out = b.tmp(labels.shape, x.dtype), writing(b, loss, labels.shape)
    b(reading(b, t, (x.size,)).take, places(b, labels, shape), None, own, "clip")
    b(np.subtract, reading(b, level, labels.shape), own, out=out)
    drop_ignored(b, labels, shape[1], b.attr("ignore_index", -100), out)
    return written(b, loss, out)


def less_one(flat: Array, places: Array) -> None:
    """Take 1 off at places of a flat array."""
    flat[places] -= 1


def _infer_grad(c: Context) -> None:
    p = c["Softmax"]
    of_row = kept(p.shape, one_axis(c, c.attr("axis", -1), p.ndim))
    for slot, want in (("Label", list(p.shape) if c.attr("soft_label", False) else of_row), ("Loss@GRAD", of_row)):
        c.require(  # kernels of a device go through all of them by the sizes of Softmax
            product(c[slot].shape) == product(want),
            f"Input({slot}) of {c.definition.type} does not fit Input(Softmax).",
            expected=f"shape {want}", received=f"shape {list(c[slot].shape)}",
        )  # fmt: skip
    c.set("Logits@GRAD", p.shape, p.dtype, c.lod("Softmax"))


@grad_op("softmax_with_cross_entropy_grad", infer=_infer_grad, dtype_slot="Softmax", cuda=FLOATS)
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
    outer, classes, inner = shape = _split(p, b.attr("axis", -1))
    labels, rows = reading(b, b["Label"], (outer * inner,)), b.tmp(shape, p.dtype)
    b(np.copyto, rows.reshape(p.shape), p)
    b(less_one, rows.reshape(-1), places(b, labels, shape))
    of_row = labels.reshape(outer, inner)
    drop_ignored(b, of_row, classes, b.attr("ignore_index", -100), rows.transpose(0, 2, 1))
    return b(np.multiply, rows.reshape(p.shape), g, out=dx)


#: The logarithm of 0, so that sums stay finite.
LOG_OF_ZERO = -1e20


def label_rule(c: Context, x_slot: str) -> None:
    """Check that labels fit what they label."""
    x, label, name = c[x_slot], c["Label"], c.definition.type
    rows, width = x.shape[:-1], x.shape[-1] if c.attr("soft_label", False) else 1
    known = label.shape[:-1] if label.ndim == x.ndim else None
    c.require(
        known is not None and all(n == m or -1 in (n, m) for n, m in zip(known, rows, strict=True)),
        f"Input({x_slot}) and Input(Label) of {name} should have the same shape but for the last dimension.",
        expected=[*rows, width], received=list(label.shape), hint="labels are int64 of shape [N, 1].",
    )  # fmt: skip
    c.require(
        c.attr("soft_label", False) or label.dtype.kind in "iu",
        f"Input(Label) of {name} should hold class numbers.",
        expected="int64", received=label.dtype, hint=class_numbers_hint(c),
    )  # fmt: skip
    c.require(
        label.shape[-1] in (width, -1) or width == -1,
        f"The last dimension of Input(Label) of {name} should be "
        + ("that of the classes when soft_label is set." if c.attr("soft_label", False) else "1 for class numbers."),
        expected=width, received=label.shape[-1],
        hint="soft_label=True takes a probability for each class, False a class number.",
    )  # fmt: skip


def ignored(labels: Array, classes: int, ignore: int | None, strange: Array, *values: Array) -> None:
    """Set the values of ignored rows to 0, and refuse labels that are no class.

    ``strange`` marks labels that are no class, or the ignored one; where ``ignore`` is None, none is ignored.
    """
    if not np.count_nonzero(strange):
        return
    for each_row in values:
        each_row[strange] = 0
    bad = labels[strange]
    bad = bad if ignore is None else bad[bad != ignore]
    if bad.size:
        raise EnforceNotMet(
            f"A label is out of range: it should be from 0 to {classes - 1}.",
            expected=f"0 to {classes - 1}" + ("" if ignore is None else f", or {ignore} (ignore_index)"),
            received=int(bad[0]), hint="give the last layer more outputs, or renumber labels from 0.",
        )  # fmt: skip


def drop_ignored(b: Binder, labels: Array, classes: int, ignore: int | None, *values: Array) -> None:
    """Emit what sets the values of ignored rows to 0; one comparison finds labels on either side of the classes."""
    if ignore is not None and 0 <= ignore < min(classes, np.iinfo(labels.dtype).max + 1):
        strange = b.tmp(labels.shape, bool)
        b(np.equal, labels, b.const(ignore, labels.dtype), out=strange)
        b(ignored, labels, classes, ignore, strange, *values)
    b(ignored, labels, classes, ignore, outside(b, labels, classes), *values)


def put(flat: Array, places: Array, values: Array) -> None:
    """Write values at places of a flat array."""
    flat[places] = values


def places(b: Binder, labels: Array, shape: tuple[int, int, int]) -> Array:
    """Emit the flat index of each row's label; a label that is no class counts as the nearest.

    ``shape`` is (outer, classes, inner), and there are outer * inner labels.
    """
    outer, classes, inner = shape
    near, out = b.tmp(labels.shape, labels.dtype), b.tmp(labels.shape, np.int64)
    b(np.maximum, labels, b.const(0, labels.dtype), out=near)
    b(np.minimum, near, b.const(min(classes - 1, np.iinfo(labels.dtype).max), labels.dtype), out=near)
    first = (np.arange(outer)[:, None] * (classes * inner) + np.arange(inner)).reshape(labels.shape)
    if inner > 1:
        far = b.tmp(labels.shape, np.int64)
        b(np.multiply, near, b.const(inner, np.int64), out=far)
        near = far
    b(np.add, first, near, out=out)
    return out


def _cross_entropy_infer(c: Context) -> None:
    x = c["X"]
    c.require(
        x.ndim >= 1, "Input(X) of cross_entropy must have at least one dimension.",
        expected="[N, classes]", received=list(x.shape),
    )  # fmt: skip
    label_rule(c, "X")
    c.set("Y", (*x.shape[:-1], 1), x.dtype, c.lod("X"))


@op(
    "cross_entropy",
    inputs={"X: float[N, …, classes]": "probabilities",
            "Label: int64[N, …, 1] | float[N, …, classes]": "the class of each row, or with soft_label probabilities"},
    outputs={"Y": "the loss of each row [..., 1]"},
    attrs={
        "soft_label": Attr("bool", False, "whether Label holds a probability for each class"),
        "ignore_index": Attr("int", -100, "label of rows whose loss is 0"),
    },
    cost="Y",
    infer=_cross_entropy_infer,
    grad=default_grad("X", "Label", "Y@GRAD", wrt=["X"]),
    dtype_slot="X", cuda=FLOATS,
)  # fmt: skip
def cross_entropy(b: Binder) -> None:
    """Y = -log X[label], or -sum(Label · log X) with soft_label; log 0 counts as -1e20. Y inherits the LoD of X.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("cross_entropy", {"X": [[0.5, 0.5], [0.25, 0.75]], "Label": [[0], [1]]})["Y"]
        array([[0.69314718],
               [0.28768207]])

    Source: Fluid's cross_entropy_op.
    """
    if b.on_cuda:  # NaN where a label is no class
        x, y = b["X"], b["Y"]
        if b.attr("soft_label"):
            labels, how = of_dtype(b, b["Label"], x.dtype), Fold("f::soft", "f::soft_part", "f::total", "f::minus")
            return fold(b, LINES, how, x, [x.ndim - 1], y, y=labels)
        return take_losses(b, x, y, NOTHING)
    x, label, y = b["X"], b["Label"], b["Y"]
    lowest = b.const(LOG_OF_ZERO, x.dtype)
    if b.attr("soft_label"):
        t, u = b.like(x), b.like(x)
        b(np.log, x, out=t)
        b(np.maximum, t, lowest, out=t)
        b(np.multiply, t, label, out=u)
        b(np.add.reduce, u, -1, None, y, True)
        return b(np.negative, y, out=y)
    n, classes = y.size, x.shape[-1]
    labels, loss = reading(b, label, (n,)), writing(b, y, (n,))
    p = b.tmp((n,), x.dtype)
    b(reading(b, x, (x.size,)).take, places(b, labels, (n, classes, 1)), None, p, "clip")
    b(np.log, p, out=p)
    b(np.maximum, p, lowest, out=p)
    b(np.negative, p, out=loss)
    drop_ignored(b, labels, classes, b.attr("ignore_index", -100), loss)
    written(b, y, loss)


@grad_op("cross_entropy_grad", dtype_slot="X", cuda=FLOATS)
def cross_entropy_grad(b: Binder) -> None:
    """dX = -dY · Label / X with soft_label; else -dY / X[label] at the label, 0 elsewhere and in ignored rows."""
    if b.on_cuda:  # NaN where a label is no class
        x, g, dx = b["X"], b["Y@GRAD"], b["X@GRAD"]
        if b.attr("soft_label", False):
            labels = of_dtype(b, b["Label"], x.dtype)
            return each_line(b, LINES, f"soft_grad<{ctype(x.dtype)}>", g.size, x.shape[-1], 1, x, labels, g, dx)
        return spread_losses(b, x, g, dx, False)
    x, label, g, dx = b["X"], b["Label"], b["Y@GRAD"], b["X@GRAD"]
    if b.attr("soft_label", False):
        t = b.like(x)
        b(np.divide, label, x, out=t)
        b(np.multiply, t, g, out=t)
        return b(np.negative, t, out=dx)
    n, classes = g.size, x.shape[-1]
    labels = reading(b, label, (n,))
    at, p, q = places(b, labels, (n, classes, 1)), b.tmp((n,), x.dtype), b.tmp((n,), x.dtype)
    b(reading(b, x, (x.size,)).take, at, None, p, "clip")
    b(np.divide, reading(b, g, (n,)), p, out=q)
    b(np.negative, q, out=p)
    drop_ignored(b, labels, classes, b.attr("ignore_index", -100), p)
    target = writing(b, dx, (x.size,))
    b(np.copyto, target, b.const(0, x.dtype))
    b(put, target, at, p)
    written(b, dx, target)


def take_losses(b: Binder, x: Array, y: Array, match: Array) -> None:
    """Emit the loss of each row's label on a GPU."""
    labels = of_dtype(b, b["Label"], np.int64)
    numbers = np.int64(b.attr("ignore_index", -100)), np.int64(x.shape[-1])
    each(b, LINES, f"cross_entropy<{ctype(x.dtype)}>", y.size, x, labels, y, match, *numbers)


def spread_losses(b: Binder, x: Array, g: Array, dx: Array, matched: bool) -> None:
    """Emit the gradient of the loss of each row's label on a GPU."""
    labels, ignore = of_dtype(b, b["Label"], np.int64), np.int64(b.attr("ignore_index", -100))
    operands = x, labels, g, dx, ignore, np.int32(matched)
    each_line(b, LINES, f"cross_entropy_grad<{ctype(dx.dtype)}>", g.size, dx.shape[-1], 1, *operands)


def _cross_entropy2_infer(c: Context) -> None:
    x = c["X"]
    label_rule(c, "X")
    for slot in ("Y", "MatchX"):
        c.set(slot, (*x.shape[:-1], 1), x.dtype, c.lod("X"))
    c.set("XShape", (0, *x.shape), x.dtype, c.lod("X"))


@op(
    "cross_entropy2",
    inputs={"X: float[…, classes]": "probabilities", "Label: int64[…, 1]": ""},
    outputs={
        "Y": "the loss of each row [..., 1]",
        "XShape~": "no elements: [0, the shape of X]",
        "MatchX~": "the probability of each row's label",
    },
    attrs={"ignore_index": Attr("int", -100, "label of rows whose loss is 0")},
    cost="Y",
    infer=_cross_entropy2_infer,
    grad=default_grad("Label", "MatchX", "XShape", "Y@GRAD", wrt=["X"], type="cross_entropy_grad2"),
    dtypes=FLOATS,
    dtype_slot="X",
    cuda=FLOATS,
)
def cross_entropy2(b: Binder) -> None:
    """MatchX = X[Label]; Y = -log MatchX, where log 0 counts as -1e20.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("cross_entropy2", {"X": [[0.5, 0.5]], "Label": [[1]]})["Y"].round(4)
        array([[0.6931]])

    Source: Fluid's cross_entropy2_op.
    """
    if b.on_cuda:  # NaN where a label is no class
        return take_losses(b, b["X"], b["Y"], wanted(b, "MatchX"))
    x, y = b["X"], b["Y"]
    n, classes = y.size, x.shape[-1]
    labels, match, loss = reading(b, b["Label"], (n,)), b.tmp((n,), x.dtype), writing(b, y, (n,))
    b(reading(b, x, (x.size,)).take, places(b, labels, (n, classes, 1)), None, match, "clip")
    t = apply(b, np.maximum, apply(b, np.log, match), b.const(LOG_OF_ZERO, x.dtype))
    b(np.negative, t, out=loss)
    drop_ignored(b, labels, classes, b.attr("ignore_index", -100), match, loss)
    if b.wants("MatchX"):
        b(np.copyto, b["MatchX"], match.reshape(b["MatchX"].shape))
    written(b, y, loss)


def _grad_infer(c: Context) -> None:
    shape = c["XShape"].shape[1:]
    c.require(len(shape) > 0, "Input(XShape) of cross_entropy_grad2 must have the shape of X behind a 0.", received=[])
    for slot in ("Label", "MatchX", "Y@GRAD"):
        c.require(  # kernels of a device go through all of them by the sizes of X
            product(c[slot].shape) in (-1, product(shape[:-1])) or -1 in shape,
            f"Input({slot}) of cross_entropy_grad2 must have a number for each row of X.",
            expected=f"shape {[*shape[:-1], 1]}", received=f"shape {list(c[slot].shape)}",
        )  # fmt: skip
    c.set("X@GRAD", shape, c["Y@GRAD"].dtype, c.lod("XShape"))


@grad_op("cross_entropy_grad2", infer=_grad_infer, dtype_slot="Y@GRAD", cuda=FLOATS)
def cross_entropy_grad2(b: Binder) -> None:
    """dX = -dY / MatchX at the label, 0 elsewhere and in ignored rows."""
    if b.on_cuda:  # NaN where a label is no class
        return spread_losses(b, b["MatchX"], b["Y@GRAD"], b["X@GRAD"], True)
    dx, g = b["X@GRAD"], b["Y@GRAD"]
    n, classes = g.size, dx.shape[-1]
    labels = reading(b, b["Label"], (n,))
    t = apply(b, np.divide, reading(b, g, (n,)), reading(b, b["MatchX"], (n,)))
    b(np.negative, t, out=t)
    drop_ignored(b, labels, classes, b.attr("ignore_index", -100), t)
    target = writing(b, dx, (dx.size,))
    zeros(b, target)
    b(put, target, places(b, labels, (n, classes, 1)), t)
    written(b, dx, target)


@c_code("softmax_with_cross_entropy", "softmax_with_cross_entropy_grad")
def _softmax_loss_in_c(c: Context) -> dict[str, Constant]:
    sizes = _split(c["Logits"] or c["Softmax"], c.attr("axis", -1))
    return {**dict(zip(("OUTER", "N", "INNER"), sizes, strict=True)), **_labels_in_c(c)}


def _labels_in_c(c: Context) -> dict[str, Constant]:
    return {"SOFT": bool(c.attr("soft_label", False)), "IGNORED": c.attr("ignore_index", -100)}


@c_code("cross_entropy", "cross_entropy_grad")
@c_code("cross_entropy2", function="cross_entropy")
@c_code("cross_entropy_grad2", function="cross_entropy_grad")
def _cross_entropy_in_c(c: Context) -> dict[str, Constant]:
    shape = (c["X"] or c["X@GRAD"]).shape
    return {"OUTER": product(shape[:-1]), "N": shape[-1], **_labels_in_c(c)}
