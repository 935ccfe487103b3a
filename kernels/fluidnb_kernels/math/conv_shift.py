"""conv_shift: the circular convolution of two rows, as the memory of a Turing machine is moved."""

from __future__ import annotations

import numpy as np

from fluidnb.op import Array, Binder, Context, default_grad, grad_op, op
from fluidnb_kernels.cuda import ctype, each, each_line
from fluidnb_kernels.emit import FLOATS
from fluidnb_kernels.math.matrix_products import CUDA


def _infer(c: Context) -> None:
    c.check_inputs()
    x, y = c["X"].shape, c["Y"].shape
    c.require(
        y[1] < 0 or y[1] % 2 == 1 and (x[1] < 0 or y[1] <= x[1]),
        "The width of Input(Y) of conv_shift must be odd and not larger than that of Input(X).",
        expected=f"1, 3, … up to {x[1]}", received=y[1],
    )  # fmt: skip
    c.set("Out", x, c["X"].dtype, c.lod("X"))


def _around(b: Binder, rows: Array, sign: int) -> Array:
    """Emit the neighbours of each element of a row, [n, m, k]: j to the right, or to the left with sign -1."""
    m, k = rows.shape[1], b["Y"].shape[1]
    index = (np.arange(m)[:, None] + sign * (np.arange(k) - (k - 1) // 2)) % m
    out = b.tmp((len(rows), m, k), rows.dtype)
    b(np.ndarray.take, rows, index, 1, out, "clip")
    return out


def _sum(b: Binder, around: Array, weights: Array, out: Array) -> None:
    b(np.matmul, around, weights.reshape(*weights.shape, 1), out=out.reshape(*out.shape, 1))


@op(
    "conv_shift",
    inputs={"X: float[n, m]": "", "Y: float[n, k]": "k odd and not larger than m"},
    outputs={"Out": "[n, m]"},
    cost="X * Y[1:]",
    infer=_infer,
    grad=default_grad("X", "Y", "Out@GRAD"),
    cuda=FLOATS,
)
def conv_shift(b: Binder) -> None:
    """Out[:, i] = Σ X[:, (i + j) mod m] · Y[:, j + (k - 1) / 2], for j from -(k - 1) / 2 to (k - 1) / 2.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("conv_shift", {"X": [[1.0, 2.0, 3.0]], "Y": [[0.0, 0.0, 1.0]]})["Out"]
        array([[2., 3., 1.]])

    Source: Fluid's conv_shift_op; Graves et al., "Neural Turing Machines" (2014), section 3.3.2.
    """
    if b.on_cuda:
        return _shifted(b, b["X"], 1, b["Out"])
    _sum(b, _around(b, b["X"], 1), b["Y"], b["Out"])


@grad_op("conv_shift_grad", cuda=FLOATS)
def conv_shift_grad(b: Binder) -> None:
    """dX = dOut moved the other way by Y; dY[:, j] = Σ dOut[:, i] · X[:, (i + j) mod m]."""
    if b.on_cuda:
        x, g, dy = b["X"], b["Out@GRAD"], b["Y@GRAD"]
        if b.wants("X@GRAD"):
            _shifted(b, g, -1, b["X@GRAD"])
        if dy is not None:
            name = f"shifted_weights<{ctype(dy.dtype)}>"
            each_line(b, CUDA, name, dy.size, x.shape[1], 1, x, g, dy, np.int64(dy.shape[1]))
        return
    g = b["Out@GRAD"]
    if b.wants("X@GRAD"):
        _sum(b, _around(b, g, -1), b["Y"], b["X@GRAD"])
    if b.wants("Y@GRAD"):
        _sum(b, _around(b, b["X"], 1).swapaxes(1, 2), g, b["Y@GRAD"])


def _shifted(b: Binder, rows: Array, step: int, out: Array) -> None:
    """Emit rows shifted by Y: step 1 takes elements to the right, step -1 to the left."""
    m, k = (np.int64(b[slot].shape[1]) for slot in ("X", "Y"))
    each(b, CUDA, f"shifted<{ctype(out.dtype)}>", out.size, rows, b["Y"], out, np.int32(step), m, k)
