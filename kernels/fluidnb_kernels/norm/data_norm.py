"""data_norm: rows normalised with counts, sums and squares gathered over all data so far."""

from collections.abc import Collection

import numpy as np

from fluidnb.op import GRAD, Array, Attr, Binder, Context, OpDef, OpDesc, grad_desc, grad_names, grad_op, kernel, op
from fluidnb_kernels.cuda import Source, allocate, by_rows, ctype, each, settle, typed, wide_dtype
from fluidnb_kernels.cuda.line_grid import TEAM
from fluidnb_kernels.emit import FLOATS, store
from fluidnb_kernels.norm.launch import vector
from fluidnb_kernels.rules import same_shape, vectors

#: Slots of the counts, sums and squares.
SUMMARIES = ("BatchSize", "BatchSum", "BatchSquareSum")

#: The row has no slot whose first column is below this.
NOTHING = 1e-7

#: Blocks that a gradient should have, and rows that a thread should add up before there are more.
_WANTED, _RUN = 1024, 16


CUDA = Source(__file__, "data_norm.cu", typed(
    ("data_norm data_norm_grad", FLOATS), ("data_norm_join", ("float32", "float64")),
))  # fmt: skip


def _infer(c: Context) -> None:
    x = c["X"]
    c.require(x.ndim == 2, "The input of data_norm must be rows.", expected="[rows, columns]", received=list(x.shape))
    vectors(c, (*SUMMARIES, "scale_w", "bias"), x.shape[1], "column")
    width = c.attr("slot_dim")
    c.require(
        width <= 0 or x.shape[1] < 0 or x.shape[1] % width == 0, "Attr(slot_dim) of data_norm must divide the columns.",
        expected=f"a divisor of {x.shape[1]}", received=width,
    )  # fmt: skip
    shifts = c.attr("enable_scale_and_shift")
    c.require(
        not shifts or c.has("scale_w") and c.has("bias"), "data_norm needs scale_w and bias to scale and shift.",
        expected="both", received="none or one of them",
    )  # fmt: skip
    c.set("Y", x.shape, x.dtype, c.lod("X"))
    for slot in ("Means", "Scales"):
        c.set(slot, x.shape[1:], x.dtype)


def _seen(x: Array, width: int) -> Array:
    """Whether elements belong to a slot that their row has."""
    if width <= 0:
        return np.ones(x.shape, bool)
    first = np.abs(x.reshape(len(x), x.shape[1] // width, width)[:, :, :1]) >= NOTHING
    return np.broadcast_to(first, (len(x), x.shape[1] // width, width)).reshape(x.shape)


def normalise(
    x: Array, count: Array, total: Array, squares: Array, scale: Array | None, bias: Array | None, width: int,
    outs: tuple[Array | None, Array | None, Array | None],
) -> None:  # fmt: skip
    """Write normalised rows, means and scales; outputs without a consumer are None.

    ``count``, ``total`` and ``squares`` [columns] are statistics so far; ``scale`` and ``bias`` may be None. ``width``
    is that of a slot, whose first column is 0 where a row has no such slot; 0 or less for none.
    """
    means, scales = total / count, np.sqrt(count / squares)
    y = (x - means) * scales
    if scale is not None and bias is not None:
        y = y * scale + bias
    store(outs, (np.where(_seen(x, width), y, 0), means, scales))


def normalise_grad(
    x: Array, means: Array, scales: Array, scale: Array | None, g: Array, width: int, epsilon: float,
    outs: tuple[Array | None, ...],
) -> None:  # fmt: skip
    """Write the gradient of the rows, and what a batch adds to counts, sums and squares.

    ``outs`` are gradients of the rows, counts, sums, squares, factors and summands; None without a consumer.
    """
    seen = _seen(x, width)
    own = np.where(seen, g, 0)
    centred = x - means
    count, total = seen.sum(0).astype(x.dtype), np.where(seen, x, 0).sum(0)
    squares = np.where(seen, centred * centred, 0).sum(0)
    if width > 0:  # the mean of the rows that have the slot, as one row
        some = np.maximum(count, 1)
        total, squares, count = total / some, squares / some + count * epsilon, np.minimum(count, 1)
    else:
        squares = squares + count * epsilon
    dx = own * scales * (1 if scale is None else scale)
    store(outs, (dx, count, total, squares, (own * centred * scales).sum(0), own.sum(0)))


def _grad(desc: OpDesc, definition: OpDef, no_grad: Collection[str]) -> list[OpDesc]:
    """Paddle's gradient operator names the summaries among its outputs too."""
    ins = {s: list(desc.outs[s]) for s in ("Means", "Scales")}
    ins["X"], ins["Y" + GRAD] = list(desc.ins["X"]), [n + GRAD for n in desc.outs["Y"]]
    shifted = [s for s in ("scale_w", "bias") if desc.attr("enable_scale_and_shift") and desc.ins.get(s)]
    ins |= {s: list(desc.ins[s]) for s in shifted}
    outs = {s + GRAD: grad_names(desc, s, no_grad) for s in ("X", *SUMMARIES, *shifted)}
    outs |= {s: list(desc.ins[s]) for s in SUMMARIES}
    return [grad_desc("data_norm_grad", desc, ins, outs)]


@op(
    "data_norm",
    inputs={
        "scale_w?: float[columns]": "factors of the result",
        "bias?: float[columns]": "summands of the result",
        "X: float[rows, columns]": "",
        "BatchSize: float[columns]": "how much has been seen",
        "BatchSum: float[columns]": "its sums",
        "BatchSquareSum: float[columns]": "its sums of squares",
    },
    outputs={"Y": "X normalised", "Means~": "[columns]", "Scales~": "[columns]"},
    attrs={
        "epsilon": Attr("float", 1e-4, "what each row adds to the squares", ge=0),
        "slot_dim": Attr("int", -1, "columns of a slot, which a row lacks where its first one is 0; -1 for none"),
        "summary_decay_rate": Attr("float", 0.9999999, "ignored (compatibility)"),
        "enable_scale_and_shift": Attr("bool", False, "whether scale_w and bias are used"),
        "data_layout": Attr("string", "NCHW", "ignored (compatibility)"),
        "sync_stats": Attr("bool", False, "ignored (compatibility)"),
    },
    cost="2 * X",
    infer=_infer,
    grad=_grad,
    dtypes=FLOATS,
    cuda=FLOATS,
)
def data_norm(b: Binder) -> None:
    """Y = (X - Means) · Scales with Means = BatchSum / BatchSize and Scales = sqrt(BatchSize / BatchSquareSum).

    The "gradients" of the three summaries are what this batch adds to them.

    Example:
        >>> from fluidnb.testing import run_op
        >>> seen = {"BatchSize": [4.0], "BatchSum": [8.0], "BatchSquareSum": [1.0]}
        >>> run_op("data_norm", {"X": [[3.0]], **seen}, outputs=["Y"])["Y"]
        array([[2.]])

    Source: Fluid's data_norm_op.
    """
    if b.on_cuda:  # a thread computes mean and scale of a column once, and normalises it in some rows
        x, slots = b["X"], ("Means", "Scales")
        (rows, columns), shifts = x.shape, b.attr("enable_scale_and_shift")
        seen = [vector(b, slot, x) for slot in SUMMARIES]
        changed = [vector(b, slot, x) if shifts else None for slot in ("scale_w", "bias")]
        outs = [allocate(b, slot, (columns,), wide_dtype(x.dtype)) for slot in slots]
        operands = x, *seen, *changed, b["Y"] if rows else None, *outs, np.int64(b.attr("slot_dim")), np.int64(columns)
        by_rows(b, CUDA, f"data_norm<{ctype(x.dtype)}>", max(rows, 1), columns, *operands)
        for slot, given in zip(slots, outs, strict=True):
            settle(b, slot, given)
        return
    shifts = b.attr("enable_scale_and_shift")
    b(
        normalise, b["X"], *(b[s] for s in SUMMARIES), *((b["scale_w"], b["bias"]) if shifts else (None, None)),
        b.attr("slot_dim"), (b["Y"], b["Means"], b["Scales"]),
    )  # fmt: skip


def _grad_infer(c: Context) -> None:
    x = c["X"]
    c.require(
        x.ndim == 2, "Input(X) of data_norm_grad must be a matrix.", expected="[rows, columns]", received=list(x.shape)
    )  # fmt: skip
    vectors(c, ("Means", "Scales", "scale_w", "bias"), x.shape[1], "column")
    same_shape(c, "X", "Y@GRAD")
    c.set("X@GRAD", x.shape, x.dtype, c.lod("X"))
    for slot in (*SUMMARIES, "scale_w", "bias"):
        c.set(slot + GRAD, x.shape[1:], x.dtype)


@grad_op("data_norm_grad", infer=_grad_infer)
def data_norm_grad(b: Binder) -> None:
    """dX = dY · Scales; the summaries get what this batch adds: rows, sums, squares of what is left of the means."""
    outs = tuple(b[s + GRAD] for s in ("X", *SUMMARIES, "scale_w", "bias"))
    shifts = b.attr("enable_scale_and_shift", False)
    b(
        normalise_grad, b["X"], b["Means"], b["Scales"], b["scale_w"] if shifts else None, b["Y@GRAD"],
        b.attr("slot_dim", -1), b.attr("epsilon", 1e-4), outs,
    )  # fmt: skip


@kernel("data_norm_grad", place="cuda", dtypes=FLOATS)
def data_norm_grad_on_cuda(b: Binder) -> None:
    """dX and the sums over rows in one pass, which are joined in a short second one."""
    x, shifts = b["X"], b.attr("enable_scale_and_shift", False)
    (rows, columns), wide, width = x.shape, wide_dtype(x.dtype), np.int64(b.attr("slot_dim", -1))
    if not columns:
        return
    across = -(-columns // 32)
    many = max(1, min(_WANTED // across, rows // (TEAM * _RUN)))
    parts, slots = b.tmp((5, many, columns), wide), [s + GRAD for s in (*SUMMARIES, "scale_w", "bias")]
    read = x, vector(b, "Means", x), vector(b, "Scales", x), vector(b, "scale_w", x) if shifts else None, b["Y@GRAD"]
    sizes = width, np.int64(rows), np.int64(columns)
    name = f"data_norm_grad<{ctype(x.dtype)}>"
    b(CUDA[name], (min(across, 1 << 16), many), (32, TEAM), 0, *read, b["X" + GRAD], parts, *sizes)
    outs = [allocate(b, slot, (columns,), wide) for slot in slots]
    epsilon = np.float64(b.attr("epsilon", 1e-4))
    each(b, CUDA, f"data_norm_join<{ctype(wide)}>", columns, parts, *outs, width, epsilon, np.int32(many))
    for slot, given in zip(slots, outs, strict=True):
        settle(b, slot, given)
