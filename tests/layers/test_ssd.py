"""Layers of SSD: its heads, its loss beside a loss in numpy, its detections, and a detector that learns."""

from __future__ import annotations

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.errors import OpTypeError, OpValueError
from fluidnb.op import RuleError
from tests.layers.walkers import both
from tests.ops import boxes as plain
from tests.tools.refused import refused

layers = fluid.layers


@pytest.fixture(autouse=True)
def fresh():
    with fluid.fresh():
        yield


def boxes(count, seed):
    rng = np.random.default_rng(seed)
    corner = rng.uniform(0, 0.6, (count, 2))
    return np.concatenate([corner, corner + rng.uniform(0.15, 0.4, (count, 2))], 1).astype("float32")


PRIORS, CLASSES, LENGTHS = 12, 4, [2, 1, 3]
RNG = np.random.default_rng(7)
PRIOR = boxes(PRIORS, 0)
SPREAD = np.tile(np.float32([0.1, 0.1, 0.2, 0.2]), (PRIORS, 1))
OBJECTS = PRIOR[[0, 3, 5, 1, 8, 11]] + RNG.uniform(-0.04, 0.04, (6, 4)).astype("float32")
LABELS = np.int32([[1], [2], [3], [1], [2], [3]])
LOC, CONF = (RNG.normal(0, 1, (3, PRIORS, n)).astype("float32") for n in (4, CLASSES))


def lod(array):
    return fluid.create_lod_tensor(array, [LENGTHS], fluid.CPUPlace())


FEED = {"loc": LOC, "conf": CONF, "box": lod(OBJECTS), "label": lod(LABELS), "prior": PRIOR, "spread": SPREAD}


def inputs(dtype="int32"):
    loc, conf = layers.data("loc", [PRIORS, 4]), layers.data("conf", [PRIORS, CLASSES])
    box, label = layers.data("box", [4], lod_level=1), layers.data("label", [1], dtype=dtype, lod_level=1)
    prior, spread = (layers.data(n, [PRIORS, 4], append_batch_size=False) for n in ("prior", "spread"))
    for v in (loc, conf):
        v.stop_gradient = False
    return loc, conf, box, label, prior, spread


def matched(dist, limit):
    """The object of each prior: the closest pair first, then the closest of those that are left."""
    dist, index = dist.copy(), np.full(dist.shape[1], -1)
    whole = dist.copy()
    for _ in range(len(dist)):
        i, j = np.unravel_index(dist.argmax(), dist.shape)
        if dist[i, j] > 1e-6:
            index[j], dist[i], dist[:, j] = i, -1, -1
    for j in np.flatnonzero(index < 0) if limit else ():
        if whole[:, j].max() >= limit:
            index[j] = whole[:, j].argmax()
    return index, np.where(index < 0, 0, whole[index, np.arange(len(index))])


def code(box, prior, spread):
    size, wide = prior[2:] - prior[:2], box[2:] - box[:2]
    move = ((box[:2] + box[2:]) - (prior[:2] + prior[2:])) / 2 / size
    return np.concatenate([move, np.log(wide / size)]) / spread


def expected(spread=SPREAD, background=0, limit=0.5, ratio=3.0, near=0.5, loc=1.0, conf=1.0, normalize=True):
    """The loss of each image, and its derivatives with respect to codes and scores, prior by prior."""
    losses, d_loc, d_conf, matches = np.zeros(3), np.zeros(LOC.shape), np.zeros(CONF.shape), 0
    scores = np.exp(CONF - CONF.max(-1, keepdims=True))
    scores /= scores.sum(-1, keepdims=True)
    for n, (objects, labels) in enumerate(zip(*(np.split(v, [2, 3]) for v in (OBJECTS, LABELS[:, 0])), strict=True)):
        dist = np.array([[plain.overlap(a, b) for b in PRIOR] for a in objects])
        index, closest = matched(dist, limit)
        first = np.where(index < 0, background, labels[index])
        hard = -np.log(scores[n, np.arange(PRIORS), first])
        free = [j for j in np.argsort(-hard, kind="stable") if index[j] < 0 and closest[j] < near]
        negatives = free[: int((index >= 0).sum() * ratio)]
        for j in range(PRIORS):
            kind = labels[index[j]] if index[j] >= 0 else background
            if index[j] >= 0 or j in negatives:
                losses[n] -= conf * np.log(scores[n, j, kind])
                d_conf[n, j] = conf * (scores[n, j] - np.eye(CLASSES)[kind])
            if index[j] >= 0:
                matches += 1
                off = LOC[n, j] - code(objects[index[j]], PRIOR[j], 1.0 if spread is None else spread[j])
                losses[n] += loc * np.where(abs(off) < 1, off**2 / 2, abs(off) - 0.5).sum()
                d_loc[n, j] = loc * np.clip(off, -1, 1)
    scale = matches if normalize else 1
    return losses[:, None] / scale, d_loc / scale, d_conf / scale


@pytest.mark.parametrize(
    ("arguments", "same"),
    [
        ({}, {}),
        ({"match_type": "bipartite"}, {"limit": None}),
        ({"overlap_threshold": 0.3, "neg_overlap": 0.1}, {"limit": 0.3, "near": 0.1}),
        ({"neg_pos_ratio": 1.0, "background_label": 0}, {"ratio": 1.0}),
        ({"loc_loss_weight": 0.25, "conf_loss_weight": 2.0}, {"loc": 0.25, "conf": 2.0}),
        ({"normalize": False}, {"normalize": False}),
        ({"prior_box_var": None}, {"spread": None}),
        ({"prior_box_var": [0.1, 0.1, 0.2, 0.2]}, {}),
    ],
    ids=lambda case: ",".join(case) or "default",
)
def test_the_loss_and_its_gradient(arguments, same):
    loc, conf, box, label, prior, spread = inputs()
    loss = layers.ssd_loss(loc, conf, box, label, prior, **{"prior_box_var": spread, **arguments})
    assert loss.shape == (-1, 1)
    gradients = fluid.gradients(layers.reduce_sum(loss), [loc, conf])
    for value, wanted in zip(both([loss, *gradients], **FEED), expected(**same), strict=True):
        np.testing.assert_allclose(value, wanted, 2e-4, 2e-5)


def test_labels_may_be_int64():
    loc, conf, box, label, prior, spread = inputs("int64")
    loss = layers.ssd_loss(loc, conf, box, label, prior, spread)
    np.testing.assert_allclose(both([loss], **{**FEED, "label": lod(LABELS.astype("int64"))})[0], expected()[0], 2e-4)


def test_what_a_loss_refuses():
    loc, conf, box, label, prior, spread = inputs()
    block = fluid.default_main_program().global_block()
    variables = list(block.vars)
    with pytest.raises(OpValueError, match="Only support mining_type == max_negative"):
        layers.ssd_loss(loc, conf, box, label, prior, spread, mining_type="hard_example")
    with pytest.raises(OpValueError, match="match_type"):
        layers.ssd_loss(loc, conf, box, label, prior, spread, match_type="nearest")
    with pytest.raises(OpValueError, match="confidence of ssd_loss has the wrong number of dimensions"):
        layers.ssd_loss(loc, prior, box, label, prior, spread)
    with pytest.raises(OpValueError, match="prior_box of ssd_loss has the wrong number of dimensions"):
        layers.ssd_loss(loc, conf, box, label, loc, spread)
    with pytest.raises(OpTypeError, match="confidence of ssd_loss must be a Variable"):
        layers.ssd_loss(loc, CONF, box, label, prior, spread)
    with pytest.raises(OpTypeError, match="prior_box of ssd_loss must be a Variable"):
        layers.ssd_loss(loc, conf, box, label, PRIOR, spread)
    with pytest.raises(OpTypeError, match="prior_box_var of ssd_loss must be a Variable, a list of numbers or None"):
        layers.ssd_loss(loc, conf, box, label, prior, "0.1")
    assert block.ops == [] and list(block.vars) == variables


def decoded(codes):
    size, middle = PRIOR[:, 2:] - PRIOR[:, :2], (PRIOR[:, 2:] + PRIOR[:, :2]) / 2
    codes = codes * SPREAD
    middle, half = codes[:, :2] * size + middle, np.exp(codes[:, 2:]) * size / 2
    return np.concatenate([middle - half, middle + half], 1)


@pytest.mark.parametrize("background", [0, 2])
def test_detections(background):
    loc, conf, _, _, prior, spread = inputs()
    found = layers.detection_output(
        loc, conf, prior, spread, background_label=background, nms_threshold=0.4, score_threshold=0.2
    )
    assert found.stop_gradient
    [out] = both([found], return_numpy=False, **{n: FEED[n] for n in ("loc", "conf", "prior", "spread")})
    scores = np.exp(CONF) / np.exp(CONF).sum(-1, keepdims=True)
    rows = [plain.suppressed(decoded(LOC[n]), scores[n].T, 0.4, 0.2, background) for n in range(3)]
    assert out.recursive_sequence_lengths() == [list(map(len, rows))]
    np.testing.assert_allclose(np.array(out), np.concatenate(rows), 1e-4, 1e-5)


def maps(*sizes):
    return [layers.data(f"map{i}", [3, n, n]) for i, n in enumerate(sizes)]


def test_heads_by_ratios():
    image = layers.data("image", [3, 64, 64])
    loc, conf, prior, spread = layers.multi_box_head(
        maps(8, 4, 2), image, 64, 5, [[2.0], [2.0, 3.0], [2.0]], min_ratio=20, max_ratio=90, offset=0.5, flip=True
    )
    count = 64 * 4 + 16 * 6 + 4 * 4  # 1, its square, 2, 1/2 and 3, 1/3
    assert loc.shape == (-1, count, 4) and conf.shape == (-1, count, 5) and prior.shape == spread.shape == (count, 4)
    priors = [op for op in fluid.default_main_program().global_block().ops if op.type == "prior_box"]
    sides = [(op.attr("min_sizes"), op.attr("max_sizes")) for op in priors]
    assert np.allclose(sides, [([6.4], [12.8]), ([12.8], [57.6]), ([57.6], [102.4])])
    assert prior.stop_gradient and spread.stop_gradient and not loc.stop_gradient


def test_heads_with_steps_and_one_map():
    image = layers.data("image", [3, 64, 64])
    for given, steps in (({"steps": [9.0]}, (9, 9)), ({"step_w": [7.0]}, (7, 0)), ({"step_h": [5.0]}, (0, 5))):
        loc, conf, prior, _ = layers.multi_box_head(
            maps(4), image, 64, 3, [2.0], min_sizes=[8.0], max_sizes=[[]], kernel_size=3, pad=1, **given
        )
        assert loc.shape == (-1, 48, 4) and conf.shape == (-1, 48, 3) and prior.shape == (4, 4, 3, 4)
        op = [op for op in fluid.default_main_program().global_block().ops if op.type == "prior_box"][-1]
        assert (op.attr("step_w"), op.attr("step_h")) == steps


@pytest.mark.parametrize(
    ("sizes", "arguments", "message"),
    [
        ((4,), {}, "needs min_sizes and max_sizes"),
        ((4, 2), {"min_sizes": [4.0]}, "needs min_sizes and max_sizes"),
        ((4, 2), {"min_sizes": [4.0], "max_sizes": [8.0]}, "min_sizes of multi_box_head should be list or tuple, and"),
        ((4, 2, 1), {"min_ratio": 20}, "needs the sizes of priors"),
        ((4, 2, 1), {"min_ratio": "20", "max_ratio": 90}, "min_ratio of multi_box_head must be an int or None"),
        ((4, 2, 1), {"min_ratio": 90, "max_ratio": 20}, "needs the sizes of priors"),
        ((8, 4, 2, 1), {"min_ratio": 20, "max_ratio": 20}, "are too close"),
        ((4,), {"min_sizes": [4.0], "max_sizes": [8.0], "steps": 3.0}, "steps of multi_box_head must be a list"),
        ((4,), {"min_sizes": [4.0], "max_sizes": [2.0]}, "must have a greater number for each"),
    ],
)
def test_heads_that_do_not_fit(sizes, arguments, message):
    with refused((OpTypeError, OpValueError, RuleError), message):
        layers.multi_box_head(maps(*sizes), layers.data("image", [3, 64, 64]), 64, 3, [[2.0]] * len(sizes), **arguments)
    assert fluid.default_main_program().global_block().ops == []


def test_maps_are_a_list():
    image = layers.data("image", [3, 64, 64])
    with pytest.raises(OpTypeError, match="inputs of multi_box_head must be a list of Variables"):
        layers.multi_box_head(maps(4)[0], image, 64, 3, [[2.0]])
    with pytest.raises(OpValueError, match="inputs of multi_box_head must not be empty"):
        layers.multi_box_head([], image, 64, 3, [[2.0]])
    for classes, message in (("3", "must be an int"), (0, "must be a number of classes")):
        with pytest.raises(OpValueError, match=f"num_classes of multi_box_head {message}"):
            layers.multi_box_head(maps(4), image, 64, classes, [[2.0]], min_sizes=[4.0], max_sizes=[8.0])


def scenes(count, seed):
    """Images with one or two rectangles; the channel says the class."""
    rng = np.random.default_rng(seed)
    images = rng.normal(0, 0.05, (count, 2, 32, 32)).astype("float32")
    found, labels, lengths = [], [], rng.integers(1, 3, count)
    for n, many in enumerate(lengths):
        for _ in range(many):
            kind, (w, h) = rng.integers(1, 3), rng.integers(9, 15, 2)
            x, y = rng.integers(0, 32 - w), rng.integers(0, 32 - h)
            images[n, kind - 1, y : y + h, x : x + w] += 1
            found.append([x / 32, y / 32, (x + w) / 32, (y + h) / 32])
            labels.append([kind])
    parts = [fluid.create_lod_tensor(v, [lengths.tolist()]) for v in (np.float32(found), np.int32(labels))]
    return {"image": images, "box": parts[0], "label": parts[1]}


def detector(train):
    """A small SSD: its loss, which it minimizes, or the metric of its detections."""
    image = layers.data("image", [2, 32, 32])
    box, label = layers.data("box", [4], lod_level=1), layers.data("label", [1], dtype="int32", lod_level=1)
    fine = layers.conv2d(image, 8, 3, stride=2, padding=1, act="relu")
    fine = layers.conv2d(fine, 16, 3, stride=2, padding=1, act="relu")
    coarse = layers.conv2d(fine, 16, 3, stride=2, padding=1, act="relu")
    loc, conf, prior, spread = layers.multi_box_head(
        [fine, coarse], image, 32, 3, [[2.0], [2.0]], min_sizes=[8.0, 11.0], max_sizes=[11.0, 15.0], kernel_size=3,
        pad=1, clip=True,
    )  # fmt: skip
    if not train:
        found = layers.detection_output(loc, conf, prior, spread, nms_threshold=0.45)
        return fluid.metrics.DetectionMAP(found, label, box, class_num=3)
    loss = layers.reduce_sum(layers.ssd_loss(loc, conf, box, label, prior, spread))
    fluid.optimizer.Adam(0.01).minimize(loss)
    return loss


def trained(steps, stepped=False):
    """Losses, and the mean average precision so far over two batches of a pass, before and after."""
    programs, start, built = {True: fluid.Program(), False: fluid.Program()}, fluid.Program(), {}
    start.random_seed = 5
    for train, program in programs.items():
        with fluid.program_guard(program, start), fluid.unique_name.guard():
            built[train] = detector(train)
    exe, batches = fluid.Executor(fluid.CPUPlace()), [scenes(8, 1), scenes(6, 2)]

    def run(train, batch, fetch):
        return exe.run(programs[train], feed=batch, fetch_list=[fetch], keep_scopes=stepped)[0].item()

    def precision():
        built[False].reset(exe)
        return [run(False, batch, built[False].accum_map) for batch in batches]

    with fluid.scope_guard(fluid.Scope()):
        exe.run(start)
        before = precision()
        return [run(True, batches[i % 2], built[True]) for i in range(steps)], before, precision()


def test_a_detector_learns():
    losses, before, after = trained(40)
    assert np.mean(losses[-4:]) < 0.2 * np.mean(losses[:4])
    assert before[1] < 0.1 and after[1] > 0.7, (before, after)


def test_the_interpreter_gives_the_same_numbers():
    assert trained(3) == trained(3, stepped=True)
