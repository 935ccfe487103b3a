"""Operations, operands, branches and messages of the design documents, under their names there: pd.add, layer.fc, …"""

from __future__ import annotations

import numbers
from collections.abc import Callable, Sequence
from typing import Any

from fluidnb import layers
from fluidnb.errors import OpTypeError, OpValueError
from fluidnb.layer_helper import LayerHelper
from fluidnb.layers.one_op import check_variable
from fluidnb.op import product
from fluidnb.param_attr import ParamAttr, ParamAttrLike
from fluidnb.program import Operator, Parameter, Variable
from fluidnb.program import layer_calls as naming
from fluidnb.values import dtypes


class Tensor:
    """A parameter that gets its shape from the first variable beside which it is used."""

    def __init__(self, name: str | None = None) -> None:
        self._name = name
        self.parameter: Parameter | None = None

    def __repr__(self) -> str:
        return f"a tensor() {'without a shape yet' if self.parameter is None else self.parameter.name}"

    def made(self, shape: Sequence[int], dtype: Any) -> Parameter:
        """The parameter, made now if there is none yet."""
        if self.parameter is None or not self.parameter.lives:
            self.parameter = layers.create_parameter(shape, dtype, name=self._name)
        return self.parameter


def operands(word: str, x: Any, y: Any, square: bool = False) -> tuple[Variable, Variable]:
    """Two operands as variables of one dtype.

    A number becomes a constant like its neighbour, an integer variable beside floats is cast, and a `Tensor` gets its
    shape.

    Args:
        y: a variable, a number, or a tensor(); one of the two is a variable.
        square: whether a tensor() becomes a matrix over its neighbour's features, not a row of them.
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
    """A variable for a layer that needs floats."""
    check_variable(x, "x", word)
    return layers.cast(x, "float32") if _is_integer(x.dtype) else x


def called(result: Variable, name: str | None) -> Variable:
    """A result under the name that the user gave it."""
    if name is not None:
        result.block.rename_var(result.name, name)
    return result


def ifelse(name: str | None = None) -> layers.IfElse:
    """Two blocks, between which a condition that is given at the end decides for each row; `fluid.layers.IfElse`.

    Returns:
        The choice: fill ``with ie.true_block():`` and ``with ie.false_block():``, then call ``ie(cond)``.
    """
    return layers.IfElse(name=name)


def create_ifelseop(
    inputs: Sequence[Variable] | None = None, output_num: int | None = None, name: str | None = None
) -> layers.IfElse:
    """Two blocks whose inputs and outputs are counted; `fluid.layers.IfElse`."""
    return layers.IfElse(name=name, inputs=inputs, output_num=output_num)


def switch(name: str | None = None) -> layers.Switch:
    """Cases in order, of which the first one whose condition holds runs; `fluid.layers.Switch`."""
    return layers.Switch(name)


def print_message(message: str | Variable) -> Operator | Variable:
    """Print a message in every run of the program; `fluid.print` of the developer guide.

    Returns:
        The operator, or for a variable its copy, as `fluid.layers.Print`.

    Example:
        >>> fluid.print("Case 1").attr("message")
        'Case 1'
    """
    if isinstance(message, Variable):
        return layers.Print(message)
    return LayerHelper("print").append_op(type="print", attrs={"message": str(message)})


Layer = Callable[..., Variable]

_DOC = """{formula}; `fluid.layers.{layer}`, with numbers and tensor() as operands too.

Args:
    x: a variable, a number, or a tensor().
    y: a variable, a number, or a tensor(); one of the two is a variable. One element goes with every element of ``x``.
    name: name of the result itself.

Returns:
    The result.

Raises:
    OpTypeError: an operand is none.
"""


def _of_two(word: str, formula: str, layer: Layer, square: bool = False) -> Layer:
    @naming.layer
    def of_two(x: Any, y: Any, name: str | None = None) -> Variable:
        return called(layer(*operands(word, x, y, square)), name)

    of_two.__name__ = of_two.__qualname__ = word
    of_two.__doc__ = _DOC.format(formula=formula, layer=layer.__name__)
    return of_two


add = _of_two("add", "x + y", layers.elementwise_add)
matmul = _of_two("matmul", "The product x · y", layers.matmul, True)
larger_than = _of_two("larger_than", "Whether x > y", layers.greater_than)
less_equal = _of_two("less_equal", "Whether x <= y", layers.less_equal)


_DOC_OF_ONE = """{formula}; `fluid.layers.{word}`, of integers too.

Args:
    x: a variable.
    name: name of the result itself.

Returns:
    Float, shape and LoD of ``x``.

Raises:
    OpTypeError: not a Variable.
"""


def _of_one(word: str, formula: str, layer: Layer) -> Layer:
    @naming.layer
    def of_one(x: Any, name: str | None = None) -> Variable:
        return called(layer(as_float(word, x)), name)

    of_one.__name__ = of_one.__qualname__ = word
    of_one.__doc__ = _DOC_OF_ONE.format(formula=formula, word=word)
    return of_one


sigmoid = _of_one("sigmoid", "1 / (1 + exp(-x))", layers.sigmoid)
softmax = _of_one("softmax", "exp(x) / sum(exp(x)) over the last axis", layers.softmax)


@naming.layer
def fc(
    input: Any, size: Any = None, num_flatten_dims: int = 1, params: Sequence[str] | None = None,
    param_attr: ParamAttrLike = None, bias_attr: ParamAttrLike = None, act: Any = None, name: str | None = None,
) -> Variable:  # fmt: skip
    """The fully connected layer as the design documents write it; `fluid.layers.fc`.

    ``fc(x)`` has as many outputs as inputs; of one number [1] it gives one number. ``fc(a, params=["fc.w", "fc.b"])``
    says the parameters' names. ``fc(W, x)`` with two variables is their product x · W and nothing more.

    Args:
        input: a variable [batch, …], or several; or the weight W: one number, a matrix, or a tensor().
        size: number of output features, by default the width of the input; or the variable x.
        num_flatten_dims: how many leading axes stay rows.
        bias_attr: description of the bias, instead of ``params``; False leaves it out.
    """
    if isinstance(size, Variable):
        return _product(input, size, name)
    if params is not None:
        param_attr, bias_attr = _named(params, param_attr, bias_attr)
    several = isinstance(input, list | tuple)
    inputs = [as_float("fc", x) for x in (input if several else [input])]
    flat = [layers.reshape(x, [-1, 1]) if len(x.shape) == 1 else x for x in inputs]
    if size is None:
        size = product(flat[0].shape[num_flatten_dims:]) if flat else 1
    out = layers.fc(flat if several else flat[0], size, num_flatten_dims, param_attr, bias_attr, act, name=name)
    return layers.reshape(out, [-1]) if size == 1 and all(len(x.shape) == 1 for x in inputs) else out


def _product(weight: Any, x: Variable, name: str | None) -> Variable:
    x, weight = operands("fc", x, weight, True)
    if product(weight.shape) == 1:
        return called(layers.elementwise_mul(x, weight), name)
    return called(layers.mul(x, weight), name)


def _named(params: Any, param_attr: ParamAttrLike, bias_attr: ParamAttrLike) -> tuple[ParamAttrLike, ParamAttrLike]:
    if isinstance(params, str) or not all(isinstance(n, str) for n in params):
        raise OpTypeError(
            "params of fc is not a list of names.", expected='for example ["fc.w", "fc.b"]',
            received=f"{params!r}"[:200],
        )  # fmt: skip
    if len(params) not in (1, 2) or param_attr is not None or bias_attr is not None:
        raise OpValueError(
            "params of fc names the weight and the bias.", expected='["fc.w", "fc.b"], without param_attr or bias_attr',
            received=f"params = {list(params)!r}, param_attr = {param_attr!r}, bias_attr = {bias_attr!r}"[:200],
        )  # fmt: skip
    weight, bias = ParamAttr(name=params[0]), ParamAttr(name=params[1]) if len(params) > 1 else None
    return weight, bias


#: The documents' names of what has another name in fluid.layers, or takes more.
WORDS: dict[str, Layer] = {
    "add": add, "add_scalar": add, "add_two": add, "fc": fc, "larger": larger_than, "larger_than": larger_than,
    "less_equal": less_equal, "matmul": matmul, "sigmoid": sigmoid, "softmax": softmax,
}  # fmt: skip
