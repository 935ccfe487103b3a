"""Layers of boxes, priors, matching and YOLO: what each appends, its names, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.errors import OpTypeError, OpValueError
from fluidnb.op import RuleError
from fluidnb.testing import run_op
from tests.tools.refused import refused

layers = fluid.layers


@pytest.fixture(autouse=True)
def fresh():
    with fluid.fresh():
        yield


def last():
    return fluid.default_main_program().global_block().ops[-1]


def data(name, *shape, dtype="float32", lod=0, batch=True):
    return layers.data(name, list(shape), dtype=dtype, lod_level=lod, append_batch_size=batch)


def test_names_of_results():
    """A name is that of the result itself, as in Fluid; of a layer with two results, that of the layer."""
    x, y, codes = data("x", 4), data("y", 4), data("codes", 3, 4)
    assert layers.iou_similarity(x, y, name="iou").name == "iou"
    assert layers.box_coder(y, None, codes, "decode_center_size", name="boxes").name == "boxes"
    assert layers.polygon_box_transform(data("map", 8, 2, 2), name="corners").name == "corners"
    loss = layers.yolov3_loss(
        data("head", 21, 2, 2), data("gt", 5, 4), data("kind", 5, dtype="int32"), [10, 13, 16, 30, 33, 23], [0, 1, 2],
        2, 0.7, 32, name="loss",
    )  # fmt: skip
    assert loss.name == "loss" and not loss.stop_gradient
    assert all(v.name.startswith("match") for v in layers.bipartite_match(data("d", 5), name="match"))


def test_variances_as_variable_numbers_or_none():
    prior, spread, target = data("prior", 4), data("spread", 4), data("target", 4)
    layers.box_coder(prior, spread, target)
    assert last().input("PriorBoxVar") == ["spread"]
    layers.box_coder(prior, (0.1, 0.1, 0.2, 0.2), target)
    assert np.allclose(last().attr("variance"), [0.1, 0.1, 0.2, 0.2]) and "PriorBoxVar" not in last().input_names
    layers.box_coder(prior, None, target)
    assert not last().attr("variance") and "PriorBoxVar" not in last().input_names
    with pytest.raises(OpValueError, match="prior_box_var of box_coder must be 4 numbers"):
        layers.box_coder(prior, [0.1], target)
    with pytest.raises(OpTypeError, match="prior_box_var of box_coder must be a Variable, a list of numbers or None"):
        layers.box_coder(prior, 0.1, target)


def test_codes_along_the_other_axis():
    prior, codes = np.float32([[0, 0, 1, 1], [0, 0, 2, 2]]), np.random.default_rng(0).normal(0, 1, (2, 3, 4))
    out = layers.box_coder(data("p", 4), None, data("c", 3, 4), "decode_center_size", axis=1)
    feed = {"p": prior, "c": codes.astype("float32")}
    wanted = run_op("box_coder", {"PriorBox": prior, "TargetBox": feed["c"]},
                    {"code_type": "decode_center_size", "axis": 1})["OutputBox"]  # fmt: skip
    np.testing.assert_array_equal(fluid.Executor(fluid.CPUPlace()).run(feed=feed, fetch_list=[out])[0], wanted)


def test_sizes_as_numbers_and_lists():
    conv, image = data("conv", 8, 4, 4), data("image", 3, 32, 32)
    boxes, spread = layers.prior_box(conv, image, 4, 9, 2.0, flip=True, clip=True, steps=(8, 8.0))
    assert boxes.shape == spread.shape == (4, 4, 4, 4) and boxes.stop_gradient and spread.stop_gradient
    assert (last().attr("min_sizes"), last().attr("max_sizes"), last().attr("step_w")) == ([4.0], [9.0], 8.0)
    for none in (None, [], [0.0]):
        layers.prior_box(conv, image, [4.0], none)
        assert not last().attr("max_sizes")
    anchors, _ = layers.anchor_generator(conv, 32, 1.0, stride=[8, 8])
    assert anchors.shape == (4, 4, 1, 4) and anchors.stop_gradient
    dense, _ = layers.density_prior_box(conv, image, (2, 1), (4, 8), [1.0], flatten_to_2d=True)
    assert dense.shape == (80, 4) and last().attr("densities") == [2, 1]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda c, i: layers.prior_box(c, i, "4"), "min_sizes of prior_box must be a number"),
        (lambda c, i: layers.prior_box(c, i, [4.0], steps=[1.0]), "steps of prior_box must be 2 numbers"),
        (lambda c, i: layers.prior_box(c, i, [4.0], variance=[1.0]), "variance of prior_box must be 4 numbers"),
        (lambda c, i: layers.prior_box(c, i, [4.0], [3.0]), "must have a greater number for each"),
        (lambda c, i: layers.prior_box(c, 3, [4.0]), "image of prior_box must be a Variable"),
        (lambda c, i: layers.prior_box(3, i, [4.0]), "input of prior_box must be a Variable"),
        (lambda c, i: layers.density_prior_box(c, i), "densities of density_prior_box must be numbers"),
        (lambda c, i: layers.density_prior_box(c, i, [1.5], [4.0], [1.0]), "must be a list of ints or None"),
        (lambda c, i: layers.density_prior_box(c, i, [1, 2], [4.0], [1.0]), "a density for each of them"),
        (lambda c, i: layers.anchor_generator(c, [32.0], [1.0]), "stride of anchor_generator must be numbers"),
        (lambda c, i: layers.anchor_generator(c, None, [1.0], stride=[8, 8]), "anchor_sizes of anchor_generator"),
        (lambda c, i: layers.yolo_box(c, 3, [4, 4], 2, 0.1, 32), "img_size of yolo_box must be a Variable"),
        (lambda c, i: layers.yolo_box(c, i, 4, 2, 0.1, 32), "anchors of yolo_box must be a list of ints"),
        (lambda c, i: layers.yolo_box(c, i, [4.5, 4], 2, 0.1, 32), "anchors of yolo_box must be a list of ints"),
        (lambda c, i: layers.yolov3_loss(c, i, None, [4, 4], [0], 2, 0.7, 32), "gt_label of yolov3_loss must be a"),
        (lambda c, i: layers.target_assign(c, None), "matched_indices of target_assign must be a Variable"),
        (lambda c, i: layers.bipartite_match(3), "dist_matrix of bipartite_match must be a Variable"),
        (lambda c, i: layers.bipartite_match(c, "nearest"), "match_type"),
        (lambda c, i: layers.multiclass_nms(c, [1.0], 0.1, 1, 1), "scores of multiclass_nms must be a Variable"),
        (lambda c, i: layers.box_clip(c, None), "im_info of box_clip must be a Variable"),
        (lambda c, i: layers.detection_map(c, None, 2), "label of detection_map must be a Variable"),
        (lambda c, i: layers.detection_map(c, i, None), "class_num"),
    ],
)
def test_what_is_refused(call, message):
    conv, image = data("conv", 8, 4, 4), data("image", 3, 32, 32)
    block = fluid.default_main_program().global_block()
    names = list(block.vars)
    with refused((OpTypeError, OpValueError, RuleError), message):
        call(conv, image)
    assert block.ops == [] and list(block.vars) == names


def test_yolo_learns_an_object():
    """The box that YOLO draws goes to the object."""
    head = layers.create_parameter([1, 7, 2, 2], "float32", name="head")
    gt = np.float32([[[0.3, 0.3, 0.4, 0.3]]])
    loss = layers.yolov3_loss(
        head, data("gt", 1, 4), data("kind", 1, dtype="int32"), [26, 19], [0], 2, 0.7, 32, use_label_smooth=False
    )
    boxes, scores = layers.yolo_box(head, data("size", 2, dtype="int32"), [26, 19], 2, 0.01, 32)
    test = fluid.default_main_program().clone(for_test=True)
    fluid.optimizer.Adam(0.05).minimize(layers.reduce_sum(loss))
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    feed = {"gt": gt, "kind": np.int32([[1]]), "size": np.int32([[64, 64]])}
    for _ in range(400):
        exe.run(feed=feed)
    box, score = exe.run(test, feed=feed, fetch_list=[boxes, scores])
    best = score[0].max(1).argmax()
    np.testing.assert_allclose(box[0, best], np.array([0.1, 0.15, 0.5, 0.45]) * 64, atol=0.7)
    assert score[0, best].argmax() == 1 and score[0, best, 1] > 0.9
