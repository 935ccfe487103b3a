"""label_smooth: labels mixed with a distribution that says less."""

from __future__ import annotations

import numpy as np

from fluidnb.op import Attr, Binder, Context, default_grad, grad_op, kernel, op
from fluidnb_kernels.cuda import ctype
from fluidnb_kernels.cuda.cast import of_dtype
from fluidnb_kernels.cuda.grid import each
from fluidnb_kernels.emit import FLOATS, apply
from fluidnb_kernels.loss.launch import NOTHING, TERMS, terms


def _infer(c: Context) -> None:
    x = c["X"]
    c.require(
        x.ndim, "Input(X) of label_smooth must have an axis of classes.", expected="[N, classes]",
        received=list(x.shape),
    )  # fmt: skip
    if c.has("PriorDist"):
        prior, classes = c["PriorDist"], x.shape[-1]
        c.require(
            prior.size == classes or -1 in (prior.size, classes),
            "Input(PriorDist) of label_smooth must have a number for each class.",
            expected=f"[1, {classes}]", received=list(prior.shape),
        )  # fmt: skip
    c.set("Out", x.shape, x.dtype, c.lod("X"))


@op(
    "label_smooth",
    inputs={
        "X: float[N, classes]": "a distribution over classes in each row",
        "PriorDist?: float[1, classes]": "default all equal",
    },
    outputs={"Out": "the mixtures, of its shape"},
    attrs={"epsilon": Attr("float", 0.0, "the share of the prior distribution")},
    cost="2 * X",
    infer=_infer,
    grad=default_grad("Out@GRAD", wrt=["X"]),
    inplace=True,
    dtypes=FLOATS,
    dtype_slot="X",
)
def label_smooth(b: Binder) -> None:
    """Out = (1 - epsilon) · X + epsilon · PriorDist, or epsilon / classes without one.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("label_smooth", {"X": [[1.0, 0.0]]}, {"epsilon": 0.5})["Out"]
        array([[0.75, 0.25]])

    Source: Szegedy et al., Rethinking the Inception architecture (2016); Fluid's label_smooth_op.
    """
    x, epsilon = b["X"], b.attr("epsilon")
    t = apply(b, np.multiply, x, b.const(1 - epsilon, x.dtype))
    prior = b.const(epsilon / max(x.shape[-1], 1), x.dtype)
    if b.has("PriorDist"):
        prior = apply(b, np.multiply, b["PriorDist"].reshape(-1), b.const(epsilon, x.dtype))
    b(np.add, t, prior, out=b["Out"])


@grad_op("label_smooth_grad")
def label_smooth_grad(b: Binder) -> None:
    """dX = (1 - epsilon) · dOut."""
    g = b["Out@GRAD"]
    b(np.multiply, g, b.const(1 - b.attr("epsilon", 0.0), g.dtype), out=b["X@GRAD"])


@kernel("label_smooth", place="cuda", dtypes=FLOATS)
def label_smooth_on_cuda(b: Binder) -> None:
    """One launch."""
    x, epsilon = b["X"], b.attr("epsilon")
    prior = of_dtype(b, b["PriorDist"], x.dtype) if b.has("PriorDist") else NOTHING
    numbers = np.float64(1 - epsilon), np.float64(epsilon), np.int64(x.shape[-1])
    each(b, TERMS, f"label_smooth<{ctype(x.dtype)}>", x.size, x, prior, b["Out"], *numbers)


@kernel("label_smooth_grad", place="cuda", dtypes=FLOATS)
def label_smooth_grad_on_cuda(b: Binder) -> None:
    """dX = (1 - epsilon) · dOut."""
    terms(b, "scaled", [b["Out@GRAD"]], b["X@GRAD"], NOTHING, 1 - b.attr("epsilon", 0.0))
