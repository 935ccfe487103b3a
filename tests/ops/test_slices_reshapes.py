"""Parts of tensors, other shapes, other orders."""

import numpy as np
import pytest

from fluidnb.errors import EnforceNotMet
from fluidnb.op import RuleError
from fluidnb.testing import run_op
from tests.ops.cases import Differentiable, Forward, distinct, family, values
from tests.tools.refused import refused

X = values(2, 3, 4)
ONES = values(1, 3, 1, 4)
A, B = values(3, 4, seed=1), values(3, 4, seed=2)
ROWS = np.array([3, 0])
TWICE = np.array([3, 0, 3])
TALL = values(5, 2)
ORDER = distinct(3, 5)


def xshape(x):
    return np.zeros((0, *x.shape))


def replaced(x, ids, rows):
    out = x.copy()
    out[ids] = rows
    return out


def summed(x, ids, rows):
    out = x.copy()
    out[ids] = 0
    np.add.at(out, ids, rows)
    return out


def bordered(x, paddings, value):
    return np.pad(x, list(zip(paddings[::2], paddings[1::2], strict=True)), constant_values=value)


#: type -> X, attributes, shape of Out: operators that change the shape alone, in both forms
SHAPES = {
    "squeeze": (ONES, {"axes": [0, 2]}, (3, 4)),
    "squeeze/all": (ONES[0], {}, (3, 4)),
    "squeeze/one": (ONES, {"axes": [-2]}, (1, 3, 4)),
    "squeeze/none": (ONES, {"axes": [1]}, (1, 3, 1, 4)),
    "unsqueeze": (X, {"axes": [0, 2]}, (1, 2, 1, 3, 4)),
    "unsqueeze/end": (X, {"axes": [-1]}, (2, 3, 4, 1)),
    "flatten": (X, {"axis": 2}, (6, 4)),
    "flatten/one": (X, {"axis": 0}, (1, 24)),
}
family(
    globals(),
    Differentiable,
    {
        **{
            name: {"inputs": {"X": x}, "attrs": a, "outputs": {"Out": x.reshape(s)}}
            for name, (x, a, s) in SHAPES.items()
        },
        **{
            name.replace("/", "2/") if "/" in name else name + "2": {
                "inputs": {"X": x}, "attrs": a, "outputs": {"Out": x.reshape(s), "XShape": xshape(x)}, "loss": ("Out",),
            }
            for name, (x, a, s) in SHAPES.items()
        },
        "flatten_contiguous_range": {
            "inputs": {"X": X}, "attrs": {"start_axis": 1, "stop_axis": -1},
            "outputs": {"Out": X.reshape(2, 12), "XShape": xshape(X)}, "loss": ("Out",),
        },
        "split": {
            "inputs": {"X": X}, "attrs": {"num": 2, "axis": 2}, "outputs": {"Out": np.split(X, 2, 2)},
            "loss": ("Out",),
        },
        "split/sections": {
            "inputs": {"X": X}, "attrs": {"sections": [1, -1, 1], "axis": -1},
            "outputs": {"Out": [X[..., :1], X[..., 1:3], X[..., 3:]]}, "loss": ("Out",),
        },
        "stack": {"inputs": {"X": [A, B]}, "outputs": {"Y": np.stack([A, B])}},
        "stack/last": {"inputs": {"X": [A, B, A]}, "attrs": {"axis": -1}, "outputs": {"Y": np.stack([A, B, A], -1)}},
        "unstack": {
            "inputs": {"X": X}, "attrs": {"axis": 1, "num": 3}, "outputs": {"Y": [X[:, i] for i in range(3)]},
            "loss": ("Y",),
        },
        "expand": {
            "inputs": {"X": X}, "attrs": {"expand_times": [2, 1, 3]}, "outputs": {"Out": np.tile(X, (2, 1, 3))},
        },
        "pad": {
            "inputs": {"X": A}, "attrs": {"paddings": [1, 0, 2, 1], "pad_value": 0.5},
            "outputs": {"Out": bordered(A, [1, 0, 2, 1], 0.5)},
        },
        "pad_constant_like": {
            "inputs": {"X": np.zeros((4, 4)), "Y": A[:, :3]}, "attrs": {"pad_value": 2.0},
            "outputs": {"Out": bordered(A[:, :3], [0, 1, 0, 1], 2.0)}, "grads": ("Y",),
        },
        "crop": {
            "inputs": {"X": A}, "attrs": {"offsets": [1, 0], "shape": [2, -1]}, "outputs": {"Out": A[1:]},
        },
        "crop/like": {"inputs": {"X": A, "Y": np.zeros((2, 2))}, "outputs": {"Out": A[:2, :2]}, "grads": ("X",)},
        "slice": {
            "inputs": {"Input": X}, "attrs": {"axes": [0, 2], "starts": [1, -3], "ends": [9, -1]},
            "outputs": {"Out": X[1:9, :, -3:-1]},
        },
        "slice/dropped": {
            "inputs": {"Input": X}, "attrs": {"axes": [1], "starts": [1], "ends": [2], "decrease_axis": [1]},
            "outputs": {"Out": X[:, 1]},
        },
        "slice/number": {
            "inputs": {"Input": A[0]}, "attrs": {"axes": [0], "starts": [1], "ends": [2], "decrease_axis": [0]},
            "outputs": {"Out": A[0, 1:2]},
        },
        "strided_slice": {
            "inputs": {"Input": X}, "attrs": {"axes": [2, 1], "starts": [3, 0], "ends": [-9, 3], "strides": [-2, 2]},
            "outputs": {"Out": X[:, 0:3:2, ::-2]},
        },
        **{
            f"strided_slice/{name}": {
                "inputs": {"Input": A}, "attrs": {"axes": [0], "starts": [start], "ends": [end], "strides": [stride]},
                "outputs": {"Out": A[rows]},
            }
            for name, start, end, stride, rows in (
                ("whole", 2**31 - 1, -1, -1, [2, 1, 0]), ("from_the_end", -1, -1, -2, [2, 0]),
                ("not_the_first", 2, -10, -1, [2, 1]), ("first_alone", -9, -1, -1, [0]),
                ("from_the_end_on", -1, -3, -1, [2, 1]),
            )
        },
        "reverse": {"inputs": {"X": X}, "attrs": {"axis": [0, -1]}, "outputs": {"Out": X[::-1, :, ::-1]}},
        "flip": {"inputs": {"X": X}, "attrs": {"axis": [1]}, "outputs": {"Out": X[:, ::-1]}},
        "argsort": {
            "inputs": {"X": ORDER}, "outputs": {"Out": np.sort(ORDER), "Indices": np.argsort(ORDER)}, "loss": ("Out",),
        },
        "argsort/falling": {
            "inputs": {"X": ORDER}, "attrs": {"axis": 0, "descending": True},
            "outputs": {"Out": -np.sort(-ORDER, 0), "Indices": np.argsort(-ORDER, 0)}, "loss": ("Out",),
        },
        "scatter": {
            "inputs": {"X": TALL, "Ids": ROWS, "Updates": A[:2, :2]},
            "outputs": {"Out": replaced(TALL, ROWS, A[:2, :2])}, "grads": ("X", "Updates"),
        },
        "scatter/sum": {
            "inputs": {"X": TALL, "Ids": TWICE[:, None], "Updates": A[:, :2]}, "attrs": {"overwrite": False},
            "outputs": {"Out": summed(TALL, TWICE, A[:, :2])}, "grads": ("X", "Updates"),
        },
        "multiplex": {
            "inputs": {"Ids": np.array([[1], [0], [1]], "int32"), "X": [A, B]},
            "outputs": {"Out": np.stack([B[0], A[1], B[2]])}, "grads": ("X",),
        },
        "where/choice": {
            "inputs": {"Condition": A > 0, "X": A, "Y": B}, "outputs": {"Out": np.where(A > 0, A, B)},
            "grads": ("X", "Y"),
        },
    },
)  # fmt: skip
family(
    globals(),
    Forward,
    {
        "arg_max": {"inputs": {"X": ORDER}, "attrs": {"axis": 1}, "outputs": {"Out": ORDER.argmax(1)}},
        "arg_max/kept": {
            "inputs": {"X": ORDER}, "attrs": {"axis": -2, "keepdims": True, "dtype": 2},
            "outputs": {"Out": ORDER.argmax(0)[None].astype("int32")},
        },
        "arg_max/all": {
            "inputs": {"X": ORDER}, "attrs": {"flatten": True}, "outputs": {"Out": np.array([ORDER.argmax()])},
        },
        "arg_min": {"inputs": {"X": ORDER}, "outputs": {"Out": ORDER.argmin(0)}},
        "one_hot": {
            "inputs": {"X": np.array([[2], [0]])}, "attrs": {"depth": 3},
            "outputs": {"Out": np.array([[0, 0, 1], [1, 0, 0]], "float32")},
        },
        "one_hot/sequences": {
            "inputs": {"X": (np.array([[2], [0], [5]]), [[1, 2]])}, "attrs": {"depth": 3, "allow_out_of_range": True},
            "outputs": {"Out": (np.array([[0, 0, 1], [1, 0, 0], [0, 0, 0]], "float32"), [[1, 2]])},
        },
        "one_hot_v2": {
            "inputs": {"X": np.array([2, 0])}, "attrs": {"depth": 3, "dtype": 3},
            "outputs": {"Out": np.array([[0, 0, 1], [1, 0, 0]])},
        },
        "shape": {"inputs": {"Input": X}, "outputs": {"Out": np.array([2, 3, 4], "int32")}},
        "size": {"inputs": {"Input": X}, "outputs": {"Out": np.array([24])}},
        "is_empty": {"inputs": {"X": np.zeros((0, 2))}, "outputs": {"Out": np.array([True])}},
        "is_empty/no": {"inputs": {"X": X}, "outputs": {"Out": np.array([False])}},
        "range": {
            "inputs": {"Start": np.array([1.0]), "End": np.array([3.0]), "Step": np.array([0.75])},
            "outputs": {"Out": np.array([1.0, 1.75, 2.5])},
        },
        "range/down": {
            "inputs": {"Start": np.array([5]), "End": np.array([1]), "Step": np.array([-2])},
            "outputs": {"Out": np.array([5, 3])},
        },
        "linspace": {
            "inputs": {"Start": np.array([1.0]), "Stop": np.array([2.0]), "Num": np.array([5], "int32")},
            "outputs": {"Out": np.array([1, 1.25, 1.5, 1.75, 2])},
        },
        "where": {"inputs": {"Condition": A > 0}, "outputs": {"Out": np.argwhere(A > 0)}},
        "where_index": {"inputs": {"Condition": A > 0}, "outputs": {"Out": np.argwhere(A > 0)}},
        "diag": {"inputs": {"Diagonal": A[0]}, "outputs": {"Out": np.diag(A[0])}},
        **{
            name: {"inputs": {"X": np.array([[1.0, bad]])}, "outputs": {"Out": want}}
            for name, bad, want in (
                ("isfinite", np.inf, np.array([False])), ("isfinite/yes", 2.0, np.array([True])),
                ("isinf", -np.inf, np.array([True])), ("isinf/no", np.nan, np.array([False])),
                ("isnan", np.nan, np.array([True])), ("isnan/no", np.inf, np.array([False])),
                ("isfinite_v2", np.nan, np.array([[True, False]])), ("isinf_v2", np.inf, np.array([[False, True]])),
                ("isnan_v2", np.nan, np.array([[False, True]])),
            )
        },
        **{
            f"{name}/whole": {"inputs": {slot: np.arange(6).reshape(2, 3)}, "attrs": a, "outputs": {"Out": want}}
            for name, slot, a, want in (
                ("reverse", "X", {"axis": [1]}, np.arange(6).reshape(2, 3)[:, ::-1]),
                ("slice", "Input", {"axes": [1], "starts": [0], "ends": [2]}, np.arange(6).reshape(2, 3)[:, :2]),
                ("expand", "X", {"expand_times": [1, 2]}, np.tile(np.arange(6).reshape(2, 3), (1, 2))),
            )
        },
    },
)  # fmt: skip


@pytest.mark.parametrize(
    ("op", "inputs", "attrs", "outputs", "want"),
    [
        ("split", {"X": X, "AxisTensor": np.array([2], "int32")}, {"num": 2}, {"Out": 2}, np.split(X, 2, 2)),
        (
            "split", {"X": X, "SectionsTensorList": [np.array([1]), np.array([3])]}, {"axis": 2}, {"Out": 2},
            [X[..., :1], X[..., 1:]],
        ),
        ("expand", {"X": A, "expand_times_tensor": [np.array([2]), np.array([1])]}, {}, None, np.tile(A, (2, 1))),
        (
            "slice", {"Input": A, "StartsTensor": np.array([1]), "EndsTensor": np.array([3])},
            {"axes": [0], "starts": [0], "ends": [0]}, None, A[1:3],
        ),
        ("one_hot", {"X": np.array([[1]]), "depth_tensor": np.array([2], "int32")}, {}, None, np.array([[0, 1]])),
        ("crop", {"X": A, "Offsets": np.array([1, 1], "int32")}, {"shape": [2, 2]}, None, A[1:3, 1:3]),
        ("unsqueeze2", {"X": A, "AxesTensor": np.array([0])}, {"axes": [2]}, ["Out"], A[None]),
    ],
)  # fmt: skip
def test_numbers_that_come_as_variables(op, inputs, attrs, outputs, want):
    got = run_op(op, inputs, attrs, outputs)
    for value, wanted in zip(
        *(v if isinstance(v, list) else [v] for v in (next(iter(got.values())), want)), strict=True
    ):
        np.testing.assert_array_equal(value, wanted)


@pytest.mark.parametrize(
    ("op", "start", "end", "more"),
    [("slice", 2, 2, {}), ("slice", 7, 9, {}), ("slice", 0, -10, {}), ("strided_slice", 0, -9, {"strides": [-1]})],
)
def test_slices_of_nothing_are_empty(op, start, end, more):
    want = {"axes": [0], "starts": [start], "ends": [end], **more}
    assert run_op(op, {"Input": A}, want)["Out"].shape == (0, A.shape[1])


IDS = np.array([[0]])


@pytest.mark.parametrize(
    ("op", "inputs", "attrs", "outputs", "message"),
    [
        ("split", {"X": X}, {"num": 3, "axis": 0}, {"Out": 3}, "evenly divisible"),
        ("split", {"X": X}, {"num": 2, "axis": 3}, {"Out": 2}, "must name a dimension"),
        ("split", {"X": X}, {"num": 2}, {"Out": 3}, "as many outputs as parts"),
        ("split", {"X": X}, {}, {"Out": 2}, "needs Attr"),
        ("split", {"X": X}, {"sections": [1, 2]}, {"Out": 2}, "must add up"),
        ("split", {"X": X}, {"sections": [-1, -1]}, {"Out": 2}, "can be -1"),
        ("stack", {"X": [A, B[:2]]}, {}, None, "same shape and dtype"),
        ("stack", {"X": [A, B]}, {"axis": 3}, None, "must name a dimension"),
        ("unstack", {"X": A}, {"num": 2}, {"Y": 2}, "must be the size of X"),
        ("squeeze", {"X": A}, {"axes": [2]}, None, "must name a dimension"),
        ("unsqueeze", {"X": A}, {"axes": [4]}, None, "must name a dimension"),
        ("flatten", {"X": A}, {"axis": 3}, None, "from 0 to the rank"),
        ("expand", {"X": A}, {"expand_times": [2]}, None, "must be the rank of X"),
        ("expand", {"X": A}, {"expand_times": [2, 0]}, None, "must be positive"),
        ("pad", {"X": A}, {"paddings": [1, 1]}, None, "two numbers for each dimension"),
        ("pad_constant_like", {"X": A[:2], "Y": A}, {}, None, "as large as"),
        ("crop", {"X": A}, {"offsets": [2, 0], "shape": [2, 2]}, None, "must be inside X"),
        ("crop", {"X": A}, {"shape": [2]}, None, "must have the rank of X"),
        ("slice", {"Input": A}, {"axes": [0], "starts": [2], "ends": [1]}, None, "takes nothing"),
        (
            "strided_slice", {"Input": A}, {"axes": [0], "starts": [0], "ends": [2], "strides": [-1]}, None,
            "takes nothing",
        ),
        ("slice", {"Input": A}, {"axes": [0, 1], "starts": [2], "ends": [1]}, None, "must have the same length"),
        (
            "slice", {"Input": A}, {"axes": [0], "starts": [0], "ends": [2], "decrease_axis": [0]}, None,
            "must have one element left",
        ),
        ("reverse", {"X": A}, {"axis": [2]}, None, "must name a dimension"),
        ("arg_max", {"X": A}, {"axis": 2}, None, "must name a dimension"),
        ("argsort", {"X": A}, {"axis": 2}, None, "must name a dimension"),
        ("one_hot", {"X": np.array([1, 2])}, {"depth": 3}, None, "should be 1"),
        ("one_hot", {"X": IDS}, {}, None, "must be positive"),
        ("one_hot", {"X": A[:, :1]}, {"depth": 3}, None, "must hold integers"),
        ("scatter", {"X": TALL, "Ids": ROWS, "Updates": A[:, :2]}, {}, None, "a row for each"),
        ("scatter", {"X": TALL, "Ids": A[0], "Updates": A[:, :2]}, {}, None, "must hold integers"),
        ("multiplex", {"Ids": IDS, "X": [A[:1]]}, {}, None, "at least two"),
        ("multiplex", {"Ids": IDS, "X": [A, B[:2]]}, {}, None, "must have the same shape"),
        ("where", {"Condition": A > 0, "X": A, "Y": B[:2]}, {}, None, "must have the shape"),
        ("where", {"Condition": A > 0, "X": A}, {}, None, "of where is missing"),
        ("range", {"Start": [0.0], "End": [1.0], "Step": [0.0]}, {}, None, "must not be 0"),
        ("range", {"Start": [0.0], "End": [1.0], "Step": [-1.0]}, {}, None, "leads away"),
        ("linspace", {"Start": [0.0], "Stop": [1.0], "Num": np.array([0])}, {}, None, "larger than 0"),
        ("diag", {"Diagonal": A}, {}, None, r"must have the shape \[n\]"),
    ],
)  # fmt: skip
def test_what_does_not_fit(op, inputs, attrs, outputs, message):
    with refused(RuleError, message):
        run_op(op, inputs, attrs, outputs)


@pytest.mark.parametrize(
    ("op", "inputs", "attrs", "message"),
    [
        ("one_hot", {"X": np.array([[3]])}, {"depth": 3}, "outside the depth"),
        ("scatter", {"X": TALL, "Ids": np.array([5]), "Updates": A[:1, :2]}, {}, "a row that does not exist"),
        ("scatter", {"X": TALL, "Ids": np.array([-1]), "Updates": A[:1, :2]}, {"overwrite": False}, "does not exist"),
        ("multiplex", {"Ids": np.array([[2]]), "X": [A, B]}, {}, "a row that does not exist"),
    ],
)
def test_numbers_out_of_range(op, inputs, attrs, message):
    with refused(EnforceNotMet, message):
        run_op(op, inputs, attrs)


def test_equal_elements_keep_their_order():
    x = np.array([1.0, 0.0, 1.0, 0.0])
    assert run_op("argsort", {"X": x})["Indices"].tolist() == [1, 3, 0, 2]
    assert run_op("argsort", {"X": x}, {"descending": True})["Indices"].tolist() == [0, 2, 1, 3]
