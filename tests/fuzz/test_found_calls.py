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
from fluidnb_kernels.tensor import gather_scatter

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


def scaled_by_lars(factors: Any) -> Any:
    w = layers.create_parameter([2], "float32", name="w")
    pairs = fluid.optimizer.SGD(0.1).backward(layers.mean(w))
    w.optimize_attr = factors
    return layers.append_LARS(pairs, 0.1, 0.1)


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


def result_of_a_large_number() -> Any:
    choice = layers.IfElse(data("c", [1], dtype="bool"))
    with choice.true_block():
        choice.set_output(True, 2**62, choice.input(data("x", [1])))


def large_interpolation() -> Any:
    sizes = [1, 1, 10**6, 10**6]
    return layers.create_parameter(sizes, "float32", default_initializer=fluid.initializer.Bilinear())


CALLS: list[tuple[Callable[[], Any], str]] = [
    (interpreter_by_name, "The interpreter of a run must be a class"),
    (numbers_that_are_no_tensor, r"Input\(Ids\) of multiplex must be a tensor"),
    (regions_that_are_no_tensor, r"Input\(ROIs\) of roi_perspective_transform must be a tensor"),
    (two_billion_trainers, "too many trainers"),
    (lambda: PipeReader("echo one line", bufsize=-5), "reads at least one byte"),
    (infinite_scale, "needs a height and a width"),
    (lambda: firstn(lambda: range(9), -1), "n of firstn must be an int from 0 on"),
    (result_of_a_large_number, "must be an int up to 100,000"),
    (lambda: layers.unstack(data("x", [150_000], append_batch_size=False)), "too long along axis 0"),
    (large_interpolation, "The size of input is too big"),
    (lambda: layers.autoincreased_step_counter("mine", step=2**24 + 1), "The step of a counter is a 32-bit float"),
    (lambda: layers.noam_decay(512, 1e-300), "warmup_steps of a schedule is too small"),
    (lambda: layers.fill_constant([1], "int32", 2**40), "int32 has no number 1099511627776"),
    (lambda: layers.fill_constant([1], "int64", float("inf")), "int64 has no number inf"),
    (lambda: layers.fill_constant([1], "uint8", 300), "uint8 has no number 300"),
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
    (lambda: loaded("a"), "The value for learning_rate_0 is no array of numbers"),
    (lambda: loaded([[1], [2, 3]]), "The value for learning_rate_0 is no array of numbers"),
    (lambda: loaded(1 + 2j), "The value for learning_rate_0 is no array of numbers"),
    (lambda: trained_with({"lr": 1.0}), "The factor of the learning rate of w must be a number or a Variable"),
    (lambda: trained_with({"learning_rate": None}), "The factor of the learning rate of w must be a number"),
    *((lambda factors=factors: scaled_by_lars(factors), "The factor of the learning rate of w must be a number")
      for factors in ({}, {"lr": 1.0}, {"learning_rate": "a"}, None, [])),
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


def scalar() -> Any:
    return fluid.default_main_program().global_block().create_var(name="s", shape=[], dtype="float32")


def label(lod_level: int = 0) -> Any:
    return data("l", [1], dtype="int64", lod_level=lod_level)


def attention(*shape: int) -> Any:
    queries, keys, values = (data(name, list(shape), append_batch_size=False) for name in "qkv")
    return fluid.nets.scaled_dot_product_attention(queries, keys, values)


def drawn_by(chances: Any) -> Any:
    return layers.nce(data("x", [3]), label(), 2, sampler="custom_dist", custom_dist=chances)


def a_list_in_itself() -> list[Any]:
    found: list[Any] = []
    found.append(found)
    return found


def mean_precision(**states: Any) -> Any:
    return layers.detection_map(data("d", [6], lod_level=1), data("g", [5], lod_level=1), 2, **states)


def initialized_by(value: Any) -> Any:
    attr = fluid.ParamAttr(name="w")
    attr.initializer = value
    return layers.fc(data("x", [3]), 2, param_attr=attr)


def normalized_along(dim: Any) -> Any:
    attr = fluid.WeightNormParamAttr(dim=1, name="w")
    attr.dim = dim
    return layers.fc(data("x", [3]), 2, param_attr=attr)


def own_initializer(found: Any) -> Any:
    class Own(fluid.initializer.Initializer):
        def operator(self, shape: Any, dtype: Any = "float32") -> Any:
            return found

    return layers.create_parameter([1], "float32", default_initializer=Own())


def infinite_ratio() -> Any:
    return layers.prior_box(data("f", [3, 8, 8]), data("im", [3, 64, 64]), [4.0], aspect_ratios=[float("inf")])


def anchors_without_sizes() -> Any:
    return layers.anchor_generator(data("x", [3, 4, 4]), anchor_sizes=[], aspect_ratios=[1.0], stride=[16.0, 16.0])


def no_true_class() -> Any:
    labels = data("l", [-1, -1], dtype="int64", append_batch_size=False)
    return layers.sampled_softmax_with_cross_entropy(data("a", [10]), labels, 5, num_true=0)


def array_of_texts() -> Any:
    value = fluid.initializer.NumpyArrayInitializer(np.array(["a"]))
    return layers.create_parameter([1], "float32", default_initializer=value)


def slope_in_itself() -> Any:
    return layers.fc(data("x", [3]), 2, act={"type": "leaky_relu", "alpha": a_list_in_itself()})


def fetched_on_places(fetch_list: Any) -> Any:
    loss = layers.mean(data("x", [2]))
    compiled = fluid.CompiledProgram(fluid.default_main_program())
    compiled = compiled.with_data_parallel(loss_name=loss.name, places=fluid.cpu_places(2))
    return fluid.Executor().run(compiled, feed={"x": np.ones((2, 2), "float32")}, fetch_list=fetch_list)


CALLS += [
    (lambda: fetched_on_places(np.ones((2, 2), "int64")), r"Wrong type for fetch_list\[0\]"),
    (lambda: layers.spectral_norm(data("w", [0, 3], append_batch_size=False)), "spectral_norm needs a weight of known"),
    (lambda: attention(2, 4, 0), "hidden size of queries and keys should be known"),
    (lambda: attention(-1, 4, -1), "hidden size of queries and keys should be known"),
    (no_true_class, "A row has at least one true class"),
    (lambda: layers.conv2d_transpose(data("i", [3, 8, 8]), 2, output_size=16, dilation=0), "dilation of conv2d_transp"),
    (infinite_ratio, "aspect_ratios must be finite"),
    (anchors_without_sizes, "at least one size and one ratio"),
    *((lambda given=given: drawn_by(given), "custom_dist of nce is a list of numbers")  # type: ignore[misc]
      for given in (["a", "b"], [[1], [1, 2]], {"a": 1}, [10**400, 1], a_list_in_itself())),
    (lambda: mean_precision(input_states=[]), "input_states of detection_map are three variables"),
    (lambda: mean_precision(out_states=[data("q", [1])]), "out_states of detection_map are three variables"),
    (array_of_texts, "elements that are no numbers of float32"),
    (slope_in_itself, 'Attribute "alpha" cannot hold this value'),
    (lambda: layers.dice_loss(scalar(), label()), "dice_loss takes a probability for each class"),
    (lambda: layers.linear_chain_crf(scalar(), label(1)), "needs to know the number of tags"),
    (lambda: layers.lstm(scalar(), data("h", [4, 3]), data("c", [4, 3]), 5, 3, 1), "lstm takes sequences of one"),
    (lambda: initialized_by("xavier"), "An initializer is wanted here"),
    (lambda: initialized_by(np.zeros((3, 2))), "An initializer is wanted here"),
    (lambda: normalized_along(1.5), "dim of a WeightNormParamAttr is an axis"),
    (lambda: normalized_along("a"), "dim of a WeightNormParamAttr is an axis"),
    (lambda: own_initializer("fill_constant"), "of Own returned something else"),
    (lambda: own_initializer(None), "of Own returned something else"),
    (lambda: own_initializer(("fill_constant", None)), "of Own returned something else"),
    (lambda: layers.fc(data("x", [3]), 3, param_attr="@EMPTY@", bias_attr=False), "@EMPTY@ is no name of a variable"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "message"), CALLS, ids=[f"{i} {message}" for i, (_, message) in enumerate(CALLS)])
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


EMPTY_BATCHES: dict[str, Callable[[], Any]] = {
    "lrn": lambda: layers.lrn(data("x", [3, 8, 8])),
    "conv2d_transpose": lambda: layers.conv2d_transpose(data("x", [3, 8, 8]), 2, filter_size=4, stride=2, padding=1),
    "lstm_unit": lambda: layers.lstm_unit(data("x", [4]), data("h", [3]), data("c", [3]))[0],
    "multiclass_nms": lambda: layers.multiclass_nms(data("x", [5, 4]), data("s", [2, 5]), 0.1, 10, 5),
    "yolo_box": lambda: layers.yolo_box(
        data("x", [14, 2, 2]), data("s", [2], dtype="int32"), [1, 2, 3, 4], 2, 0.1, 32
    )[0],
    "affine_grid": lambda: layers.affine_grid(data("x", [2, 3]), [2, 3, 4, 4]),
    "fsp": lambda: layers.fsp_matrix(data("x", [2, 3, 3]), data("y", [4, 3, 3])),
}  # fmt: skip


@pytest.mark.parametrize("name", EMPTY_BATCHES)
def test_a_batch_without_rows(name: str) -> None:
    out = EMPTY_BATCHES[name]()
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    inputs = [v for v in fluid.default_main_program().global_block().vars.values() if v.is_data]
    feed = {v.name: np.zeros((0, *v.shape[1:]), "int32" if "INT" in v.dtype.name else "float32") for v in inputs}
    (value,) = exe.run(feed=feed, fetch_list=[out], return_numpy=False)
    assert np.array(value).shape == ((1, 1) if name == "multiclass_nms" else (0, *out.shape[1:]))


def test_a_generated_name_is_none_that_a_variable_has() -> None:
    with fluid.fresh():
        x = data("x", [3])
        layers.fc(x, 3, bias_attr=False, param_attr="fc_1.tmp_0")
        assert layers.fc(x, 3, bias_attr=False).name == "fc_1.tmp_1"
        x.block.create_var(name="scale.tmp_0", shape=[-1, 3], dtype="float32")
        x.block.create_var(name="slice.tmp_0", shape=[3], dtype="float32")
        assert ((x + 1).name, x[0].name) == ("scale.tmp_1", "slice.tmp_1")


def side_of_a_choice() -> Any:
    return layers.IfElse(data("c", [1], dtype="bool")).true_block()


def step_of_a_network() -> Any:
    return layers.StaticRNN().step()


def step_of_sequences() -> Any:
    return layers.DynamicRNN().block()


def block_of_a_loop() -> Any:
    return layers.While(data("c", [1], dtype="bool", append_batch_size=False)).block()


@pytest.mark.parametrize("make", [side_of_a_choice, step_of_a_network, step_of_sequences, block_of_a_loop])
def test_a_block_entered_inside_itself_leaves_the_program_as_it_was(make: Callable[[], Any]) -> None:
    guard, program = make(), fluid.default_main_program()
    before = program.desc.serialize_to_string()
    with pytest.raises(FluidError), guard, guard:
        pass
    assert program.desc.serialize_to_string() == before and program.current_block_idx == 0


def test_a_block_is_filled_once() -> None:
    holds = data("c", [1], dtype="bool", append_batch_size=False)
    guard = layers.ConditionalBlock([holds], is_scalar_condition=True).block()
    with guard:
        layers.fill_constant([1], "float32", 1.0)
    blocks = fluid.default_main_program().num_blocks
    with pytest.raises(FluidError, match="A block is filled once"), guard:
        pass
    assert fluid.default_main_program().num_blocks == blocks


def test_both_sides_made_before_either_is_filled() -> None:
    x, choice = data("x", [1]), layers.IfElse(data("c", [1], dtype="bool"))
    true, false = choice.true_block(), choice.false_block()
    with pytest.raises(FluidError, match="inside a block"), true, false:
        pass
    for side in (true, false):
        with side:
            choice.output(choice.input(x))
    assert len(choice()) == 1


def test_a_label_that_is_refused_keeps_its_gradient() -> None:
    label = data("x", [3], stop_gradient=False)
    with pytest.raises(FluidError, match="flot32"):
        layers.label_smooth(label, dtype="flot32")
    assert not label.stop_gradient and layers.label_smooth(label) is not None and label.stop_gradient


def test_a_region_far_beyond_its_image_takes_little_memory() -> None:
    rois = fluid.create_lod_tensor(np.array([[0, 0, 1e12, 1]], "float64"), [[1]], fluid.CPUPlace())
    x, r = data("x", [1, 4, 4], dtype="float64"), data("r", [4], dtype="float64", lod_level=1)
    feed = {"x": np.ones((1, 1, 4, 4)), "r": rois}
    (out,) = fluid.Executor().run(feed=feed, fetch_list=[layers.roi_align(x, r, 1, 1, 1.0)])
    assert out.item() == pytest.approx(4e-12, rel=0.01)


def row_that_is_not_there() -> Any:
    return layers.gather(data("x", [3]), layers.fill_constant([1], "int64", 5))


def negative_power() -> Any:
    return layers.fill_constant([2], "int64", 3) ** -1


def none_of_the_largest() -> Any:
    return layers.topk(data("x", [3]), layers.fill_constant([1], "int32", 0))[0]


def result_that_nothing_takes() -> Any:
    x = data("x", [3])
    layers.py_func(lambda t: np.array(t), x, None)
    return x


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (row_that_is_not_there, "gather reads an element that does not exist"),
        (negative_power, "elementwise_pow cannot compute negative powers of integers"),
        (none_of_the_largest, "top_k finds at least one element"),
        (result_that_nothing_takes, "must return a value for each output"),
    ],
)
def test_a_run_says_what_is_wrong(make: Callable[[], Any], message: str) -> None:
    out = make()
    feed = {name: np.zeros((2, 3), "float32") for name in ("x",) if out.block.has_var(name)}
    with pytest.raises(FluidError, match=message):
        fluid.Executor().run(feed=feed, fetch_list=[out])


@pytest.mark.parametrize(("index", "axis"), [([0, 5], 0), ([-3], 0), ([0, 1, 3], 1)])
def test_an_index_is_found_in_the_operands(index: list[int], axis: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def copy_row(*args: Any) -> None:
        raise IndexError("in other words than numpy's")

    monkeypatch.setattr(gather_scatter, "copy_row", copy_row)
    x, i = data("x", [2, 3], append_batch_size=False), data("i", [-1], dtype="int64", append_batch_size=False)
    block = fluid.default_main_program().global_block()
    block.append_op("gather", {"X": x, "Index": i}, {"Out": block.create_var(name="out")}, {"axis": axis})
    with pytest.raises(FluidError, match=rf"does not exist(.|\n)*0 to {axis + 1}(.|\n)*received: +{index[-1]}\n"):
        fluid.Executor().run(feed={"x": np.zeros((2, 3), "float32"), "i": np.array(index)}, fetch_list=["out"])
