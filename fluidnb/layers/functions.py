"""Elementwise functions without parameters: one line for each layer."""

from __future__ import annotations

from typing import Protocol

from fluidnb.layers.one_op import one_op
from fluidnb.program import Variable
from fluidnb.program import layer_calls as naming

__all__ = [
    "abs", "acos", "asin", "atan", "ceil", "cos", "exp", "floor", "log", "logsigmoid", "reciprocal", "round", "rsqrt",
    "sin", "softplus", "softsign", "tanh_shrink",
]  # fmt: skip


class Function(Protocol):
    """A layer of one variable."""

    def __call__(self, x: Variable, name: str | None = None) -> Variable:
        """The layer.

        Args:
            x: any shape, float.
            name: name of the layer.
        """


_DOC = """{what}, element by element.

    Args:
        x: any shape, float.
        name: name of the layer.

    Returns:
        Shape, dtype and LoD of ``x``.

    Raises:
        OpTypeError: ``x`` is not a Variable.

    Example:
        >>> fluid.layers.{type}(fluid.layers.data("x", [3])).shape
        (-1, 3)
    """


def _layer(type: str, what: str) -> Function:
    """The layer of an operator from X to Out.

    Args:
        type: the operator's type, which is the layer's name.
        what: what it computes.
    """

    def function(x: Variable, name: str | None = None) -> Variable:
        return one_op(type, {"X": x}, name=name)

    function.__name__ = function.__qualname__ = type
    function.__doc__ = _DOC.format(what=what, type=type)
    return naming.layer(function)


abs = _layer("abs", "The absolute value")
acos = _layer("acos", "The angle in [0, π] with a cosine")
asin = _layer("asin", "The angle in [-π/2, π/2] with a sine")
atan = _layer("atan", "The angle in [-π/2, π/2] with a tangent")
ceil = _layer("ceil", "The next whole number above")
cos = _layer("cos", "The cosine of an angle")
exp = _layer("exp", "The exponential function")
floor = _layer("floor", "The next whole number below")
log = _layer("log", "The natural logarithm; its gradient is that of positive numbers")
logsigmoid = _layer("logsigmoid", "The logarithm of the logistic function: ``-log(1 + exp(-x))``")
reciprocal = _layer("reciprocal", "One over: ``1 / x``")
round = _layer("round", "The nearest whole number, halves away from zero")
rsqrt = _layer("rsqrt", "One over the square root: ``1 / √x``")
sin = _layer("sin", "The sine of an angle")
softplus = _layer("softplus", "A smooth rectifier: ``log(1 + exp(x))``")
softsign = _layer("softsign", "A gentle step from -1 to 1: ``x / (1 + |x|)``")
tanh_shrink = _layer("tanh_shrink", "What the hyperbolic tangent leaves: ``x - tanh(x)``")
