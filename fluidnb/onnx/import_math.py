"""Converters of nodes that compute each number by itself, products, and reductions."""

from typing import Any

import numpy as np

from fluidnb.onnx.converters import Unsupported
from fluidnb.onnx.importer import Importer, Node, converts
from fluidnb.values import dtypes

#: Functions of one tensor: ONNX's operator -> ours, with its attributes (ONNX's name and default -> ours).
_UNARY: dict[str, tuple[str, dict[str, tuple[str, float]]]] = {
    **{n: (n.lower(), {}) for n in (
        "Abs", "Exp", "Log", "Sqrt", "Reciprocal", "Floor", "Ceil", "Sign", "Sin", "Cos", "Tan", "Asin",
        "Acos", "Atan", "Sinh", "Cosh", "Tanh", "Asinh", "Acosh", "Atanh", "Erf", "Sigmoid", "Relu", "Softsign", "Mish",
    )},
    "Not": ("logical_not", {}), "BitwiseNot": ("bitwise_not", {}), "IsNaN": ("isnan_v2", {}),
    "LeakyRelu": ("leaky_relu", {"alpha": ("alpha", 0.01)}), "Elu": ("elu", {"alpha": ("alpha", 1.0)}),
    "Celu": ("celu", {"alpha": ("alpha", 1.0)}),
    "Selu": ("selu", {"alpha": ("alpha", 1.6732632423543772), "gamma": ("scale", 1.0507009873554805)}),
    "Softplus": ("softplus", {}), "HardSigmoid": ("hard_sigmoid", {"alpha": ("slope", 0.2), "beta": ("offset", 0.5)}),
    "HardSwish": ("hard_swish", {}), "ThresholdedRelu": ("thresholded_relu", {"alpha": ("threshold", 1.0)}),
    "Swish": ("swish", {"alpha": ("beta", 1.0)}),
}  # fmt: skip
#: Functions of two tensors that broadcast.
_BINARY = {
    "Add": "elementwise_add", "Sub": "elementwise_sub", "Mul": "elementwise_mul", "Div": "elementwise_div",
    "Equal": "equal", "Greater": "greater_than", "Less": "less_than", "GreaterOrEqual": "greater_equal",
    "LessOrEqual": "less_equal", "And": "logical_and", "Or": "logical_or", "Xor": "logical_xor",
    "BitwiseAnd": "bitwise_and", "BitwiseOr": "bitwise_or", "BitwiseXor": "bitwise_xor",
}  # fmt: skip
#: Functions of any number of tensors, by that of two.
_MANY = {"Max": "elementwise_max", "Min": "elementwise_min", "Sum": "elementwise_add", "Mean": "elementwise_add"}
_REDUCED = {
    "ReduceSum": "reduce_sum", "ReduceMean": "reduce_mean", "ReduceMax": "reduce_max", "ReduceMin": "reduce_min",
    "ReduceProd": "reduce_prod",
}  # fmt: skip


@converts(*_UNARY)
def unary(importer: Importer, node: Node) -> None:
    """A function of each number."""
    type, attrs = _UNARY[node.op]
    values: dict[str, Any] = {ours: float(node.attrs.get(name, default)) for name, (ours, default) in attrs.items()}
    importer.into(node, type, {"X": importer.x(node)}, **values)


@converts("Neg")
def negated(importer: Importer, node: Node) -> None:
    """-x."""
    importer.into(node, "scale", {"X": importer.x(node)}, scale=-1.0)


@converts("Round")
def rounded(importer: Importer, node: Node) -> None:
    """The nearest whole number, halves to the even one; our operator takes halves away from zero."""
    importer.rename(node, round_to_even(importer, importer.x(node)))


def round_to_even(importer: Importer, x: str) -> str:
    """A variable rounded to whole numbers; twice the rounded half is even where a number is halfway between two."""
    half = importer.made(np.asarray(0.5, importer.dtype_of(x)))
    part = importer.value("elementwise_sub", {"X": x, "Y": importer.value("floor", {"X": x})})
    between = importer.value("equal", {"X": part, "Y": half})
    halved = importer.value("round", {"X": importer.value("scale", {"X": x}, scale=0.5)})
    even = importer.value("scale", {"X": halved}, scale=2.0)
    nearest = importer.value("round", {"X": x})
    return importer.value("where", {"Condition": between, "X": even, "Y": nearest})


@converts("IsInf")
def infinite(importer: Importer, node: Node) -> None:
    """Whether a number is infinite; of one sign where requested."""
    if not (node.attrs.get("detect_positive", 1) and node.attrs.get("detect_negative", 1)):
        raise Unsupported("one sign")
    importer.into(node, "isinf_v2", {"X": importer.x(node)})


@converts("Gelu")
def gelu(importer: Importer, node: Node) -> None:
    """x * P(X <= x)."""
    importer.into(node, "gelu", {"X": importer.x(node)}, approximate=node.attrs.get("approximate", "none") == "tanh")


@converts("PRelu")
def prelu(importer: Importer, node: Node) -> None:
    """x where positive, else slope * x; the slope broadcasts."""
    x, slope = importer.x(node), importer.x(node, 1)
    if importer.dtype_of(x) not in ("float32", "float64", "float16"):
        raise Unsupported(f"dtype {importer.dtype_of(x)}")
    zero = importer.made(np.zeros((), importer.dtype_of(x)))
    falls = importer.value("elementwise_mul", {"X": importer.value("elementwise_min", {"X": x, "Y": zero}), "Y": slope})
    importer.into(node, "elementwise_add", {"X": importer.value("relu", {"X": x}), "Y": falls})


@converts(*_BINARY)
def binary(importer: Importer, node: Node) -> None:
    """A function of two tensors that broadcast."""
    axis = node.attrs.get("axis", -1) if node.attrs.get("broadcast") else -1  # models before opset 7
    ins = {"X": importer.x(node), "Y": importer.x(node, 1)}
    if node.op in ("And", "Or", "Xor") or node.op.startswith("Bitwise"):
        importer.into(node, _BINARY[node.op], ins)
    else:
        importer.into(node, _BINARY[node.op], ins, axis=axis)


@converts("Pow")
def power(importer: Importer, node: Node) -> None:
    """x ** y, with the dtype of x."""
    x, exponent = importer.x(node), importer.constant(node, 1)
    if exponent is not None and exponent.size == 1 and exponent.ndim <= importer.rank(x):
        number = float(exponent.reshape(()))
        simple = {2.0: "square", 0.5: "sqrt"}.get(number) if importer.dtype_of(x).startswith("float") else None
        if simple is not None:
            importer.into(node, simple, {"X": x})
        else:
            importer.into(node, "pow", {"X": x}, factor=number)
        return
    y = importer.x(node, 1)
    if importer.dtype_of(y) != importer.dtype_of(x):
        y = importer.cast(y, importer.dtype_of(x))
    importer.into(node, "elementwise_pow", {"X": x, "Y": y})


@converts("Mod")
def remainder(importer: Importer, node: Node) -> None:
    """x mod y with the sign of y, or with that of x (fmod)."""
    x, y = importer.x(node), importer.x(node, 1)
    if not node.attrs.get("fmod", 0):
        importer.into(node, "elementwise_mod", {"X": x, "Y": y})
        return
    if not importer.dtype_of(x).startswith("float"):
        raise Unsupported("fmod of whole numbers")
    whole = importer.value("trunc", {"X": importer.value("elementwise_div", {"X": x, "Y": y})})
    importer.into(
        node, "elementwise_sub", {"X": x, "Y": importer.value("elementwise_mul", {"X": whole, "Y": y})}
    )


@converts(*_MANY)
def many(importer: Importer, node: Node) -> None:
    """A function of any number of tensors that broadcast."""
    names = [importer.x(node, i) for i in range(len(node.inputs))]
    out = names[0]
    for i, name in enumerate(names[1:]):
        last = i == len(names) - 2 and node.op != "Mean"
        if last:
            importer.into(node, _MANY[node.op], {"X": out, "Y": name})
            return
        out = importer.value(_MANY[node.op], {"X": out, "Y": name})
    if node.op == "Mean":
        importer.into(node, "scale", {"X": out}, scale=1.0 / len(names))
    else:
        importer.rename(node, out)


@converts("Clip")
def clip(importer: Importer, node: Node) -> None:
    """x within bounds, each of which may be left out."""
    x = importer.x(node)
    bounds: list[Any] = [node.attrs.get("min"), node.attrs.get("max")]
    for i in (0, 1):
        if node.has(i + 1):
            value = importer.constant(node, i + 1)
            bounds[i] = importer.x(node, i + 1) if value is None else float(value.reshape(()))
    whole = not importer.dtype_of(x).startswith("float")  # the attributes of our operator are floats
    if whole or any(isinstance(bound, str) for bound in bounds):
        for i, type in enumerate(("elementwise_max", "elementwise_min")):
            if bounds[i] is not None:
                bound = bounds[i] if isinstance(bounds[i], str) else importer.made(
                    np.asarray(bounds[i], importer.dtype_of(x)))  # fmt: skip
                x = importer.value(type, {"X": x, "Y": bound})
        importer.rename(node, x)
        return
    if bounds == [0.0, 6.0]:
        importer.into(node, "relu6", {"X": x})
        return
    ends = np.finfo("float32")
    low, high = (float(end) if bounds[i] is None else bounds[i] for i, end in enumerate((ends.min, ends.max)))
    importer.into(node, "clip", {"X": x}, min=low, max=high)


@converts("Cast", "CastLike")
def cast(importer: Importer, node: Node) -> None:
    """Another dtype."""
    x = importer.x(node)
    dtype = importer.dtype_of(importer.x(node, 1)) if node.op == "CastLike" else importer.dtype(node.attrs["to"])
    if dtype == importer.dtype_of(x):
        importer.rename(node, x)
    else:
        importer.cast(x, dtype, node.outputs[0])


@converts("Where")
def where(importer: Importer, node: Node) -> None:
    """The numbers of one tensor or of the other; all three broadcast."""
    names = [importer.x(node, i) for i in range(3)]
    condition, x, y = broadcast(importer, names)
    importer.into(node, "where", {"Condition": condition, "X": x, "Y": y})


def broadcast(importer: Importer, names: list[str]) -> list[str]:
    """Variables in their common shape; two sizes that are not known are taken to be equal."""
    shapes = [importer.shape(name) for name in names]
    if len(set(shapes)) == 1:
        return names
    rank = max(map(len, shapes))
    wide = [(1,) * (rank - len(shape)) + shape for shape in shapes]
    columns = zip(*wide, strict=True)
    common = tuple(next((n for n in column if n > 1), -1 if -1 in column else column[0]) for column in columns)
    full = next((name for name, shape in zip(names, shapes, strict=True) if shape == common), None)
    if full is None and -1 not in common:
        return [
            name if shape == common else importer.value("expand_v2", {"X": name}, shape=list(common))
            for name, shape in zip(names, shapes, strict=True)
        ]
    if full is None:
        full = importer.cast(names[0], "float32")
        for name in names[1:]:
            full = importer.value("elementwise_add", {"X": full, "Y": importer.cast(name, "float32")})
    return [
        name if shape == common else importer.value("expand_as_v2", {"X": name, "Y": full}, target_shape=list(common))
        for name, shape in zip(names, shapes, strict=True)
    ]


@converts("Identity", "Dropout")
def identity(importer: Importer, node: Node) -> None:
    """The same tensor; Dropout at inference too."""
    if node.wants(1):
        raise Unsupported("a mask")
    importer.rename(node, importer.x(node))


@converts(*_REDUCED)
def reduced(importer: Importer, node: Node) -> None:
    """One number of each group of numbers along some axes."""
    reduce_axes(importer, node, importer.x(node), _REDUCED[node.op], node.outputs[0])


def reduce_axes(importer: Importer, node: Node, x: str, type: str, into: str) -> None:
    """Appends a reduction of a variable over the axes that a node names."""
    axes = importer.axes(node, 1, importer.rank(x))
    if not axes and node.attrs.get("noop_with_empty_axes", 0):
        importer.append("assign", {"X": x}, {"Out": into})
        return
    keep = bool(node.attrs.get("keepdims", 1))
    importer.append(
        type, {"X": x}, {"Out": into}, scalar(importer, x, axes, keep), dim=axes or [0], keep_dim=keep,
        reduce_all=not axes,
    )  # fmt: skip


def scalar(importer: Importer, x: str, axes: list[int] | None, keep: bool) -> bool:
    """Whether a reduction leaves no axes."""
    return not keep and (not axes or len(axes) == importer.rank(x))


@converts("ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSum")
def norms(importer: Importer, node: Node) -> None:
    """Sums of absolute values or of squares, and functions of them."""
    x, before, after = importer.x(node), {"ReduceL1": "abs", "ReduceLogSum": ""}.get(node.op, "square"), {
        "ReduceL2": "sqrt", "ReduceLogSum": "log"}.get(node.op)  # fmt: skip
    each = importer.value(before, {"X": x}) if before else x
    total = importer.new("sum") if after else node.outputs[0]
    reduce_axes(importer, node, each, "reduce_sum", total)
    if after:
        importer.into(node, after, {"X": total})


@converts("ReduceLogSumExp")
def log_sum(importer: Importer, node: Node) -> None:
    """log(sum(exp(x)))."""
    x = importer.x(node)
    axes = importer.axes(node, 1, importer.rank(x))
    keep = bool(node.attrs.get("keepdims", 1))
    importer.into(
        node, "logsumexp", {"X": x}, scalar=scalar(importer, x, axes, keep), axis=axes or [0], keepdim=keep,
        reduce_all=not axes,
    )  # fmt: skip


@converts("ArgMax", "ArgMin")
def position(importer: Importer, node: Node) -> None:
    """The position of the largest or smallest number."""
    if node.attrs.get("select_last_index", 0):
        raise Unsupported("select_last_index")
    x, keep = importer.x(node), bool(node.attrs.get("keepdims", 1))
    importer.into(
        node, "arg_max" if node.op == "ArgMax" else "arg_min", {"X": x}, scalar=scalar(importer, x, [0], keep),
        axis=node.attrs.get("axis", 0), keepdims=keep, dtype=int(dtypes.var_type("int64")),
    )  # fmt: skip


@converts("MatMul")
def product(importer: Importer, node: Node) -> None:
    """A product of matrices, or of stacks of them."""
    x, y = importer.x(node), importer.x(node, 1)
    importer.into(node, "matmul_v2", {"X": x, "Y": y}, scalar=importer.rank(x) == importer.rank(y) == 1)


@converts("Gemm")
def product_and_sum(importer: Importer, node: Node) -> None:
    """alpha * A B + beta * C."""
    alpha, beta = float(node.attrs.get("alpha", 1.0)), float(node.attrs.get("beta", 1.0))
    turned: dict[str, Any] = {f"trans_{a}": bool(node.attrs.get(f"trans{b}", 0)) for a, b in (("x", "A"), ("y", "B"))}
    added = node.has(2) and beta != 0
    plain = alpha == 1
    ins = {"X": importer.x(node), "Y": importer.x(node, 1)}
    if plain and not added:
        importer.into(node, "matmul_v2", ins, **turned)
        return
    out = importer.value("matmul_v2", ins, **turned)
    if not plain:
        if not added:
            importer.into(node, "scale", {"X": out}, scale=alpha)
            return
        out = importer.value("scale", {"X": out}, scale=alpha)
    third = importer.x(node, 2)
    if beta != 1:
        third = importer.value("scale", {"X": third}, scale=beta)
    importer.into(node, "elementwise_add", {"X": out, "Y": third})


@converts("Einsum")
def einsum(importer: Importer, node: Node) -> None:
    """A sum of products, by an equation."""
    names = [importer.x(node, i) for i in range(len(node.inputs))]
    outs: dict[str, Any] = {"Out": node.outputs[0]}
    outs |= {slot: [importer.new(slot.lower()) for _ in names] for slot in ("InnerCache", "XShape")}
    equation = node.attrs["equation"].replace(" ", "")
    importer.append("einsum", {"Operands": names}, outs, equation.endswith("->"), equation=equation)


@converts("CumSum")
def cumulative(importer: Importer, node: Node) -> None:
    """Sums of all numbers up to each."""
    axis = int(importer.required(node, 1, "axis").reshape(()))
    importer.into(
        node, "cumsum", {"X": importer.x(node)}, axis=axis, exclusive=bool(node.attrs.get("exclusive", 0)),
        reverse=bool(node.attrs.get("reverse", 0)),
    )  # fmt: skip
