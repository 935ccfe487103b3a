"""Branches and messages of the design documents."""

from __future__ import annotations

from collections.abc import Sequence

from fluidnb import layers
from fluidnb.layer_helper import LayerHelper
from fluidnb.program import Operator, Variable


def ifelse(name: str | None = None) -> layers.IfElse:
    """Two blocks, between which a condition that is given at the end decides for each row; `fluid.layers.IfElse`.

    Args:
        name: name of the layer.

    Returns:
        The choice: fill ``with ie.true_block():`` and ``with ie.false_block():``, then call ``ie(cond)``.

    Example:
        >>> from fluidnb.compat import pd
        >>> x = pd.minibatch([10, 20, 30])
        >>> ie = pd.ifelse()
        >>> with ie.true_block() as body:
        ...     ie.output(pd.add(x, 1))
        >>> with ie.false_block() as body:
        ...     ie.output(fluid.layers.scale(x))
        >>> [out] = ie(pd.larger_than(x, 15))
        >>> pd.evaluate(out).ravel()
        array([10., 21., 31.], dtype=float32)

    Source: ``ie = pd.ifelse()`` in the design of Block.
    """
    return layers.IfElse(name=name)


def create_ifelseop(
    inputs: Sequence[Variable] | None = None, output_num: int | None = None, name: str | None = None
) -> layers.IfElse:
    """Two blocks whose inputs and outputs are counted; `fluid.layers.IfElse`.

    Args:
        inputs: the variables whose rows ``ie.inputs(side, i)`` takes.
        output_num: how many results each side gives by ``ie.set_output(side, i, out)``.
        name: name of the layer.

    Returns:
        The choice; ``ie(cond)`` at the end gives the results.

    Example:
        >>> from fluidnb.compat import pd
        >>> ie = pd.create_ifelseop(inputs=[pd.minibatch([1, -2])], output_num=1)
        >>> with ie.true_block() as body:
        ...     ie.set_output(True, 0, fluid.layers.scale(ie.inputs(True, 0), 10.0))
        >>> with ie.false_block() as body:
        ...     ie.set_output(False, 0, ie.inputs(False, 0))
        >>> pd.evaluate(ie(pd.minibatch([True, False]))).ravel()
        array([10., -2.], dtype=float32)

    Source: ``ie = pd.create_ifelseop(inputs=[x], output_num=1)`` in the first design of Block.
    """
    return layers.IfElse(name=name, inputs=inputs, output_num=output_num)


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
