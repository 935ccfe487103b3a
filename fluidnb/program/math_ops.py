"""Python's operators on variables: they append operators to the program."""

from __future__ import annotations

import numbers
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from fluidnb.errors import OpTypeError
from fluidnb.program import names
from fluidnb.program.naming import layer
from fluidnb.values import declared, dtypes
from fluidnb.values.dtypes import VarType
from fluidnb.where import capture

if TYPE_CHECKING:
    from fluidnb.program.variable import Variable

_INTEGERS = (VarType.BOOL, VarType.UINT8, VarType.INT8, VarType.INT16, VarType.INT32, VarType.INT64)
_SYMBOLS = {
    "elementwise_add": "+", "elementwise_sub": "-", "elementwise_mul": "*", "elementwise_div": "/",
    "elementwise_pow": "**", "elementwise_mod": "%", "elementwise_floordiv": "//", "less_than": "<",
    "less_equal": "<=", "greater_than": ">", "greater_equal": ">=", "equal": "==", "not_equal": "!=",
}  # fmt: skip


class Arithmetic:
    """``+ - * / ** // %``, comparisons and ``-x`` on variables; a number may stand on either side.

    A number beside ``+ - * /`` becomes one ``scale`` operator; elsewhere a constant of shape [1].

    Example:
        >>> from fluidnb.program import Program
        >>> block = Program().global_block()
        >>> x = block.create_var(name="x", shape=[-1, 3], dtype="float32")
        >>> y = 1 - 2 * x
        >>> [op.type for op in block.ops], y.shape
        (['scale', 'scale'], (-1, 3))

    Source: fluid's math_op_patch; the seeds write ``d + 1`` and ``a + b``.
    """

    @layer
    def astype(self, dtype: Any) -> Variable:
        """The variable with elements of another type.

        Args:
            dtype: dtype in any spelling.

        Returns:
            A new variable.

        Example:
            >>> from fluidnb.program import Program
            >>> x = Program().global_block().create_var(name="x", shape=[3], dtype="int64")
            >>> x.astype("float32").dtype.name
            'FP32'
        """
        x = cast("Variable", self)
        number = dtypes.var_type(dtype)
        return _append(x, "cast", {"X": [x]}, {"in_dtype": int(x.dtype), "out_dtype": int(number)}, number)

    @layer
    def __neg__(self) -> Variable:
        return _scale(cast("Variable", self), -1.0, 0.0)

    @layer
    def __add__(self, other: Any) -> Variable:
        return _binary(self, other, "elementwise_add")

    __radd__ = __add__

    @layer
    def __sub__(self, other: Any) -> Variable:
        return _binary(self, other, "elementwise_sub")

    @layer
    def __rsub__(self, other: Any) -> Variable:
        return _binary(self, other, "elementwise_sub", True)

    @layer
    def __mul__(self, other: Any) -> Variable:
        return _binary(self, other, "elementwise_mul")

    __rmul__ = __mul__

    @layer
    def __truediv__(self, other: Any) -> Variable:
        return _binary(self, other, "elementwise_div")

    @layer
    def __rtruediv__(self, other: Any) -> Variable:
        return _binary(self, other, "elementwise_div", True)

    @layer
    def __pow__(self, other: Any) -> Variable:
        return _binary(self, other, "elementwise_pow")

    @layer
    def __rpow__(self, other: Any) -> Variable:
        return _binary(self, other, "elementwise_pow", True)

    @layer
    def __mod__(self, other: Any) -> Variable:
        return _binary(self, other, "elementwise_mod")

    @layer
    def __floordiv__(self, other: Any) -> Variable:
        return _binary(self, other, "elementwise_floordiv")

    @layer
    def __lt__(self, other: Any) -> Variable:
        return _binary(self, other, "less_than")

    @layer
    def __le__(self, other: Any) -> Variable:
        return _binary(self, other, "less_equal")

    @layer
    def __gt__(self, other: Any) -> Variable:
        return _binary(self, other, "greater_than")

    @layer
    def __ge__(self, other: Any) -> Variable:
        return _binary(self, other, "greater_equal")

    def __eq__(self, other: object) -> Any:
        # With what is no operand, == stays Python's question whether two things are one.
        return _equal(self, other) if _is_operand(other) else NotImplemented

    def __ne__(self, other: object) -> Any:
        return _not_equal(self, other) if _is_operand(other) else NotImplemented

    __hash__ = object.__hash__


@layer
def _equal(x: Any, y: Any) -> Variable:
    return _binary(x, y, "equal")


@layer
def _not_equal(x: Any, y: Any) -> Variable:
    return _binary(x, y, "not_equal")


def _is_number(other: object) -> bool:
    return isinstance(other, numbers.Real | np.bool_) or isinstance(other, np.ndarray) and other.ndim == 0


def _is_operand(other: object) -> bool:
    return isinstance(other, Arithmetic) or _is_number(other)


def _binary(self: Any, other: Any, op_type: str, reverse: bool = False) -> Variable:
    x = cast("Variable", self)
    arithmetic = op_type.startswith("elementwise")
    if _is_number(other):
        value = float(other)
        # Fluid before 1.6 divided integers into integers, and so do we while Paddle's names are installed.
        whole = x.dtype in _INTEGERS and op_type == "elementwise_div" and value.is_integer() and not declared.binding
        if arithmetic and x.dtype in _INTEGERS and not whole and (op_type == "elementwise_div" or value % 1):
            x = x.astype("float32")
        scaled = None if whole else _as_scale(op_type, value, reverse)
        if scaled is not None:
            return _scale(x, *scaled)
        other = _constant(x, value)
    elif not isinstance(other, Arithmetic):
        raise OpTypeError(
            f"{_SYMBOLS[op_type]} takes a variable or a number beside variable {x.name}.", where=capture(2),
            expected="a Variable or a number", received=f"{type(other).__name__} {other!r}"[:200],
            slots=[("variable", x.name, dtypes.dtype_name(x.dtype), x.shape)],
            hint="layers.assign turns an array into a variable.",
        )  # fmt: skip
    left, right = (other, x) if reverse else (x, other)
    dtype = left.dtype if arithmetic else VarType.BOOL
    return _append(x, op_type, {"X": [left], "Y": [right]}, {"axis": -1}, dtype)


def _as_scale(op_type: str, value: float, reverse: bool) -> tuple[float, float] | None:
    """The factor and the bias with which ``scale`` does the work of an operator and a number, where it can."""
    if op_type == "elementwise_add":
        return 1.0, value
    if op_type == "elementwise_sub":
        return (-1.0, value) if reverse else (1.0, -value)
    if op_type == "elementwise_mul":
        return value, 0.0
    if op_type == "elementwise_div" and not reverse and value != 0:
        return 1.0 / value, 0.0
    return None


def _scale(x: Variable, scale: float, bias: float) -> Variable:
    return _append(x, "scale", {"X": [x]}, {"scale": scale, "bias": bias, "bias_after_scale": True}, x.dtype)


def _constant(x: Variable, value: float) -> Variable:
    number = x.dtype
    if number == VarType.BOOL:
        value = float(bool(value))
    out = _append(x, "fill_constant", {}, {"shape": [1], "dtype": int(number), "value": value}, number)
    out.stop_gradient = True
    return out


def _append(x: Variable, op_type: str, inputs: dict[str, Any], attrs: dict[str, Any], dtype: int) -> Variable:
    block = x.block.program.current_block()
    out = block.create_var(name=names.generate(op_type + ".tmp"), dtype=dtype, shape=[], persistable=False)
    block.append_op(type=op_type, inputs=inputs, outputs={"Out": [out]}, attrs=attrs)
    return out
