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


def result_of_a_large_number() -> Any:
    choice = layers.IfElse(data("c", [1], dtype="bool"))
    with choice.true_block():
        choice.set_output(True, 2**62, choice.input(data("x", [1])))


def large_interpolation() -> Any:
    return layers.create_parameter(
        [1, 1, 10**6, 10**6], "float32", default_initializer=fluid.initializer.Bilinear()
    )  # fmt: skip


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
]


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


CALLS += [
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
