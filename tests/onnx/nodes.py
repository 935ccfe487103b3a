"""ONNX nodes as cases: operator, inputs, attributes; an input is fed, or a constant of the model."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Constant:
    """An input that the model knows."""

    value: Array


@dataclass(frozen=True)
class Case:
    """One node.

    Args:
        op: its operator.
        inputs: arrays that are fed, `Constant`s, or None for one that is left out.
        attrs: its attributes.
        outputs: how many outputs it has.
        opset: the set of operators.
        any_size: axes of the first input whose size the model does not know.
        wanted: its output, where onnx's reference does not follow the definition: sums without absolute values,
            softmax of old models over one axis, other neighbours of channels.
    """

    op: str
    inputs: tuple[Any, ...]
    attrs: dict[str, Any] = field(default_factory=dict)
    outputs: int = 1
    opset: int = 18
    any_size: tuple[int, ...] = ()
    wanted: Array | None = None


def numbers(*shape: int, low: float = -2.0, high: float = 2.0, seed: int = 3) -> Array:
    """Random float32 numbers."""
    return np.random.default_rng(seed).uniform(low, high, shape).astype("float32")


def ints(*values: int) -> Constant:
    """A constant list of whole numbers."""
    return Constant(np.array(values, "int64"))


X, POSITIVE, IMAGE = numbers(2, 3, 4), numbers(2, 3, 4, low=0.1), numbers(2, 4, 6, 6)
UNIT, ABOVE = numbers(2, 3, 4, low=-0.9, high=0.9), numbers(2, 3, 4, low=1.1, high=3.0)
WHOLE, TRUTH = np.arange(24).reshape(2, 3, 4).astype("int64"), X > 0
BOXES, SCORES = numbers(2, 20, 4, low=0.0, high=1.0), numbers(2, 3, 20, low=0.0, high=1.0, seed=8)
#: Sums of the squares of three neighbouring channels.
NEIGHBOURS = np.stack([(IMAGE**2)[:, max(0, c - 1) : c + 2].sum(1) for c in range(4)], 1)
HALVES = np.array([0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 0.2, -3.7], "float32")

CASES: list[Case] = [
    *(
        Case(op, (X,))
        for op in (
            "Abs",
            "Exp",
            "Floor",
            "Ceil",
            "Sign",
            "Sin",
            "Cos",
            "Tan",
            "Sinh",
            "Cosh",
            "Tanh",
            "Atan",
            "Asinh",
            "Erf",
            "Sigmoid",
            "Relu",
            "Softsign",
            "Softplus",
            "HardSwish",
            "Mish",
            "Neg",
            "Identity",
            "HardSigmoid",
            "Elu",
            "Selu",
            "Celu",
            "LeakyRelu",
            "ThresholdedRelu",
            "ReduceSum",
            "ReduceMean",
            "ReduceMax",
            "ReduceL1",
            "ReduceL2",
            "ReduceSumSquare",
            "ReduceLogSumExp",
            "Flatten",
            "Transpose",
            "Size",
            "Shape",
        )
    ),
    *(Case(op, (POSITIVE,)) for op in ("Log", "Sqrt", "Reciprocal", "ReduceLogSum", "ReduceProd")),
    *(Case(op, (UNIT,)) for op in ("Asin", "Acos", "Atanh")),
    Case("Acosh", (ABOVE,)),
    Case("Round", (HALVES,)),
    Case("Not", (TRUTH,)),
    Case("IsNaN", (np.array([1, np.nan], "float32"),)),
    Case("IsInf", (np.array([1, np.inf, -np.inf], "float32"),)),
    Case("Gelu", (X,), {}, opset=20),
    Case("Gelu", (X,), {"approximate": "tanh"}, opset=20),
    Case("LeakyRelu", (X,), {"alpha": 0.3}),
    Case("PRelu", (X, Constant(numbers(4)))),
    Case("PRelu", (IMAGE, Constant(numbers(4, 1, 1)))),
    *(Case(op, (X, numbers(3, 1, seed=5))) for op in ("Add", "Sub", "Mul", "Div", "Max", "Min", "Sum", "Mean")),
    *(Case(op, (numbers(4), X)) for op in ("Add", "Sub", "Equal", "Less")),
    *(
        Case(op, (X.round(), numbers(2, 3, 4, seed=5).round()))
        for op in ("Equal", "Greater", "Less", "GreaterOrEqual", "LessOrEqual")
    ),
    *(Case(op, (TRUTH, X > 1)) for op in ("And", "Or", "Xor")),
    *(Case(op, (WHOLE, WHOLE[::-1].copy())) for op in ("BitwiseAnd", "BitwiseOr", "BitwiseXor", "Add", "Mul", "Max")),
    Case("Sum", (X, X * 2, numbers(4))),
    Case("Mean", (X, X * 2, X * 3)),
    Case("Max", (X,)),
    Case("Pow", (POSITIVE, Constant(np.float32(3.0)))),
    Case("Pow", (X, Constant(np.float32(2.0)))),
    Case("Pow", (POSITIVE, numbers(4))),
    Case("Pow", (POSITIVE, Constant(np.array(2, "int64")))),
    Case("Mod", (WHOLE, Constant(np.array(5, "int64")))),
    Case("Mod", (X, Constant(np.float32(0.7))), {"fmod": 1}),
    Case("Clip", (X, Constant(np.float32(-1)), Constant(np.float32(1)))),
    Case("Clip", (X, None, Constant(np.float32(1)))),
    Case("Clip", (X, Constant(np.float32(0)), Constant(np.float32(6)))),
    Case("Clip", (X, np.float32(-0.5))),
    Case("Clip", (X,), {"min": -1.0, "max": 1.0}, opset=6),
    Case("Cast", (X,), {"to": 7}),
    Case("Cast", (WHOLE,), {"to": 1}),
    Case("Cast", (X,), {"to": 9}),
    Case("CastLike", (X, WHOLE)),
    Case("Where", (TRUTH, X, X * 2)),
    Case("Where", (TRUTH, Constant(np.float32(7)), X)),
    Case("Where", (TRUTH[0], X, numbers(1))),
    Case("Where", (TRUTH[:, :, :1], numbers(4), numbers(3, 1)), any_size=(0,)),
    *(Case(op, (X, ints(1))) for op in ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL2")),
    Case("ReduceMean", (X,), {"axes": [-1], "keepdims": 0}, opset=13),
    Case("ReduceSum", (X, ints(0, 2)), {"keepdims": 0}),
    Case("ReduceSum", (X,), {"noop_with_empty_axes": 1}),
    Case("ReduceMax", (X,), {"keepdims": 0}),
    Case("ReduceLogSumExp", (X, ints(2)), {"keepdims": 0}),
    Case("ReduceL1", (X, ints(0)), {"keepdims": 0}),
    Case("ArgMax", (X,), {"axis": 1}),
    Case("ArgMin", (X,), {"axis": -1, "keepdims": 0}),
    Case("MatMul", (X, numbers(4, 5))),
    Case("MatMul", (numbers(4), numbers(4, seed=4))),
    Case("MatMul", (X, numbers(2, 4, 3))),
    Case("Gemm", (numbers(3, 4), numbers(4, 5))),
    Case("Gemm", (numbers(3, 4), numbers(5, 4), numbers(5)), {"transB": 1}),
    Case("Gemm", (numbers(4, 3), numbers(4, 5), numbers(3, 1)), {"transA": 1, "alpha": 0.5, "beta": 2.0}),
    Case("Gemm", (numbers(3, 4), numbers(4, 5)), {"alpha": 0.5}),
    Case("Einsum", (X, numbers(2, 4, 5)), {"equation": "bij,bjk->bik"}),
    Case("Einsum", (X,), {"equation": "bij->"}),
    Case("CumSum", (X, Constant(np.array(1, "int64")))),
    Case("CumSum", (X, Constant(np.array(2, "int64"))), {"exclusive": 1, "reverse": 1}),
    # shapes
    Case("Reshape", (X, ints(6, -1))),
    Case("Reshape", (X, ints(0, 12))),
    Case("Reshape", (X, np.array([4, 6], "int64"))),
    Case("Flatten", (IMAGE,), {"axis": 2}),
    Case("Flatten", (IMAGE,), {"axis": 0}),
    Case("Flatten", (X,), {"axis": -1}),
    Case("Flatten", (IMAGE,), {"axis": 2}, any_size=(0, 2, 3)),
    Case("Transpose", (X,), {"perm": [2, 0, 1]}),
    Case("Squeeze", (X[:1, :, :1], ints(0))),
    Case("Squeeze", (X[:1, :, :1],)),
    Case("Unsqueeze", (X, ints(0, -1))),
    Case("Unsqueeze", (X,), {"axes": [1]}, opset=11),
    Case("Concat", (X, X * 2), {"axis": -1}),
    Case("Split", (X, ints(1, 3)), {"axis": 2}, 2),
    Case("Split", (X,), {"axis": 2, "num_outputs": 3}, 3),
    Case("Split", (X,), {"axis": 1}, 3, 13),
    Case("Slice", (X, ints(1), ints(3), ints(2))),
    Case("Slice", (X, ints(-3, 0), ints(-1, 2**62), ints(2, 1))),
    Case("Slice", (X, ints(-1), ints(-(2**62)), ints(2), ints(-1))),
    Case("Slice", (X, ints(3), ints(0), ints(2), ints(-2))),
    Case("Slice", (X, ints(0), ints(4), ints(2), ints(2))),
    Case("Slice", (X, np.array([1], "int64"), ints(9), ints(1))),
    Case("Slice", (X,), {"starts": [1], "ends": [3], "axes": [1]}, opset=9),
    Case("Slice", (X, ints(1), ints(2**62))),
    Case("Gather", (X, ints(2, 0)), {"axis": 1}),
    Case("Gather", (X, ints(-1, 0)), {"axis": 2}),
    Case("Gather", (X, Constant(np.array(-1, "int64"))), {"axis": 1}),
    Case("Gather", (X, np.array([1, -2], "int64")), {"axis": 1}),
    Case("Gather", (numbers(5, 3), np.array([[1, 4], [0, 2]], "int64"))),
    Case("Gather", (X, np.array(1, "int64")), {"axis": 2}),
    Case("Gather", (X, np.array([[1, 0], [2, 2]], "int64")), {"axis": 1}),
    Case("Gather", (WHOLE, np.array([[1, 0]], "int64"))),
    Case("GatherElements", (X, np.array([[[0, 1, 2, 0]], [[2, 1, 0, 0]]], "int64")), {"axis": 1}),
    Case("GatherND", (X, np.array([[0, 1], [1, 2]], "int64"))),
    Case("ScatterElements", (X, np.array([[[0, 1, 2, 0]]], "int64"), numbers(1, 1, 4, seed=9)), {"axis": 1}),
    Case(
        "ScatterElements", (X, np.array([[[0, 0, 0, 0]]], "int64"), numbers(1, 1, 4)), {"axis": 1, "reduction": "add"}
    ),
    Case("ScatterND", (X, np.array([[0, 1], [1, 2]], "int64"), numbers(2, 4, seed=9))),
    Case("ScatterND", (TRUTH, np.array([[0, 1]], "int64"), np.array([[True, False, True, True]]))),
    Case("ScatterND", (X, np.array([[0, 1]], "int64"), numbers(1, 4, seed=9)), {"reduction": "add"}),
    Case("Expand", (X, ints(5, 2, 3, 4))),
    Case("Expand", (X[:, :1], ints(2, 3, 1))),
    Case("Expand", (X[:, :1], ints(1, 3, 4))),
    Case("Expand", (X[:, :1], np.array([2, 3, 1], "int64"))),
    Case("Expand", (TRUTH[:, :1], np.array([1, 3, 4], "int64"))),
    Case("Tile", (X, ints(1, 2, 3))),
    Case("Tile", (X, np.array([2, 1, 1], "int64"))),
    Case("Pad", (X, ints(0, 1, 0, 2, 0, 1), Constant(np.float32(0.5)))),
    Case("Pad", (X, ints(1, 2), None, ints(2))),
    Case("Pad", (X, ints(0, 0, -1, 0, 0, 2)), wanted=np.pad(X[:, :, 1:], ((0, 0), (0, 0), (0, 2)))),
    Case("Pad", (IMAGE, ints(0, 0, 1, 2, 0, 0, 2, 1)), {"mode": "reflect"}),
    Case("Pad", (IMAGE, ints(0, 0, 1, 0, 0, 0, 0, 3)), {"mode": "edge"}),
    Case("Pad", (X, ints(0, 0, 1, 0, 0, 2)), {"mode": "edge"}),
    Case("Pad", (X,), {"pads": [0, 1, 0, 0, 0, 1], "value": 2.0}, opset=2),
    Case("Shape", (X,), {"start": 1, "end": 3}),
    Case("Shape", (X,), any_size=(0,)),
    Case("ConstantOfShape", (ints(2, 3),)),
    Case("ConstantOfShape", (np.array([2, 3], "int64"),)),
    Case("Range", (np.array(1, "int64"), np.array(9, "int64"), np.array(3, "int64"))),
    Case(
        "OneHot",
        (
            np.array([[0, 2], [-1, 1]], "int64"),
            Constant(np.array(3, "int64")),
            Constant(np.array([2.0, 5.0], "float32")),
        ),
    ),
    Case(
        "OneHot",
        (np.array([0, 2], "int64"), Constant(np.array(3, "int64")), Constant(np.array([0, 1], "int64"))),
        {"axis": 0},
    ),
    Case("NonZero", (X.round(),)),
    Case("TopK", (X, ints(2)), {"axis": 1}, 2),
    Case("TopK", (X, ints(3)), {"largest": 0}, 2),
    Case("Trilu", (X,)),
    Case("Trilu", (X, Constant(np.array(-1, "int64"))), {"upper": 0}),
    Case("Trilu", (TRUTH,), {"upper": 0}),
    Case("EyeLike", (X[0],), {"dtype": 7}),
    Case("DepthToSpace", (IMAGE,), {"blocksize": 2}),
    Case("DepthToSpace", (IMAGE,), {"blocksize": 2, "mode": "CRD"}),
    Case("SpaceToDepth", (IMAGE,), {"blocksize": 3}),
    Case("ReverseSequence", (X, ints(2, 2, 2)), {"time_axis": 0, "batch_axis": 1}),
    # layers
    Case("Conv", (IMAGE, Constant(numbers(5, 4, 3, 3)))),
    Case("Conv", (IMAGE, Constant(numbers(5, 4, 3, 3)), Constant(numbers(5)))),
    Case("Conv", (IMAGE, Constant(numbers(4, 1, 3, 3))), {"group": 4, "strides": [2, 2], "pads": [1, 0, 2, 1]}),
    Case("Conv", (IMAGE, Constant(numbers(5, 4, 3, 3))), {"auto_pad": "SAME_LOWER", "strides": [2, 2]}),
    Case("Conv", (IMAGE, Constant(numbers(5, 4, 3, 3))), {"dilations": [2, 1], "auto_pad": "SAME_UPPER"}),
    Case("Conv", (X, Constant(numbers(5, 3, 3)), Constant(numbers(5))), {"pads": [1, 1]}),
    Case("Conv", (X, Constant(numbers(5, 3, 3)))),
    Case("Conv", (numbers(1, 2, 4, 4, 4), Constant(numbers(3, 2, 2, 2, 2)))),
    Case(
        "ConvTranspose",
        (IMAGE, Constant(numbers(4, 3, 3, 3)), Constant(numbers(3))),
        {"strides": [2, 2], "pads": [1, 1, 1, 1]},
    ),
    Case("ConvTranspose", (IMAGE, Constant(numbers(4, 3, 3, 3))), {"strides": [2, 2], "output_padding": [1, 1]}),
    Case("ConvTranspose", (X, Constant(numbers(3, 2, 3)))),
    Case("MaxPool", (IMAGE,), {"kernel_shape": [2, 2], "strides": [2, 2]}),
    Case("MaxPool", (X,), {"kernel_shape": [2]}),
    Case("MaxPool", (IMAGE,), {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1}),
    Case("AveragePool", (IMAGE,), {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}),
    Case("AveragePool", (IMAGE,), {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "count_include_pad": 1}),
    Case("GlobalAveragePool", (IMAGE,)),
    Case("GlobalMaxPool", (IMAGE,)),
    Case("BatchNormalization", (IMAGE, *(Constant(numbers(4, low=0.5, seed=s)) for s in range(4)))),
    Case("LayerNormalization", (X, Constant(numbers(4)), Constant(numbers(4)))),
    Case("LayerNormalization", (X, Constant(numbers(3, 4))), {"axis": 1}),
    Case("InstanceNormalization", (IMAGE, Constant(numbers(4)), Constant(numbers(4)))),
    Case("GroupNormalization", (IMAGE, Constant(numbers(4)), Constant(numbers(4))), {"num_groups": 2}, opset=21),
    Case("GroupNormalization", (IMAGE, Constant(numbers(2)), Constant(numbers(2))), {"num_groups": 2}),
    Case("LpNormalization", (X,), {"axis": 1}),
    Case("LpNormalization", (X,), {"p": 1}, wanted=X / np.abs(X).sum(-1, keepdims=True)),
    Case("LRN", (IMAGE,), {"size": 3}, wanted=IMAGE / (1 + 1e-4 / 3 * NEIGHBOURS) ** 0.75),
    Case("Softmax", (X,)),
    Case("Softmax", (X,), {"axis": 1}),
    Case("LogSoftmax", (X,), {"axis": 0}),
    Case("Softmax", (X,), opset=11, wanted=np.exp(X) / np.exp(X).sum((1, 2), keepdims=True)),
    Case("Dropout", (X,)),
    Case("RMSNormalization", (X, Constant(numbers(4))), opset=23),
    Case(
        "Resize",
        (IMAGE, None, Constant(np.array([1, 1, 2, 2], "float32"))),
        {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"},
    ),
    Case("Resize", (IMAGE, None, Constant(np.array([1, 1, 2, 2], "float32")))),
    Case("Resize", (IMAGE, None, None, ints(2, 4, 9, 5)), {"mode": "linear"}),
    Case(
        "Resize",
        (IMAGE, None, None, ints(2, 4, 9, 5)),
        {"mode": "linear", "coordinate_transformation_mode": "align_corners"},
    ),
    Case("Resize", (IMAGE, None, Constant(np.array([1, 1, 2, 2], "float32"))), {"mode": "cubic"}),
    Case("Resize", (X, None, None, ints(2, 3, 7)), {"mode": "linear"}),
    Case("Resize", (numbers(1, 2, 3, 4, 5), None, None, ints(1, 2, 5, 3, 6)), {"mode": "linear"}),
    Case("DeformConv", (IMAGE, Constant(numbers(3, 4, 3, 3)), numbers(2, 18, 4, 4), Constant(numbers(3))), opset=19),
    Case(
        "DeformConv",
        (IMAGE, Constant(numbers(4, 2, 2, 2)), numbers(2, 16, 4, 4), None, numbers(2, 8, 4, 4)),
        {"group": 2, "offset_group": 2, "strides": [2, 2], "pads": [1, 1, 1, 1]},
        opset=19,
    ),
    Case("GridSample", (IMAGE, numbers(2, 3, 5, 2, low=-1.2, high=1.2)), opset=16),
    *(
        Case(
            op,
            (
                numbers(5, 2, 3),
                Constant(numbers(d, g * 4, 3)),
                Constant(numbers(d, g * 4, 4)),
                Constant(numbers(d, 2 * g * 4)),
            ),
            {"hidden_size": 4, "direction": way, **more},
            2,
            14,
        )
        for op, g, more in (("LSTM", 4, {}), ("GRU", 3, {"linear_before_reset": 1}), ("RNN", 1, {}))
        for way, d in (("forward", 1), ("reverse", 1), ("bidirectional", 2))
    ),
    Case("QuantizeLinear", (X, Constant(np.float32(0.1)), Constant(np.array(3, "uint8")))),
    Case("QuantizeLinear", (X, Constant(numbers(3, low=0.05, high=0.2)), Constant(np.zeros(3, "int8"))), {"axis": 1}),
    Case(
        "DequantizeLinear",
        (
            Constant(np.arange(-5, 7).astype("int8").reshape(3, 4)),
            Constant(np.float32(0.1)),
            Constant(np.array(1, "int8")),
        ),
        opset=21,
    ),
    Case("Softmax", (Constant(X),), opset=11, wanted=np.exp(X) / np.exp(X).sum((1, 2), keepdims=True)),
    Case("Add", (Constant(X), Constant(X))),
    Case("Clip", (WHOLE, Constant(np.array(3, "int64")))),
    Case("Clip", (WHOLE, None, Constant(np.array(9, "int64")))),
    Case("Clip", (X.astype("float64"), Constant(np.float64(-1)), Constant(np.float64(1)))),
    Case("Sum", (X.astype("float64"), X.astype("float64"))),
    Case("Concat", (TRUTH, TRUTH), {"axis": 0}),
    Case("Div", (WHOLE - 7, Constant(np.array(3, "int64")))),
    Case("Compress", (X, np.array([True, False, True])), {"axis": 1}),
    Case("Compress", (X, np.array([False, True, True]))),
    Case("NonMaxSuppression", (BOXES, SCORES, ints(50), Constant(np.array([0.4], "float32")))),
    Case(
        "NonMaxSuppression",
        (BOXES, SCORES, ints(2), Constant(np.array([0.5], "float32")), Constant(np.array([0.3], "float32"))),
    ),
    Case("NonMaxSuppression", (BOXES, SCORES, ints(50), Constant(np.array([0.3], "float32"))), {"center_point_box": 1}),
]
