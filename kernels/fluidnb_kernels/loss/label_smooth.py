"""label_smooth: labels mixed with a less certain distribution."""

import numpy as np

from fluidnb.op import Attr, Binder, Context, default_grad, op
from fluidnb.op.c_code import Constant, c_code
from fluidnb_kernels.arithmetic import Operand, values
from fluidnb_kernels.cuda import ctype, each, of_dtype
from fluidnb_kernels.emit import FLOATS
from fluidnb_kernels.loss.launch import NOTHING, TERMS, pointwise


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
    cuda=FLOATS,
)
def label_smooth(b: Binder) -> None:
    """Out = (1 - epsilon) · X + epsilon · PriorDist, or epsilon / classes without one.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("label_smooth", {"X": [[1.0, 0.0]]}, {"epsilon": 0.5})["Out"]
        array([[0.75, 0.25]])

    Source: Szegedy et al., Rethinking the Inception architecture (2016); Fluid's label_smooth_op.
    """
    if b.on_cuda:
        x, epsilon = b["X"], b.attr("epsilon")
        prior = of_dtype(b, b["PriorDist"], x.dtype) if b.has("PriorDist") else NOTHING
        numbers = np.float64(1 - epsilon), np.float64(epsilon), np.int64(x.shape[-1])
        return each(b, TERMS, f"label_smooth<{ctype(x.dtype)}>", x.size, x, prior, b["Out"], *numbers)
    (x,), epsilon = values(b, b["X"]), b.attr("epsilon")
    t = x * (1 - epsilon)
    prior = epsilon / max(b["X"].shape[-1], 1)
    if b.has("PriorDist"):
        prior = values(b, b["PriorDist"].reshape(-1))[0] * epsilon
    (t + prior).into(b["Out"])


@pointwise("label_smooth_grad", "Out@GRAD", "X@GRAD", lambda b: [1 - b.attr("epsilon", 0.0)], "scaled")
def label_smooth_grad(g: Operand) -> Operand:
    """dX = (1 - epsilon) · dOut."""
    return g * (1 - g.attr("epsilon", 0.0))


@c_code("label_smooth")
def _label_smooth_in_c(c: Context) -> dict[str, Constant]:
    classes, epsilon = c["X"].shape[-1], c.attr("epsilon")
    return {"COUNT": c["X"].size, "CLASSES": classes, "EPSILON": epsilon, "SAME": epsilon / max(classes, 1)}
