"""Calls that random tests found to end in an error of inner code: each says now what is wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb import layers
from fluidnb.contrib.trainer import Trainer
from fluidnb.data.dataset import common
from fluidnb.data.reader import firstn, xmap_readers
from fluidnb.data.reader.pipe import PipeReader
from fluidnb.errors import FluidError
from fluidnb.op import RuleError
from fluidnb.passes.lint import lint
from fluidnb.passes.shape_folding import fold_shapes
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


def a_trainer() -> Trainer:
    return Trainer(lambda: layers.mean(layers.fc(data("x", [3]), 1)), lambda: fluid.optimizer.SGD(0.1))


def another_gradient_scale() -> Any:
    strategy = fluid.BuildStrategy()
    strategy.gradient_scale_strategy = 5
    return fluid.CompiledProgram(fluid.default_main_program()).with_data_parallel(build_strategy=strategy)


def all_added(average: Any, add: str, *values: Any) -> None:
    for value in values:
        getattr(average, add)(value, 1)


def a_profiler_in_a_profiler() -> None:
    with fluid.profiler.profiler("CPU", None, None), fluid.profiler.profiler("CPU", None, None):
        pass
def block() -> fluid.framework.Block:
    """A block with one operator."""
    layers.relu(data("x", [4]))
    return fluid.default_main_program().global_block()


def trained_with(factors: Any) -> Any:
    w = block().create_parameter(name="w", shape=[2], dtype="float32", optimize_attr=factors)
    return fluid.optimizer.SGD(0.1).minimize(layers.mean(w))


def rate_before_minimize() -> Any:
    return fluid.optimizer.SGD(0.1).param_learning_rate(layers.create_parameter([2], "float32", name="w"))


def loaded(value: Any) -> Any:
    optimizer = fluid.optimizer.SGD(0.1)
    optimizer.minimize(layers.mean(layers.create_parameter([2], "float32", name="w")))
    return optimizer.load({"learning_rate_0": value})


def optimized(skip: Any) -> Any:
    return fluid.memory_optimize(block().program, skip_opt_set=skip)


def folded(shapes: Any) -> Any:
    return fold_shapes(block().program, shapes)


CALLS: list[tuple[Callable[[], Any], str]] = [
    (interpreter_by_name, "The interpreter of a run must be a class"),
    (numbers_that_are_no_tensor, r"Input\(Ids\) of multiplex must be a tensor"),
    (regions_that_are_no_tensor, r"Input\(ROIs\) of roi_perspective_transform must be a tensor"),
    (two_billion_trainers, "too many trainers"),
    (lambda: PipeReader("echo one line", bufsize=-5), "reads at least one byte"),
    (infinite_scale, "needs a height and a width"),
    (lambda: firstn(lambda: range(9), -1), "n of firstn must be an int from 0 on"),
    (lambda: xmap_readers(lambda: 1, lambda: range(5), 2, 4), "mapper of xmap_readers must be a function of one"),
    (lambda: Trainer(lambda: [], lambda: fluid.optimizer.SGD(0.1)), "train_func of Trainer returns the loss"),
    (lambda: a_trainer().save_inference_model("folder", ["x"], [5]), "train_func has no such output"),
    (lambda: fluid.profiler.stop_profiler("total", "a\0b"), "text without null bytes"),
    (lambda: fluid.profiler.stop_profiler("total", 5), "text without null bytes"),  # type: ignore[arg-type]
    (lambda: common.convert("a\0b", lambda: range(2), 2, "n"), "text without null bytes"),
    (lambda: common.split(lambda: range(2), 2, "a\0b%05d"), "text without null bytes"),
    (lambda: common.md5file("/no"), "Cannot read /no"),
    (lambda: fluid.set_flags({"max_loop_iterations": float("inf")}), "FLAGS_max_loop_iterations cannot be inf"),
    (lambda: fluid.set_flags({None: 1}), "name of a flag is a text"),  # type: ignore[dict-item]
    (lambda: fluid.get_flags(5), "names should be a name of a flag"),  # type: ignore[arg-type]
    (another_gradient_scale, "no such gradient_scale_strategy"),
    (lambda: fluid.metrics.Auc(num_thresholds=-5), "num_thresholds of Auc must be"),
    (lambda: fluid.metrics.Auc(num_thresholds=10**12), "num_thresholds of Auc must be"),
    (lambda: all_added(fluid.metrics.Accuracy(), "update", np.ones(2), np.ones(3)), "'value' cannot be added"),
    (lambda: all_added(fluid.metrics.Accuracy(), "update", 10**400), "'value' cannot be added"),
    (lambda: all_added(fluid.average.WeightedAverage(), "add", np.ones(2), np.ones(3)), "'value' cannot be added"),
    (lambda: all_added(fluid.average.WeightedAverage(), "add", 10**400), "'value' cannot be added"),
    (lambda: fluid.DataFeeder(["x"], fluid.CPUPlace(), 5), "program of DataFeeder must be a Program"),
    (a_profiler_in_a_profiler, "Operators are timed already"),
]


@pytest.mark.parametrize(("call", "message"), CALLS, ids=[f"{i} {message}" for i, (_, message) in enumerate(CALLS)])
    (lambda: loaded("a"), "The value for learning_rate_0 is no array of numbers"),
    (lambda: loaded([[1], [2, 3]]), "The value for learning_rate_0 is no array of numbers"),
    (lambda: loaded(1 + 2j), "The value for learning_rate_0 is no array of numbers"),
    (lambda: trained_with({"lr": 1.0}), "The factor of the learning rate of w must be a number or a Variable"),
    (lambda: trained_with({"learning_rate": None}), "The factor of the learning rate of w must be a number"),
    (rate_before_minimize, "The optimizer has no learning rate in"),
    (lambda: optimized(3), "skip_opt_set has variables and names"),
    (lambda: folded(None), "feed_shapes of fold_shapes must be a dict"),
    (lambda: folded({"x": "a"}), "feed_shapes of fold_shapes must be a dict"),
    (lambda: lint(None), "program of lint must be a Program"),  # type: ignore[arg-type]
    (lambda: block()._insert_op("a", "relu"), "index of Block.insert_op must be an int"),  # type: ignore[arg-type]
    (lambda: block()._remove_op("a"), "index of Block.remove_op must be an int"),  # type: ignore[arg-type]
    (lambda: block()._prepend_op(["x"]), "type of Block.prepend_op must be a text"),  # type: ignore[arg-type]
    (lambda: fluid.Program()._copy_param_info_from(None), "must be a Program"),  # type: ignore[arg-type]
    (lambda: block().set_forward_block_idx(True), "must be the index of a block"),
    (lambda: block().set_forward_block_idx(2**40), "must be the index of a block"),
    (lambda: block().desc.append_op("relu"), "A block holds descriptions of operations"),  # type: ignore[arg-type]
    (lambda: block().desc.insert_op("a"), "Block 0 has no place 'a'"),  # type: ignore[arg-type]
    (lambda: block().desc.op("a"), "Block 0 has no operation 'a'"),  # type: ignore[arg-type]
    (lambda: block().desc.add_var("x"), "A block declares variables by descriptions"),  # type: ignore[arg-type]
    (lambda: block().ops[0].desc.attr(None), 'There is no attribute "None"'),  # type: ignore[arg-type]
    (lambda: block().ops[0].desc.input(None), 'There is no input slot "None"'),  # type: ignore[arg-type]
    (lambda: block().ops[0].desc.set_input("X", 3), 'Slot "X" holds names'),  # type: ignore[arg-type]
    (lambda: fluid.Program().desc.append_block(None), "A block is inside another one"),  # type: ignore[arg-type]
]


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    with fluid.fresh():
        yield


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


@pytest.mark.parametrize(
    ("variable", "text", "places"),
    [
        ("CPU_NUM", "two", fluid.cpu_places), ("CPU_NUM", "0", fluid.cpu_places),
        ("FLAGS_selected_gpus", "x", fluid.cuda_places),
    ],
)  # fmt: skip
def test_environment_variables_that_are_no_numbers(
    monkeypatch: pytest.MonkeyPatch, variable: str, text: str, places: Callable[[], Any]
) -> None:
    monkeypatch.setenv(variable, text)
    with pytest.raises(FluidError, match=f"{variable} cannot be '{text}'"):
        places()


@pytest.mark.parametrize("dtype", ["uint8", "float16"])
def test_the_area_of_whole_predictions(dtype: str) -> None:
    metric = fluid.metrics.Auc()
    metric.update(np.array([1, 0], dtype), np.array([[1], [0]]))
    assert metric.eval() == 1
