"""Layers of networks that propose regions: programs that train, and what is refused."""

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.errors import OpTypeError, OpValueError
from fluidnb.runtime import Executor, Scope

L = fluid.layers
SIZE, CLASSES = 32, 3


@pytest.fixture(autouse=True)
def fresh():
    with fluid.fresh():
        yield


def detector(use_random):
    """A network like Faster R-CNN: proposes regions of an image, and classifies them."""
    image, info = L.data("image", [1, SIZE, SIZE]), L.data("info", [3])
    boxes = L.data("boxes", [4], lod_level=1)
    classes, crowd = (L.data(n, [1], dtype="int32", lod_level=1) for n in ("classes", "crowd"))
    body = L.conv2d(image, 8, 3, stride=2, padding=1, act="relu")
    body = L.conv2d(body, 8, 3, stride=4, padding=1, act="relu")
    anchors, spread = L.anchor_generator(body, [10.0, 16.0], [1.0], [1.0] * 4, [8.0, 8.0])
    head = L.conv2d(body, 8, 3, padding=1, act="relu")
    scores, deltas = L.conv2d(head, 2, 1), L.conv2d(head, 8, 1)
    found = L.rpn_target_assign(
        L.reshape(L.transpose(deltas, [0, 2, 3, 1]), [0, -1, 4]),
        L.reshape(L.transpose(scores, [0, 2, 3, 1]), [0, -1, 1]),
        L.reshape(anchors, [-1, 4]), L.reshape(spread, [-1, 4]), boxes, crowd, info, rpn_batch_size_per_im=16,
        rpn_straddle_thresh=4.0, use_random=use_random,
    )  # fmt: skip
    logits, codes, labels, targets, weights = found
    first = L.mean(L.sigmoid_cross_entropy_with_logits(logits, L.cast(labels, "float32")))
    second = L.mean(L.smooth_l1(codes, targets, weights, weights, sigma=3.0))
    rois, _ = L.generate_proposals(L.sigmoid(scores), deltas, info, anchors, spread, 30, 10, 0.7, 2.0)
    rois, labels, targets, inside, outside = L.generate_proposal_labels(
        rois, classes, crowd, boxes, info, batch_size_per_im=12, fg_fraction=0.5, fg_thresh=0.5, class_nums=CLASSES,
        use_random=use_random,
    )  # fmt: skip
    parts = L.fc(L.roi_align(body, rois, 3, 3, 1 / 8, 2), 16, act="relu")
    third = L.mean(L.softmax_with_cross_entropy(L.fc(parts, CLASSES), L.cast(labels, "int64")))
    fourth = L.mean(L.smooth_l1(L.fc(parts, 4 * CLASSES), targets, inside, outside))
    loss = L.sums([first, second, third, fourth])
    fluid.optimizer.Adam(0.01).minimize(loss)
    return loss, rois


def batch(rng):
    """Two images with a bright and a dark square each."""
    images, boxes = rng.normal(0, 0.1, (2, 1, SIZE, SIZE)), []
    for image in images:
        for k, (x, y) in enumerate(((3, 4), (16, 15))):
            x, y, size = x + rng.integers(0, 3), y + rng.integers(0, 3), 11
            image[0, y : y + size, x : x + size] += 1 - 2 * k
            boxes.append([x, y, x + size - 1, y + size - 1])
    level = ((0, 2, 4),)
    return {
        "image": images.astype("float32"), "info": np.array([[SIZE, SIZE, 1]] * 2, "float32"),
        "boxes": fluid.LoDTensor(np.array(boxes, "float32"), level),
        "classes": fluid.LoDTensor(np.array([[1], [2], [1], [2]], "int32"), level),
        "crowd": fluid.LoDTensor(np.zeros((4, 1), "int32"), level),
    }  # fmt: skip


@pytest.mark.parametrize("use_random", [True, False])
def test_a_network_that_proposes_and_classifies_regions_learns(use_random):
    main, startup = fluid.default_main_program(), fluid.default_startup_program()
    main.random_seed = startup.random_seed = 7
    loss, rois = detector(use_random)
    exe, scope, rng = Executor(), Scope(), np.random.default_rng(1)
    exe.run(startup, scope=scope)
    losses = []
    for _ in range(60):
        value, regions = exe.run(feed=batch(rng), fetch_list=[loss, rois], scope=scope, return_numpy=False)
        losses.append(float(np.asarray(value).item()))
        assert len(regions.lod()[0]) == 3
    assert np.mean(losses[-5:]) < 0.5 * np.mean(losses[:3])


def test_runs_that_step_draw_the_same_regions():
    fluid.default_main_program().random_seed = fluid.default_startup_program().random_seed = 3
    loss, rois = detector(True)
    found = []
    for keep in (False, True):
        exe, scope, rng = Executor(), Scope(), np.random.default_rng(2)
        exe.run(fluid.default_startup_program(), scope=scope)
        found.append([
            [np.asarray(v) for v in exe.run(feed=batch(rng), fetch_list=[loss, rois], scope=scope, keep_scopes=keep,
                                            return_numpy=False)]
            for _ in range(3)
        ])  # fmt: skip
    for (a, b), (c, d) in zip(*found, strict=True):
        np.testing.assert_array_equal(a, c)
        np.testing.assert_array_equal(b, d)


def test_regions_go_through_the_levels_of_a_pyramid_and_back():
    rois = L.data("rois", [4], lod_level=1)
    levels, restore = L.distribute_fpn_proposals(rois, 2, 4, 3, 10)
    back = L.gather(L.concat(levels), L.reshape(restore, [-1]))
    values = np.array([[0, 0, 30, 30], [0, 0, 3, 3], [0, 0, 11, 11], [1, 1, 4, 5]], "float32")
    fed = {"rois": fluid.LoDTensor(values, ((0, 1, 4),))}
    out, low = Executor().run(feed=fed, fetch_list=[back, levels[0]], return_numpy=False)
    np.testing.assert_array_equal(np.asarray(out), values)
    assert low.lod() == [[0, 0, 2]]


def test_regions_of_images_train_what_is_below_them():
    x, rois, quads = L.data("x", [8, 6, 6]), L.data("rois", [4], lod_level=1), L.data("quads", [8], lod_level=1)
    x.stop_gradient = False
    out = [L.roi_pool(x, rois, 2, 2), L.roi_align(x, rois, 2, 2), L.psroi_pool(x, rois, 2, 1.0, 2, 2),
           L.roi_perspective_transform(x, quads, 2, 3)]  # fmt: skip
    [dx] = fluid.gradients(L.sums([L.reduce_sum(v) for v in out]), x)
    given = {
        "x": np.random.default_rng(0).normal(size=(1, 8, 6, 6)).astype("float32"),
        "rois": fluid.LoDTensor(np.array([[0, 0, 3, 3]], "float32"), ((0, 1),)),
        "quads": fluid.LoDTensor(np.array([[0, 0, 4, 0, 4, 3, 0, 3]], "float32"), ((0, 1),)),
    }
    [slope] = Executor().run(feed=given, fetch_list=[dx])
    # the shares of each element of a result add up to 1; the third column of the last is beyond its narrow region
    assert slope.sum() == pytest.approx(8 * 4 + 8 * 4 + 2 * 4 + 8 * 4, rel=1e-5)


def test_the_mean_of_parts_that_a_variable_of_a_known_shape_takes_has_a_gradient():
    x, rois = L.data("x", [12, 4, 4], append_batch_size=True), L.data("rois", [4], lod_level=1)
    x.stop_gradient = False
    block = fluid.default_main_program().global_block()
    out = block.create_var(name="out", shape=[1, 3, 2, 2], dtype="float32")
    attrs = {"output_channels": 3, "pooled_height": 2, "pooled_width": 2}
    block.append_op(type="psroi_pool", inputs={"X": [x], "ROIs": [rois]}, outputs={"Out": [out]}, attrs=attrs)
    [dx] = fluid.gradients(L.mean(out), x)
    given = {"x": np.ones((1, 12, 4, 4), "float32"), "rois": fluid.LoDTensor(np.ones((1, 4), "float32"), ((0, 1),))}
    for _ in range(2):
        value, slope = Executor().run(feed=given, fetch_list=[out, dx])
        assert value.shape == (1, 3, 2, 2) and slope.sum() == pytest.approx(1.0)


def test_what_is_refused():
    x = L.data("x", [4], lod_level=1)
    with pytest.raises(OpValueError, match="needs class_nums"):
        L.generate_proposal_labels(x, x, x, x, x)
    with pytest.raises(OpValueError, match="a variable for each level"):
        L.collect_fpn_proposals([x], [x], 2, 4, 10)
    with pytest.raises(OpTypeError, match="must be a Variable"):
        L.generate_proposals(1, x, x, x, x)


def test_regions_that_are_no_tensor_are_refused():
    images, regions = L.data("images", [8, 32, 32]), L.data("regions", [4], lod_level=1, type=1)
    with pytest.raises(OpValueError, match=r"Input\(ROIs\) of roi_pool must be a tensor\."):
        L.roi_pool(images, regions, 7, 7, 0.25)
