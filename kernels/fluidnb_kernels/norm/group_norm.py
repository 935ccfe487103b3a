"""group_norm: the channels of an image normalised in groups."""

from __future__ import annotations

from fluidnb.op import Attr, Binder, Context, default_grad, grad_op, op, product
from fluidnb_kernels.emit import FLOATS
from fluidnb_kernels.norm.emit import View, normalise, normalise_grad
from fluidnb_kernels.norm.launch import Lines
from fluidnb_kernels.rules import vectors
from fluidnb_kernels.sliding import CHANNEL_LAST, split_shape


def _infer(c: Context) -> None:
    x, groups, layout = c["X"], c.attr("groups"), c.attr("data_layout")
    c.check_inputs("X")
    n, channels, _ = split_shape(x.shape, layout)
    c.require(
        channels < 0 or 0 < groups <= channels and channels % groups == 0,
        "The number of groups of group_norm must divide the number of channels.",
        expected=f"a divisor of {channels}", received=groups,
    )  # fmt: skip
    vectors(c, ("Scale", "Bias"), channels)
    c.set("Y", x.shape, x.dtype, c.lod("X"))
    for slot in ("Mean", "Variance"):
        c.set(slot, (n, groups), x.dtype)


def _groups(b: Binder) -> tuple[View, Lines]:
    """X as [n, groups, channels of a group, …], and its groups as lines."""
    layout, groups = b.attr("data_layout", "NCHW"), b.attr("groups")
    n, channels, sizes = split_shape(b["X"].shape, layout)
    size, inner, around = channels // groups, product(sizes), tuple(range(3, 3 + len(sizes)))
    view = View((n, groups, size, *sizes), (2, *around), (0, *around), layout=layout)
    return view, Lines(n * groups, size * inner, groups, inner, layout in CHANNEL_LAST)


@op(
    "group_norm",
    inputs={
        "X: float[n, c, …]": "[n, …, c] with data_layout NHWC",
        "Scale?: float[c]": "1 where it is left out",
        "Bias?: float[c]": "0 where it is left out",
    },
    outputs={"Y": "X normalised", "Mean~": "[n, groups]", "Variance~": "[n, groups], biased"},
    attrs={
        "epsilon": Attr(
            "float", 1e-5, "keeps the divisor from zero",
            check=lambda e: None if 0 <= e <= 1 else "'epsilon' in Op(GroupNorm) should be between 0.0 and 1.0f.",
        ),
        "groups": Attr(
            "int", doc="how many groups the channels fall into",
            check=lambda g: None if g > 0 else "'groups' in Op(GroupNorm) should be greater than zero.",
        ),
        "data_layout": Attr("string", "NCHW", "where the channels are"),
    },
    cost="4 * X",
    infer=_infer,
    grad=default_grad("X", "Scale", "Bias", "Y", "Mean", "Variance", "Y@GRAD"), cuda=FLOATS,
)  # fmt: skip
def group_norm(b: Binder) -> None:
    """Y = (X - mean) / sqrt(variance + epsilon) · Scale + Bias, with the moments of each image's groups of channels.

    Example:
        >>> from fluidnb.testing import run_op
        >>> x = np.array([1.0, 3.0, 0.0, 4.0]).reshape(1, 4, 1, 1)
        >>> run_op("group_norm", {"X": x}, {"groups": 2})["Y"].ravel().round(3)
        array([-1.,  1., -1.,  1.])

    Source: Wu and He, "Group Normalization" (ECCV 2018); Fluid's group_norm_op.
    """
    normalise(b, *_groups(b), "Mean", "Variance")


@grad_op("group_norm_grad", cuda=FLOATS)
def group_norm_grad(b: Binder) -> None:
    """dScale = Σ dY · x̂ and dBias = Σ dY; with h = dY · Scale, dX = (h - mean h - x̂ · mean(h · x̂)) / σ."""
    normalise_grad(b, *_groups(b), "Mean", "Variance")
