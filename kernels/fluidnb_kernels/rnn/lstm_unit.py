"""lstm_unit: one step of an LSTM."""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidnb.op import Attr, Binder, Context, default_grad, grad_op, kernel, op
from fluidnb_kernels.activation.smooth import logistic
from fluidnb_kernels.cuda import ctype
from fluidnb_kernels.cuda.row_grid import by_rows
from fluidnb_kernels.emit import FLOATS, apply, zeros
from fluidnb_kernels.rnn.launch import CUDA
from fluidnb_kernels.rules import agree
from fluidnb_kernels.sequences import one_dtype

Array = Any


def _infer(c: Context) -> None:
    one_dtype(c, "X", "C_prev")
    x, old = c["X"], c["C_prev"]
    c.require(
        x.ndim == old.ndim == 2, "Input(X) and Input(C_prev) of lstm_unit must be matrices.",
        expected="X [batch, 4 · width], C_prev [batch, width]", received=f"{list(x.shape)} and {list(old.shape)}",
    )  # fmt: skip
    width = old.shape[1]
    c.require(
        agree((x.shape[0], 4 * width if width >= 0 else -1), (old.shape[0], x.shape[1])),
        "The second dimension of Input(X) of lstm_unit must be four times that of Input(C_prev).",
        expected=f"X [{old.shape[0]}, 4 · {width}]", received=list(x.shape),
    )  # fmt: skip
    for slot in ("C", "H"):
        c.set(slot, old.shape, x.dtype)


def _gates(b: Binder) -> tuple[Array, Array, Array, Array]:
    """Input gate, forget gate, output gate, candidate."""
    x, bias = b["X"], b.attr("forget_bias", 0.0)
    width = x.shape[1] // 4
    i, f, o, g = (x[:, k * width : (k + 1) * width] for k in range(4))
    forget = apply(b, np.add, f, b.const(bias, x.dtype)) if bias else f
    return logistic(b, i), logistic(b, forget), logistic(b, o), apply(b, np.tanh, g)


@op(
    "lstm_unit",
    inputs={
        "X: float[batch, 4 · width]": "in columns input gate, forget gate, output gate, candidate",
        "C_prev: float[batch, width]": "the old cell",
    },
    outputs={"C": "[batch, width]: the new cell", "H": "[batch, width]: the new hidden state"},
    attrs={"forget_bias": Attr("float", 0.0, "added to the forget gate")},
    cost="2 * X",
    infer=_infer,
    dtypes=FLOATS,
    grad=default_grad("X", "C_prev", "C", "H", "C@GRAD", "H@GRAD"),
)
def lstm_unit(b: Binder) -> None:
    """C = σ(f + forget_bias) · C_prev + σ(i) · tanh(g); H = σ(o) · tanh(C).

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("lstm_unit", {"X": np.zeros((1, 4)), "C_prev": [[3.0]]})["C"]
        array([[1.5]])

    Source: Fluid's lstm_unit_op.
    """
    i, f, o, g = _gates(b)
    b(np.multiply, f, b["C_prev"], out=f)
    b(np.multiply, i, g, out=i)
    cell = apply(b, np.add, f, i)
    if b.wants("C"):
        b(np.copyto, b["C"], cell)
    if b.wants("H"):
        b(np.multiply, o, apply(b, np.tanh, cell), out=b["H"])


@grad_op("lstm_unit_grad", dtype_slot="X")
def lstm_unit_grad(b: Binder) -> None:
    """dC is that of C and of H together; each gate gets its share times the slope of its activation."""
    i, f, o, g = _gates(b)
    one = b.const(1, i.dtype)
    seen = apply(b, np.tanh, b["C"])
    dc = b.like(seen)
    if b["H@GRAD"] is None:
        zeros(b, dc)
    else:  # through tanh(C)
        b(np.subtract, one, apply(b, np.multiply, seen, seen), out=dc)
        b(np.multiply, dc, apply(b, np.multiply, b["H@GRAD"], o), out=dc)
    if b["C@GRAD"] is not None:
        b(np.add, dc, b["C@GRAD"], out=dc)
    if b.wants("C_prev@GRAD"):
        b(np.multiply, dc, f, out=b["C_prev@GRAD"])
    if not b.wants("X@GRAD"):
        return
    dx, width = b["X@GRAD"], i.shape[1]
    for k, (gate, factor) in enumerate(((i, g), (f, b["C_prev"]), (o, seen))):
        slope = apply(b, np.multiply, gate, apply(b, np.subtract, one, gate))
        b(np.multiply, slope, factor, out=slope)
        part = dx[:, k * width : (k + 1) * width]
        if gate is not o:
            b(np.multiply, slope, dc, out=part)
        elif b["H@GRAD"] is None:
            zeros(b, part)
        else:
            b(np.multiply, slope, b["H@GRAD"], out=part)
    slope = apply(b, np.subtract, one, apply(b, np.multiply, g, g))
    b(np.multiply, slope, i, out=slope)
    b(np.multiply, slope, dc, out=dx[:, 3 * width :])


def _launch(b: Binder, name: str, *arrays: Array) -> None:
    rows, width = b["C_prev"].shape
    settings = np.float64(b.attr("forget_bias", 0.0)), np.int64(width)
    by_rows(b, CUDA, f"{name}<{ctype(b['X'].dtype)}>", rows, width, b["X"], b["C_prev"], *arrays, *settings)


@kernel("lstm_unit", place="cuda", dtypes=FLOATS)
def _on_cuda(b: Binder) -> None:
    _launch(b, "lstm_unit", b["C"], b["H"])


@kernel("lstm_unit_grad", place="cuda", dtypes=FLOATS)
def _grad_on_cuda(b: Binder) -> None:
    _launch(b, "lstm_unit_back", b["C"], b["C@GRAD"], b["H@GRAD"], b["X@GRAD"], b["C_prev@GRAD"])
