"""Grids of one-operator programs: operator, shapes, dtypes and attributes, beyond what the recorded cases have."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Case:
    """One operator with its operands.

    Args:
        op: its type.
        inputs: slot -> array, (array, lengths) with sequences, or a list of these.
        outputs: output slots that are compared.
        attrs: its attributes.
        grads: input slots whose gradients are compared.
        extra: output slots that must be there but are not compared.
        rtol: relative tolerance, None for that of the dtype.
        through: which of the floating outputs the gradient comes from.
    """

    op: str
    inputs: dict[str, Any]
    outputs: tuple[str, ...] = ("Out",)
    attrs: dict[str, Any] = field(default_factory=dict)
    grads: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()
    rtol: float | None = None
    through: int = 0

    @property
    def id(self) -> str:
        """Operator, shapes, dtypes, lengths of sequences and attributes in one line."""
        given = [a for v in self.inputs.values() for a in (v if isinstance(v, list) else [v])]
        pairs = [a if isinstance(a, tuple) else (a, "") for a in given]
        shapes = ",".join(f"{'x'.join(map(str, a.shape))}{a.dtype.char}{lengths}" for a, lengths in pairs)
        return f"{self.op}[{shapes}]" + ",".join(f"{k}={v}" for k, v in self.attrs.items())


def values(shape: tuple[int, ...], dtype: str = "float64", low: float = -2, high: float = 2, salt: int = 0) -> Array:
    """Numbers that are neither equal nor near a kink, the same for the same arguments."""
    rng = np.random.default_rng([salt, *shape, len(shape)])
    if dtype == "bool":
        return rng.random(shape) < 0.5
    if np.dtype(dtype).kind == "i":
        return rng.integers(int(low), int(high) + 1, shape).astype(dtype)
    x = rng.uniform(low, high, shape)
    return (x + 0.05 * np.sign(x)).astype(dtype)


def _elementwise() -> Iterator[Case]:
    shapes = [
        ((3, 4), (3, 4), -1), ((2, 3, 4), (4,), -1), ((2, 3, 4), (3,), 1), ((2, 3, 4), (2, 3), 0),
        ((2, 3, 4), (3, 4), 1),
        ((2, 3, 4), (1,), -1), ((2, 3, 4, 5), (3, 4), 1), ((2, 3, 4), (2, 1, 4), -1), ((2, 3, 4), (3, 1), 1),
        ((5,), (5,), 0), ((2, 3), (1, 3), -1), ((1, 1), (1,), -1),
    ]  # fmt: skip
    names = ("add", "sub", "mul", "div", "max", "min", "pow")
    for (x, y, axis), name, dtype in product(shapes, names, ("float32", "float64")):
        low = 0.3 if name in ("div", "pow") else -2
        if name in ("max", "min", "pow") and len(x) != len(y) and axis not in (-1, len(x) - len(y)):
            continue  # 2.6.2 lost the broadcast in the middle for these
        a, b = values(x, dtype, low), values(y, dtype, low, salt=1)
        yield Case(f"elementwise_{name}", {"X": a, "Y": b}, attrs={"axis": axis}, grads=("X", "Y"))
    for (x, y, axis), name in product(shapes[:6], ("add", "sub", "mul", "max", "min", "mod", "floordiv")):
        if name in ("max", "min") and len(x) != len(y) and axis not in (-1, len(x) - len(y)):
            continue
        a, b = values(x, "int64", -9, 9), values(y, "int64", 1, 9, salt=1)
        yield Case(f"elementwise_{name}", {"X": a, "Y": b}, attrs={"axis": axis})


def _reduce() -> Iterator[Case]:
    for shape in ((4,), (3, 4), (2, 3, 4), (2, 3, 4, 5)):
        for dim in ([0], [-1], [len(shape) - 1], list(range(len(shape))), [0, -1] if len(shape) > 1 else [0]):
            for name, keep, everything in product(("sum", "mean", "max", "min", "prod"), (False, True), (False, True)):
                x = values(shape, "float64", 0.5, 2)
                attrs = {"dim": dim, "keep_dim": keep, "reduce_all": everything}
                yield Case(f"reduce_{name}", {"X": x}, attrs=attrs, grads=("X",))
    for name in ("any", "all"):
        for dim, keep in product(([0], [1], [0, 1]), (False, True)):
            attrs = {"dim": dim, "keep_dim": keep, "reduce_all": len(dim) == 2}
            yield Case(f"reduce_{name}", {"X": values((3, 4), "bool")}, attrs=attrs)


def _matmul() -> Iterator[Case]:
    for m, k, n in ((2, 3, 4), (1, 3, 1), (4, 1, 2)):
        for tx, ty, alpha, batch in product((False, True), (False, True), (1.0, 0.5), ((), (2,), (2, 3))):
            x = values((*batch, *((k, m) if tx else (m, k))))
            y = values((*batch, *((n, k) if ty else (k, n))), salt=1)
            attrs = {"transpose_X": tx, "transpose_Y": ty, "alpha": alpha}
            yield Case("matmul", {"X": x, "Y": y}, attrs=attrs, grads=("X", "Y"))
            if alpha == 1.0:
                yield Case("matmul_v2", {"X": x, "Y": y}, attrs={"trans_x": tx, "trans_y": ty}, grads=("X", "Y"))
    for x, y in (((3,), (3,)), ((2, 3), (3,)), ((2, 4, 3), (3,)), ((2, 4, 3), (3, 5))):
        yield Case("matmul", {"X": values(x), "Y": values(y, salt=1)}, grads=("X", "Y"))
    for x, y, i, j in (
        ((2, 3), (3, 4), 1, 1), ((2, 3, 4), (12, 5), 1, 1), ((2, 3, 4), (4, 5), 2, 1), ((2, 3, 4), (3, 4, 5), 1, 2),
        ((2, 2, 3, 4), (3, 4, 2, 2), 2, 2),
    ):  # fmt: skip
        for dtype in ("float32", "float64"):
            attrs = {"x_num_col_dims": i, "y_num_col_dims": j}
            yield Case("mul", {"X": values(x, dtype), "Y": values(y, dtype, salt=1)}, attrs=attrs, grads=("X", "Y"))


def _shape() -> Iterator[Case]:
    x = values((2, 3, 4))
    for shape in ([6, 4], [-1], [0, -1], [0, 0, 4], [4, -1, 2], [1, 24], [24, 1, 1], [-1, 0, 0], [2, 12]):
        if 0 in shape[1:2] and len(shape) == 3 and shape[0] == -1:
            shape = [-1, 3, 4]
        yield Case("reshape2", {"X": x}, attrs={"shape": shape}, grads=("X",), extra=("XShape",))
        yield Case("reshape", {"X": x}, attrs={"shape": shape}, grads=("X",))
    for axis in ([0, 1, 2], [2, 1, 0], [1, 0, 2], [0, 2, 1], [2, 0, 1], [1, 2, 0]):
        yield Case("transpose2", {"X": x}, attrs={"axis": axis}, grads=("X",), extra=("XShape",))
        yield Case("transpose", {"X": x}, attrs={"axis": axis}, grads=("X",))
    for axes, starts, ends in (
        ([0], [0], [1]), ([1], [1], [3]), ([2], [-2], [100]), ([0, 1], [0, -2], [2, -1]),
        ([0, 1, 2], [1, 0, 1], [2, 3, 3]), ([2], [0], [-1]),
    ):  # fmt: skip
        yield Case("slice", {"Input": x}, attrs={"axes": axes, "starts": starts, "ends": ends}, grads=("Input",))
    for axis, count in product((0, 1, 2, -1), (1, 2, 3)):
        xs = [values((2, 3, 4), salt=s) for s in range(count)]
        yield Case("concat", {"X": xs}, attrs={"axis": axis}, grads=("X",))
    for x_shape, k in product(((4,), (3, 4), (2, 3, 5)), (1, 2, 4)):
        yield Case("top_k", {"X": values(x_shape)}, ("Out", "Indices"), {"k": k}, grads=("X",))
    for given, wanted in product(("float32", "float64", "int32", "int64", "bool"), repeat=2):
        number = {"float32": 5, "float64": 6, "int32": 2, "int64": 3, "bool": 0}
        attrs = {"in_dtype": number[given], "out_dtype": number[wanted]}
        yield Case("cast", {"X": values((3, 4), given)}, attrs=attrs)


def _losses() -> Iterator[Case]:
    for shape, dtype in product(((3, 4), (1, 2), (5, 7)), ("float32", "float64")):
        rows = shape[0]
        p = np.exp(values(shape, dtype))
        p = (p / p.sum(-1, keepdims=True)).astype(dtype)
        hard = values((rows, 1), "int64", 0, shape[1] - 1)
        soft = np.exp(values(shape, dtype, salt=3))
        soft = (soft / soft.sum(-1, keepdims=True)).astype(dtype)
        yield Case("cross_entropy", {"X": p, "Label": hard}, ("Y",), {"soft_label": False}, ("X",))
        yield Case("cross_entropy", {"X": p, "Label": soft}, ("Y",), {"soft_label": True}, ("X",))
        ignore = {"soft_label": False, "ignore_index": int(hard[0, 0])}
        yield Case("cross_entropy", {"X": p, "Label": hard}, ("Y",), ignore, ("X",))
        for stable in (False, True):
            attrs = {"soft_label": False, "numeric_stable_mode": stable, "ignore_index": -100, "axis": -1}
            logits = {"Logits": values(shape, dtype), "Label": hard}
            yield Case("softmax_with_cross_entropy", logits, ("Softmax", "Loss"), attrs, ("Logits",), through=1)
            logits = {"Logits": values(shape, dtype), "Label": soft}
            attrs = attrs | {"soft_label": True}
            yield Case("softmax_with_cross_entropy", logits, ("Softmax", "Loss"), attrs, ("Logits",), through=1)
        yield Case("mean", {"X": values(shape, dtype)}, grads=("X",))
    for shape, axis in product(((4,), (3, 4), (2, 3, 4), (2, 3, 4, 5)), (0, 1, 2, 3, -1, -2)):
        if -len(shape) <= axis < len(shape):
            yield Case("softmax", {"X": values(shape, "float64")}, attrs={"axis": axis}, grads=("X",))


def _activations() -> Iterator[Case]:
    named: dict[str, dict[str, Any]] = {
        "relu": {}, "sigmoid": {}, "tanh": {}, "square": {}, "abs": {}, "exp": {}, "softsign": {}, "sin": {}, "cos": {},
        "logsigmoid": {}, "tanh_shrink": {}, "softplus": {}, "leaky_relu": {"alpha": 0.1}, "elu": {"alpha": 0.7},
        "relu6": {}, "brelu": {"t_min": -1.0, "t_max": 1.0}, "swish": {"beta": 1.0},
        "hard_sigmoid": {"slope": 0.3, "offset": 0.4},
        "hard_shrink": {"threshold": 0.6}, "softshrink": {"lambda": 0.4}, "stanh": {"scale_a": 0.6, "scale_b": 1.5},
        "thresholded_relu": {"threshold": 0.3}, "soft_relu": {"threshold": 1.5}, "pow": {"factor": 2.0}, "sign": {},
        "floor": {}, "ceil": {}, "round": {}, "reciprocal": {}, "atan": {},
    }  # fmt: skip
    for (name, attrs), shape, dtype in product(named.items(), ((7,), (3, 4), (2, 1, 3)), ("float32", "float64")):
        yield Case(name, {"X": values(shape, dtype)}, attrs=attrs, grads=() if name == "sign" else ("X",))
    for name, shape, dtype in product(("sqrt", "log", "rsqrt"), ((7,), (2, 3)), ("float32", "float64")):
        yield Case(name, {"X": values(shape, dtype, 0.2, 3)}, grads=("X",))
    for name, shape in product(("acos", "asin"), ((7,), (2, 3))):
        yield Case(name, {"X": values(shape, "float64", -0.9, 0.9)}, grads=("X",))


def _math() -> Iterator[Case]:
    for scale, bias, after, shape in product((2.0, -0.5, 0.0), (0.0, 1.5), (False, True), ((3,), (2, 3))):
        attrs = {"scale": scale, "bias": bias, "bias_after_scale": after}
        yield Case("scale", {"X": values(shape)}, attrs=attrs, grads=("X",))
    for low, high in ((-1.0, 1.0), (0.0, 0.5), (-3.0, 3.0)):
        yield Case("clip", {"X": values((4, 5))}, attrs={"min": low, "max": high}, grads=("X",))
    for count in (1, 2, 4):
        yield Case("sum", {"X": [values((3, 4), salt=s) for s in range(count)]}, grads=("X",))
        yield Case("sum", {"X": [values((3, 4), "int64", -9, 9, salt=s) for s in range(count)]})
    for shape in ((3,), (2, 3), (2, 3, 4)):
        yield Case("squared_l2_norm", {"X": values(shape, "float32")}, grads=("X",))
        for axis in range(-len(shape), len(shape)):
            for exclusive, reverse in product((False, True), repeat=2):
                attrs = {"axis": axis, "exclusive": exclusive, "reverse": reverse, "flatten": False}
                yield Case("cumsum", {"X": values(shape)}, attrs=attrs, grads=("X",))
    compares = ("less_than", "less_equal", "greater_than", "greater_equal", "equal", "not_equal")
    for name, shape, dtype in product(compares, ((4,), (2, 3)), ("float32", "int64")):
        yield Case(name, {"X": values(shape, dtype, -1, 1), "Y": values(shape, dtype, -1, 1, salt=1)})
    for name in ("logical_and", "logical_or", "logical_xor"):
        yield Case(name, {"X": values((3, 4), "bool"), "Y": values((3, 4), "bool", salt=1)})
    whole = ("bool", "int8", "int16", "int32", "int64")
    for name, dtype, shape in product(("bitwise_and", "bitwise_or", "bitwise_xor"), whole, ((3, 4), (4,))):
        yield Case(name, {"X": values((3, 4), dtype), "Y": values(shape, dtype, salt=1)})
    for dtype in whole:
        yield Case("bitwise_not", {"X": values((3, 4), dtype)})
    for name, shape in product(("elementwise_fmax", "elementwise_fmin"), ((2, 3), (3,), (2, 1))):
        yield Case(name, {"X": values((2, 3)), "Y": values(shape, salt=1)}, attrs={"axis": -1}, grads=("X", "Y"))
    for shape in ((3,), (2, 3)):
        yield Case("atan2", {"X1": values(shape), "X2": values(shape, salt=1)}, grads=("X1", "X2"))


def _optimizers() -> Iterator[Case]:
    for shape, nesterov, mu in product(((3,), (2, 3)), (False, True), (0.0, 0.9)):
        p, g, v = (values(shape, "float32", salt=s) for s in range(3))
        rate = np.array([0.1], "float32")
        inputs = {"Param": p, "Grad": g, "Velocity": v, "LearningRate": rate}
        attrs = {"mu": mu, "use_nesterov": nesterov}
        yield Case("momentum", inputs, ("ParamOut", "VelocityOut"), attrs)
        decay = attrs | {"regularization_method": "l2_decay", "regularization_coeff": 0.1}
        yield Case("momentum", inputs, ("ParamOut", "VelocityOut"), decay)
        yield Case("sgd", {"Param": p, "Grad": g, "LearningRate": rate}, ("ParamOut",))
        m1, m2 = values(shape, "float32", salt=4), np.abs(values(shape, "float32", salt=5))
        for beta1, step in product((0.5, 0.9), (1, 7)):
            powers = {
                "Beta1Pow": np.array([beta1**step], "float32"), "Beta2Pow": np.array([0.999**step], "float32"),
            }  # fmt: skip
            outs = ("ParamOut", "Moment1Out", "Moment2Out", "Beta1PowOut", "Beta2PowOut")
            state = {"Param": p, "Grad": g, "LearningRate": rate, "Moment1": m1, "Moment2": m2}
            yield Case("adam", state | powers, outs, {"beta1": beta1, "beta2": 0.999, "epsilon": 1e-6})


def _images() -> Iterator[Case]:
    for kernel, stride, padding, dilation, groups in product((1, 2, 3), (1, 2), (0, 1), (1, 2), (1, 2)):
        x, w = values((2, 4, 7, 6), "float32"), values((6, 4 // groups, kernel, kernel), "float32", salt=1)
        attrs = {
            "strides": [stride, stride], "paddings": [padding, padding], "dilations": [dilation, dilation],
            "groups": groups, "padding_algorithm": "EXPLICIT", "data_format": "NCHW",
        }  # fmt: skip
        yield Case("conv2d", {"Input": x, "Filter": w}, ("Output",), attrs, ("Input", "Filter"))
    for kernel, stride, padding in product((2, 3), (1, 2), ([0, 0], [1, 0])):
        for kind, ceil, exclusive in product(("max", "avg"), (False, True), (False, True)):
            if kind == "avg" and ceil and exclusive and padding[0]:
                continue  # a window wholly in the padding: 2.6.2 divides by zero, we give 0
            attrs = {
                "pooling_type": kind, "ksize": [kernel, kernel], "strides": [stride, stride], "paddings": padding,
                "ceil_mode": ceil, "exclusive": exclusive, "global_pooling": False, "adaptive": False,
                "padding_algorithm": "EXPLICIT", "data_format": "NCHW",
            }  # fmt: skip
            yield Case("pool2d", {"X": values((2, 3, 7, 6), "float32")}, attrs=attrs, grads=("X",))
    for shape, layout, test in product(((4, 3), (2, 3, 4, 5)), ("NCHW", "NHWC"), (False, True)):
        c = shape[1] if layout == "NCHW" else shape[-1]
        inputs = {
            "X": values(shape, "float32"), "Scale": values((c,), "float32", 0.5, 2),
            "Bias": values((c,), "float32", salt=2), "Mean": values((c,), "float32", salt=3),
            "Variance": values((c,), "float32", 0.5, 2, salt=4),
        }  # fmt: skip
        attrs = {"momentum": 0.8, "epsilon": 1e-4, "data_layout": layout, "is_test": test}
        grads = () if test else ("X", "Scale", "Bias")
        saved = ("SavedMean", "SavedVariance", *(() if test else ("ReserveSpace",)))
        yield Case("batch_norm", inputs, ("Y", "MeanOut", "VarianceOut"), attrs, grads, saved, rtol=1e-3)


def _tables() -> Iterator[Case]:
    for rows, pad in product((1, 4), (-1, 0, 2)):
        ids, w = values((rows, 1), "int64", 0, 4), values((5, 3), "float32")
        attrs = {"padding_idx": pad, "is_sparse": False}
        yield Case("lookup_table_v2", {"Ids": ids[:, 0], "W": w}, attrs=attrs, grads=("W",))
        yield Case("lookup_table", {"Ids": ids, "W": w}, attrs=attrs, grads=("W",))
    for axis in (0, 1):
        attrs = {"axis": axis, "overwrite": True}
        if axis == 0:
            yield Case("gather", {"X": values((4, 3)), "Index": np.array([2, 0, 2])}, attrs=attrs, grads=("X",))


def cases() -> list[Case]:
    """Every case of every grid.

    Example:
        >>> len(cases()) > 1000
        True
    """
    grids = (
        _elementwise, _reduce, _matmul, _shape, _losses, _activations, _math, _optimizers, _images, _tables,
    )  # fmt: skip
    return [case for grid in grids for case in grid()]
