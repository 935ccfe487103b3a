"""Activations: functions of each element, and softmax."""

from __future__ import annotations

from fluidnb.layers.one_op import one_op
from fluidnb.program import Variable
from fluidnb.program import layer_calls as naming


@naming.layer
def relu(x: Variable, name: str | None = None) -> Variable:
    """Rectifier: ``max(x, 0)``.

    Args:
        x: any shape, float.
        name: name of the layer.

    Returns:
        Shape, dtype and LoD of ``x``.

    Example:
        >>> fluid.layers.relu(fluid.layers.data("x", [3])).shape
        (-1, 3)
    """
    return one_op("relu", {"X": x}, name=name)


@naming.layer
def sigmoid(x: Variable, name: str | None = None) -> Variable:
    """Logistic function: ``1 / (1 + exp(-x))``.

    Args:
        x: any shape, float.
        name: name of the layer.

    Returns:
        Shape, dtype and LoD of ``x``.

    Example:
        >>> fluid.layers.sigmoid(fluid.layers.data("x", [3])).shape
        (-1, 3)
    """
    return one_op("sigmoid", {"X": x}, name=name)


@naming.layer
def tanh(x: Variable, name: str | None = None) -> Variable:
    """Hyperbolic tangent.

    Args:
        x: any shape, float.
        name: name of the layer.

    Returns:
        Shape, dtype and LoD of ``x``.

    Example:
        >>> fluid.layers.tanh(fluid.layers.data("x", [3])).shape
        (-1, 3)
    """
    return one_op("tanh", {"X": x}, name=name)


@naming.layer
def sqrt(x: Variable, name: str | None = None) -> Variable:
    """Square root.

    Args:
        x: any shape, float, not negative.
        name: name of the layer.

    Returns:
        Shape, dtype and LoD of ``x``.

    Example:
        >>> fluid.layers.sqrt(fluid.layers.data("x", [3])).shape
        (-1, 3)
    """
    return one_op("sqrt", {"X": x}, name=name)


@naming.layer
def square(x: Variable, name: str | None = None) -> Variable:
    """Square of each element.

    Args:
        x: any shape.
        name: name of the layer.

    Returns:
        Shape, dtype and LoD of ``x``.

    Example:
        >>> fluid.layers.square(fluid.layers.data("x", [3])).shape
        (-1, 3)
    """
    return one_op("square", {"X": x}, name=name)


@naming.layer
def sign(x: Variable) -> Variable:
    """Sign of each element: -1, 0 or 1.

    Args:
        x: any shape.

    Returns:
        Shape, dtype and LoD of ``x``.

    Example:
        >>> fluid.layers.sign(fluid.layers.data("x", [3])).shape
        (-1, 3)
    """
    return one_op("sign", {"X": x})


@naming.layer
def softmax(input: Variable, use_cudnn: bool = False, name: str | None = None, axis: int = -1) -> Variable:
    """Softmax along an axis: ``exp(x) / sum(exp(x))``, positive and summing to 1.

    Args:
        input: any shape, float.
        use_cudnn: whether to use a cuDNN kernel where one is registered.
        name: name of the layer.
        axis: the axis, from the end when negative.

    Returns:
        Shape, dtype and LoD of ``input``.

    Example:
        >>> fluid.layers.softmax(fluid.layers.data("x", [10])).shape
        (-1, 10)
    """
    return one_op("softmax", {"X": input}, {"axis": axis, "use_cudnn": use_cudnn}, name=name)
