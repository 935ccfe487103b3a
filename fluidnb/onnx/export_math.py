"""Converters of operators that compute each number by itself, products, and reductions."""

import math
from typing import Any

import numpy as np

from fluidnb.onnx.converters import Unsupported
from fluidnb.onnx.exporter import Exporter, Op, converts
from fluidnb.values import dtypes

#: Functions of one tensor: our operator -> ONNX's, with its attributes (ONNX's name -> ours).
_UNARY: dict[str, tuple[str, dict[str, str]]] = {
    **{n: (n.capitalize(), {}) for n in (
        "abs", "exp", "log", "sqrt", "reciprocal", "floor", "ceil", "sign", "sin", "cos", "tan", "asin", "acos",
        "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "sigmoid", "relu", "softsign",
    )},
    "logical_not": ("Not", {}), "isnan_v2": ("IsNaN", {}), "isinf_v2": ("IsInf", {}),
    "leaky_relu": ("LeakyRelu", {"alpha": "alpha"}), "elu": ("Elu", {"alpha": "alpha"}),
    "celu": ("Celu", {"alpha": "alpha"}),
    "selu": ("Selu", {"alpha": "alpha", "gamma": "scale"}),
    "hard_sigmoid": ("HardSigmoid", {"alpha": "slope", "beta": "offset"}),
    "thresholded_relu": ("ThresholdedRelu", {"alpha": "threshold"}),
}  # fmt: skip
#: Functions of two tensors that broadcast.
_BINARY = {
    "elementwise_add": "Add", "elementwise_sub": "Sub", "elementwise_mul": "Mul", "elementwise_div": "Div",
    "elementwise_max": "Max", "elementwise_min": "Min", "elementwise_pow": "Pow", "elementwise_mod": "Mod",
    "equal": "Equal", "greater_than": "Greater", "less_than": "Less", "greater_equal": "GreaterOrEqual",
    "less_equal": "LessOrEqual", "not_equal": "Equal", "logical_and": "And", "logical_or": "Or", "logical_xor": "Xor",
    "bitwise_and": "BitwiseAnd", "bitwise_or": "BitwiseOr", "bitwise_xor": "BitwiseXor", "elementwise_floordiv": "Div",
}  # fmt: skip
_REDUCED = {
    "reduce_sum": "ReduceSum", "reduce_mean": "ReduceMean", "reduce_max": "ReduceMax", "reduce_min": "ReduceMin",
    "reduce_prod": "ReduceProd", "reduce_all": "ReduceMin", "reduce_any": "ReduceMax", "logsumexp": "ReduceLogSumExp",
    "frobenius_norm": "ReduceL2",
}  # fmt: skip


def scalar(exporter: Exporter, op: Op, value: float, slot: str = "X") -> str:
    """The tensor of a number in the dtype of an input."""
    dtype = exporter.dtype(op.var(slot))
    if dtype.kind in "iub" and float(value) != int(value):
        raise Unsupported(f"{value:g} and dtype {dtype}")
    return exporter.initializer(value, dtype)


@converts(*_UNARY)
def unary(exporter: Exporter, op: Op) -> None:
    """A function of each number."""
    type, attrs = _UNARY[op.type]
    values: dict[str, Any] = {name: float(op.attr(ours)) for name, ours in attrs.items()}
    exporter.into(op, type, [floats(exporter, op)[0] if type in ("Exp", "Log") else exporter.x(op)], **values)


def floats(exporter: Exporter, op: Op) -> tuple[str, Any]:
    """The input of a function that computes float32 of integers, as floats, and their dtype."""
    x, dtype = exporter.x(op), exporter.dtype(op.var())
    return (exporter.cast(x, np.float32), np.dtype(np.float32)) if dtype.kind in "iu" else (x, dtype)


@converts(*_BINARY)
def binary(exporter: Exporter, op: Op) -> None:
    """A function of two tensors that broadcast; with an axis, the second one's first axis is there."""
    x, y = exporter.x(op), exporter.x(op, "Y")
    rank, other = exporter.rank(op.var()), exporter.rank(op.var("Y"))
    axis = op.attr("axis") if "axis" in op.desc.attrs else -1
    if axis not in (-1, rank - other) and other < rank:
        y = exporter.node("Unsqueeze", [y, exporter.ints(*range(other, rank - axis))])
    type, whole = _BINARY[op.type], not np.issubdtype(exporter.dtype(op.var()), np.floating)
    if op.type.startswith("bitwise") and exporter.dtype(op.var()).kind == "b":
        type = type.removeprefix("Bitwise")
    if op.type == "elementwise_mod" and not whole:  # ONNX's has the sign of the first, ours of the second
        quotient = exporter.node("Floor", [exporter.node("Div", [x, y])])
        exporter.into(op, "Sub", [x, exporter.node("Mul", [quotient, y])])
    elif op.type == "elementwise_floordiv":
        if whole:
            raise Unsupported("whole numbers")
        exporter.into(op, "Floor", [exporter.node("Div", [x, y])])
    elif op.type == "not_equal":
        exporter.into(op, "Not", [exporter.node(type, [x, y])])
    else:
        exporter.into(op, type, [x, y])


@converts("round")
def rounded(exporter: Exporter, op: Op) -> None:
    """The nearest whole number, halves away from zero: sign(x) * floor(|x| + 0.5)."""
    x = exporter.x(op)
    moved = exporter.node("Add", [exporter.node("Abs", [x]), scalar(exporter, op, 0.5)])
    exporter.into(op, "Mul", [exporter.node("Sign", [x]), exporter.node("Floor", [moved])])


@converts("assign")
def assign(exporter: Exporter, op: Op) -> None:
    """The same tensor under another name."""
    exporter.alias(op.out(), exporter.x(op))


@converts("dropout")
def dropout(exporter: Exporter, op: Op) -> None:
    """The same numbers, or less in the older of its two forms."""
    if op.attr("dropout_implementation") == "upscale_in_train":
        exporter.alias(op.out(), exporter.x(op))
    else:
        exporter.into(op, "Mul", [exporter.x(op), scalar(exporter, op, 1.0 - op.attr("dropout_prob"))])


@converts("scale")
def scale(exporter: Exporter, op: Op) -> None:
    """scale * x + bias, or scale * (x + bias)."""
    factor, bias = float(op.attr("scale")), float(op.attr("bias"))
    out, given = exporter.x(op), op.has("ScaleTensor")
    if given:
        factors = exporter.cast(exporter.x(op, "ScaleTensor"), exporter.dtype(op.var()))
    elif factor != 1:
        factors = scalar(exporter, op, factor)
    steps = [("Add", scalar(exporter, op, bias))] if bias else []
    if given or factor != 1:
        steps.insert(0 if op.attr("bias_after_scale") else len(steps), ("Mul", factors))
    for i, (type, other) in enumerate(steps):
        out = exporter.node(type, [out, other], exporter.written(op.out()) if i == len(steps) - 1 else None)
    if not steps:
        exporter.alias(op.out(), out)


@converts("square")
def square(exporter: Exporter, op: Op) -> None:
    """x * x."""
    exporter.into(op, "Mul", [exporter.x(op)] * 2)


@converts("rsqrt")
def rsqrt(exporter: Exporter, op: Op) -> None:
    """1 / sqrt(x)."""
    exporter.into(op, "Reciprocal", [exporter.node("Sqrt", [exporter.x(op)])])


@converts("log1p", "expm1", "log2", "log10")
def logarithms(exporter: Exporter, op: Op) -> None:
    """Other logarithms, and the exponential function less one."""
    x, dtype = floats(exporter, op)
    if op.type == "log1p":
        exporter.into(op, "Log", [exporter.node("Add", [x, exporter.initializer(1.0, dtype)])])
    elif op.type == "expm1":
        exporter.into(op, "Sub", [exporter.node("Exp", [x]), exporter.initializer(1.0, dtype)])
    else:
        base = 2.0 if op.type == "log2" else 10.0
        exporter.into(op, "Div", [exporter.node("Log", [x]), exporter.initializer(math.log(base), dtype)])


@converts("trunc")
def trunc(exporter: Exporter, op: Op) -> None:
    """The whole part: sign(x) * floor(|x|)."""
    x = exporter.x(op)
    exporter.into(op, "Mul", [exporter.node("Sign", [x]), exporter.node("Floor", [exporter.node("Abs", [x])])])


@converts("pow")
def power(exporter: Exporter, op: Op) -> None:
    """x ** factor."""
    if op.has("FactorTensor"):
        exporter.into(op, "Pow", [exporter.x(op), exporter.x(op, "FactorTensor")])
    else:
        exporter.into(op, "Pow", [exporter.x(op), scalar(exporter, op, op.attr("factor"))])


@converts("swish", "silu")
def swish(exporter: Exporter, op: Op) -> None:
    """x * sigmoid(beta * x)."""
    x = exporter.x(op)
    beta = op.attr("beta") if op.type == "swish" else 1.0
    inner = x if beta == 1 else exporter.node("Mul", [x, scalar(exporter, op, beta)])
    exporter.into(op, "Mul", [x, exporter.node("Sigmoid", [inner])])


@converts("mish")
def mish(exporter: Exporter, op: Op) -> None:
    """x * tanh(log(1 + exp(x)))."""
    x = exporter.x(op)
    if exporter.opset >= 18:
        exporter.into(op, "Mish", [x])
    else:
        exporter.into(op, "Mul", [x, exporter.node("Tanh", [exporter.node("Softplus", [x])])])


@converts("relu6", "brelu", "clip")
def clip(exporter: Exporter, op: Op) -> None:
    """x within bounds."""
    if op.type == "relu6":
        bounds = [0.0, float(op.attr("threshold")) if "threshold" in op.desc.attrs else 6.0]
    elif op.type == "brelu":
        bounds = [op.attr("t_min"), op.attr("t_max")]
    else:
        bounds = [op.attr("min"), op.attr("max")]
    names = [scalar(exporter, op, bound) for bound in bounds]
    for i, slot in enumerate(("Min", "Max")):
        if op.has(slot):
            names[i] = exporter.node("Reshape", [exporter.x(op, slot), exporter.ints()])
    exporter.into(op, "Clip", [exporter.x(op), *names])


@converts("hard_swish")
def hard_swish(exporter: Exporter, op: Op) -> None:
    """x * min(max(x + offset, 0), threshold) / scale."""
    x, (threshold, factor, offset) = exporter.x(op), (float(op.attr(n)) for n in ("threshold", "scale", "offset"))
    if (threshold, factor, offset) == (6, 6, 3) and exporter.opset >= 14:
        exporter.into(op, "HardSwish", [x])
        return
    moved = exporter.node("Add", [x, scalar(exporter, op, offset)])
    bounded = exporter.node("Clip", [moved, scalar(exporter, op, 0.0), scalar(exporter, op, threshold)])
    exporter.into(op, "Div", [exporter.node("Mul", [x, bounded]), scalar(exporter, op, factor)])


@converts("softplus")
def softplus(exporter: Exporter, op: Op) -> None:
    """log(1 + exp(beta * x)) / beta."""
    beta = float(op.attr("beta"))
    if beta == 1:
        exporter.into(op, "Softplus", [exporter.x(op)])
        return
    inner = exporter.node("Mul", [exporter.x(op), scalar(exporter, op, beta)])
    exporter.into(op, "Div", [exporter.node("Softplus", [inner]), scalar(exporter, op, beta)])


@converts("logsigmoid")
def log_sigmoid(exporter: Exporter, op: Op) -> None:
    """-log(1 + exp(-x))."""
    exporter.into(op, "Neg", [exporter.node("Softplus", [exporter.node("Neg", [exporter.x(op)])])])


@converts("gelu")
def gelu(exporter: Exporter, op: Op) -> None:
    """x * P(X <= x), or its approximation."""
    x, near = exporter.x(op), bool(op.attr("approximate"))
    if exporter.opset >= 20:
        exporter.into(op, "Gelu", [x], approximate="tanh" if near else "none")
        return
    half, one = scalar(exporter, op, 0.5), scalar(exporter, op, 1.0)
    if near:
        cube = exporter.node("Mul", [exporter.node("Mul", [x, x]), x])
        inner = exporter.node("Add", [x, exporter.node("Mul", [cube, scalar(exporter, op, 0.044715)])])
        bent = exporter.node("Tanh", [exporter.node("Mul", [inner, scalar(exporter, op, math.sqrt(2 / math.pi))])])
    else:
        bent = exporter.node("Erf", [exporter.node("Div", [x, scalar(exporter, op, math.sqrt(2.0))])])
    exporter.into(op, "Mul", [exporter.node("Mul", [x, half]), exporter.node("Add", [bent, one])])


@converts("prelu")
def prelu(exporter: Exporter, op: Op) -> None:
    """x where positive, else slope * x."""
    slope, rank = exporter.x(op, "Alpha"), exporter.rank(op.var())
    if op.attr("mode") == "channel":
        shape = [-1] + [1] * (rank - 2)
    elif op.attr("mode") == "all":
        shape = [1] * rank
    else:
        shape = [1, *exporter.shape(op.var())[1:]]
    exporter.into(op, "PRelu", [exporter.x(op), exporter.node("Reshape", [slope, exporter.ints(*shape)])])


@converts("cast")
def cast(exporter: Exporter, op: Op) -> None:
    """Another dtype."""
    exporter.cast(exporter.x(op), dtypes.np_dtype(op.attr("out_dtype")), exporter.written(op.out()))


@converts("where")
def where(exporter: Exporter, op: Op) -> None:
    """The numbers of one tensor or of the other."""
    exporter.into(op, "Where", [exporter.x(op, slot) for slot in ("Condition", "X", "Y")])


@converts("sum")
def total(exporter: Exporter, op: Op) -> None:
    """The sum of tensors."""
    names = [exporter.tensor(name) for name in op.vars()]
    if len(names) == 1:
        exporter.alias(op.out(), names[0])
    else:
        exporter.into(op, "Sum", names)


@converts("increment")
def increment(exporter: Exporter, op: Op) -> None:
    """x + step."""
    x = exporter.x(op)
    exporter.into(op, "Add", [x, scalar(exporter, op, op.attr("step"))])


def reduce(
    exporter: Exporter, type: str, tensor: str, axes: list[int] | None, keep: bool, into: str | None = None
) -> str:
    """Appends a reduction; axes are an attribute in old sets of operators, an input in new ones."""
    if axes is None:
        return exporter.node(type, [tensor], into, keepdims=int(keep))
    if exporter.opset >= (13 if type == "ReduceSum" else 18):
        return exporter.node(type, [tensor, exporter.ints(*axes)], into, keepdims=int(keep))
    return exporter.node(type, [tensor], into, axes=axes, keepdims=int(keep))


@converts(*_REDUCED)
def reduced(exporter: Exporter, op: Op) -> None:
    """One number of each group of numbers along some axes."""
    logical = op.type in ("reduce_all", "reduce_any")
    dim, keep = ("axis", "keepdim") if op.type == "logsumexp" else ("dim", "keep_dim")
    whole = op.attr("reduce_all") or len(op.attr(dim)) == 0 or not exporter.rank(op.var())
    axes = None if whole or len(set(op.attr(dim))) == exporter.rank(op.var()) else [int(n) for n in op.attr(dim)]
    x = exporter.cast(exporter.x(op), np.int32) if logical else exporter.x(op)
    one = axes is None and not op.attr(keep) and exporter.rank(op.out()) == 1  # Paddle 2's numbers have an axis
    into = None if logical or one else exporter.written(op.out())
    out = reduce(exporter, _REDUCED[op.type], x, axes, bool(op.attr(keep)), into)
    if one:
        out = exporter.node("Reshape", [out, exporter.ints(1)], None if logical else exporter.written(op.out()))
    if logical:
        exporter.cast(out, bool, exporter.written(op.out()))


@converts("mean")
def mean(exporter: Exporter, op: Op) -> None:
    """The mean of all numbers."""
    out = reduce(exporter, "ReduceMean", exporter.x(op), None, False)
    shape = exporter.shape(op.out())
    exporter.into(op, "Reshape", [out, exporter.ints(*shape)])


@converts("p_norm")
def p_norm(exporter: Exporter, op: Op) -> None:
    """The sum of absolute values, or the root of the sum of squares."""
    type = {1.0: "ReduceL1", 2.0: "ReduceL2"}.get(float(op.attr("porder")))
    if type is None:
        raise Unsupported(f"porder {op.attr('porder')}")
    axes = None if op.attr("asvector") else [int(op.attr("axis"))]
    reduce(exporter, type, exporter.x(op), axes, bool(op.attr("keepdim")), exporter.written(op.out()))


@converts("arg_max", "arg_min")
def position(exporter: Exporter, op: Op) -> None:
    """The position of the largest or smallest number."""
    exporter.require_axis(op)
    x, axis = exporter.x(op), int(op.attr("axis"))
    if op.attr("flatten"):
        x, axis = exporter.node("Reshape", [x, exporter.ints(-1)]), 0
    type = "ArgMax" if op.type == "arg_max" else "ArgMin"
    out = exporter.node(type, [x], axis=axis, keepdims=int(bool(op.attr("keepdims"))))
    exporter.cast(out, exporter.dtype(op.out()), exporter.written(op.out()))


def turned(exporter: Exporter, tensor: str, rank: int, wanted: bool) -> str:
    """A tensor with its last two axes exchanged, where wanted."""
    if not wanted or rank < 2:
        return tensor
    return exporter.node("Transpose", [tensor], perm=[*range(rank - 2), rank - 1, rank - 2])


@converts("matmul_v2", "matmul", "bmm")
def product(exporter: Exporter, op: Op) -> None:
    """A product of matrices, or of stacks of them."""
    names = [exporter.x(op), exporter.x(op, "Y")]
    ranks = [exporter.rank(op.var()), exporter.rank(op.var("Y"))]
    flags = {"matmul_v2": ("trans_x", "trans_y"), "matmul": ("transpose_X", "transpose_Y"), "bmm": ()}[op.type]
    for i, flag in enumerate(flags):
        names[i] = turned(exporter, names[i], ranks[i], bool(op.attr(flag)))
    alpha = float(op.attr("alpha")) if op.type == "matmul" else 1.0
    if ranks == [1, 1] and exporter.rank(op.out()) == 1:  # two vectors: ONNX gives a number without axes
        names = [exporter.node("Reshape", [names[0], exporter.ints(1, -1)]), names[1]]
    if alpha == 1:
        exporter.into(op, "MatMul", names)
    else:
        exporter.into(op, "Mul", [exporter.node("MatMul", names), scalar(exporter, op, alpha)])


@converts("mul")
def matrix_product(exporter: Exporter, op: Op) -> None:
    """A product of tensors that are taken as matrices."""
    x, y = op.var(), op.var("Y")
    columns, others = int(op.attr("x_num_col_dims")), int(op.attr("y_num_col_dims"))
    names = [exporter.x(op), exporter.x(op, "Y")]
    for i, (name, at) in enumerate(((x, columns), (y, others))):
        if exporter.rank(name) != 2:
            names[i] = exporter.node("Flatten", [names[i]], axis=at)
    if exporter.rank(x) == 2 and exporter.rank(y) == 2:
        exporter.into(op, "MatMul", names)
        return
    shape = [*exporter.shape(x)[:columns], *exporter.shape(y)[others:]]
    if shape.count(-1) > 1:
        raise Unsupported("several axes of any size")
    exporter.into(op, "Reshape", [exporter.node("MatMul", names), exporter.ints(*shape)])


@converts("einsum")
def einsum(exporter: Exporter, op: Op) -> None:
    """A sum of products, by an equation."""
    names: list[Any] = [exporter.tensor(name) for name in op.vars("Operands")]
    exporter.into(op, "Einsum", names, equation=op.attr("equation"))


@converts("cumsum")
def cumulative(exporter: Exporter, op: Op) -> None:
    """Sums of all numbers up to each."""
    exporter.require_axis(op)
    x, axis = exporter.x(op), int(op.attr("axis"))
    if op.attr("flatten"):
        x, axis = exporter.node("Reshape", [x, exporter.ints(-1)]), 0
    exporter.into(
        op, "CumSum", [x, exporter.initializer(axis, np.int64)], exclusive=int(bool(op.attr("exclusive"))),
        reverse=int(bool(op.attr("reverse"))),
    )  # fmt: skip
