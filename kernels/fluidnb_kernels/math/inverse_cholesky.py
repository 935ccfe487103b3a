"""inverse and cholesky: matrices taken apart."""

import numpy as np

from fluidnb.errors import EnforceNotMet
from fluidnb.op import Array, Attr, Binder, Context, aliases, default_grad, grad_op, op
from fluidnb_kernels.emit import apply


def _square(c: Context, slot: str, out: str) -> None:
    x = c[slot]
    c.check_inputs()
    c.set(out, x.shape, x.dtype, c.lod(slot))


def invert(x: Array, out: Array) -> None:
    """Write the inverse of each matrix."""
    try:
        out[...] = np.linalg.inv(x)
    except np.linalg.LinAlgError:
        raise EnforceNotMet(
            "A matrix in Input(Input) of inverse is singular.", expected="a determinant other than 0",
            received="rows that depend on each other", hint="add a small multiple of layers.diag of ones.",
        ) from None  # fmt: skip


@op(
    "inverse",
    inputs={"Input: float[…, n, n]": ""},
    outputs={"Output": "the same shape"},
    cost="Input * Input[-1:]",
    infer=lambda c: _square(c, "Input", "Output"),
    grad=default_grad("Output", "Output@GRAD"),
    dtypes=("float32", "float64"),
    host_only="needs cuSOLVER on a GPU",
)
def inverse(b: Binder) -> None:
    """Output = the inverse of each matrix.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("inverse", {"Input": [[2.0, 0.0], [0.0, 4.0]]})["Output"]
        array([[0.5 , 0.  ],
               [0.  , 0.25]])

    Source: Paddle's inverse_op.
    """
    b(invert, b["Input"], b["Output"])


@grad_op("inverse_grad", infer=aliases({"Input@GRAD": "Output"}), host_only="needs cuSOLVER on a GPU")
def inverse_grad(b: Binder) -> None:
    """dInput = -Outputᵀ · dOutput · Outputᵀ."""
    out, g = b["Output"].swapaxes(-1, -2), b["Output@GRAD"]
    half, whole = b.like(g), b.like(g)
    b(np.matmul, out, g, out=half)
    b(np.matmul, half, out, out=whole)
    b(np.negative, whole, out=b["Input@GRAD"])


def factor(x: Array, upper: bool, out: Array) -> None:
    """Write the triangular factor of each symmetric matrix, of which one triangle is read."""
    try:
        lower = np.linalg.cholesky(x.swapaxes(-1, -2) if upper else x)
    except np.linalg.LinAlgError:
        raise EnforceNotMet(
            "A matrix in Input(X) of cholesky is not positive definite.", expected="positive eigenvalues",
            received="one that is 0 or negative", hint="add a small multiple of layers.diag of ones.",
        ) from None  # fmt: skip
    out[...] = lower.swapaxes(-1, -2) if upper else lower


@op(
    "cholesky",
    inputs={"X: float[…, n, n]": "symmetric and positive definite"},
    outputs={"Out": "the same shape: a triangle, 0 elsewhere"},
    attrs={"upper": Attr("bool", False, "the upper factor U with X = Uᵀ · U; else the lower one with X = L · Lᵀ")},
    cost=lambda c: c["X"].size * c["X"].shape[-1] // 3,
    infer=lambda c: _square(c, "X", "Out"),
    grad=default_grad("Out", "Out@GRAD"),
    dtypes=("float32", "float64"),
    host_only="needs cuSOLVER on a GPU",
)
def cholesky(b: Binder) -> None:
    """Out = the triangular matrix whose product with its transpose is X.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("cholesky", {"X": [[4.0, 2.0], [2.0, 5.0]]})["Out"]
        array([[2., 0.],
               [1., 2.]])

    Source: Paddle's cholesky_op; its gradient: Murray, "Differentiation of the Cholesky decomposition" (2016).
    """
    b(factor, b["X"], b.attr("upper"), b["Out"])


@grad_op("cholesky_grad", host_only="needs cuSOLVER on a GPU")
def cholesky_grad(b: Binder) -> None:
    """dX = (S + Sᵀ) / 2 with S = L⁻ᵀ · Φ(Lᵀ · dL) · L⁻¹; Φ keeps the lower triangle and half of the diagonal."""
    factor_, g = b["Out"], b["Out@GRAD"]
    if b.attr("upper", False):
        factor_, g = factor_.swapaxes(-1, -2), g.swapaxes(-1, -2)
    n = g.shape[-1]
    share = np.tri(n, dtype=g.dtype) - np.eye(n, dtype=g.dtype) / 2
    back, inner, half, s = (b.tmp(g.shape, g.dtype) for _ in range(4))
    b(invert, factor_, back)
    b(np.matmul, factor_.swapaxes(-1, -2), g, out=inner)
    b(np.matmul, back.swapaxes(-1, -2), apply(b, np.multiply, inner, share), out=half)
    b(np.matmul, half, back, out=s)
    total = apply(b, np.add, s, s.swapaxes(-1, -2))
    b(np.multiply, total, b.const(0.5, g.dtype), out=b["X@GRAD"])
