"""instance_norm: each channel of each image normalised by itself."""

from __future__ import annotations

from fluidnb.op import Attr, Binder, Context, default_grad, grad_op, op, product
from fluidnb_kernels.emit import FLOATS
from fluidnb_kernels.norm.emit import View, normalise, normalise_grad
from fluidnb_kernels.norm.launch import Lines
from fluidnb_kernels.norm.second_gradients import SAVED, define, second_maker
from fluidnb_kernels.rules import vectors


def _infer(c: Context) -> None:
    x = c["X"]
    c.require(
        2 <= x.ndim <= 5, "The input of instance_norm must have 2 to 5 dimensions.",
        expected="[batch, channels, …]", received=list(x.shape),
    )  # fmt: skip
    n, channels = x.shape[:2]
    vectors(c, ("Scale", "Bias"), channels)
    c.set("Y", x.shape, x.dtype, c.lod("X"))
    for slot in ("SavedMean", "SavedVariance"):
        c.set(slot, (product((n, channels)),), x.dtype)


def _view(b: Binder) -> View:
    shape = b["X"].shape
    around = tuple(range(2, len(shape)))
    return View(shape, around, (0, *around))


def _lines(b: Binder) -> Lines:
    """The channels of all images."""
    n, channels, *sizes = b["X"].shape
    return Lines(n * channels, product(sizes), channels, product(sizes))


@op(
    "instance_norm",
    inputs={
        "X: float[n, c, …]": "",
        "Scale?: float[c]": "1 where it is left out",
        "Bias?: float[c]": "0 where it is left out",
    },
    outputs={
        "Y": "X normalised",
        "SavedMean~": "[n · c]",
        "SavedVariance~": "[n · c]: 1 / sqrt(biased variance + epsilon)",
    },
    attrs={"epsilon": Attr("float", 1e-5, "keeps the divisor from zero", ge=0)},
    cost="4 * X",
    infer=_infer,
    grad=default_grad("X", "Scale", "SavedMean", "SavedVariance", "Y@GRAD", wrt=["X", "Scale", "Bias"]),
    cuda=FLOATS,
)
def instance_norm(b: Binder) -> None:
    """Y = (X - mean) / sqrt(variance + epsilon) · Scale + Bias, with the moments of each channel of each image.

    Example:
        >>> from fluidnb.testing import run_op
        >>> x = np.array([1.0, 3.0, 0.0, 4.0]).reshape(1, 2, 2)
        >>> run_op("instance_norm", {"X": x})["Y"].ravel().round(3)
        array([-1.,  1., -1.,  1.])

    Source: Ulyanov et al., "Instance Normalization: The Missing Ingredient for Fast Stylization" (2016); Paddle's
    instance_norm_op.
    """
    normalise(b, _view(b), _lines(b), "SavedMean", "SavedVariance", inverted=True)


def _grad_infer(c: Context) -> None:
    x = c["X"]
    c.set("X@GRAD", x.shape, x.dtype, c.lod("X"))
    for slot in ("Scale@GRAD", "Bias@GRAD"):
        c.set(slot, (x.shape[1],), x.dtype)


@grad_op("instance_norm_grad", infer=_grad_infer, grad=second_maker("instance_norm", SAVED), cuda=FLOATS)
def instance_norm_grad(b: Binder) -> None:
    """dScale = Σ dY · x̂ and dBias = Σ dY; with h = dY · Scale, dX = (h - mean h - x̂ · mean(h · x̂)) / σ."""
    normalise_grad(b, _view(b), _lines(b), "SavedMean", "SavedVariance", inverted=True)


define("instance_norm", _view)
