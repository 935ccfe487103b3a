"""The functions of one tensor that most programs use: one row for each operator, its gradient beside it.

Gradients are written against Out where that saves keeping X, against X elsewhere: the slots that Paddle's own programs
carry.
"""


import numpy as np

from fluidnb.op import Array
from fluidnb_kernels.activation.table import STRAIGHT, Again, Row, define
from fluidnb_kernels.arithmetic import Operand
from fluidnb_kernels.emit import FLOATS

#: The dtypes of functions that take whole numbers to whole numbers.
NUMBERS = (*FLOATS, "int32", "int64")


def _sigmoid_grad(out: Operand, g: Operand) -> Operand:
    return (1 - out) * out * g


def _rsqrt_grad(out: Operand, g: Operand) -> Operand:
    return out * out * out * -0.5 * g


def round_half_away(x: Array, out: Array) -> None:
    """Round to the nearest whole number, halves away from zero."""
    np.copyto(out, np.copysign(np.floor(np.abs(x) + 0.5), x))


ROWS = {
    "relu": Row("max(X, 0)", lambda x: np.maximum(x, 0), "dOut where Out > 0, 0 elsewhere", ("Out",),
                lambda out, g: g * (out > 0),
                ("[-1.0, 2.0]", "[0., 2.]"), dtypes=NUMBERS, again=STRAIGHT),
    "sigmoid": Row("1 / (1 + exp(-X))", lambda x: np.reciprocal(np.exp(-x) + 1), "dOut · Out · (1 - Out)", ("Out",),
                   _sigmoid_grad, ("[0.0]", "[0.5]"), again=Again(lambda out: 1 - out * 2, "fwd_grad_out")),
    "tanh": Row("tanh(X)", np.tanh, "dOut · (1 - Out²)", ("Out",), lambda out, g: g * (1 - out * out),
                ("[0.0]", "[0.]"), again=Again(lambda out: out * -2)),
    "exp": Row("exp(X)", np.exp, "dOut · Out", ("Out",), lambda out, g: g * out, ("[0.0]", "[1.]"),
               again=Again(lambda out: 1), of_integers=True),
    "log": Row("the natural logarithm of X", np.log, "dOut / X", ("X",), lambda x, g: g / x, ("[1.0]", "[0.]"),
               again=Again(lambda x: -np.reciprocal(x * x)), of_integers=True),
    "sqrt": Row("√X", np.sqrt, "dOut / (2 · Out)", ("Out",), lambda out, g: g / out * 0.5, ("[1.0, 4.0]", "[1., 2.]"),
                again=Again(lambda out: np.reciprocal(out) * -1, "grad_x")),
    "rsqrt": Row("1 / √X", lambda x: np.reciprocal(np.sqrt(x)), "-dOut · Out³ / 2", ("Out",), _rsqrt_grad,
                 ("[1.0, 4.0]", "[1. , 0.5]"), again=Again(lambda out: np.reciprocal(out) * 3, "grad_x")),
    "square": Row("X²", lambda x: x * x, "2 · X · dOut", ("X",), lambda x, g: x * 2 * g, ("[1.0, 4.0]", "[ 1., 16.]"),
                  dtypes=NUMBERS, again=Again(lambda x: 2)),
    "abs": Row("|X|", np.absolute, "dOut · sign(X)", ("X",), lambda x, g: np.sign(x) * g, ("[-1.0, 4.0]", "[1., 4.]"),
               dtypes=NUMBERS, again=STRAIGHT._replace(suffix="_double_grad")),
    "reciprocal": Row("1 / X", np.reciprocal, "-dOut · Out²", ("Out",), lambda out, g: -(out * out * g),
                      ("[1.0, 4.0]", "[1.  , 0.25]"), again=Again(lambda out: out * -2)),
    "sin": Row("sin(X)", np.sin, "dOut · cos(X)", ("X",), lambda x, g: np.cos(x) * g, ("[0.0]", "[0.]"),
               again=Again(lambda x: -np.sin(x), suffix="_double_grad")),
    "cos": Row("cos(X)", np.cos, "-dOut · sin(X)", ("X",), lambda x, g: -(np.sin(x) * g), ("[0.0]", "[1.]"),
               again=Again(lambda x: -np.cos(x), suffix="_double_grad")),
    "floor": Row("X rounded down", np.floor, "0", (), lambda v, g: 0, ("[-1.5, 1.5]", "[-2., 1.]")),
    "ceil": Row("X rounded up", np.ceil, "0", (), lambda v, g: 0, ("[-1.5, 1.5]", "[-1., 2.]")),
    "round": Row("X rounded to the nearest whole number, halves away from zero", lambda x: x.through(round_half_away),
                 "0", (), lambda v, g: 0, ("[-2.5, 0.5]", "[-3., 1.]")),
    "trunc": Row("X without its fraction", np.trunc, "0", (), lambda v, g: 0, ("[-1.5, 1.5]", "[-1., 1.]"),
                 dtypes=NUMBERS, source="Paddle's trunc_op"),
}  # fmt: skip

for _type, _row in ROWS.items():
    define(_type, _row)
