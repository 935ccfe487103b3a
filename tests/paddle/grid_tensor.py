"""Grids for the live sweep: special functions, products, lengths, diagonals, choices and arrangements of elements."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np

from tests.paddle.grid import Array, Case, values

BOTH = ("float32", "float64")


def _functions() -> Iterator[Case]:
    ranges = {
        "acosh": (1.1, 5), "asinh": (-3, 3), "atanh": (-0.85, 0.85), "lgamma": (0.1, 30), "digamma": (0.1, 30),
        "logit": (0.05, 0.9), "trunc": (-4, 4),
    }  # fmt: skip
    for (name, (low, high)), shape, dtype in product(ranges.items(), ((9,), (3, 4), (2, 1, 5)), BOTH):
        attrs = {"eps": 1e-6} if name == "logit" else {}
        yield Case(name, {"X": values(shape, dtype, low, high)}, attrs=attrs, grads=("X",))
    yield Case("lgamma", {"X": values((20,), low=-5, high=0)}, grads=("X",))
    yield Case("digamma", {"X": values((20,), low=-5, high=0)}, grads=("X",))
    yield Case("logit", {"X": values((12,), low=-0.2, high=1.2)}, attrs={"eps": 0.2}, grads=("X",))
    yield Case("logit", {"X": values((12,), low=0.1, high=0.9)}, attrs={"eps": 0.0}, grads=("X",))


def _products() -> Iterator[Case]:
    for x, y in (((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((2, 4, 3), (3,)), ((4, 3), (2, 3, 5)),
                 ((1, 4, 3), (2, 3, 3))):  # fmt: skip
        for dtype in BOTH:
            inputs = {"X": values(x, dtype), "Y": values(y, dtype, salt=1)}
            yield Case("matmul_v2", inputs, attrs={"trans_x": False, "trans_y": False}, grads=("X", "Y"))
    for n, m, k, dtype in product((1, 3), (1, 4), (2, 5), BOTH):
        inputs = {"X": values((n, m, k), dtype), "Y": values((n, k, 3), dtype, salt=1)}
        yield Case("bmm", inputs, grads=("X", "Y"))
        yield Case("mv", {"X": values((m, k), dtype), "Vec": values((k,), dtype, salt=1)}, grads=("X", "Vec"))
    for shape, alpha, beta in product(((3, 5), (1, 5), (3, 1), (5,), (1, 1)), (1.0, -0.5), (1.0, 2.0)):
        inputs = {"Input": values(shape), "X": values((3, 4), salt=1), "Y": values((4, 5), salt=2)}
        yield Case("addmm", inputs, attrs={"Alpha": alpha, "Beta": beta}, grads=("Input", "X", "Y"))
    for x, y in (((2, 3), (2, 2)), ((3,), (4,)), ((2, 1, 3), (2, 2)), ((2,), (2, 3)), ((1, 2, 2), (3, 1, 2))):
        yield Case("kron", {"X": values(x), "Y": values(y, salt=1)}, grads=("X", "Y"))
    for shape, dim in (((4, 3), 1), ((4, 3), 9), ((3, 4), 0), ((2, 3, 3), 9), ((2, 3, 3), -1)):
        yield Case("cross", {"X": values(shape), "Y": values(shape, salt=1)}, attrs={"dim": dim}, grads=("X", "Y"))
    for shape in ((1, 1), (4, 4), (2, 3, 3), (2, 2, 2, 2)):
        x: Array = values(shape) + 4 * np.eye(shape[-1])
        yield Case("inverse", {"Input": x}, ("Output",), grads=("Input",))
        for upper in (False, True):
            yield Case("cholesky", {"X": x @ x.swapaxes(-1, -2)}, attrs={"upper": upper}, grads=("X",), rtol=1e-6)
    for size, bias in product((1, 3), (False, True)):
        inputs = {"X": values((4, 2)), "Y": values((4, 3), salt=1), "Weight": values((size, 2, 3), salt=2)}
        inputs |= {"Bias": values((1, size), salt=3)} if bias else {}
        yield Case("bilinear_tensor_product", inputs, grads=tuple(inputs))


def _lengths() -> Iterator[Case]:
    for p, axis, keep in product((0.0, 1.0, 1.5, 2.0, 3.0, float("inf"), float("-inf")), (0, 1, -1), (False, True)):
        attrs = {"porder": p, "axis": axis, "keepdim": keep, "asvector": False, "epsilon": 1e-12}
        yield Case("p_norm", {"X": values((2, 3, 4))}, attrs=attrs, grads=("X",))
    for p in (1.0, 2.0, 3.0, float("inf")):
        attrs = {"porder": p, "axis": -1, "keepdim": False, "asvector": True, "epsilon": 1e-12}
        yield Case("p_norm", {"X": values((2, 3, 4))}, attrs=attrs, grads=("X",))
    for p, (x, y) in product(
        (0.0, 1.0, 2.0, 3.5, float("inf"), float("-inf")),
        (((3, 4), (3, 4)), ((3, 4), (4,)), ((2, 1, 4), (3, 1)), ((5,), (1,))),
    ):
        yield Case("dist", {"X": values(x), "Y": values(y, salt=1)}, attrs={"p": p}, grads=("X", "Y"), rtol=1e-6)
    for axis, keep, everything, dtype in product(([0], [-1], [0, 2], [0, 1, 2]), (False, True), (False, True), BOTH):
        x = values((2, 3, 4), dtype)
        attrs: dict[str, Any] = {"axis": axis, "keepdim": keep, "reduce_all": everything}
        yield Case("logsumexp", {"X": x}, attrs=attrs, grads=("X",))
        attrs = {"dim": axis, "keep_dim": keep, "reduce_all": everything}
        yield Case("frobenius_norm", {"X": x}, attrs=attrs, grads=("X",))


def _diagonals() -> Iterator[Case]:
    for shape, k, lower in product(((3, 4), (2, 4, 3), (1, 1)), (-2, -1, 0, 1, 3), (False, True)):
        yield Case("tril_triu", {"X": values(shape)}, attrs={"diagonal": k, "lower": lower}, grads=("X",))
    for shape, k in product(((3,), (1,), (3, 4), (4, 2)), (-2, -1, 0, 1, 2)):
        if len(shape) == 2 and not -shape[0] < k < shape[1]:
            continue
        yield Case("diag_v2", {"X": values(shape)}, attrs={"offset": k, "padding_value": 0.0}, grads=("X",))
        if len(shape) == 1:
            yield Case("diag_v2", {"X": values(shape, "int64")}, attrs={"offset": k, "padding_value": 3.0})
    for k, (one, two) in product((-1, 0, 2), ((-2, -1), (0, 1), (0, 2), (2, 0), (-1, 0))):
        yield Case("diag_embed", {"Input": values((2, 3))}, attrs={"offset": k, "dim1": one, "dim2": two})
    for shape, k, (one, two) in product(((3, 4), (2, 3, 4)), (-1, 0, 1), ((0, 1), (1, 0), (-1, 0))):
        attrs = {"offset": k, "axis1": one, "axis2": two}
        yield Case("trace", {"Input": values(shape)}, attrs=attrs, grads=("Input",))
    for rows, columns, dtype in product((1, 3), (-1, 2, 5), (3, 5, 6)):
        yield Case("eye", {}, attrs={"num_rows": rows, "num_columns": columns, "dtype": dtype})


def _choices() -> Iterator[Case]:
    rng = np.random.default_rng(3)
    for dtype, number in product((*BOTH, "int64"), ("int32", "int64")):
        x, grads = values((4, 3, 2), dtype, -9, 9), () if dtype == "int64" else ("X",)
        for depth, lead in product((1, 2, 3), ((5,), (2, 2), ())):
            index = rng.integers(0, (4, 3, 2)[:depth], (*lead, depth)).astype(number)
            yield Case("gather_nd", {"X": x, "Index": index}, grads=grads)
            updates = values((*lead, *x.shape[depth:]), dtype, -9, 9, 1)
            inputs = {"X": x, "Index": index, "Updates": updates}
            if updates.ndim:
                yield Case("scatter_nd_add", inputs, grads=grads and ("X", "Updates"))
        for axis in (0, 1, -1):
            index = rng.integers(0, x.shape[axis], 5).astype(number)
            yield Case("index_select", {"X": x, "Index": index}, attrs={"dim": axis}, grads=grads)
        index = rng.integers(0, 3, (4, 5)).astype(number)
        yield Case("index_sample", {"X": x[..., 0].copy(), "Index": index}, grads=grads)
    for shape, dtype in product(((5,), (3, 4), (2, 3, 2)), BOTH):
        inputs = {"X": values(shape, dtype), "Mask": values(shape, "bool")}
        yield Case("masked_select", inputs, ("Y",), grads=("X",))
    for k, axis, largest, dtype in product((1, 2, 3), (0, 1, -1), (False, True), BOTH):
        attrs = {"k": k, "axis": axis, "largest": largest, "sorted": True}
        yield Case("top_k_v2", {"X": values((3, 4, 5), dtype)}, ("Out", "Indices"), attrs, ("X",))
    for dtype, number in product(("int64", *BOTH), (2, 3)):
        x = rng.integers(0, 5, 12).astype(dtype)
        no = {"return_index": False, "return_inverse": False, "return_counts": False, "axis": []}
        yield Case("unique", {"X": x}, ("Out", "Index"), {"dtype": number, "is_sorted": False, **no})
        yield Case("unique_with_counts", {"X": x}, ("Out", "Index", "Count"), {"dtype": number})
        all_ = dict.fromkeys(("return_index", "return_inverse", "return_counts"), True)
        attrs = {"dtype": number, "is_sorted": True, **all_, "axis": []}
        yield Case("unique", {"X": x.reshape(3, 4)}, ("Out", "Index", "Indices", "Counts"), attrs)
        for axis in (0, 1):
            rows = x.reshape(3, 4)[[0, 1, 0, 2]][:, [0, 1, 2, 0]]
            yield Case("unique", {"X": rows}, ("Out", "Index", "Indices", "Counts"), {**attrs, "axis": [axis]})
    for bins, (low, high), dtype in product((1, 4, 10), ((0, 0), (-1, 1), (-3, 0)), (*BOTH, "int64")):
        attrs = {"bins": bins, "min": low, "max": high}
        yield Case("histogram", {"X": values((20,), dtype)}, attrs=attrs)
    for shards, mine, ignored in product((2, 3), (0, 1), (-1, -7)):
        attrs = {"index_num": 20, "nshards": shards, "shard_id": mine, "ignore_value": ignored}
        yield Case("shard_index", {"X": rng.integers(0, 20, (6, 1))}, attrs=attrs)
    for shape in ((3, 2, 2), (5, 1, 4)):
        inputs = {"Ids": rng.integers(0, 99, shape), "Parents": rng.integers(0, shape[2], shape)}
        yield Case("gather_tree", inputs)
    for gap, (rtol, atol) in product((0.0, 1e-6, 1e-3), (("1e-5", "1e-8"), ("1e-2", "0"), ("0", "1e-4"))):
        x = values((3, 4))
        attrs = {"rtol": rtol, "atol": atol, "equal_nan": False}
        yield Case("allclose", {"Input": x, "Other": x + gap}, attrs=attrs)
        yield Case("equal_all", {"X": x, "Y": x + gap})


def _arrangements() -> Iterator[Case]:
    x = values((2, 1, 3))
    for times in ([1], [2], [2, 1, 2], [1, 3, 1], [2, 1, 3, 1]):
        yield Case("tile", {"X": x}, attrs={"repeat_times": times}, grads=("X",))
    for shape in ([2, 4, 3], [-1, -1, 3], [5, 2, 1, 3], [2, -1, 3]):
        yield Case("expand_v2", {"X": x}, attrs={"shape": shape}, grads=("X",))
    for shape in ([2, 4, 3], [5, 2, 1, 3]):
        inputs = {"X": x, "Y": values(tuple(shape), salt=1)}
        yield Case("expand_as_v2", inputs, attrs={"target_shape": shape}, grads=("X",))
    for shifts, axes in (([1], []), ([-5], []), ([1], [0]), ([1, -2], [0, 2]), ([4], [-1]), ([0], [1])):
        yield Case("roll", {"X": values((3, 2, 4))}, attrs={"shifts": shifts, "axis": axes}, grads=("X",))
    for shape, offsets in (([2, 3], [1, 2]), ([-1, 2], [1, 0]), ([4, -1], [0, 3])):
        yield Case("crop_tensor", {"X": values((4, 5))}, attrs={"shape": shape, "offsets": offsets}, grads=("X",))
    for start, length in ((0, -1), (1, 2), (-2, -1), (-3, 2), (0, 1)):
        inputs = {"X": [values((3, 4), salt=s) for s in range(3)]}
        attrs = {"start_index": start, "length": length}
        yield Case("partial_concat", inputs, attrs=attrs, grads=("X",))
        if start >= 0:  # Paddle's partial_sum does not come back from a negative one
            yield Case("partial_sum", inputs, attrs=attrs, grads=("X",))
    layouts = {"NCDHW": (1, 2, 3, 4, 5), "NDHWC": (1, 3, 4, 5, 2)}
    for paddings, mode, (layout, shape) in product(
        ([0] * 6, [1, 2, 0, 1, 1, 0], [2, 0, 1, 1, 0, 2]), ("constant", "reflect", "replicate", "circular"),
        layouts.items(),
    ):  # fmt: skip
        attrs = {"paddings": paddings, "mode": mode, "value": 0.5, "data_format": layout}
        yield Case("pad3d", {"X": values(shape)}, attrs=attrs, grads=("X",))


def tensor_cases() -> list[Case]:
    """All of them."""
    parts = (_functions, _products, _lengths, _diagonals, _choices, _arrangements)
    return [case for part in parts for case in part()]
