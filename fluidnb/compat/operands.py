"""Operands of the design documents' words: variables, numbers, and parameters without a shape yet."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any

from fluidnb import layers
from fluidnb.errors import OpTypeError
from fluidnb.layers.one_op import check_variable
from fluidnb.program import Parameter, Variable
from fluidnb.values import dtypes


class Tensor:
    """A parameter that gets its shape from the first variable beside which it is used.

    Args:
        name: the parameter's name.

    Attributes:
        parameter: the parameter, None before the first use.

    Example:
        >>> from fluidnb.compat import pd
        >>> w = pd.tensor()
        >>> y = pd.matmul(w, pd.var(2.0))
        >>> w.parameter.shape
        (1,)

    Source: the RNN of the first design of Block, where ``W = tensor()`` says neither shape nor value.
    """

    def __init__(self, name: str | None = None) -> None:
        self._name = name
        self.parameter: Parameter | None = None

    def __repr__(self) -> str:
        return f"a tensor() {'without a shape yet' if self.parameter is None else self.parameter.name}"

    def made(self, shape: Sequence[int], dtype: Any) -> Parameter:
        """The parameter, made now if there is none yet.

        Args:
            shape: its shape if it is made now.
            dtype: its dtype if it is made now.

        Returns:
            The parameter.
        """
        if self.parameter is None or not self.parameter.lives:
            self.parameter = layers.create_parameter(shape, dtype, name=self._name)
        return self.parameter


def operands(word: str, x: Any, y: Any, square: bool = False) -> tuple[Variable, Variable]:
    """Two operands as variables of one dtype.

    A number becomes a constant like its neighbour, an integer variable beside floats is cast, and a `Tensor` gets its
    shape.

    Args:
        word: the caller, for messages.
        x: a variable, a number, or a tensor().
        y: a variable, a number, or a tensor(); one of the two is a variable.
        square: whether a tensor() becomes a matrix over its neighbour's features, not a row of them.

    Returns:
        The two variables.

    Raises:
        OpTypeError: neither is a variable, or one is something else.

    Example:
        >>> from fluidnb.compat import pd
        >>> x, y = operands("add", pd.minibatch([1, 2]), 15)
        >>> y.shape, y.dtype.name
        ((1,), 'FP32')
    """
    known = x if isinstance(x, Variable) else y
    if not isinstance(known, Variable):
        raise OpTypeError(
            f"{word} needs a variable.", expected="a Variable beside a number or a tensor()",
            received=f"{x!r} and {y!r}"[:200], hint="pd.var() and pd.minibatch() make variables of numbers.",
        )  # fmt: skip
    x, y = (_variable(word, each, known, square) for each in (x, y))
    for one, other in ((x, y), (y, x)):
        if dtypes.is_floating(one.dtype) and _is_integer(other.dtype):
            cast = layers.cast(other, one.dtype)
            return (cast, y) if other is x else (x, cast)
    return x, y


def _variable(word: str, value: Any, beside: Variable, square: bool) -> Variable:
    if isinstance(value, Tensor):
        width = beside.shape[-1] if beside.shape else 1
        return value.made([1] if width == 1 else [width, width] if square else [width], beside.dtype)
    if isinstance(value, numbers.Real):
        number = int(value) if isinstance(value, numbers.Integral) else float(value)
        fits = isinstance(number, int) or dtypes.is_floating(beside.dtype)
        return layers.fill_constant([1], beside.dtype if fits else "float32", number)
    check_variable(value, "an operand", word)
    return value


def _is_integer(dtype: Any) -> bool:
    return dtypes.dtype_name(dtype) in ("int8", "int16", "int32", "int64", "uint8")


def as_float(word: str, x: Any) -> Variable:
    """A variable for a layer that needs floats.

    Args:
        word: the caller, for messages.
        x: the variable.

    Returns:
        The variable itself, or of integers float32.

    Raises:
        OpTypeError: not a Variable.

    Example:
        >>> from fluidnb.compat import pd
        >>> as_float("softmax", pd.var(1)).dtype.name
        'FP32'
    """
    check_variable(x, "x", word)
    return layers.cast(x, "float32") if _is_integer(x.dtype) else x


def called(result: Variable, name: str | None) -> Variable:
    """A result under the name that the user gave it.

    Args:
        result: the variable.
        name: its new name; None leaves it.

    Returns:
        The variable.

    Example:
        >>> called(fluid.layers.ones([1], "float32"), "act").name
        'act'
    """
    if name is not None:
        result.block.rename_var(result.name, name)
    return result
