"""Losses of distances, distributions and rankings, and labels made softer."""

from __future__ import annotations

from typing import Any

from fluidnb.errors import OpValueError
from fluidnb.layers.math import scale
from fluidnb.layers.one_op import one_op
from fluidnb.layers.reduce import reduce_mean, reduce_sum
from fluidnb.layers.search import one_hot
from fluidnb.layers.several import several
from fluidnb.op import takes
from fluidnb.program import Variable
from fluidnb.program import layer_calls as naming

__all__ = [
    "bpr_loss", "dice_loss", "huber_loss", "kldiv_loss", "label_smooth", "log_loss", "margin_rank_loss", "rank_loss",
    "smooth_l1",
]  # fmt: skip


@naming.layer
@takes(label="huber_loss.Y")
def huber_loss(input: Variable, label: Variable, delta: float) -> Variable:
    """Half the squared difference where it is small, a line where it is large.

    Args:
        input: predictions [N, 1].
        label: targets [N, 1].
        delta: the difference at which the parabola becomes a line.

    Returns:
        The loss of each row [N, 1].

    Example:
        >>> y, t = fluid.layers.data("y", [1]), fluid.layers.data("t", [1])
        >>> fluid.layers.huber_loss(y, t, delta=1.0).shape
        (-1, 1)
    """
    outputs = {"Out": input.dtype, "Residual": input.dtype}
    return several("huber_loss", {"X": input, "Y": label}, outputs, {"delta": float(delta)})[0]


@naming.layer
@takes(
    x="smooth_l1_loss.X",
    y="smooth_l1_loss.Y",
    inside_weight="smooth_l1_loss.InsideWeight",
    outside_weight="smooth_l1_loss.OutsideWeight",
)
def smooth_l1(
    x: Variable,
    y: Variable,
    inside_weight: Variable | None = None,
    outside_weight: Variable | None = None,
    sigma: float | None = None,
) -> Variable:
    """The sum over a row of squared differences where they are small, of absolute ones where they are large.

    Args:
        x: predictions [N, …].
        y: targets, shape of ``x``.
        inside_weight: factors of the differences, shape of ``x``.
        outside_weight: factors of the losses, shape of ``x``.
        sigma: the difference at which the parabola becomes a line is ``1 / sigma²``; 1 by default.

    Returns:
        The loss of each row [N, 1].

    Raises:
        OpValueError: one weight comes without the other, or shapes differ.

    Example:
        >>> x, y = fluid.layers.data("x", [4]), fluid.layers.data("y", [4])
        >>> fluid.layers.smooth_l1(x, y).shape
        (-1, 1)
    """
    given = {"X": x, "Y": y, "InsideWeight": inside_weight, "OutsideWeight": outside_weight}
    inputs: dict[str, Variable | list[Variable]] = {slot: v for slot, v in given.items() if v is not None}
    outputs = {"Out": x.dtype, "Diff": x.dtype}
    return several("smooth_l1_loss", inputs, outputs, {"sigma": 1.0 if sigma is None else float(sigma)})[0]


@naming.layer
@takes(input="log_loss.Predicted", label="log_loss.Labels")
def log_loss(input: Variable, label: Variable, epsilon: float = 0.0001, name: str | None = None) -> Variable:
    """Negative logarithm of the probability of what was the case.

    Args:
        input: probabilities of yes [N, 1].
        label: 1 for yes, 0 for no, [N, 1].
        epsilon: keeps logarithms finite.
        name: name of the layer.

    Returns:
        The loss of each row [N, 1].

    Example:
        >>> p, label = fluid.layers.data("p", [1]), fluid.layers.data("label", [1])
        >>> fluid.layers.log_loss(p, label).shape
        (-1, 1)
    """
    inputs = {"Predicted": input, "Labels": label}
    return one_op("log_loss", inputs, {"epsilon": float(epsilon)}, slot="Loss", name=name)


@naming.layer
def kldiv_loss(x: Variable, target: Variable, reduction: str = "mean", name: str | None = None) -> Variable:
    """Kullback-Leibler divergence: ``target · (log(target) - x)``.

    Args:
        x: logarithms of probabilities, any shape.
        target: probabilities, shape of ``x``.
        reduction: ``"none"``, ``"sum"``, ``"mean"`` over elements, or ``"batchmean"`` over rows.
        name: name of the layer.

    Returns:
        Shape of ``x``, or [1].

    Raises:
        OpValueError: an unknown reduction, or shapes differ.

    Example:
        >>> x, target = fluid.layers.data("x", [4]), fluid.layers.data("target", [4])
        >>> fluid.layers.kldiv_loss(x, target, reduction="batchmean").shape
        (1,)
    """
    return one_op("kldiv_loss", {"X": x, "Target": target}, {"reduction": reduction}, slot="Loss", name=name)


@naming.layer
def rank_loss(label: Variable, left: Variable, right: Variable, name: str | None = None) -> Variable:
    """Cross entropy of which of two should come first: ``log(1 + exp(left - right)) - label · (left - right)``.

    Args:
        label: 1 where left should, 0 where right, [N, 1].
        left: scores [N, 1].
        right: scores [N, 1].
        name: name of the layer.

    Returns:
        The loss of each pair [N, 1].

    Example:
        >>> label, left, right = (fluid.layers.data(n, [1]) for n in ("label", "left", "right"))
        >>> fluid.layers.rank_loss(label, left, right).shape
        (-1, 1)
    """
    inputs = {"Label": label, "Left": left, "Right": right}
    return one_op("rank_loss", inputs, dtype=left.dtype, name=name)


@naming.layer
@takes(left="margin_rank_loss.X1", right="margin_rank_loss.X2")
def margin_rank_loss(
    label: Variable, left: Variable, right: Variable, margin: float = 0.1, name: str | None = None
) -> Variable:
    """Margin ranking loss: ``max(0, margin - label · (left - right))``.

    Args:
        label: 1 where left should be larger, -1 where right, [N, 1].
        left: scores [N, 1].
        right: scores [N, 1].
        margin: the margin.
        name: name of the layer.

    Returns:
        The loss of each pair [N, 1].

    Example:
        >>> label, left, right = (fluid.layers.data(n, [1]) for n in ("label", "left", "right"))
        >>> fluid.layers.margin_rank_loss(label, left, right).shape
        (-1, 1)
    """
    inputs = {"Label": label, "X1": left, "X2": right}
    outputs = {"Out": left.dtype, "Activated": left.dtype}
    return several("margin_rank_loss", inputs, outputs, {"margin": float(margin)}, name=name)[0]


@naming.layer
def bpr_loss(input: Variable, label: Variable, name: str | None = None) -> Variable:
    """The mean over all other classes of how likely they are to come before the right one.

    Args:
        input: scores [N, classes].
        label: int64 [N, 1]: the class that should come first.
        name: name of the layer.

    Returns:
        The loss of each row [N, 1].

    Example:
        >>> x, label = fluid.layers.data("x", [10]), fluid.layers.data("label", [1], dtype="int64")
        >>> fluid.layers.bpr_loss(x, label).shape
        (-1, 1)
    """
    return one_op("bpr_loss", {"X": input, "Label": label}, slot="Y", name=name)


@naming.layer
@takes(input="float[N, …, classes]", label="int64[N, …, 1]")
def dice_loss(input: Variable, label: Variable, epsilon: float = 0.00001) -> Variable:
    """Dice loss: 1 minus twice the intersection over the sum of both sets.

    Args:
        input: probabilities of classes [N, …, classes].
        label: int64 class numbers [N, …, 1].
        epsilon: keeps the divisor from zero.

    Returns:
        The mean over the batch, shape [1].

    Example:
        >>> x, label = fluid.layers.data("x", [10]), fluid.layers.data("label", [1], dtype="int64")
        >>> fluid.layers.dice_loss(x, label).shape
        (1,)
    """
    marks = one_hot(label, input.shape[-1])
    axes = list(range(1, len(input.shape)))
    shared = reduce_sum(input * marks, dim=axes)
    held = reduce_sum(input, dim=axes) + reduce_sum(marks, dim=axes)
    return reduce_mean(scale(shared / (held + epsilon), -2.0, 1.0))


@naming.layer
@takes(label="label_smooth.X")
def label_smooth(
    label: Variable,
    prior_dist: Variable | None = None,
    epsilon: float = 0.1,
    dtype: Any = "float32",
    name: str | None = None,
) -> Variable:
    """Labels mixed with a distribution that says less.

    Args:
        label: a distribution over classes in each row [N, classes], for example from `one_hot`.
        prior_dist: [1, classes]; by default all classes are as likely.
        epsilon: its share, from 0 to 1.
        dtype: dtype of the result.
        name: name of the layer.

    Returns:
        The mixtures [N, classes].

    Raises:
        OpValueError: the share is not from 0 to 1.

    Example:
        >>> label = fluid.layers.one_hot(fluid.layers.data("label", [1], dtype="int64"), depth=10)
        >>> fluid.layers.label_smooth(label, epsilon=0.1).shape
        (-1, 10)
    """
    if not 0 <= epsilon <= 1:
        raise OpValueError("The value of epsilon must be between 0 and 1.", expected="0 to 1", received=epsilon)
    label.stop_gradient = True
    inputs = {"X": label} if prior_dist is None else {"X": label, "PriorDist": prior_dist}
    return one_op("label_smooth", inputs, {"epsilon": float(epsilon)}, dtype=dtype, name=name)
