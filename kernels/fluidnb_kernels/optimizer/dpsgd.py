"""dpsgd: differentially private stochastic gradient descent."""

from __future__ import annotations

import numpy as np

from fluidnb.op import Array, Attr, Binder, Stream, kernel, normal
from fluidnb_kernels.emit import FLOATS
from fluidnb_kernels.optimizer.common import PARAM, RATE, optimizer_op, scalar
from fluidnb_kernels.optimizer.trust_ratio import emit_dpsgd


def step(param: Array, grad: Array, rate: Array, stream: Stream, clip: float, noise: float, out: Array) -> None:
    """Take a step along the gradient, held to a length, with a random number added."""
    draw = np.zeros(1)
    normal(stream, draw, 0.0, noise)
    length = np.sqrt(np.square(grad, dtype=np.float64).sum())
    scale = max(length / clip, 1.0)
    out[...] = param - rate * (grad / scale + draw[0]).astype(grad.dtype)


@optimizer_op(
    "dpsgd",
    {"ParamOut": "Param"},
    inputs=PARAM | {"Grad: float": "its gradient, same shape"} | RATE,
    attrs={
        "clip": Attr("float", 10.0, "the longest gradient, in the Euclidean norm"),
        "batch_size": Attr("float", 16.0, "how many samples the gradient is of", gt=0),
        "sigma": Attr("float", 1.0, "standard deviation of the noise for one sample"),
        "seed": Attr("int", 0, "0 for the program's"),
    },
    cost="4 * Param",
    inplace=False,
    random=True,
)
def dpsgd(b: Binder) -> None:
    """p' = p - lr · (g / max(1, |g| / clip) + noise / batch_size), one normal number of deviation sigma for all.

    Example:
        >>> from fluidnb.testing import run_op
        >>> rate = {"Param": [1.0], "Grad": [2.0], "LearningRate": [0.1]}
        >>> run_op("dpsgd", rate, {"sigma": 0.0})["ParamOut"]
        array([0.8])

    Source: Abadi and others, "Deep Learning with Differential Privacy" (CCS 2016); Fluid's dpsgd_op.
    """
    noise = b.attr("sigma") / b.attr("batch_size")
    b(step, b["Param"], b["Grad"], scalar(b, "LearningRate"), b.rng, b.attr("clip"), noise, b["ParamOut"])


@kernel("dpsgd", place="cuda", dtypes=FLOATS)
def dpsgd_on_cuda(b: Binder) -> None:
    """The gradient's length in one pass, the step in another; the number is the host's."""
    emit_dpsgd(b, b.attr("clip"), b.attr("sigma") / b.attr("batch_size"))
