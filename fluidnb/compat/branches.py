"""Branches and messages of the design documents."""

from __future__ import annotations

from fluidnb import layers
from fluidnb.layer_helper import LayerHelper
from fluidnb.program import Operator, Variable


def switch(name: str | None = None) -> layers.Switch:
    """Cases in order, of which the first one whose condition holds runs; `fluid.layers.Switch`.

    Args:
        name: name of the layer.

    Returns:
        The switch, for ``with switch.block():``.

    Example:
        >>> a = fluid.Var(10)
        >>> s = switch()
        >>> with s.block():
        ...     with s.case(fluid.less_equal(a, 10)):
        ...         op = fluid.print("Case 1")
        >>> fluid.Executor(fluid.CPUPlace()).run()
        Case 1
        []

    Source: ``switch = fluid.switch()`` in the developer guide.
    """
    return layers.Switch(name)


def print_message(message: str | Variable) -> Operator | Variable:
    """Print a message whenever the program comes by; `fluid.print` of the developer guide.

    Args:
        message: the text, or a variable whose value is printed.

    Returns:
        The operator, or for a variable its copy, as `fluid.layers.Print`.

    Example:
        >>> fluid.print("Case 1").attr("message")
        'Case 1'
    """
    if isinstance(message, Variable):
        return layers.Print(message)
    return LayerHelper("print").append_op(type="print", attrs={"message": str(message)})
