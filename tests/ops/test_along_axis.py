"""take_along_axis and put_along_axis beside loops over the index, and set_value beside numpy's assignment."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fluidnb.errors import EnforceNotMet, OpValueError
from fluidnb.op import RuleError
from fluidnb.testing import run_op
from tests.ops.cases import Differentiable, Forward, family, values

X, CUBE = values(3, 4, seed=1), values(3, 4, 2, seed=2)
INDEX = np.array([[3, 0], [1, 1], [-1, 2]])
NEW = values(3, 2, seed=3)
TWICE = np.array([[3, 0], [1, 1], [2, 2]], "int32")


def taken(x: np.ndarray, index: np.ndarray) -> np.ndarray:
    return np.array([[row[i] for i in spots] for row, spots in zip(x, index, strict=True)])


def put(x: np.ndarray, index: np.ndarray, value: np.ndarray, how: Any = lambda old, new: new) -> np.ndarray:
    out = x.copy()
    for row, spots, numbers in zip(out, index, np.broadcast_to(value, index.shape), strict=True):
        for i, v in zip(spots, numbers, strict=True):
            row[i] = how(row[i], v)
    return out


def changed(x: np.ndarray, index: Any, value: Any) -> np.ndarray:
    out = x.copy()
    out[index] = value
    return out


#: Two rows and every other column, from behind.
BACKWARDS: dict[str, Any] = {"axes": [0, 1], "starts": [0, 3], "ends": [2, -9], "steps": [1, -2]}
ROW: dict[str, Any] = {"axes": [0], "starts": [-1], "ends": [2**31 - 1], "steps": [1], "decrease_axes": [0]}

family(
    globals(),
    Differentiable,
    {
        "take_along_axis": {
            "inputs": {"Input": X, "Index": INDEX}, "attrs": {"Axis": 1}, "outputs": {"Result": taken(X, INDEX)},
            "grads": ("Input",),
        },
        "take_along_axis/first": {
            "inputs": {"Input": X.T.copy(), "Index": TWICE.T.copy()}, "attrs": {"Axis": -2},
            "outputs": {"Result": taken(X, TWICE).T}, "grads": ("Input",),
        },
        "put_along_axis": {
            "inputs": {"Input": X, "Index": INDEX[:, :1], "Value": NEW[:, :1]}, "attrs": {"Axis": 1},
            "outputs": {"Result": put(X, INDEX[:, :1], NEW[:, :1])}, "grads": ("Input", "Value"),
        },
        "put_along_axis/add": {
            "inputs": {"Input": X, "Index": TWICE, "Value": NEW}, "attrs": {"Axis": 1, "Reduce": "add"},
            "outputs": {"Result": put(X, TWICE, NEW, lambda a, b: a + b)}, "grads": ("Input", "Value"),
        },
        "put_along_axis/product": {
            "inputs": {"Input": X, "Index": TWICE, "Value": NEW}, "attrs": {"Axis": 1, "Reduce": "mul"},
            "outputs": {"Result": put(X, TWICE, NEW, lambda a, b: a * b)}, "grads": ("Input", "Value"),
        },
        "set_value": {
            "inputs": {"Input": X, "ValueTensor": NEW[:2]}, "attrs": BACKWARDS,
            "outputs": {"Out": changed(X, (slice(2), slice(3, None, -2)), NEW[:2])},
        },
        "set_value/repeated": {
            "inputs": {"Input": CUBE, "ValueTensor": values(1, 2)}, "attrs": ROW,
            "outputs": {"Out": changed(CUBE, -1, values(1, 2))},
        },
        **{
            f"set_value/from_{start}_back_to_{end}": {
                "inputs": {"Input": X, "ValueTensor": NEW[:, :1]},
                "attrs": {"axes": [1], "starts": [start], "ends": [end], "steps": [-1]},
                "outputs": {"Out": changed(X, (slice(None), columns), NEW[:, :1])},
            }
            for start, end, columns in (
                (2, -1, slice(3)), (3, -4, slice(1, None)), (3, -5, slice(None)), (-9, -1, slice(1)),
            )
        },
        "set_value/new_axis": {
            "inputs": {"Input": X, "ValueTensor": values(1, 4)}, "attrs": {**ROW, "none_axes": [0]},
            "outputs": {"Out": changed(X, -1, values(1, 4)[0])},
        },
    },
)  # fmt: skip
family(
    globals(),
    Forward,
    {
        "put_along_axis/largest": {
            "inputs": {"Input": X, "Index": TWICE, "Value": NEW}, "attrs": {"Axis": 1, "Reduce": "amax"},
            "outputs": {"Result": put(X, TWICE, NEW, max)},
        },
        "put_along_axis/product_alone": {
            "inputs": {"Input": X, "Index": TWICE, "Value": NEW},
            "attrs": {"Axis": 1, "Reduce": "mul", "Include_self": False},
            "outputs": {"Result": put(put(X, TWICE, np.ones(())), TWICE, NEW, lambda a, b: a * b)},
        },
        "set_value/numbers": {
            "inputs": {"Input": X}, "attrs": {**BACKWARDS, "values": [1.0, 2.0], "shape": [2]},
            "outputs": {"Out": changed(X, (slice(2), slice(3, None, -2)), [1.0, 2.0])},
        },
        "set_value/before_2_5": {
            "inputs": {"Input": X}, "attrs": {**ROW, "fp32_values": [0.5], "shape": [1]},
            "outputs": {"Out": changed(X, -1, 0.5)},
        },
        "set_value/starts_as_variables": {
            "inputs": {
                "Input": X, "StartsTensorList": [np.array([1])], "EndsTensorList": [np.array([3], "int32")],
                "StepsTensorList": [np.array([1])],
            },
            "attrs": {"axes": [1], "values": [7.0], "shape": [1]},
            "outputs": {"Out": changed(X, (slice(None), slice(1, 3)), 7.0)},
        },
    },
)  # fmt: skip


def test_what_does_not_fit_is_named() -> None:
    with pytest.raises(EnforceNotMet, match="does not exist(.|\n)*received: +4"):
        run_op("take_along_axis", {"Input": X, "Index": INDEX + 1}, {"Axis": 1})
    with pytest.raises(RuleError, match="no longer along the others"):
        run_op("take_along_axis", {"Input": X[:2], "Index": INDEX}, {"Axis": 1})
    with pytest.raises(RuleError, match="shape of Index"):
        run_op("put_along_axis", {"Input": X, "Index": INDEX, "Value": values(3, 3)}, {"Axis": 1})
    with pytest.raises(OpValueError, match="Reduce"):
        run_op("put_along_axis", {"Input": X, "Index": INDEX, "Value": NEW}, {"Axis": 1, "Reduce": "mean"})
    with pytest.raises(RuleError, match="needs ValueTensor, or values"):
        run_op("set_value", {"Input": X}, ROW)
    with pytest.raises(RuleError, match="shape of the part(.|\n)*expected: +\\[4\\]"):
        run_op("set_value", {"Input": X, "ValueTensor": values(3)}, ROW)
    with pytest.raises(RuleError, match="element that does not exist"):
        run_op("set_value", {"Input": X, "ValueTensor": values(1)}, {**ROW, "starts": [3]})
    with pytest.raises(RuleError, match="as many values"):
        run_op("set_value", {"Input": X}, {**ROW, "values": [1.0, 2.0], "shape": [1]})
