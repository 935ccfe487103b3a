"""layer_norm: each row normalised by itself."""

from __future__ import annotations

from fluidnb.op import Attr, Binder, Context, default_grad, grad_op, op, product
from fluidnb_kernels.emit import FLOATS
from fluidnb_kernels.norm.emit import LARGEST_EPSILON, View, normalise, normalise_grad
from fluidnb_kernels.norm.launch import Lines
from fluidnb_kernels.norm.second_gradients import define, second_maker
from fluidnb_kernels.rules import vectors


def _rows(c: Context) -> tuple[int, int]:
    """The number and the length of the rows of X (-1 unknown)."""
    x, begin = c["X"], c.attr("begin_norm_axis", 1)
    return product(x.shape[:begin]), product(x.shape[begin:])


def _view(b: Binder) -> View:
    return View(_rows(b), (1,), (0,))


def _infer(c: Context) -> None:
    x, begin = c["X"], c.attr("begin_norm_axis")
    c.require(
        begin < x.ndim, "'begin_norm_axis' must be less than the dimensions of X.",
        expected=f"< {x.ndim}", received=begin,
    )  # fmt: skip
    hint = f"a row is what X has from dimension begin_norm_axis = {begin} on."
    vectors(c, ("Scale", "Bias"), product(x.shape[begin:]), "element of a row", hint)
    c.set("Y", x.shape, x.dtype, c.lod("X"))
    for slot in ("Mean", "Variance"):
        c.set(slot, x.shape[:begin], x.dtype)


def _check_epsilon(value: float) -> str | None:
    fits = 0 <= value <= LARGEST_EPSILON
    return None if fits else "'epsilon' in Op(LayerNorm) should be between 0.0 and 0.001."


@op(
    "layer_norm",
    inputs={
        "X: float": "any shape with more than begin_norm_axis dimensions",
        "Scale?: float[length of a row]": "1 where it is left out",
        "Bias?: float[length of a row]": "0 where it is left out",
    },
    outputs={"Y": "X normalised", "Mean~": "the leading sizes of X", "Variance~": "the same, biased"},
    attrs={
        "epsilon": Attr("float", 1e-5, "keeps the divisor from zero", check=_check_epsilon),
        "begin_norm_axis": Attr("int", 1, "the dimensions before this one make rows, the others are normalised", gt=0),
        "is_test": Attr("bool", False, "ignored (compatibility)"),
    },
    cost="4 * X",
    infer=_infer,
    grad=default_grad("X", "Scale", "Bias", "Mean", "Variance", "Y@GRAD"), cuda=FLOATS,
)  # fmt: skip
def layer_norm(b: Binder) -> None:
    """Y = (X - mean) / sqrt(variance + epsilon) · Scale + Bias, with mean and variance of each row.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("layer_norm", {"X": np.array([[1.0, 3.0], [0.0, 4.0]])})["Y"].round(3)
        array([[-1.,  1.],
               [-1.,  1.]])

    Source: Ba, Kiros and Hinton, "Layer Normalization" (2016); Fluid's layer_norm_op.
    """
    normalise(b, _view(b), Lines(*_rows(b)), "Mean", "Variance")


@grad_op("layer_norm_grad", grad=second_maker("layer_norm", {"Mean": "Mean", "Variance": "Variance"}), cuda=FLOATS)
def layer_norm_grad(b: Binder) -> None:
    """dScale = Σ dY · x̂ and dBias = Σ dY over rows; with h = dY · Scale, dX = (h - mean h - x̂ · mean(h · x̂)) / σ."""
    normalise_grad(b, _view(b), Lines(*_rows(b)), "Mean", "Variance")


define("layer_norm", _view, "Mean", "Variance", inverted=False)
