"""Calls that random tests found to end in an error of inner code: each says now what is wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb import layers
from fluidnb.data.reader import firstn, xmap_readers
from fluidnb.data.reader.pipe import PipeReader
from fluidnb.errors import FluidError
from fluidnb.op import RuleError
from fluidnb.testing import run_op

data = layers.data


def interpreter_by_name() -> Any:
    return fluid.Executor().interpret(fetch_list=[layers.fill_constant([2], "float32", 3.0)], interpreter="int64")


def numbers_that_are_no_tensor() -> Any:
    return layers.multiplex([data("a", [3]), data("b", [3])], data("i", [1], dtype="int32", type=0))


def regions_that_are_no_tensor() -> Any:
    rois = data("rois", [8], lod_level=1, type=2)
    return layers.roi_perspective_transform(data("x", [8, 32, 32]), rois, 8, 20, 0.25)


def two_billion_trainers() -> Any:
    fluid.optimizer.SGD(0.1).minimize(layers.mean(layers.fc(data("x", [2]), 1)))
    transpiler = fluid.DistributeTranspiler()
    transpiler.transpile(0, pservers="ps:0", trainers=2)
    return transpiler.among(2**31)


def infinite_scale() -> Any:
    return layers.image_resize(data("x", [3, 12, 12]), resample="NEAREST", scale=float("inf"))


CALLS: list[tuple[Callable[[], Any], str]] = [
    (interpreter_by_name, "The interpreter of a run must be a class"),
    (numbers_that_are_no_tensor, r"Input\(Ids\) of multiplex must be a tensor"),
    (regions_that_are_no_tensor, r"Input\(ROIs\) of roi_perspective_transform must be a tensor"),
    (two_billion_trainers, "too many trainers"),
    (lambda: PipeReader("echo one line", bufsize=-5), "reads at least one byte"),
    (infinite_scale, "needs a height and a width"),
    (lambda: firstn(lambda: range(9), -1), "n of firstn must be an int from 0 on"),
    (lambda: xmap_readers(lambda: 1, lambda: range(5), 2, 4), "mapper of xmap_readers must be a function of one"),
]


@pytest.mark.parametrize(("call", "message"), CALLS, ids=[message for _, message in CALLS])
def test_it_says_what_is_wrong(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(FluidError, match=message):
        call()


def test_a_row_of_one_column_by_a_boolean() -> None:
    assert fluid.create_random_int_lodtensor([[2, 3]], [True], fluid.CPUPlace(), 0, 9).shape() == [5, 1]


def test_an_axis_behind_the_dimensions_of_a_second_gradient() -> None:
    whole, part = np.ones((2, 3, 4), "float32"), np.ones((3, 1), "float32")
    inputs = {"DDX": whole, "DDY": part, "DX": whole, "Out": whole, "Out@GRAD": whole, "Y": part}
    with pytest.raises(RuleError, match="operands of elementwise_div do not fit"):
        run_op("elementwise_div_grad_grad", inputs, {"axis": 63}, {"DDOut": 1})
