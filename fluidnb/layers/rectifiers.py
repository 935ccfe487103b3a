"""Activations with settings: rectifiers, shrinking functions, smooth steps."""

from __future__ import annotations

from fluidnb.errors import OpValueError
from fluidnb.initializer import Constant
from fluidnb.layer_helper import LayerHelper
from fluidnb.layers.one_op import one_op
from fluidnb.op import product
from fluidnb.param_attr import ParamAttrLike
from fluidnb.program import Variable
from fluidnb.program import layer_calls as naming

__all__ = [
    "brelu", "elu", "hard_shrink", "hard_sigmoid", "leaky_relu", "maxout", "pow", "prelu", "relu6", "selu",
    "soft_relu", "softshrink", "stanh", "swish", "thresholded_relu",
]  # fmt: skip


@naming.layer
def brelu(x: Variable, t_min: float = 0.0, t_max: float = 24.0, name: str | None = None) -> Variable:
    """Values held between two bounds: ``min(max(x, t_min), t_max)``.

    Args:
        x: any shape, float.
        t_min: the lower bound.
        t_max: the upper bound.
        name: name of the layer.

    Returns:
        Shape, dtype and LoD of ``x``.

    Example:
        >>> fluid.layers.brelu(fluid.layers.data("x", [3]), t_max=6.0).op.attr("t_max")
        6.0
    """
    return one_op("brelu", {"X": x}, {"t_min": float(t_min), "t_max": float(t_max)}, name=name)


@naming.layer
def relu6(x: Variable, threshold: float = 6.0, name: str | None = None) -> Variable:
    """Rectifier with a ceiling: ``min(max(x, 0), threshold)``.

    Args:
        x: any shape, float.
        threshold: the ceiling.
        name: name of the layer.

    Returns:
        Shape, dtype and LoD of ``x``.

    Example:
        >>> fluid.layers.relu6(fluid.layers.data("x", [3])).shape
        (-1, 3)
    """
    return one_op("relu6", {"X": x}, {"threshold": float(threshold)}, name=name)


@naming.layer
def leaky_relu(x: Variable, alpha: float = 0.02, name: str | None = None) -> Variable:
    """Rectifier that lets a little of what is negative pass: ``max(x, alpha · x)``.

    Args:
        x: any shape, float.
        alpha: the slope below zero.
        name: name of the layer.

    Returns:
        Shape, dtype and LoD of ``x``.

    Example:
        >>> fluid.layers.leaky_relu(fluid.layers.data("x", [3]), alpha=0.1).shape
        (-1, 3)
    """
    return one_op("leaky_relu", {"X": x}, {"alpha": float(alpha)}, name=name)


@naming.layer
def soft_relu(x: Variable, threshold: float = 40.0, name: str | None = None) -> Variable:
    """Smooth rectifier: ``log(1 + exp(x))``, with x held between ``-threshold`` and ``threshold``.

    Args:
        x: any shape, float.
        threshold: how far ``x`` counts.
        name: name of the layer.

    Returns:
        Shape, dtype and LoD of ``x``.

    Example:
        >>> fluid.layers.soft_relu(fluid.layers.data("x", [3])).shape
        (-1, 3)
    """
    return one_op("soft_relu", {"X": x}, {"threshold": float(threshold)}, name=name)


@naming.layer
def thresholded_relu(x: Variable, threshold: float | None = None) -> Variable:
    """Values above a threshold pass, others become 0.

    Args:
        x: any shape, float.
        threshold: the threshold; 1 by default.

    Returns:
        Shape, dtype and LoD of ``x``.

    Example:
        >>> fluid.layers.thresholded_relu(fluid.layers.data("x", [3]), threshold=0.5).shape
        (-1, 3)
    """
    return one_op("thresholded_relu", {"X": x}, {} if threshold is None else {"threshold": float(threshold)})


@naming.layer
def elu(x: Variable, alpha: float = 1.0, name: str | None = None) -> Variable:
    """Rectifier with an exponential below zero: ``x`` where positive, ``alpha · (exp(x) - 1)`` elsewhere.

    Args:
        x: any shape, float.
        alpha: how far it goes below zero.
        name: name of the layer.

    Returns:
        Shape, dtype and LoD of ``x``.

    Example:
        >>> fluid.layers.elu(fluid.layers.data("x", [3])).shape
        (-1, 3)
    """
    return one_op("elu", {"X": x}, {"alpha": float(alpha)}, name=name)


@naming.layer
def selu(x: Variable, scale: float | None = None, alpha: float | None = None, name: str | None = None) -> Variable:
    """Rectifier that keeps means and variances: ``scale · (x, or alpha · (exp(x) - 1) where negative)``.

    Args:
        x: any shape, float.
        scale: factor of the whole; by default the one that keeps a variance of 1, about 1.0507.
        alpha: factor of the negative side; by default the one that goes with it, about 1.6733.
        name: name of the layer.

    Returns:
        Shape, dtype and LoD of ``x``.

    Example:
        >>> fluid.layers.selu(fluid.layers.data("x", [3])).shape
        (-1, 3)
    """
    given = {"scale": scale, "alpha": alpha}
    return one_op("selu", {"X": x}, {n: float(v) for n, v in given.items() if v is not None}, name=name)


@naming.layer
def prelu(x: Variable, mode: str, param_attr: ParamAttrLike = None, name: str | None = None) -> Variable:
    """Rectifier whose slope below zero is learned; it is 1 at first, unless ``param_attr`` says otherwise.

    Args:
        x: any shape, float.
        mode: ``"all"`` for one slope, ``"channel"`` for one each for axis 1, ``"element"`` for one each for all
            elements of a row.
        param_attr: description of the slopes.
        name: name of the layer; the slopes are called ``name.w_0``.

    Returns:
        Shape, dtype and LoD of ``x``.

    Raises:
        OpValueError: an unknown mode, or a size that the slopes need is not known.

    Example:
        >>> y = fluid.layers.prelu(fluid.layers.data("x", [3, 8, 8]), mode="channel")
        >>> y.param.shape
        (1, 3, 1, 1)
    """
    rank = len(x.shape)
    if mode not in ("all", "channel", "element"):
        raise OpValueError(
            "mode should be one of all, channel, element.",
            expected="'all', 'channel' or 'element'",
            received=repr(mode),
        )
    shape = [1] * (1 if mode == "all" else rank)
    if mode == "channel":
        shape[1:2] = x.shape[1:2]
    elif mode == "element":
        shape[1:] = x.shape[1:]
    if product(shape) < 0 or mode == "channel" and rank < 2:
        raise OpValueError(
            f"prelu needs to know the sizes of {x.name} for its slopes.", expected=f"known sizes for mode {mode!r}",
            received=f"shape {list(x.shape)}", hint='mode="all" has one slope for everything.',
        )  # fmt: skip
    helper = LayerHelper("prelu", param_attr=param_attr, name=name)
    slopes = helper.create_parameter(helper.param_attr or False, shape, x.dtype, default_initializer=Constant(1.0))
    return one_op("prelu", {"X": x, "Alpha": slopes}, {"mode": mode}, name=name)


@naming.layer
def maxout(x: Variable, groups: int, name: str | None = None) -> Variable:
    """The largest of every ``groups`` channels that follow each other.

    Args:
        x: [batch, channels, height, width].
        groups: how many channels become one.
        name: name of the layer.

    Returns:
        [batch, channels / groups, height, width].

    Raises:
        OpValueError: the channels are not a multiple of the groups.

    Example:
        >>> fluid.layers.maxout(fluid.layers.data("x", [6, 8, 8]), groups=2).shape
        (-1, 3, 8, 8)
    """
    return one_op("maxout", {"X": x}, {"groups": groups}, name=name)


@naming.layer
def hard_shrink(x: Variable, threshold: float | None = None) -> Variable:
    """Values further from zero than a threshold pass, others become 0.

    Args:
        x: any shape, float.
        threshold: the threshold; 0.5 by default.

    Returns:
        Shape, dtype and LoD of ``x``.

    Example:
        >>> fluid.layers.hard_shrink(fluid.layers.data("x", [3]), threshold=0.3).shape
        (-1, 3)
    """
    return one_op("hard_shrink", {"X": x}, {} if threshold is None else {"threshold": float(threshold)})


@naming.layer
def softshrink(x: Variable, name: str | None = None) -> Variable:
    """Values moved towards zero by 0.5, and no further than zero.

    Args:
        x: any shape, float.
        name: name of the layer.

    Returns:
        Shape, dtype and LoD of ``x``.

    Example:
        >>> fluid.layers.softshrink(fluid.layers.data("x", [3])).shape
        (-1, 3)
    """
    return one_op("softshrink", {"X": x}, name=name)


@naming.layer
def hard_sigmoid(x: Variable, slope: float = 0.2, offset: float = 0.5, name: str | None = None) -> Variable:
    """Hard sigmoid: ``slope · x + offset`` clipped to [0, 1].

    Args:
        x: any shape, float.
        slope: the slope in the middle.
        offset: the value at 0.
        name: name of the layer.

    Returns:
        Shape, dtype and LoD of ``x``.

    Example:
        >>> fluid.layers.hard_sigmoid(fluid.layers.data("x", [3])).shape
        (-1, 3)
    """
    return one_op("hard_sigmoid", {"X": x}, {"slope": float(slope), "offset": float(offset)}, name=name)


@naming.layer
def stanh(x: Variable, scale_a: float = 2.0 / 3.0, scale_b: float = 1.7159, name: str | None = None) -> Variable:
    """Scaled hyperbolic tangent: ``scale_b · tanh(scale_a · x)``.

    Args:
        x: any shape, float.
        scale_a: factor of ``x``.
        scale_b: factor of the whole.
        name: name of the layer.

    Returns:
        Shape, dtype and LoD of ``x``.

    Example:
        >>> fluid.layers.stanh(fluid.layers.data("x", [3])).shape
        (-1, 3)
    """
    return one_op("stanh", {"X": x}, {"scale_a": float(scale_a), "scale_b": float(scale_b)}, name=name)


@naming.layer
def swish(x: Variable, beta: float = 1.0, name: str | None = None) -> Variable:
    """Rectifier with a dip: ``x / (1 + exp(-beta · x))``.

    Args:
        x: any shape, float.
        beta: how sharp the bend is.
        name: name of the layer.

    Returns:
        Shape, dtype and LoD of ``x``.

    Example:
        >>> fluid.layers.swish(fluid.layers.data("x", [3])).shape
        (-1, 3)
    """
    return one_op("swish", {"X": x}, {"beta": float(beta)}, name=name)


@naming.layer
def pow(x: Variable, factor: float = 1.0, name: str | None = None) -> Variable:
    """A power of each element: ``x ** factor``.

    Args:
        x: any shape.
        factor: the power.
        name: name of the layer.

    Returns:
        Shape, dtype and LoD of ``x``.

    Example:
        >>> fluid.layers.pow(fluid.layers.data("x", [3]), factor=2.0).shape
        (-1, 3)
    """
    return one_op("pow", {"X": x}, {"factor": float(factor)}, name=name)
