"""Functions of one variable element by element, among them the activations."""

from collections.abc import Callable
from typing import ParamSpec

from fluidnb.arguments import parameter_names
from fluidnb.errors import OpValueError
from fluidnb.initializer import Constant
from fluidnb.layer_helper import LayerHelper
from fluidnb.layers.one_op import family, one_op
from fluidnb.op import product
from fluidnb.param_attr import ParamAttrLike
from fluidnb.program import Variable, shared_docs
from fluidnb.program import layer_calls as naming

__all__ = [
    "abs", "acos", "asin", "atan", "brelu", "ceil", "cos", "elu", "exp", "floor", "hard_shrink", "hard_sigmoid",
    "leaky_relu", "log", "logsigmoid", "maxout", "pow", "prelu", "reciprocal", "relu", "relu6", "round", "rsqrt",
    "selu", "sigmoid", "sign", "sin", "soft_relu", "softmax", "softplus", "softshrink", "softsign", "sqrt", "square",
    "stanh", "swish", "tanh", "tanh_shrink", "thresholded_relu",
]  # fmt: skip


@family
def _function(op_type: str, x: Variable, name: str | None = None) -> Variable:
    """{summary}, element by element.

    Args:
        x: any shape, float.

    Returns:
        Shape, dtype and LoD of ``x``.

    Example:
        >>> fluid.layers.{name}(fluid.layers.data("x", [3])).shape
        (-1, 3)
    """
    return one_op(op_type, {"X": x}, name=name)


abs = _function("abs", "Absolute value")
acos = _function("acos", "Angle in [0, π] with a cosine")
asin = _function("asin", "Angle in [-π/2, π/2] with a sine")
atan = _function("atan", "Angle in [-π/2, π/2] with a tangent")
ceil = _function("ceil", "Next whole number above")
cos = _function("cos", "Cosine of an angle")
exp = _function("exp", "Exponential function; float32 of integers")
floor = _function("floor", "Next whole number below")
log = _function("log", "Natural logarithm, float32 of integers; its gradient is that of positive numbers")
logsigmoid = _function("logsigmoid", "Logarithm of the logistic function: ``-log(1 + exp(-x))``")
reciprocal = _function("reciprocal", "Reciprocal: ``1 / x``")
relu = _function("relu", "Rectifier: ``max(x, 0)``")
round = _function("round", "Nearest whole number, halves away from zero")
rsqrt = _function("rsqrt", "Reciprocal of the square root: ``1 / √x``")
sigmoid = _function("sigmoid", "Logistic function: ``1 / (1 + exp(-x))``")
sin = _function("sin", "Sine of an angle")
softplus = _function("softplus", "Smooth rectifier: ``log(1 + exp(x))``")
softshrink = _function("softshrink", "Values moved towards zero by 0.5, and no further than zero")
softsign = _function("softsign", "Smooth step from -1 to 1: ``x / (1 + |x|)``")
sqrt = _function("sqrt", "Square root of numbers that are not negative")
square = _function("square", "Square")
tanh = _function("tanh", "Hyperbolic tangent")
tanh_shrink = _function("tanh_shrink", "Difference from the hyperbolic tangent: ``x - tanh(x)``")


P = ParamSpec("P")
_RESULT = """

Returns:
    Shape, dtype and LoD of ``x``.

Example:
    >>> fluid.layers.{name}(fluid.layers.data("x", [3])).shape
    (-1, 3)
"""


def _activation(function: Callable[P, Variable]) -> Callable[P, Variable]:
    """A layer with a docstring that leaves out what activations share: ``x``, the result and the example."""
    doc = shared_docs.document(function.__doc__, parameter_names(function), {"x": "any shape, float."})
    if doc is not None:
        function.__doc__ = doc + _RESULT.format(name=function.__name__)
    return naming.layer(function)


@_activation
def brelu(x: Variable, t_min: float = 0.0, t_max: float = 24.0, name: str | None = None) -> Variable:
    """Values held between two bounds: ``min(max(x, t_min), t_max)``.

    Args:
        t_min: the lower bound.
        t_max: the upper bound.
    """
    return one_op("brelu", {"X": x}, {"t_min": float(t_min), "t_max": float(t_max)}, name=name)


@_activation
def relu6(x: Variable, threshold: float = 6.0, name: str | None = None) -> Variable:
    """Rectifier with a ceiling: ``min(max(x, 0), threshold)``.

    Args:
        threshold: the ceiling.
    """
    return one_op("relu6", {"X": x}, {"threshold": float(threshold)}, name=name)


@_activation
def leaky_relu(x: Variable, alpha: float = 0.02, name: str | None = None) -> Variable:
    """Rectifier that lets a little of what is negative pass: ``max(x, alpha · x)``.

    Args:
        alpha: the slope below zero.
    """
    return one_op("leaky_relu", {"X": x}, {"alpha": float(alpha)}, name=name)


@_activation
def soft_relu(x: Variable, threshold: float = 40.0, name: str | None = None) -> Variable:
    """Smooth rectifier: ``log(1 + exp(x))``, with x held between ``-threshold`` and ``threshold``.

    Args:
        threshold: how far ``x`` counts.
    """
    return one_op("soft_relu", {"X": x}, {"threshold": float(threshold)}, name=name)


@_activation
def thresholded_relu(x: Variable, threshold: float | None = None) -> Variable:
    """Values above a threshold pass, others become 0.

    Args:
        threshold: the threshold; 1 by default.
    """
    return one_op("thresholded_relu", {"X": x}, {} if threshold is None else {"threshold": float(threshold)})


@_activation
def elu(x: Variable, alpha: float = 1.0, name: str | None = None) -> Variable:
    """Rectifier with an exponential below zero: ``x`` where positive, ``alpha · (exp(x) - 1)`` elsewhere.

    Args:
        alpha: how far it goes below zero.
    """
    return one_op("elu", {"X": x}, {"alpha": float(alpha)}, name=name)


@_activation
def selu(x: Variable, scale: float | None = None, alpha: float | None = None, name: str | None = None) -> Variable:
    """Rectifier that keeps means and variances: ``scale · (x, or alpha · (exp(x) - 1) where negative)``.

    Args:
        scale: factor of the whole; by default the one that keeps a variance of 1, about 1.0507.
        alpha: factor of the negative side; by default the one that goes with it, about 1.6733.
    """
    factors = {"scale": scale, "alpha": alpha}
    return one_op("selu", {"X": x}, {n: float(v) for n, v in factors.items() if v is not None}, name=name)


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
        OpValueError: a size that the slopes need is not known.

    Example:
        >>> y = fluid.layers.prelu(fluid.layers.data("x", [3, 8, 8]), mode="channel")
        >>> y.param.shape
        (1, 3, 1, 1)
    """
    rank = len(x.shape)
    if mode not in ("all", "channel", "element"):
        raise OpValueError(
            "mode should be one of all, channel, element.", expected="'all', 'channel' or 'element'",
            received=repr(mode),
        )  # fmt: skip
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

    Returns:
        [batch, channels / groups, height, width].

    Raises:
        OpValueError: the channels are not a multiple of the groups.

    Example:
        >>> fluid.layers.maxout(fluid.layers.data("x", [6, 8, 8]), groups=2).shape
        (-1, 3, 8, 8)
    """
    return one_op("maxout", {"X": x}, {"groups": groups}, name=name)


@_activation
def hard_shrink(x: Variable, threshold: float | None = None) -> Variable:
    """Values further from zero than a threshold pass, others become 0.

    Args:
        threshold: the threshold; 0.5 by default.
    """
    return one_op("hard_shrink", {"X": x}, {} if threshold is None else {"threshold": float(threshold)})


@_activation
def hard_sigmoid(x: Variable, slope: float = 0.2, offset: float = 0.5, name: str | None = None) -> Variable:
    """Hard sigmoid: ``slope · x + offset`` clipped to [0, 1].

    Args:
        slope: the slope in the middle.
        offset: the value at 0.
    """
    return one_op("hard_sigmoid", {"X": x}, {"slope": float(slope), "offset": float(offset)}, name=name)


@_activation
def stanh(x: Variable, scale_a: float = 2.0 / 3.0, scale_b: float = 1.7159, name: str | None = None) -> Variable:
    """Scaled hyperbolic tangent: ``scale_b · tanh(scale_a · x)``.

    Args:
        scale_a: factor of ``x``.
        scale_b: factor of the whole.
    """
    return one_op("stanh", {"X": x}, {"scale_a": float(scale_a), "scale_b": float(scale_b)}, name=name)


@_activation
def swish(x: Variable, beta: float = 1.0, name: str | None = None) -> Variable:
    """Rectifier with a dip: ``x / (1 + exp(-beta · x))``.

    Args:
        beta: how sharp the bend is.
    """
    return one_op("swish", {"X": x}, {"beta": float(beta)}, name=name)


@_activation
def pow(x: Variable, factor: float = 1.0, name: str | None = None) -> Variable:
    """A power of each element: ``x ** factor``.

    Args:
        x: any shape.
        factor: the power.
    """
    return one_op("pow", {"X": x}, {"factor": float(factor)}, name=name)


@_activation
def sign(x: Variable) -> Variable:
    """Sign of each element: -1, 0 or 1.

    Args:
        x: any shape.
    """
    return one_op("sign", {"X": x})


@naming.layer
def softmax(input: Variable, use_cudnn: bool = False, name: str | None = None, axis: int = -1) -> Variable:
    """Softmax along an axis: ``exp(x) / sum(exp(x))``, positive and summing to 1.

    Args:
        input: any shape, float.

    Returns:
        Shape, dtype and LoD of ``input``.

    Example:
        >>> fluid.layers.softmax(fluid.layers.data("x", [10])).shape
        (-1, 10)
    """
    return one_op("softmax", {"X": input}, {"axis": axis, "use_cudnn": use_cudnn}, name=name)
