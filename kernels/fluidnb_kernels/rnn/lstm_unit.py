"""lstm_unit: one step of an LSTM."""

import numpy as np

from fluidnb.op import Array, Attr, Binder, Context, default_grad, grad_op, op
from fluidnb.op.c_code import Constant, c_code
from fluidnb_kernels.activation.smooth import logistic
from fluidnb_kernels.arithmetic import values
from fluidnb_kernels.cuda import by_rows, ctype
from fluidnb_kernels.emit import FLOATS, apply, zeros
from fluidnb_kernels.rnn.launch import CUDA
from fluidnb_kernels.sequences import one_dtype


def _infer(c: Context) -> None:
    one_dtype(c, "X", "C_prev")
    x, old = c["X"], c["C_prev"]
    c.check_inputs()
    width = old.shape[1]
    c.require(
        -1 in (x.shape[1], width) or x.shape[1] == 4 * width,
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
    i, forget, o = (logistic(v).array for v in values(b, i, forget, o))
    return i, forget, o, apply(b, np.tanh, g)


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
    cuda=FLOATS,
)
def lstm_unit(b: Binder) -> None:
    """C = σ(f + forget_bias) · C_prev + σ(i) · tanh(g); H = σ(o) · tanh(C).

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("lstm_unit", {"X": np.zeros((1, 4)), "C_prev": [[3.0]]})["C"]
        array([[1.5]])

    Source: Fluid's lstm_unit_op.
    """
    if b.on_cuda:
        return _launch(b, "lstm_unit", b["C"], b["H"])
    i, f, o, g, old = values(b, *_gates(b), b["C_prev"])
    cell = f * old + i * g
    if b.wants("C"):
        b(np.copyto, b["C"], cell.array)
    if b.wants("H"):
        (o * np.tanh(cell)).into(b["H"])


@grad_op("lstm_unit_grad", dtype_slot="X", cuda=FLOATS)
def lstm_unit_grad(b: Binder) -> None:
    """dC is that of C and of H together; each gate gets its share times the slope of its activation."""
    if b.on_cuda:
        return _launch(b, "lstm_unit_back", b["C"], b["C@GRAD"], b["H@GRAD"], b["X@GRAD"], b["C_prev@GRAD"])
    i, f, o, g, old, cell = values(b, *_gates(b), b["C_prev"], b["C"])
    seen, dh = np.tanh(cell), o.slot("H@GRAD")
    if b["H@GRAD"] is None:
        dc = o.slot("C@GRAD") + 0
    else:  # through tanh(C)
        dc = (1 - seen * seen) * (dh * o)
        dc = dc if b["C@GRAD"] is None else dc + o.slot("C@GRAD")
    if b.wants("C_prev@GRAD"):
        (dc * f).into(b["C_prev@GRAD"])
    if not b.wants("X@GRAD"):
        return
    width = old.array.shape[1]
    di, df, do, dg = (b["X@GRAD"][:, k * width : (k + 1) * width] for k in range(4))
    (i * (1 - i) * g * dc).into(di)
    (f * (1 - f) * old * dc).into(df)
    if b["H@GRAD"] is None:
        zeros(b, do)
    else:
        (o * (1 - o) * seen * dh).into(do)
    ((1 - g * g) * i * dc).into(dg)


def _launch(b: Binder, name: str, *arrays: Array) -> None:
    rows, width = b["C_prev"].shape
    settings = np.float64(b.attr("forget_bias", 0.0)), np.int64(width)
    by_rows(b, CUDA, f"{name}<{ctype(b['X'].dtype)}>", rows, width, b["X"], b["C_prev"], *arrays, *settings)


@c_code("lstm_unit", "lstm_unit_grad")
def _lstm_unit_in_c(c: Context) -> dict[str, Constant]:
    rows, width = c["C_prev"].shape
    return {"ROWS": rows, "WIDTH": width, "BIAS": c.attr("forget_bias", 0.0)}
