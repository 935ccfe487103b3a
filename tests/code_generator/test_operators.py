"""C code of operators: the results of the executor, without a warning of the compiler or of sanitizers."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fluidnb.op.c_code import all_c_code, c_code_of
from tests.code_generator.batch import Batch

_rng = np.random.default_rng(3)


def real(*shape: int, low: float = -1, high: float = 1) -> np.ndarray:
    """Random float32 numbers."""
    return _rng.uniform(low, high, shape).astype(np.float32)


def whole(high: int, *shape: int, dtype: str = "int64") -> np.ndarray:
    """Random numbers from 0 to before a bound."""
    return _rng.integers(0, high, shape).astype(dtype)


def dense(b: Batch) -> None:
    """mul, softmax and arithmetic."""
    b.add("mul", {"X": real(3, 4), "Y": real(4, 5)}, grad=True)
    b.add("mul", {"X": real(3, 4), "Y": real(4, 5)}, grad=["X"])
    b.add("softmax", {"X": real(2, 3, 4)}, {"axis": 1}, grad=True)
    for name in ("add", "sub", "mul", "div", "max", "min", "pow"):
        x = real(2, 3, 4, low=0.5)
        b.add("elementwise_" + name, {"X": x, "Y": real(2, 3, 4, low=0.5)}, grad=True)
        b.add("elementwise_" + name, {"X": x, "Y": real(3, low=0.5)}, {"axis": 1}, grad=True)
        b.add("elementwise_" + name, {"X": x, "Y": real(4, low=0.5)}, grad=["Y"])
        b.add("elementwise_" + name, {"X": x, "Y": real(2, 1, 4, low=0.5)}, grad=["X"])
        b.add("elementwise_" + name, {"X": x, "Y": real(1, low=0.5)}, grad=True)
    for name in ("add", "sub", "mul", "div", "max", "min", "floordiv", "mod"):
        b.add("elementwise_" + name, {"X": whole(20, 3, 4) - 9, "Y": whole(5, 4) + 1})
    x, y = real(2, 3), real(2, 3)
    b.add("elementwise_sub", {"X": x, "Y": y}, in_place=[("Out", "X")])
    b.add("elementwise_mul", {"X": x, "Y": y}, in_place=[("Out", "Y")])


def activations(b: Batch) -> None:
    """Functions of each element that are rows of the table."""
    table = [type for type in all_c_code() if c_code_of(type).file.name == "table.c" and not type.endswith("_grad")]
    assert len(table) > 40
    for type in table:
        b.add(type, {"X": real(3, 5, low=0.1, high=0.9)}, grad=True)
        b.add(type, {"X": real(3, 5, low=-4, high=4).astype(np.float64)}, in_place=[("Out", "X")])


def convolution(b: Batch) -> None:
    """Convolutions: strides, paddings, dilations, groups, layouts."""
    rows: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
        ((2, 3, 7, 8), (4, 3, 3, 3), {"paddings": [1, 1]}),
        ((2, 4, 7, 8), (6, 2, 3, 2), {"strides": [2, 1], "paddings": [0, 2], "groups": 2}),
        ((1, 2, 9, 9), (3, 2, 3, 3), {"dilations": [2, 3], "paddings": [1, 2, 3, 0]}),
        ((1, 2, 6, 5), (3, 2, 1, 1), {"strides": [2, 3]}), ((2, 4, 3, 5), (6, 2, 1, 1), {"groups": 2}),
        ((1, 2, 7, 6), (3, 2, 3, 3), {"strides": [2, 2], "padding_algorithm": "SAME"}),
        ((1, 2, 7, 6), (3, 2, 3, 3), {"padding_algorithm": "VALID", "paddings": [1, 1]}),
        ((2, 5, 6, 4), (3, 4, 3, 3), {"data_format": "NHWC", "paddings": [1, 0]}),
        ((1, 1, 2, 2), (1, 1, 3, 3), {"strides": [2, 2]}),
    ]
    for image, window, attrs in rows:
        b.add("conv2d", {"Input": real(*image), "Filter": real(*window)}, attrs, ["Output"], grad=True)
    one = {"Input": real(2, 3, 5, 5), "Filter": real(4, 3, 3, 3)}
    b.add("conv2d", one, {}, ["Output"], grad=["Input"])
    b.add("conv2d", one, {}, ["Output"], grad=["Filter"])
    deep = {"Input": real(2, 3, 5, 6), "Filter": real(6, 1, 3, 3)}
    b.add("depthwise_conv2d", deep, {"groups": 3, "paddings": [1, 1], "strides": [2, 2]}, ["Output"], grad=True)
    up = {"Input": real(2, 4, 3, 4), "Filter": real(4, 3, 3, 2)}
    for attrs in (
        {}, {"strides": [2, 3], "paddings": [1, 0]}, {"groups": 2, "dilations": [2, 1]},
        {"strides": [2, 2], "output_padding": [1, 1]}, {"padding_algorithm": "SAME", "strides": [2, 2]},
    ):  # fmt: skip
        b.add("conv2d_transpose", up, attrs, ["Output"], grad=True)
    wide = {"Input": real(1, 3, 4, 2), "Filter": real(2, 3, 3, 3)}
    b.add("conv2d_transpose", wide, {"data_format": "NHWC", "strides": [2, 2]}, ["Output"], grad=["Filter"])


def pooling(b: Batch) -> None:
    """Pooling: largest and mean, all kinds of windows."""
    rows: list[dict[str, Any]] = [
        {"ksize": [2, 2], "strides": [2, 2]}, {"ksize": [3, 2], "strides": [2, 1], "paddings": [1, 0]},
        {"ksize": [3, 3], "strides": [2, 2], "ceil_mode": True}, {"ksize": [2, 2], "global_pooling": True},
        {"ksize": [3, 3], "strides": [2, 2], "paddings": [1, 1], "exclusive": False, "ceil_mode": True},
        {"ksize": [3, 2], "adaptive": True}, {"ksize": [3, 3], "strides": [2, 2], "padding_algorithm": "SAME"},
        {"ksize": [2, 2], "strides": [1, 1], "paddings": [1, 0, 0, 1]},
        {"ksize": [2, 2], "strides": [2, 2], "data_format": "NHWC"},
        {"ksize": [2, 2], "global_pooling": True, "adaptive": True},
    ]
    for attrs in rows:
        for kind in ("max", "avg"):
            b.add("pool2d", {"X": real(2, 3, 7, 6)}, {"pooling_type": kind, **attrs}, grad=True)
    b.add("pool2d", {"X": np.ones((1, 1, 4, 4), np.float32)}, {"pooling_type": "max", "ksize": [2, 2]}, grad=True)


def normalization(b: Batch) -> None:
    """Normalization of channels and rows."""
    for shape, layout, more in (
        ((4, 3, 5, 2), "NCHW", {}), ((4, 5, 2, 3), "NHWC", {}), ((6, 3), "NCHW", {"epsilon": 1e-3}),
        ((4, 3, 5), "NCHW", {"is_test": True}), ((4, 3, 5), "NCHW", {"use_global_stats": True, "momentum": 0.5}),
        ((4, 3, 5), "NCHW", {"is_test": True, "trainable_statistics": True}),
    ):  # fmt: skip
        moments = {"Mean": real(3), "Variance": real(3, low=0.5)}
        inputs = {"X": real(*shape), "Scale": real(3), "Bias": real(3), **moments}
        outs = ["Y", "MeanOut", "VarianceOut", "SavedMean", "SavedVariance"]
        shared = [("MeanOut", "Mean"), ("VarianceOut", "Variance")]
        attrs = {"data_layout": layout, **more}
        b.add("batch_norm", inputs, attrs, outs, grad=["X", "Scale", "Bias"], in_place=shared, slopes=["Y"])
    attrs, outs = {"n": 4, "alpha": 0.3}, ["Out", "MidOut"]
    b.add("lrn", {"X": real(2, 6, 2, 3)}, attrs, outs, grad=True, slopes=["Out"])
    b.add("lrn", {"X": real(2, 2, 3, 6)}, {**attrs, "data_format": "NHWC"}, outs, grad=True, slopes=["Out"])
    b.add("batch_norm", {"X": real(2, 3), **moments}, {}, ["Y", "SavedMean"])
    inputs, outs = {**inputs, "X": real(1, 3)}, ["Y", "MeanOut", "VarianceOut", "SavedMean", "SavedVariance"]
    b.add("batch_norm", inputs, {}, outs, grad=["X", "Scale", "Bias"], slopes=["Y"])


def losses(b: Batch) -> None:
    """Losses of classes."""
    shares = real(4, 5, low=0.1)
    shares /= shares.sum(1, keepdims=True)
    one = ["Softmax", "Loss"]
    for attrs, x, label in (
        ({}, real(4, 5, low=-9, high=9), whole(5, 4, 1)), ({"soft_label": True}, real(4, 5), shares),
        ({"axis": 1}, real(2, 3, 4), whole(3, 2, 1, 4)), ({"ignore_index": 2}, real(6, 3), whole(3, 6, 1)),
        ({}, real(4, 5, low=-90, high=90), whole(5, 4, 1)), ({"axis": 0, "soft_label": True}, real(4, 5), shares),
    ):  # fmt: skip
        b.add("softmax_with_cross_entropy", {"Logits": x, "Label": label}, attrs, one, grad=["Logits"], slopes=["Loss"])
    probabilities = real(4, 5, low=0.01)
    b.add("cross_entropy", {"X": probabilities, "Label": whole(5, 4, 1)}, {}, ["Y"], grad=["X"])
    b.add("cross_entropy", {"X": probabilities, "Label": shares}, {"soft_label": True}, ["Y"], grad=["X"])
    b.add("cross_entropy", {"X": probabilities, "Label": whole(2, 4, 1)}, {"ignore_index": 1}, ["Y"], grad=["X"])
    b.add("cross_entropy", {"X": np.zeros((2, 2), np.float32), "Label": whole(2, 2, 1)}, {}, ["Y"])
    x, y, label = real(4, 5, low=0.05, high=0.95), real(4, 5, low=0.05), whole(2, 4, 5).astype(np.float32)
    b.add("log_loss", {"Predicted": x[:, :1], "Labels": label[:, :1]}, {"epsilon": 1e-4}, ["Loss"], grad=["Predicted"])
    b.add("hinge_loss", {"Logits": real(4, 1), "Labels": label[:, :1]}, {}, ["Loss"], grad=["Logits"])
    b.add("bce_loss", {"X": x, "Label": label}, grad=["X"])
    two = {"X": real(4, 1, high=3), "Y": real(4, 1)}
    b.add("huber_loss", two, {"delta": 0.5}, ["Out", "Residual"], grad=True, slopes=["Out"])
    b.add("huber_loss", two, {"delta": 0.5}, grad=["X"])
    b.add("rank_loss", {"Left": real(4, 1), "Right": real(4, 1), "Label": label[:, :1]}, grad=["Left", "Right"])
    b.add("label_smooth", {"X": label}, {"epsilon": 0.1}, grad=True)
    b.add("label_smooth", {"X": label, "PriorDist": shares[:1]}, {"epsilon": 0.1}, in_place=[("Out", "X")])
    for attrs in ({}, {"normalize": True, "ignore_index": 1}):
        inputs = {"X": real(4, 5, low=-9, high=9), "Label": label}
        b.add("sigmoid_cross_entropy_with_logits", inputs, attrs, grad=["X"])
    both = {"X": real(4, 5, low=-3, high=3), "Y": real(4, 5)}
    b.add("smooth_l1_loss", both, {"sigma": 1.5}, ["Out", "Diff"], grad=True, slopes=["Out"])
    weights = {"InsideWeight": real(4, 5), "OutsideWeight": real(4, 5)}
    b.add("smooth_l1_loss", {**both, **weights}, {}, ["Out"], grad=["X", "Y"])
    for reduction in ("none", "mean", "sum", "batchmean"):
        b.add("kldiv_loss", {"X": real(4, 5), "Target": shares}, {"reduction": reduction}, ["Loss"], grad=["X"])
    for reduction in ("none", "mean", "sum"):
        for inputs in (
            {"X": real(4, 5), "Label": whole(5, 4)},
            {"X": real(2, 5, 3, 2), "Label": whole(5, 2, 3, 2), "Weight": y[0]},
        ):  # fmt: skip
            attrs = {"reduction": reduction, "ignore_index": 2}
            b.add("nll_loss", inputs, attrs, ["Out", "Total_weight"], grad=["X"], slopes=["Out"])
    label = whole(5, 4, 1)
    b.add("cross_entropy2", {"X": probabilities, "Label": label}, {}, ["Y", "MatchX"], grad=["X"], slopes=["Y"])


def elements(b: Batch) -> None:
    """Functions of each element, and sums."""
    x, n = real(3, 4), whole(9, 3, 4) - 4
    for attrs in ({"scale": 2.5, "bias": 0.5}, {"scale": 2.0, "bias": 1.0, "bias_after_scale": False}):
        b.add("scale", {"X": x}, attrs, grad=True)
        b.add("scale", {"X": n}, attrs)
        b.add("scale", {"X": x}, attrs, in_place=[("Out", "X")])
    b.add("scale", {"X": x, "ScaleTensor": real(1)}, {"bias": 1.0})
    b.add("increment", {"X": whole(9, 1)}, {"step": 2.0}, in_place=[("Out", "X")])
    b.add("increment", {"X": real(1)}, {"step": 0.5})
    b.add("sign", {"X": x}), b.add("sign", {"X": n}), b.add("sign", {"X": np.zeros((2,), np.float32)})
    b.add("sum", {"X": [real(2, 3), real(2, 3), real(2, 3)]}, grad=True)
    b.add("sum", {"X": [n, n]}), b.add("sum", {"X": [x]})
    b.add("clip", {"X": x}, {"min": -0.5, "max": 0.25}, grad=True)
    b.add("clip", {"X": x, "Min": real(1, high=-0.5)}, {"min": -0.5, "max": 0.25}, grad=["X"])
    b.add("clip", {"X": n}, {"min": -2.0, "max": 2.0})
    b.add("assign", {"X": x}, grad=True), b.add("assign", {"X": n > 0})
    for array in (real(3, 4, low=-9, high=9), n, n > 0, whole(9, 3, 4, dtype="int32")):
        for dtype in ("float32", "float64", "int32", "int64", "bool", "uint8"):
            if dtype != "uint8" or array.dtype.kind != "f" and array.min() >= 0:
                b.add("cast", {"X": array}, {"in_dtype": array.dtype.name, "out_dtype": dtype})
    for dtype, value in (("float32", 0.1), ("int64", -7.0), ("bool", 1.0), ("float64", 0.1), ("float32", float("inf"))):
        b.add("fill_constant", {}, {"shape": [2, 3], "dtype": dtype, "value": value})
    b.add("fill_constant", {}, {"shape": [2], "dtype": "int64", "str_value": "9007199254740993"})
    b.add("fill_constant", {"ValueTensor": real(1)}, {"shape": [2], "dtype": "float32"})
    b.add("fill_constant_batch_size_like", {"Input": x}, {"shape": [-1, 2], "dtype": "float32", "value": 3.0})
    b.add("fill_zeros_like", {"X": x}), b.add("fill_zeros_like", {"X": n})
    b.add("fill_any_like", {"X": x}, {"value": 2.5}), b.add("fill_any_like", {"X": x}, {"value": 2.0, "dtype": 3})
    for implementation in ("downgrade_in_infer", "upscale_in_train"):
        attrs = {"dropout_prob": 0.3, "is_test": True, "dropout_implementation": implementation}
        b.add("dropout", {"X": x}, attrs, ["Out", "Mask"], grad=True, slopes=["Out"])
    for type in ("less_than", "less_equal", "greater_than", "greater_equal", "equal", "not_equal"):
        b.add(type, {"X": n, "Y": whole(5, 4)}), b.add(type, {"X": x, "Y": real(3)}, {"axis": 0})
    for type in ("logical_and", "logical_or", "logical_xor"):
        b.add(type, {"X": n > 0, "Y": x > 0})
    b.add("logical_not", {"X": x > 0}, in_place=[("Out", "X")]), b.add("logical_not", {"X": whole(3, 4)})
    b.add("where", {"Condition": n > 0, "X": x, "Y": real(3, 4)}, grad=["X", "Y"])
    b.add("where", {"Condition": n > 0, "X": n, "Y": n})


def shapes(b: Batch) -> None:
    """The same elements in another shape or order, parts of tensors, and tensors of parts."""
    x, y = real(2, 3, 4), whole(9, 2, 3, 4)
    flat = {"X": real(2, 1, 3, 1)}
    for value in (x, y):
        grad = value is x
        b.add("reshape", {"X": value}, {"shape": [0, -1]}, grad=grad)
        b.add("reshape2", {"X": value}, {"shape": [4, 6]}, grad=grad)
        b.add("flatten", {"X": value}, {"axis": 2}, grad=grad), b.add("flatten2", {"X": value}, {"axis": 1}, grad=grad)
        b.add("flatten_contiguous_range", {"X": value}, {"start_axis": 1, "stop_axis": 2}, grad=grad)
        b.add("transpose", {"X": value}, {"axis": [1, 0, 2]}, grad=grad)
        for axis in ([2, 1, 0], [0, 1, 2], [1, 2, 0]):
            b.add("transpose2", {"X": value}, {"axis": axis}, grad=grad)
        b.add("reverse", {"X": value}, {"axis": [0, 2]}, grad=grad), b.add("flip", {"X": value}, {"axis": [1]})
        b.add("slice", {"Input": value}, {"axes": [0, 2], "starts": [1, -3], "ends": [9, -1]}, grad=grad)
        b.add("slice", {"Input": value}, {"axes": [1], "starts": [1], "ends": [2], "decrease_axis": [1]}, grad=grad)
        cut = {"axes": [1, 2], "starts": [2, 0], "ends": [-9, 4], "strides": [-1, 2]}
        b.add("strided_slice", {"Input": value}, cut, grad=grad)
        b.add("expand", {"X": value}, {"expand_times": [1, 2, 3]}, grad=grad)
        b.add("tile", {"X": value}, {"repeat_times": [2, 1, 1, 2]}, grad=grad)
        b.add("pad", {"X": value}, {"paddings": [1, 0, 0, 2, 1, 1], "pad_value": 2.0}, grad=grad)
        for axis in (0, 1, -1):
            parts = [value, value[:, :, :] + 1, value * 2]
            b.add("concat", {"X": parts}, {"axis": axis}, grad=grad)
            b.add("stack", {"X": parts}, {"axis": axis}, ["Y"], grad=grad)
            n = value.shape[axis]
            b.add("unstack", {"X": value}, {"axis": axis, "num": n}, [("Y", n)], grad=grad)
        b.add("concat", {"X": [value, value[:, :2]]}, {"axis": 1}, grad=grad)
        b.add("split", {"X": value}, {"num": 2, "axis": 2}, [("Out", 2)], grad=grad)
        b.add("split", {"X": value}, {"sections": [1, -1], "axis": 1}, [("Out", 2)], grad=grad)
    for axes in ([], [1], [1, -1]):
        b.add("squeeze", flat, {"axes": axes}, grad=True), b.add("squeeze2", flat, {"axes": axes}, grad=True)
    b.add("unsqueeze", {"X": x}, {"axes": [0, 2]}, grad=True), b.add("unsqueeze2", {"X": x}, {"axes": [-1]}, grad=True)
    b.add("expand_v2", {"X": real(2, 1, 3)}, {"shape": [4, 2, 5, -1]}, grad=True)
    b.add("expand_as_v2", {"X": real(1, 3)}, {"target_shape": [2, 4, 3]}, grad=True)


def reductions(b: Batch) -> None:
    """Reductions, classification and order."""
    x = real(3, 4, 5)
    for type in ("sum", "mean", "max", "min", "prod"):
        for attrs in (
            {"dim": [0]}, {"dim": [1]}, {"dim": [-1], "keep_dim": True}, {"dim": [0, 2]}, {"reduce_all": True},
            {"dim": [0, 1]},
        ):  # fmt: skip
            b.add("reduce_" + type, {"X": x}, attrs, grad=True)
        if type != "mean":
            b.add("reduce_" + type, {"X": whole(9, 3, 4) - 4}, {"dim": [1]})
            b.add("reduce_" + type, {"X": whole(9, 3, 4, dtype="int32") - 4}, {"dim": [0]})
    b.add("reduce_sum", {"X": whole(9, 3, 4)}, {"dim": [0], "out_dtype": 5})
    b.add("reduce_all", {"X": whole(9, 3, 4) > 1}, {"dim": [1]}), b.add("reduce_any", {"X": whole(9, 3, 4) > 7})
    b.add("reduce_all", {"X": whole(9, 3, 4)}, {"dim": [1]}), b.add("reduce_any", {"X": real(3, 4)})
    b.add("mean", {"X": x}, grad=True), b.add("mean", {"X": real(1000, 300, low=0)}, grad=True)
    for k in (1, 3):
        b.add("top_k", {"X": real(4, 5)}, {"k": k}, ["Out", "Indices"], grad=["X"], slopes=["Out"])
    b.add("top_k", {"X": whole(3, 4, 9)}, {"k": 5}, ["Out", "Indices"])
    for attrs in ({"k": 2, "axis": 1, "largest": False}, {"k": 3, "axis": 0}):
        b.add("top_k_v2", {"X": x}, attrs, ["Out", "Indices"], grad=["X"], slopes=["Out"])
    for type in ("arg_max", "arg_min"):
        for attrs in ({"axis": 1}, {"axis": -1, "keepdims": True}, {"flatten": True}, {"axis": 0, "dtype": "int32"}):
            b.add(type, {"X": np.round(x, 1)}, attrs)
    indices, label = whole(5, 6, 2), whole(5, 6, 1)
    b.add("accuracy", {"Out": real(6, 2), "Indices": indices, "Label": label}, {}, ["Accuracy", "Correct", "Total"])
    for more in ({"Scale": real(20), "Bias": real(20)}, {"Bias": real(20)}, {}):
        slots, outs = ["X", *more], ["Y", "Mean", "Variance"]
        b.add("layer_norm", {"X": x, **more}, {"begin_norm_axis": 1}, outs, grad=slots, slopes=["Y"])
    b.add("layer_norm", {"X": x, "Scale": real(5)}, {"begin_norm_axis": 2, "epsilon": 1e-3}, ["Y"], grad=True)
    two = {"Scale": real(4), "Bias": real(4)}
    for layout, image in (("NCHW", real(2, 4, 3, 2)), ("NHWC", real(2, 3, 2, 4))):
        attrs = {"groups": 2, "data_layout": layout}
        b.add("group_norm", {"X": image, **two}, attrs, ["Y", "Mean", "Variance"], grad=True, slopes=["Y"])
    outs = ["Y", "SavedMean", "SavedVariance"]
    b.add("instance_norm", {"X": real(2, 4, 3, 2), **two}, {}, outs, grad=True, slopes=["Y"])
    table = {"W": real(5, 3)}
    b.add("lookup_table", {**table, "Ids": whole(5, 4, 1)}, {}, grad=["W"])
    b.add("lookup_table", {**table, "Ids": whole(3, 6, 1)}, {"padding_idx": 1}, grad=["W"])
    b.add("lookup_table_v2", {**table, "Ids": whole(5, 2, 3)}, {}, grad=["W"])


def products(b: Batch) -> None:
    """Products of matrices and batches, and what rows of numbers give."""
    for x, y, attrs in (
        ((3, 4), (4, 5), {}), ((4, 3), (5, 4), {"transpose_X": True, "transpose_Y": True, "alpha": 0.5}),
        ((2, 3, 4), (2, 5, 4), {"transpose_Y": True}), ((2, 3, 4), (4, 5), {}), ((4,), (4,), {}), ((4,), (4, 3), {}),
        ((2, 3, 1, 4, 3), (3, 2, 4, 5), {"transpose_X": True}), ((2, 3, 4), (4,), {}),
        ((4, 3), (2, 4, 5), {"transpose_X": True}),
    ):  # fmt: skip
        b.add("matmul", {"X": real(*x), "Y": real(*y)}, attrs, grad=True)
    b.add("matmul_v2", {"X": real(2, 3, 4), "Y": real(2, 5, 4)}, {"trans_y": True}, grad=True)
    b.add("matmul_v2", {"X": real(1, 4, 3), "Y": real(2, 4, 5)}, {"trans_x": True}, grad=["Y"])
    b.add("matmul_v2", {"X": real(4), "Y": real(2, 4, 5)}, {"trans_x": True}, grad=["X"])
    b.add("matmul_v2", {"X": real(3, 19), "Y": real(5, 19)}, {"trans_y": True}, grad=True)
    b.add("bmm", {"X": real(2, 3, 4), "Y": real(2, 4, 5)}, grad=True)
    b.add("log_softmax", {"X": real(3, 4, high=9)}, grad=True)
    b.add("log_softmax", {"X": real(3, 4, 2)}, {"axis": 1}, grad=True)
    for mode, shape in (("all", (1,)), ("channel", (3,)), ("element", (1, 3, 4))):
        b.add("prelu", {"X": real(2, 3, 4), "Alpha": real(*shape)}, {"mode": mode}, grad=True)
    b.add("prelu", {"X": real(2, 4, 3), "Alpha": real(3)}, {"mode": "channel", "data_format": "NHWC"}, grad=True)
    b.add("one_hot", {"X": whole(3, 4, 1)}, {"depth": 3}), b.add("one_hot_v2", {"X": whole(3, 4)}, {"depth": 5})
    b.add("one_hot_v2", {"X": whole(9, 4)}, {"depth": 5, "allow_out_of_range": True, "dtype": "float32"})
    b.add("gather", {"X": real(4, 3), "Index": whole(4, 6)}, grad=["X"])
    b.add("gather", {"X": real(2, 4, 3), "Index": whole(4, 6, dtype="int32")}, {"axis": 1}, grad=["X"])
    b.add("gather", {"X": whole(9, 4), "Index": np.array([[-1], [0]])})
    for attrs in ({}, {"axis": 1}, {"flatten": True}, {"axis": 0, "reverse": True}, {"exclusive": True}):
        b.add("cumsum", {"X": real(2, 3, 4)}, attrs, grad=True), b.add("cumsum", {"X": whole(9, 3, 4)}, attrs)
    b.add("shape", {"Input": real(2, 3)}), b.add("size", {"Input": real(2, 3)})
    b.add("squared_l2_norm", {"X": real(3, 4)}, grad=True)
    b.add("norm", {"X": real(2, 3, 4)}, {"axis": 1}, ["Out", "Norm"], grad=True, slopes=["Out"])
    for factor in (2.0, 0.0, -1.5):
        b.add("pow", {"X": real(3, 4, low=0.1)}, {"factor": factor}, grad=True)
    b.add("pow", {"X": real(3, 4, low=0.1), "FactorTensor": real(1)}, grad=["X"])
    unit = {"X": real(3, 8), "C_prev": real(3, 2)}
    b.add("lstm_unit", unit, {"forget_bias": 0.5}, ["C", "H"], grad=True)
    b.add("lstm_unit", unit, {}, ["C", "H"], grad=["X"], slopes=["H"])
    for longest in (1.0, 9.0):
        b.add("clip_by_norm", {"X": real(3, 4)}, {"max_norm": longest})
    b.add("assign_value", {}, {"shape": [2, 2], "dtype": "float32", "fp32_values": [0.1, -2.0, 3.5, 1e-9]})
    b.add("assign_value", {}, {"shape": [3], "dtype": "int64", "int64_values": [1, -2, 3]})
    b.add("assign_value", {}, {"shape": [2], "dtype": "bool", "bool_values": [1, 0]})


def images(b: Batch) -> None:
    """Images in another size, and with a border."""
    for type in ("bilinear_interp", "nearest_interp", "bilinear_interp_v2", "nearest_interp_v2"):
        for attrs in (
            {"out_h": 7, "out_w": 5}, {"out_h": 3, "out_w": 9, "align_corners": False},
            {"out_h": 8, "out_w": 3, "align_corners": False, "align_mode": 0}, {"out_h": 1, "out_w": 1},
        ):  # fmt: skip
            b.add(type, {"X": real(2, 3, 4, 5)}, attrs, grad=True)
        b.add(type, {"X": real(2, 4, 5, 3)}, {"out_h": 7, "out_w": 5, "data_layout": "NHWC"}, grad=True)
        scale: Any = [1.5, 2.5] if type.endswith("v2") else 1.5
        b.add(type, {"X": real(2, 3, 4, 5)}, {"scale": scale, "align_corners": False}, grad=True)
    for mode in ("constant", "reflect", "edge"):
        attrs = {"paddings": [1, 2, 0, 3], "mode": mode, "pad_value": 0.5}
        b.add("pad2d", {"X": real(2, 3, 4, 5)}, attrs, grad=True)
        b.add("pad2d", {"X": real(2, 4, 5, 3)}, {**attrs, "data_format": "NHWC"}, grad=True)


def random(b: Batch) -> None:
    """Random numbers of operators with a seed."""
    for dtype in ("float32", "float64"):
        for shape in ([3, 7], [5]):
            attrs = {"shape": shape, "dtype": dtype, "seed": 5}
            b.add("uniform_random", {}, {**attrs, "min": -2.0, "max": 0.5}), b.add("gaussian_random", {}, attrs)
            b.add("gaussian_random", {}, {**attrs, "seed": 6, "mean": 3.0, "std": 0.1})
    b.add("uniform_random", {}, {"shape": [4, 9], "seed": 7, "diag_num": 3, "diag_step": 2, "diag_val": 4.0})
    like = {"shape": [-1, 4], "seed": 7}
    b.add("uniform_random_batch_size_like", {"Input": real(5, 2)}, like)
    b.add("gaussian_random_batch_size_like", {"Input": real(5, 2)}, like)
    for implementation in ("downgrade_in_infer", "upscale_in_train"):
        attrs = {"dropout_prob": 0.3, "seed": 9, "fix_seed": True, "dropout_implementation": implementation}
        b.add("dropout", {"X": real(6, 7)}, attrs, ["Out", "Mask"], grad=True, slopes=["Out"])


def steps(b: Batch) -> None:
    """Steps of optimizers, out of place and in place."""
    rows: list[tuple[str, list[str], dict[str, Any]]] = [
        ("sgd", [], {}), ("momentum", ["Velocity"], {"mu": 0.9}),
        ("momentum", ["Velocity"], {"mu": 0.5, "use_nesterov": True, "rescale_grad": 0.5}),
        ("momentum", ["Velocity"], {"mu": 0.9, "regularization_method": "l2_decay", "regularization_coeff": 0.1}),
        ("adam", ["Moment1", "Moment2", "Beta1Pow", "Beta2Pow"], {"beta1": 0.8}),
        ("adamw", ["Moment1", "Moment2", "Beta1Pow", "Beta2Pow"], {"with_decay": True, "coeff": 0.1, "lr_ratio": 0.5}),
        ("adamax", ["Moment", "InfNorm"], {}), ("adagrad", ["Moment"], {}),
        ("decayed_adagrad", ["Moment"], {"decay": 0.9}), ("adadelta", ["AvgSquaredGrad", "AvgSquaredUpdate"], {}),
        ("rmsprop", ["MeanSquare", "Moment"], {"momentum": 0.5}),
        ("rmsprop", ["MeanSquare", "Moment", "MeanGrad"], {"centered": True}),
        ("lamb", ["Moment1", "Moment2", "Beta1Pow", "Beta2Pow"], {"weight_decay": 0.1}),
        ("proximal_gd", [], {"l1": 0.1, "l2": 0.1}), ("proximal_adagrad", ["Moment"], {"l1": 0.1, "l2": 0.1}),
        ("ftrl", ["SquaredAccumulator", "LinearAccumulator"], {"l1": 0.1, "l2": 0.1}),
        ("ftrl", ["SquaredAccumulator", "LinearAccumulator"], {"l1": 0.1, "lr_power": -0.7}),
    ]  # fmt: skip
    for type, states, attrs in rows:
        inputs = {"Param": real(3, 4), "Grad": real(3, 4), "LearningRate": real(1, low=0.1)}
        inputs |= {slot: real(*((1,) if "Pow" in slot else (3, 4)), low=0.5, high=0.9) for slot in states}
        if type == "adamax":
            inputs["Beta1Pow"] = real(1, low=0.5, high=0.9)
        if "centered" in attrs:
            inputs["MeanSquare"] += 1
        pairs = [(f"{slot.replace('ulator', '')}Out", slot) for slot in ("Param", *states)]
        b.add(type, inputs, attrs, [out for out, _ in pairs])
        b.add(type, inputs, attrs, [out for out, _ in pairs], in_place=pairs)


GROUPS: list[Callable[[Batch], None]] = [
    dense, activations, convolution, pooling, normalization, losses, elements, shapes, reductions, products, images,
    random, steps,
]  # fmt: skip


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group.__name__)
def test_operators_in_c_match_the_executor(group: Callable[[Batch], None], tmp_path: Path) -> None:
    """A program of one kind of operators, with their gradients."""
    batch = Batch()
    group(batch)
    batch.check(tmp_path)
