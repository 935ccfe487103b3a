"""cvm: how often something was shown and clicked, in the first two columns of its embedding."""


import numpy as np

from fluidnb.op import Array, Attr, Binder, Context, default_grad, grad_op, op
from fluidnb_kernels.emit import FLOATS


def _infer(c: Context) -> None:
    x = c["X"].shape
    c.check_inputs()
    c.require(
        x[1] < 0 or x[1] >= 2, "Input(X) of cvm must begin with two counts.",
        expected="2 or more columns", received=list(x),
    )  # fmt: skip
    c.set("Y", (x[0], x[1] if c.attr("use_cvm") or x[1] < 0 else x[1] - 2), c["X"].dtype, c.lod("X"))


def rates(x: Array, keep: bool, out: Array) -> None:
    """Write embeddings with logarithms of their counts, or without counts, which are the first two columns of x."""
    if not keep:
        out[...] = x[:, 2:]
        return
    out[...] = x
    np.log1p(x[:, :2], out=out[:, :2])
    out[:, 1] -= out[:, 0]


def slopes(g: Array, counts: Array, lengths: Array, dx: Array) -> None:
    """Write the gradient: the counts themselves in the first two columns."""
    dx[:, :2] = np.repeat(counts, lengths, 0)
    dx[:, 2:] = g[:, g.shape[1] - dx.shape[1] + 2 :]


@op(
    "cvm",
    inputs={
        "X: float[rows, columns]": "embeddings that begin with two counts",
        "CVM: float[sequences, 2]": "their counts",
    },
    outputs={"Y": "the shape of X, or two columns less"},
    attrs={"use_cvm": Attr("bool", True, "whether the counts stay")},
    cost="2 * X[:1]",
    infer=_infer,
    grad=default_grad("X", "CVM", "Y@GRAD", wrt=["X"]),
    host_only="has a kernel for the CPU alone, as in Fluid",
    dtypes=FLOATS,
)
def cvm(b: Binder) -> None:
    """Y = X with ``log(shown + 1)`` and ``log(clicked + 1) - log(shown + 1)`` in front, or without its counts.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("cvm", {"X": [[0.0, 0.0, 5.0]], "CVM": [[1.0, 1.0]]}, {"use_cvm": False})["Y"]
        array([[5.]])

    Source: Fluid's cvm_op.
    """
    b(rates, b["X"], b.attr("use_cvm"), b["Y"])


@grad_op("cvm_grad", dtype_slot="X", host_only="has a kernel for the CPU alone, as in Fluid")
def cvm_grad(b: Binder) -> None:
    """dX = CVM of its sequence in the first two columns, which parameter servers add up; dY in the others."""
    x, counts, level = b["X"], b["CVM"], b.lod("X")
    lengths = np.diff(level[0]) if level else np.ones(len(x), np.int64)
    b.require(
        len(lengths) == len(counts), "Input(CVM) of cvm has a row for each sequence of X.",
        expected=len(lengths), received=len(counts),
    )  # fmt: skip
    b(slopes, b["Y@GRAD"], counts, lengths, b["X@GRAD"])
