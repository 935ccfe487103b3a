"""Operators of networks that propose regions and classify them."""

from __future__ import annotations

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.errors import EnforceNotMet, OpValueError
from fluidnb.op import RuleError
from fluidnb.testing import run_op
from tests.ops import proposals as plain
from tests.ops.cases import Differentiable, Forward, distinct, family, values

RNG = np.random.default_rng(11)
ANCHORS = np.array([[[[x, y, x + w, y + h] for w, h in ((7, 7), (15, 9), (4, 12))]
                     for x in range(0, 32, 8)] for y in range(0, 24, 8)], float)  # fmt: skip
FLAT = ANCHORS.reshape(-1, 4)
SCORES, CODES = distinct(2, 3, 3, 4, step=0.01), RNG.normal(0, 0.4, (2, 12, 3, 4))
INFO = np.array([[24.0, 32.0, 1.0], [20.0, 30.0, 1.6]])
VARIANCES = RNG.uniform(0.5, 1, ANCHORS.shape)
PROPOSING = {"pre_nms_topN": 20, "post_nms_topN": 6, "nms_thresh": 0.4, "min_size": 3.0, "eta": 1.0}
GIVEN = {"Scores": SCORES, "BboxDeltas": CODES, "ImInfo": INFO, "Anchors": ANCHORS, "Variances": VARIANCES}


def rows_of(images):
    """Results of several images as rows with sequences, a value for each result."""
    joined = (np.concatenate([np.asarray(image[k]) for image in images]) for k in range(len(images[0])))
    return [(value, [[len(image[k]) for image in images]]) for k, value in enumerate(joined)]


def proposed(**attrs):
    attrs = PROPOSING | attrs
    images = [plain.proposals(SCORES[i], CODES[i], INFO[i], ANCHORS, VARIANCES, attrs) for i in range(2)]
    return {"inputs": GIVEN, "attrs": attrs, "outputs": dict(zip(("RpnRois", "RpnRoiProbs"), rows_of(images),
                                                                 strict=True))}  # fmt: skip


BOXES = np.array([[1, 2, 9, 10], [14, 3, 27, 13], [2, 3, 6, 17], [20, 11, 29, 18], [4, 4, 12, 12]], float)
OBJECTS, IMAGES = BOXES.copy(), [[2, 3]]
OBJECTS[2:] /= 1.6
CROWD, CLASSES = np.array([[0], [0], [0], [1], [0]], "int32"), np.array([[1], [2], [2], [1], [0]], "int32")
ASSIGNING = {"rpn_batch_size_per_im": 9, "rpn_straddle_thresh": 0.0, "rpn_positive_overlap": 0.6,
             "rpn_negative_overlap": 0.3, "rpn_fg_fraction": 0.5, "use_random": False}  # fmt: skip
OWN = {"Anchor": FLAT, "GtBoxes": (OBJECTS, IMAGES), "IsCrowd": (CROWD, IMAGES), "ImInfo": INFO}


def assigned(**attrs):
    attrs = ASSIGNING | attrs
    found = [plain.assigned(FLAT, OBJECTS[part][CROWD[part, 0] == 0], INFO[i], attrs)
             for i, part in enumerate((slice(0, 2), slice(2, 5)))]  # fmt: skip
    images = []
    for i, (boxed, scored, labels, targets, weights) in enumerate(found):
        numbers = (np.array(v, "int32") + i * len(FLAT) for v in (boxed, scored))
        images.append([*numbers, np.array(labels, "int32")[:, None], np.array(targets), np.array(weights)])
    names = ("LocationIndex", "ScoreIndex", "TargetLabel", "TargetBBox", "BBoxInsideWeight")
    return {"inputs": OWN, "attrs": attrs, "outputs": dict(zip(names, rows_of(images), strict=True))}


ROIS = np.array([[1, 1, 9, 9], [12, 2, 25, 12], [0, 0, 3, 3], [21, 12, 30, 20], [3, 3, 8, 16], [5, 3, 12, 12],
                 [10, 5, 30, 10], [1, 0, 4, 19], [22, 10, 29, 17]], float)  # fmt: skip
LABELLING = {"batch_size_per_im": 6, "fg_fraction": 0.5, "fg_thresh": 0.5, "bg_thresh_hi": 0.5, "bg_thresh_lo": 0.0,
             "bbox_reg_weights": [0.5, 0.5, 0.25, 0.25], "class_nums": 3, "use_random": False}  # fmt: skip
LEARNING = {"RpnRois": (ROIS, [[4, 5]]), "GtClasses": (CLASSES, IMAGES), "IsCrowd": (CROWD, IMAGES),
            "GtBoxes": (OBJECTS, IMAGES), "ImInfo": INFO}  # fmt: skip


def labelled(**attrs):
    attrs, images = LABELLING | attrs, []
    for own, part, (_, _, scale) in zip((slice(0, 4), slice(4, 9)), (slice(0, 2), slice(2, 5)), INFO, strict=True):
        rois, labels, targets, weights, shared = plain.labelled(
            ROIS[own], CLASSES[part, 0], CROWD[part, 0], OBJECTS[part], scale, attrs
        )
        images.append([rois, np.array(labels, "int32")[:, None], targets, weights, weights, shared])
    names = ("Rois", "LabelsInt32", "BboxTargets", "BboxInsideWeights", "BboxOutsideWeights", "MaxOverlapWithGT")
    return {"inputs": LEARNING, "attrs": attrs, "outputs": dict(zip(names, rows_of(images), strict=True))}


SCALES = {"min_level": 2, "max_level": 4, "refer_level": 3, "refer_scale": 10}
LEVELS = np.array(plain.levels(ROIS, 2, 4, 3, 10))
ORDER = np.argsort(LEVELS, kind="stable")
PER_IMAGE = [[int((part == level).sum()) for part in (LEVELS[:4], LEVELS[4:])] for level in (2, 3, 4)]
PRIOR, SPREAD = ROIS[:5], np.array([0.1, 0.2, 0.5, 0.25])
OFFSETS, CHANCES = values(5, 12, low=-2, high=8), distinct(5, 3)
DECODED = np.array([[plain.undelta(p, SPREAD * code) for code in row.reshape(3, 4)]
                    for p, row in zip(PRIOR, OFFSETS, strict=True)])  # fmt: skip
GROWN = np.array([[plain.undelta(p, np.minimum(SPREAD * code, [9, 9, 1.5, 1.5])) for code in row.reshape(3, 4)]
                  for p, row in zip(PRIOR, OFFSETS, strict=True)])  # fmt: skip
LIKELY = CHANCES[:, 1:].argmax(1) + 1
PARTS = values(2, 3 * 2 * 3, 6, 7)
QUADS = np.array([[1, 0.5, 5, 1, 4.5, 4.6, 0.4, 4], [2, 1, 4, 1, 4, 5, 2, 5], [-1.3, -1.2, 3.1, 0.2, 2.6, 3.3, 0, 3]])
OWNERS = [0, 1, 1]


def warped(corners, image, rows, columns):
    """A quadrilateral of an image by solving for its homography."""
    points = corners.reshape(4, 2)
    sides = np.linalg.norm(points - np.roll(points, -1, 0), axis=1)
    last = min(round((sides[0] + sides[2]) / (sides[1] + sides[3]) * (rows - 1)) + 1, columns) - 1
    system, right = [], []
    for (u, v), (x, y) in zip(((0, 0), (last, 0), (last, rows - 1), (0, rows - 1)), points, strict=True):
        system += [[u, v, 1, 0, 0, 0, -u * x, -v * x], [0, 0, 0, u, v, 1, -u * y, -v * y]]
        right += [x, y]
    h = np.append(np.linalg.solve(system, right), 1).reshape(3, 3)
    out = np.zeros((len(image), rows, columns))
    for v, u in np.ndindex(rows, columns):
        x, y, w = h @ [u, v, 1]
        x, y = x / w, y / w
        sides = [(b[0] - a[0]) * (y - a[1]) - (b[1] - a[1]) * (x - a[0])
                 for a, b in zip(points, np.roll(points, -1, 0), strict=True)]  # fmt: skip
        limits = image.shape[2] - 0.5, image.shape[1] - 0.5
        if min(sides) > -1e-6 and -0.5 <= x <= limits[0] and -0.5 <= y <= limits[1]:
            x, y = np.clip(x, 0, image.shape[2] - 1), np.clip(y, 0, image.shape[1] - 1)
            for i, j in {(int(y) + a, int(x) + b) for a in (0, 1) for b in (0, 1)}:
                if i < image.shape[1] and j < image.shape[2]:
                    out[:, v, u] += image[:, i, j] * (1 - abs(y - i)) * (1 - abs(x - j))
    return out


SEEN = distinct(2, 2, 5, 6)

family(
    globals(),
    Forward,
    {
        "generate_proposals": proposed(),
        "generate_proposals/all": proposed(pre_nms_topN=0, post_nms_topN=0, nms_thresh=0.7),
        "generate_proposals/overlapping": proposed(pre_nms_topN=7, nms_thresh=0.0),
        "generate_proposals/large": proposed(min_size=6.5),
        "rpn_target_assign": assigned(),
        "rpn_target_assign/anywhere": assigned(rpn_straddle_thresh=-1.0, rpn_batch_size_per_im=200),
        "rpn_target_assign/twice": assigned(rpn_negative_overlap=0.8, rpn_batch_size_per_im=40),
        "rpn_target_assign/few": assigned(rpn_batch_size_per_im=2, rpn_straddle_thresh=3.0),
        "generate_proposal_labels": labelled(),
        "generate_proposal_labels/many": labelled(batch_size_per_im=50, fg_thresh=0.3),
        "generate_proposal_labels/near": labelled(bg_thresh_lo=0.1, bg_thresh_hi=0.4),
        "distribute_fpn_proposals": {
            "inputs": {"FpnRois": (ROIS, [[4, 5]])}, "attrs": SCALES,
            "outputs": {
                "MultiFpnRois": [(ROIS[level == LEVELS], [PER_IMAGE[level - 2]]) for level in (2, 3, 4)],
                "RestoreIndex": np.argsort(ORDER).astype("int32")[None],
            },
        },
        "distribute_fpn_proposals/numbers": {
            "inputs": {"FpnRois": ROIS, "RoisNum": np.array([4, 5], "int32")}, "attrs": SCALES,
            "outputs": {
                "MultiFpnRois": [(ROIS[level == LEVELS], [PER_IMAGE[level - 2]]) for level in (2, 3, 4)],
                "RestoreIndex": np.argsort(ORDER).astype("int32")[None],
                "MultiLevelRoIsNum": [np.array(numbers, "int32") for numbers in PER_IMAGE],
            },
        },
        "collect_fpn_proposals/numbers": {
            "inputs": {
                "MultiLevelRois": [ROIS[:4], ROIS[4:]],
                "MultiLevelScores": [np.array([[0.1], [0.7], [0.3], [0.9]]),
                                     np.array([[0.2], [0.8], [0.4], [0.5], [0.05]])],
                "MultiLevelRoIsNum": [np.array([1, 3], "int32"), np.array([3, 2], "int32")],
            },
            "attrs": {"post_nms_topN": 5},
            "outputs": {"FpnRois": (ROIS[[5, 6, 3, 1, 7]], [[2, 3]]), "RoisNum": np.array([2, 3], "int32")},
        },
        "collect_fpn_proposals/equal_scores": {
            "inputs": {
                "MultiLevelRois": [(np.arange(16.0).reshape(4, 4), [[4]])],
                "MultiLevelScores": [(np.array([[0.5], [0.1], [0.5], [0.5]]), [[4]])],
            },
            "attrs": {"post_nms_topN": 2},
            "outputs": {"FpnRois": (np.arange(16.0).reshape(4, 4)[[3, 2]], [[2]])},
        },
        "collect_fpn_proposals": {
            "inputs": {
                "MultiLevelRois": [(ROIS[:4], [[1, 3]]), (ROIS[4:], [[3, 2]])],
                "MultiLevelScores": [(np.array([[0.1], [0.7], [0.3], [0.9]]), [[1, 3]]),
                                     (np.array([[0.2], [0.8], [0.4], [0.5], [0.05]]), [[3, 2]])],
            },
            "attrs": {"post_nms_topN": 5}, "outputs": {"FpnRois": (ROIS[[5, 6, 3, 1, 7]], [[2, 3]])},
        },
        "box_decoder_and_assign": {
            "inputs": {"PriorBox": (PRIOR, [[2, 3]]), "PriorBoxVar": SPREAD, "TargetBox": OFFSETS, "BoxScore": CHANCES},
            "outputs": {"DecodeBox": DECODED.reshape(5, 12),
                        "OutputAssignBox": (DECODED[np.arange(5), LIKELY], [[2, 3]])},
        },
        "box_decoder_and_assign/unlikely": {
            "inputs": {"PriorBox": PRIOR, "PriorBoxVar": SPREAD, "TargetBox": OFFSETS, "BoxScore": CHANCES - 2},
            "attrs": {"box_clip": 1.5},
            "outputs": {
                "DecodeBox": GROWN.reshape(5, 12),
                "OutputAssignBox": np.where((CHANCES[:, 1:].max(1) - 2 > -1)[:, None], GROWN[np.arange(5), LIKELY],
                                            PRIOR),
            },
        },
    },
)  # fmt: skip

family(
    globals(),
    Differentiable,
    {
        "psroi_pool": {
            "inputs": {"X": PARTS, "ROIs": (ROIS[:3] / 2, [[1, 2]])}, "grads": ("X",),
            "attrs": {"pooled_height": 2, "pooled_width": 3, "output_channels": 3, "spatial_scale": 0.5},
            "outputs": {"Out": np.stack([plain.means(PARTS[n], roi / 2, (2, 3), 0.5)
                                         for n, roi in zip(OWNERS, ROIS[:3], strict=True)])},
        },
        "psroi_pool/beyond": {
            "inputs": {"X": PARTS[:1], "ROIs": (np.array([[-3.5, 2, 20, 9], [9, 9, 12, 12], [1.5, 2.5, 0, 0]]), [[3]])},
            "attrs": {"pooled_height": 3, "pooled_width": 2, "output_channels": 3}, "grads": ("X",),
            "outputs": {"Out": np.stack([plain.means(PARTS[0], roi, (3, 2), 1.0) for roi in (
                [-4, 2, 20, 9], [9, 9, 12, 12], [2, 3, 0, 0])])},
        },
        "roi_perspective_transform": {
            "inputs": {"X": SEEN, "ROIs": (QUADS, [[1, 2]])}, "grads": ("X",),
            "attrs": {"transformed_height": 4, "transformed_width": 5},
            "outputs": {"Out": (np.stack([warped(q, SEEN[n], 4, 5) for q, n in zip(QUADS, OWNERS, strict=True)]),
                                [[1, 2]])},
        },
        "roi_perspective_transform/scaled": {
            "inputs": {"X": SEEN, "ROIs": (QUADS * 2, [[1, 2]])}, "grads": ("X",),
            "attrs": {"transformed_height": 3, "transformed_width": 2, "spatial_scale": 0.5},
            "outputs": {"Out": (np.stack([warped(q, SEEN[n], 3, 2) for q, n in zip(QUADS, OWNERS, strict=True)]),
                                [[1, 2]])},
        },
    },
)  # fmt: skip


def test_the_limit_of_overlaps_falls_with_eta():
    attrs = PROPOSING | {"pre_nms_topN": 0, "post_nms_topN": 0, "nms_thresh": 0.9}
    kept = [len(run_op("generate_proposals", GIVEN, attrs | {"eta": eta})["RpnRois"].array) for eta in (0.5, 1.0)]
    assert kept[0] < kept[1]


def test_an_image_without_proposals():
    out = run_op("generate_proposals", GIVEN, PROPOSING | {"min_size": 99.0})
    assert out["RpnRois"].lod() == [[0, 0, 0]] and out["RpnRoiProbs"].shape() == [0, 1]


def test_of_equal_scores_the_last_comes_first():
    boxes = np.array([[0.0, 0, 7, 7], [0, 0, 7, 6], [20, 0, 27, 7]]).reshape(1, 3, 1, 4)
    given = {"Scores": np.full((1, 1, 1, 3), 0.5), "BboxDeltas": np.zeros((1, 4, 1, 3)), "ImInfo": INFO[:1],
             "Anchors": boxes.transpose(0, 1, 2, 3), "Variances": np.ones((1, 3, 1, 4))}  # fmt: skip
    out = run_op("generate_proposals", given, PROPOSING)["RpnRois"].array
    assert out.tolist() == [[20, 0, 27, 7], [0, 0, 7, 6]]


def drawn(op, given, attrs, seed):
    return {slot: value.array for slot, value in run_op(op, given, attrs | {"use_random": True}, seed=seed).items()}


@pytest.mark.parametrize(("op", "given", "attrs"), [
    ("rpn_target_assign", OWN, ASSIGNING | {"rpn_negative_overlap": 0.8}),
    ("generate_proposal_labels", LEARNING, LABELLING | {"batch_size_per_im": 3}),
])  # fmt: skip
def test_examples_are_drawn_at_random(op, given, attrs):
    first = drawn(op, given, attrs, 5)
    for slot, value in drawn(op, given, attrs, 5).items():
        np.testing.assert_array_equal(value, first[slot])
    slot = "ScoreIndex" if op == "rpn_target_assign" else "Rois"
    found = {drawn(op, given, attrs, seed)[slot].tobytes() for seed in range(1, 30)}
    assert len(found) > 5
    whole = run_op(op, given, attrs | {"rpn_batch_size_per_im": 999, "rpn_fg_fraction": 1.0} if "Index" in slot
                   else attrs | {"batch_size_per_im": 999, "fg_fraction": 1.0})[slot].array  # fmt: skip
    every = {row.tobytes() for row in whole}
    assert all(row.tobytes() in every for row in first[slot])


def test_an_image_without_objects_has_background_alone():
    none = {"GtBoxes": (OBJECTS[:2], [[2, 0]]), "IsCrowd": (CROWD[:2], [[2, 0]])}
    out = run_op("rpn_target_assign", {**OWN, **none}, ASSIGNING)
    assert out["LocationIndex"].lod()[0][1:] == [out["LocationIndex"].lod()[0][1]] * 2
    assert out["TargetLabel"].array[out["TargetLabel"].lod()[0][1] :].tolist() == [[0]] * 9
    none |= {"GtClasses": (CLASSES[:2], [[2, 0]])}
    out = run_op("generate_proposal_labels", {**LEARNING, **none}, LABELLING)
    assert out["LabelsInt32"].array[out["Rois"].lod()[0][1] :].tolist() == [[0]] * 5


@pytest.mark.parametrize(
    ("op", "given", "attrs"),
    [("rpn_target_assign", OWN, ASSIGNING), ("generate_proposal_labels", LEARNING, LABELLING)],
)
def test_numbers_of_objects_need_no_column(op, given, attrs):
    flat = {slot: (given[slot][0].ravel(), given[slot][1]) for slot in ("GtClasses", "IsCrowd") if slot in given}
    wanted = run_op(op, given, attrs)
    for slot, value in run_op(op, {**given, **flat}, attrs).items():
        np.testing.assert_array_equal(np.array(value), np.array(wanted[slot]))


def test_what_is_refused():
    with pytest.raises(EnforceNotMet, match="A label of generate_proposal_labels is no class"):
        run_op("generate_proposal_labels", LEARNING, LABELLING | {"class_nums": 2})
    with pytest.raises(RuleError, match="must have a row for each image"):
        run_op("rpn_target_assign", {**OWN, "ImInfo": INFO[:1]}, ASSIGNING)
    with pytest.raises(RuleError, match="must have as many rows"):
        run_op("rpn_target_assign", {**OWN, "IsCrowd": (CROWD, [[3, 2]])}, ASSIGNING)
    with pytest.raises(RuleError, match="does not go with its Scores"):
        run_op("generate_proposals", {**GIVEN, "BboxDeltas": CODES[:, :8]}, PROPOSING)
    with pytest.raises(RuleError, match="a channel for each part"):
        run_op("psroi_pool", {"X": PARTS, "ROIs": (ROIS[:3], [[1, 2]])}, {"output_channels": 3})
    with pytest.raises(RuleError, match="has a variable for each level"):
        run_op("distribute_fpn_proposals", {"FpnRois": (ROIS, [[9]])}, SCALES, {"MultiFpnRois": 2, "RestoreIndex": 1})
    outs = {"MultiFpnRois": 3, "RestoreIndex": 1}
    with pytest.raises(RuleError, match=r"MultiLevelRoIsNum\) of .* has a variable for each level"):
        run_op("distribute_fpn_proposals", {"FpnRois": (ROIS, [[9]])}, SCALES, outs | {"MultiLevelRoIsNum": 2})
    for numbers in ([4, 4], [10, -1]):
        with pytest.raises(RuleError, match=r"Input\(RoisNum\) of .* must have the number of regions of each image"):
            run_op("distribute_fpn_proposals", {"FpnRois": ROIS, "RoisNum": np.array(numbers)}, SCALES, outs)
    levels = {"MultiLevelRois": [ROIS[:4], ROIS[4:]], "MultiLevelScores": [np.ones((4, 1)), np.ones((5, 1))]}
    for first, *others in ([[1, 3]], [[1, 3], [5]], [[1, 3], [1, 3]], [[5, -1], [3, 2]]):
        numbers = [np.array(n) for n in (first, *others)]
        with pytest.raises(RuleError, match=r"Input\(MultiLevelRoIsNum\) of .* must have the number of regions"):
            run_op("collect_fpn_proposals", {**levels, "MultiLevelRoIsNum": numbers}, {"post_nms_topN": 5})
    with pytest.raises(OpValueError, match="max_level must not be lower"):
        run_op("distribute_fpn_proposals", {"FpnRois": (ROIS, [[9]])}, SCALES | {"max_level": 1})


def test_a_quadrilateral_without_a_height_is_empty():
    line = np.array([[1.0, 1, 4, 1, 4, 1, 1, 1]])
    attrs = {"transformed_height": 3, "transformed_width": 3}
    assert not run_op("roi_perspective_transform", {"X": SEEN[:1], "ROIs": (line, [[1]])}, attrs)["Out"].array.any()


def test_levels_of_regions_without_the_last_pixel():
    """The results of Paddle 2.6.2."""
    rois = np.array([[0, 0, 9, 9], [0, 0, 10, 10], [0, 0, -1, 5], [0, 0, 4, 4], [0, 0, 4.5, 5.5], [3, 3, 3, 3]], "f4")
    for offset, wanted in ((True, [4, 5, 0, 2, 3, 1]), (False, [4, 5, 0, 1, 2, 3])):
        attrs = {"min_level": 2, "max_level": 5, "refer_level": 4, "refer_scale": 10, "pixel_offset": offset}
        outs = {"MultiFpnRois": 4, "RestoreIndex": 1}
        found = run_op("distribute_fpn_proposals", {"FpnRois": (rois, [[6]])}, attrs, outs)
        assert found["RestoreIndex"].ravel().tolist() == wanted


def test_numbers_of_regions_that_change_from_run_to_run():
    with fluid.fresh():
        rois, numbers = fluid.layers.data("rois", [4]), fluid.layers.data("numbers", [], dtype="int32")
        names = {slot: [f"{slot}{i}" for i in range(3)] for slot in ("MultiFpnRois", "MultiLevelRoIsNum")}
        outputs = {**names, "RestoreIndex": ["restore"]}
        for name in sum(outputs.values(), []):
            rois.block.create_var(name=name)
        ins = {"FpnRois": [rois], "RoisNum": [numbers]}
        rois.block.append_op("distribute_fpn_proposals", inputs=ins, outputs=outputs, attrs=SCALES)
        exe, feed = fluid.Executor(), {"rois": ROIS.astype("float32")}
        for split in ([4, 5], [9, 0], [4, 5], [1, 2, 6]):
            feed["numbers"] = np.array(split, "int32")
            found = exe.run(feed=feed, fetch_list=names["MultiLevelRoIsNum"])
            parts = np.split(LEVELS, np.cumsum(split)[:-1])
            assert [n.tolist() for n in found] == [[int((p == level).sum()) for p in parts] for level in (2, 3, 4)]
