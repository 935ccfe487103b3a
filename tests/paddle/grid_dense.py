"""More grids for the live sweep: parts of tensors, losses, lengths, optimizers beyond the first three."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np

from tests.paddle.grid import Case, values


def _parts() -> Iterator[Case]:
    x = values((2, 3, 4))
    for axes in ([], [0], [1, 3], [-1]):
        y = values((1, 3, 2, 1))
        yield Case("squeeze2", {"X": y}, attrs={"axes": axes}, grads=("X",), extra=("XShape",))
    for axes in ([0], [1, 2], [-1], [3, 0]):
        yield Case("unsqueeze2", {"X": x}, attrs={"axes": axes}, grads=("X",), extra=("XShape",))
    for axis in (0, 1, 2):
        yield Case("flatten2", {"X": x}, attrs={"axis": axis}, grads=("X",), extra=("XShape",))
    for axis, count in product((0, 1, 3, -1), (1, 2, 3)):
        xs = [values((2, 3, 4), salt=s) for s in range(count)]
        yield Case("stack", {"X": xs}, ("Y",), {"axis": axis}, ("X",))
    for times in ([1, 1, 1], [2, 1, 3], [1, 2, 1]):
        yield Case("expand", {"X": x}, attrs={"expand_times": times}, grads=("X",))
        yield Case("expand", {"X": values((2, 3, 4), "int64", -9, 9)}, attrs={"expand_times": times})
    for paddings, value in product(([0] * 6, [1, 0, 0, 2, 1, 1]), (0.0, 0.5)):
        yield Case("pad", {"X": x}, attrs={"paddings": paddings, "pad_value": value}, grads=("X",))
    for offsets, shape in (([0, 0, 0], [2, 3, 4]), ([1, 0, 2], [1, 2, 2])):
        yield Case("crop", {"X": x}, attrs={"offsets": offsets, "shape": shape}, grads=("X",))
    for axes, starts, ends, strides in (
        ([0], [0], [2], [1]), ([2], [3], [0], [-1]), ([1, 2], [0, 1], [3, 4], [2, 2]), ([2], [-1], [-5], [-2]),
    ):  # fmt: skip
        attrs = {"axes": axes, "starts": starts, "ends": ends, "strides": strides, "infer_flags": [1] * len(axes)}
        yield Case("strided_slice", {"Input": x}, attrs=attrs, grads=("Input",))
    for axes, drop in (([0], [0]), ([1], [1]), ([0, 2], [0, 2])):
        attrs = {"axes": axes, "starts": [1] * len(axes), "ends": [2] * len(axes), "decrease_axis": drop}
        yield Case("slice", {"Input": x}, attrs=attrs, grads=("Input",))
    for axis in ([0], [1, 2], [-1]):
        yield Case("flip", {"X": x}, attrs={"axis": axis}, grads=("X",))
    for overwrite, ids in product((True, False), ([2, 0], [1])):
        updates = values((len(ids), 3), salt=1)
        inputs = {"X": values((4, 3)), "Ids": np.array(ids), "Updates": updates}
        yield Case("scatter", inputs, attrs={"overwrite": overwrite}, grads=("X", "Updates"))
    for axis, descending, dtype in product((0, 1, -1), (False, True), ("float32", "float64")):
        attrs = {"axis": axis, "descending": descending}
        yield Case("argsort", {"X": values((3, 5), dtype)}, ("Out", "Indices"), attrs, ("X",))
    for name, axis, keep in product(("arg_max", "arg_min"), (0, 1, -1), (False, True)):
        yield Case(name, {"X": values((3, 5))}, attrs={"axis": axis, "keepdims": keep, "dtype": 3, "flatten": False})
    for dtype in ("int32", "int64"):
        ids = np.array([2, 0, 4], dtype)
        yield Case("one_hot_v2", {"X": ids}, attrs={"depth": 5, "dtype": 5, "allow_out_of_range": False})
    which = {"Ids": np.array([[1], [0], [1]], "int32"), "X": [values((3, 4)), values((3, 4), salt=1)]}
    yield Case("multiplex", which, grads=("X",))
    for dtype in ("float32", "float64", "int64"):
        yield Case("fill_zeros_like", {"X": values((3, 4), dtype)})
        yield Case("shape", {"Input": values((3, 4), dtype)})


def _bends() -> Iterator[Case]:
    named: dict[str, dict[str, Any]] = {
        "tan": {}, "sinh": {}, "cosh": {}, "expm1": {}, "erf": {}, "silu": {}, "mish": {}, "hard_swish": {},
        "gelu": {"approximate": False}, "selu": {"scale": 1.25, "alpha": 1.5}, "celu": {"alpha": 0.75},
        "softplus": {"beta": 2.0, "threshold": 3.0}, "log_softmax": {"axis": -1},
    }  # fmt: skip
    for (name, attrs), shape, dtype in product(named.items(), ((7,), (3, 4)), ("float32", "float64")):
        if not (name in ("hard_swish", "mish") and dtype == "float64"):
            yield Case(name, {"X": values(shape, dtype)}, attrs=attrs, grads=("X",))
    for name, dtype in product(("log1p", "log2", "log10"), ("float32", "float64")):
        yield Case(name, {"X": values((2, 3), dtype, 0.2, 3)}, grads=("X",))
    for mode, alpha in (("all", (1,)), ("channel", (3,)), ("element", (1, 3, 2, 2))):
        inputs = {"X": values((2, 3, 2, 2)), "Alpha": values(alpha, low=0.1, high=0.9)}
        yield Case("prelu", inputs, attrs={"mode": mode, "data_format": "NCHW"}, grads=("X", "Alpha"))
    for groups in (2, 3):
        yield Case("maxout", {"X": values((2, 6, 3, 2))}, attrs={"groups": groups, "axis": 1}, grads=("X",))


def _losses() -> Iterator[Case]:
    for dtype in ("float32", "float64"):
        column, other = values((4, 1), dtype), values((4, 1), dtype, salt=1)
        for delta in (0.5, 1.5):
            attrs = {"delta": delta}
            yield Case("huber_loss", {"X": column, "Y": other}, ("Out", "Residual"), attrs, ("X", "Y"), through=0)
        rows = {"X": values((4, 3), dtype), "Target": values((4, 3), dtype, 0.1, 1, salt=1)}
        for reduction in ("none", "mean", "sum", "batchmean"):
            yield Case("kldiv_loss", rows, ("Loss",), {"reduction": reduction}, ("X",))
        yield Case("label_smooth", {"X": values((4, 3), dtype, 0, 1)}, attrs={"epsilon": 0.2}, grads=("X",))
        for ignore, normalize in product((-100, 1), (False, True)):
            inputs = {"X": values((4, 3), dtype), "Label": values((4, 3), "int64", 0, 1).astype(dtype)}
            attrs = {"ignore_index": ignore, "normalize": normalize}
            yield Case("sigmoid_cross_entropy_with_logits", inputs, attrs=attrs, grads=("X",))
        inputs = {"X": values((4, 5), dtype), "Label": values((4, 1), "int64", 0, 4)}
        yield Case("bpr_loss", inputs, ("Y",), {}, ("X",))
        logits = {"Logits": values((2, 4, 3), dtype), "Label": values((2, 1, 3), "int64", 0, 3)}
        attrs = {"soft_label": False, "axis": 1, "ignore_index": 2}
        yield Case("softmax_with_cross_entropy", logits, ("Softmax", "Loss"), attrs, ("Logits",), through=1)
    # 2.6.2 has these in single precision alone
    column, other = values((4, 1), "float32"), values((4, 1), "float32", salt=1)
    yes = np.array([[1], [0], [0], [1]], "float32")
    yield Case("rank_loss", {"Label": yes, "Left": column, "Right": other}, grads=("Left", "Right"))
    yield Case("hinge_loss", {"Logits": column, "Labels": yes}, ("Loss",), {}, ("Logits",))
    yield Case("log_loss", {"Predicted": values((4, 1), "float32", 0.1, 0.9), "Labels": yes}, ("Loss",),
               {"epsilon": 1e-4}, ("Predicted",))  # fmt: skip
    outs = ("Out", "IntermediateVal")
    yield Case("modified_huber_loss", {"X": column, "Y": yes}, outs, {}, ("X",), through=0)


def _lengths() -> Iterator[Case]:
    for dtype in ("float32", "float64"):
        x, y = values((3, 4), dtype), values((3, 4), dtype, salt=1)
        for axis in (0, 1, -1):
            attrs = {"axis": axis, "epsilon": 1e-10}
            yield Case("norm", {"X": x}, ("Out", "Norm"), attrs, ("X",), through=0)
        yield Case("dot", {"X": x, "Y": y}, grads=("X", "Y"))
    yield Case("minus", {"X": values((3, 4), "float32"), "Y": values((3, 4), "float32", salt=1)}, grads=("X", "Y"))
    for limit in (0.5, 50.0):
        yield Case("clip_by_norm", {"X": values((3, 4), "float32")}, attrs={"max_norm": limit})
    for rate in (0.9, 0.5):
        given = {"X": values((3, 4), "float32"), **{s: np.array([2.0], "float32") for s in ("InAccum", "InState")}}
        outs = ("Out", "OutScale", "OutState", "OutAccum")
        yield Case("moving_average_abs_max_scale", given, outs, {"moving_rate": rate}, ("X",))
    yield Case("l1_norm", {"X": values((3, 4), "float32")}, grads=("X",))


def _optimizers() -> Iterator[Case]:
    for shape in ((3,), (2, 3)):
        p, g, m = (values(shape, "float32", salt=s) for s in range(3))
        s, u = (values(shape, "float32", 0.1, 2, salt=4 + i) for i in range(2))
        base = {"Param": p, "Grad": g, "LearningRate": np.array([0.1], "float32")}
        moment = ("ParamOut", "MomentOut")
        yield Case("adagrad", base | {"Moment": s}, moment, {"epsilon": 1e-4})
        yield Case("decayed_adagrad", base | {"Moment": s}, moment, {"epsilon": 1e-4, "decay": 0.75})
        averages = base | {"AvgSquaredGrad": s, "AvgSquaredUpdate": u}
        outs: tuple[str, ...] = ("ParamOut", "AvgSquaredGradOut", "AvgSquaredUpdateOut")
        yield Case("adadelta", averages, outs, {"rho": 0.75, "epsilon": 1e-4})
        outs = ("ParamOut", "MomentOut", "InfNormOut")
        largest = base | {"Moment": m, "InfNorm": s, "Beta1Pow": np.array([0.5], "float32")}
        yield Case("adamax", largest, outs, {"beta1": 0.5, "beta2": 0.75, "epsilon": 1e-4})
        for l1, l2, power in product((0.0, 0.3), (0.0, 0.2), (-0.5, -0.75)):
            outs = ("ParamOut", "SquaredAccumOut", "LinearAccumOut")
            sums = base | {"SquaredAccumulator": s, "LinearAccumulator": m}
            yield Case("ftrl", sums, outs, {"l1": l1, "l2": l2, "lr_power": power}, rtol=2e-3)
        powers = {"Beta1Pow": np.array([0.5], "float32"), "Beta2Pow": np.array([0.75], "float32")}
        outs = ("ParamOut", "Moment1Out", "Moment2Out", "Beta1PowOut", "Beta2PowOut")
        yield Case("lamb", base | {"Moment1": m, "Moment2": s} | powers, outs, {"weight_decay": 0.1})
        for decay in (0.0, 0.1):
            attrs = {"mu": 0.5, "lars_coeff": 0.01, "lars_weight_decay": [decay]}
            yield Case("lars_momentum", base | {"Velocity": m}, ("ParamOut", "VelocityOut"), attrs)
        for l1, l2 in product((0.0, 0.3), (0.0, 0.2)):
            yield Case("proximal_gd", base, ("ParamOut",), {"l1": l1, "l2": l2})


def dense_cases() -> list[Case]:
    """Every case of every grid in this file.

    Example:
        >>> len(dense_cases()) > 100
        True
    """
    return [case for grid in (_parts, _bends, _losses, _lengths, _optimizers) for case in grid()]
