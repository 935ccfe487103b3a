"""Finding boxes in images."""

from itertools import product

import numpy as np
import pytest

from fluidnb.op import RuleError
from fluidnb.testing import run_op
from tests.ops import boxes as plain
from tests.ops.cases import Differentiable, Forward, distinct, family, values

IMAGES = distinct(2, 2, 6, 7)
ROIS = np.array([[0.6, 0.3, 4.3, 3.1], [2.2, 1.7, 8.6, 7.3], [-0.7, 2.2, 1.9, 2.4]])
OWNERS = [0, 1, 1]
TWO, THREE = {"pooled_height": 2, "pooled_width": 2}, {"pooled_height": 3, "pooled_width": 2}


def aligned(sizes, ratio, middle=False, scale=1.0):
    parts = [plain.align(IMAGES[n], roi * scale, sizes, ratio, middle) for n, roi in zip(OWNERS, ROIS, strict=True)]
    return np.stack(parts)


POOLED = [plain.pooled(IMAGES[n], roi, (2, 2)) for n, roi in zip(OWNERS, ROIS, strict=True)]
REGIONS = {"X": IMAGES, "ROIs": (ROIS, [[1, 2]])}
COUNTED = {"X": IMAGES, "ROIs": ROIS, "RoisNum": np.array([1, 2], "int32")}

ANCHORS = [10, 13, 16, 30, 33, 23]
HEAD = values(2, 3 * 7, 2, 3, low=-2, high=2)
SIZES = np.array([[90, 120], [64, 50]], "int32")
FOUND = plain.yolo_boxes(HEAD, SIZES, ANCHORS, 2, 32, 0.4)
MAP = values(2, 2 * 8, 3, 3, low=-1.5, high=1.5)
OBJECTS = np.array([[[0.2, 0.3, 0.1, 0.15], [0.7, 0.6, 0.2, 0.3], [0.4, 0.9, 0.4, 0.2]],
                    [[0.5, 0.5, 0.12, 0.12], [0, 0, 0, 0], [0.8, 0.2, 0.3, 0.4]]])  # fmt: skip
LABELS, RATES = np.array([[0, 2, 1], [1, 0, 2]], "int32"), values(2, 3, low=0.2, high=1)


def learned(near, smooth, rates):
    names = ("Loss", "ObjectnessMask", "GTMatchMask")
    found = plain.yolo_loss(MAP, OBJECTS, LABELS, rates, ANCHORS, [0, 1], near, smooth)
    return dict(zip(names, (found[0], found[1], found[2].astype("int32")), strict=True))


TASK = {"anchors": ANCHORS, "anchor_mask": [0, 1], "class_num": 3}
GIVEN = {"X": MAP, "GTBox": OBJECTS, "GTLabel": LABELS}

family(
    globals(),
    Differentiable,
    {
        "roi_align": {
            "inputs": REGIONS, "attrs": {**TWO, "sampling_ratio": 2}, "grads": ("X",),
            "outputs": {"Out": aligned((2, 2), 2)},
        },
        "roi_align/every_pixel": {
            "inputs": COUNTED, "attrs": THREE, "grads": ("X",), "outputs": {"Out": aligned((3, 2), 0)},
        },
        "roi_align/middles": {
            "inputs": REGIONS, "attrs": {**THREE, "sampling_ratio": 1, "aligned": True, "spatial_scale": 0.5},
            "grads": ("X",), "outputs": {"Out": aligned((3, 2), 1, True, 0.5)},
        },
        "roi_pool": {
            "inputs": REGIONS, "attrs": TWO, "grads": ("X",), "loss": ("Out",),
            "outputs": {"Out": np.stack([v for v, _ in POOLED]), "Argmax": np.stack([v for _, v in POOLED])},
        },
        "roi_pool/counted": {
            "inputs": COUNTED, "attrs": TWO, "grads": ("X",), "loss": ("Out",),
            "outputs": {"Out": np.stack([v for v, _ in POOLED]), "Argmax": np.stack([v for _, v in POOLED])},
        },
        "yolov3_loss": {
            "inputs": GIVEN, "attrs": {**TASK, "ignore_thresh": 0.3}, "grads": ("X",), "loss": ("Loss",),
            "outputs": learned(0.3, 1 / 40, np.ones((2, 3))),
        },
        "yolov3_loss/scored": {
            "inputs": {**GIVEN, "GTScore": RATES}, "attrs": {**TASK, "use_label_smooth": False}, "grads": ("X",),
            "loss": ("Loss",), "outputs": learned(0.7, 0.0, RATES),
        },
    },
)  # fmt: skip

MAPS = {"Input": np.zeros((1, 2, 2, 3)), "Image": np.zeros((1, 3, 20, 36))}
SPREAD = np.float32([0.1, 0.1, 0.2, 0.2]).astype(float).tolist()


def around(boxes):
    """Boxes (width, height) around the places of the map, as parts of the image; ``boxes`` gives dx, dy, w, h."""
    out = np.zeros((2, 3, len(boxes), 4))
    for i, j, (k, (dx, dy, w, h)) in product(range(2), range(3), enumerate(boxes)):
        x, y = (j + 0.5) * 12 + dx, (i + 0.5) * 10 + dy
        out[i, j, k] = (x - w / 2) / 36, (y - h / 2) / 20, (x + w / 2) / 36, (y + h / 2) / 20
    return out


def priors(boxes):
    return {"Boxes": boxes, "Variances": np.broadcast_to(SPREAD, boxes.shape).copy()}


ROOT = 2**0.5
PLAIN = [(0, 0, 4, 4), (0, 0, 4 * ROOT, 4 / ROOT), (0, 0, 4 / ROOT, 4 * ROOT), (0, 0, 6, 6)]
DENSE = [(dx, dy, 6 * ROOT, 6 / ROOT) for dy in (-3, 2) for dx in (-3, 2)]  # 11 // 2 apart
FIXED = np.clip(around(DENSE), 0, 1)
BASES = {0.5: (23, 12), 1.0: (16, 16)}  # of an area of 256: width round(sqrt(256 / r)), height round(width · r)
SHAPES = [(s / 16 * w, s / 16 * h) for w, h in BASES.values() for s in (32, 48)]
PLACED = np.zeros((2, 3, 4, 4))
for i, j, (k, (w, h)) in product(range(2), range(3), enumerate(SHAPES)):
    cx, cy = j * 16 + 7.5, i * 16 + 7.5
    PLACED[i, j, k] = cx - (w - 1) / 2, cy - (h - 1) / 2, cx + (w - 1) / 2, cy + (h - 1) / 2


def boxes(*shape, seed=0, size=1.0):
    first = values(*shape, 2, low=0, high=0.5 * size, seed=seed)
    return np.concatenate([first, first + values(*shape, 2, low=0.1 * size, high=0.6 * size, seed=seed + 9)], -1)


PRIORS, TARGETS, CODES, VARIANCES = boxes(4), boxes(3, seed=1), values(3, 4, 4), values(4, 4, low=0.1, high=0.9)


def encoded(target, more=0.0, spread=1.0):
    out = np.zeros((len(target), len(PRIORS), 4))
    for (i, t), (j, p) in product(enumerate(target), enumerate(PRIORS)):
        pw, ph, tw, th = p[2] - p[0] + more, p[3] - p[1] + more, t[2] - t[0] + more, t[3] - t[1] + more
        x, y = (t[0] + t[2]) / 2 - p[0] - pw / 2, (t[1] + t[3]) / 2 - p[1] - ph / 2
        out[i, j] = x / pw, y / ph, np.log(tw / pw), np.log(th / ph)
    return out / spread


def decoded(codes, spread=1.0):
    out, codes = np.zeros_like(codes), codes * spread
    for i, (j, p) in product(range(len(codes)), enumerate(PRIORS)):
        pw, ph = p[2] - p[0], p[3] - p[1]
        x, y = codes[i, j, 0] * pw + p[0] + pw / 2, codes[i, j, 1] * ph + p[1] + ph / 2
        w, h = np.exp(codes[i, j, 2]) * pw, np.exp(codes[i, j, 3]) * ph
        out[i, j] = x - w / 2, y - h / 2, x + w / 2, y + h / 2
    return out


WIDE = boxes(5, seed=3, size=30)
CLIPPED = WIDE.copy()
CLIPPED[:2, ::2] = np.clip(WIDE[:2, ::2], 0, 17)
CLIPPED[:2, 1::2] = np.clip(WIDE[:2, 1::2], 0, 9)
CLIPPED[2:, ::2] = np.clip(WIDE[2:, ::2], 0, 16)
CLIPPED[2:, 1::2] = np.clip(WIDE[2:, 1::2], 0, 14)
CORNERS = values(2, 4, 3, 5)
PLACES = np.stack([np.tile(np.arange(5) * 4.0, (3, 1)), np.tile(np.arange(3) * 4.0, (5, 1)).T] * 2)
DIST = np.array([[0.9, 0.85, 0.2, 0.6], [0.8, 0.3, 0.1, 0.7], [0.5, 0.4, 0.6, 0.0]])
NEAR, SCORES = boxes(1, 8, seed=5), distinct(1, 3, 8, step=0.02) + 0.5
KEPT = plain.suppressed(NEAR[0], SCORES[0], 0.3, 0.2)
LOSSES = {"ClsLoss": np.array([[3.0, 1, 4, 1, 5, 9], [2, 6, 5, 3, 5, 8]]), "MatchDist": np.full((2, 6), 0.1)}
LOSSES["MatchDist"][0, 5] = 0.8
MATCHES = np.array([[0, -1, -1, 2, -1, -1], [-1, -1, 1, -1, -1, -1]], "int32")

family(
    globals(),
    Forward,
    {
        "prior_box": {
            "inputs": MAPS, "outputs": priors(np.clip(around(PLAIN), 0, 1)),
            "attrs": {"min_sizes": [4.0], "max_sizes": [9.0], "aspect_ratios": [1.0, 2.0], "variances": SPREAD},
        },
        "prior_box/ordered": {
            "inputs": MAPS, "outputs": priors(around([PLAIN[0], PLAIN[3], PLAIN[1]])),
            "attrs": {"min_sizes": [4.0], "max_sizes": [9.0], "aspect_ratios": [2.0], "variances": SPREAD,
                      "flip": False, "clip": False, "min_max_aspect_ratios_order": True},
        },
        "density_prior_box": {
            "inputs": MAPS, "outputs": priors(FIXED),
            "attrs": {"fixed_sizes": [6.0], "fixed_ratios": [2.0], "densities": [2], "variances": SPREAD},
        },
        "density_prior_box/flat": {
            "inputs": MAPS, "outputs": priors(FIXED.reshape(-1, 4)),
            "attrs": {"fixed_sizes": [6.0], "fixed_ratios": [2.0], "densities": [2], "variances": SPREAD,
                      "flatten_to_2d": True},
        },
        "anchor_generator": {
            "inputs": {"Input": MAPS["Input"]},
            "outputs": {"Anchors": PLACED, "Variances": np.broadcast_to(SPREAD, PLACED.shape).copy()},
            "attrs": {"anchor_sizes": [32.0, 48.0], "aspect_ratios": [0.5, 1.0], "variances": SPREAD},
        },
        "iou_similarity": {
            "inputs": {"X": PRIORS, "Y": TARGETS},
            "outputs": {"Out": np.array([[plain.overlap(a, b) for b in TARGETS] for a in PRIORS])},
        },
        "iou_similarity/pixels": {
            "inputs": {"X": (PRIORS * 9, [[1, 3]]), "Y": TARGETS * 9}, "attrs": {"box_normalized": False},
            "outputs": {"Out": (np.array([[plain.overlap(a, b, 1) for b in TARGETS * 9] for a in PRIORS * 9]),
                                [[1, 3]])},
        },
        "box_coder": {
            "inputs": {"PriorBox": PRIORS, "PriorBoxVar": VARIANCES, "TargetBox": TARGETS},
            "outputs": {"OutputBox": encoded(TARGETS, spread=VARIANCES)},
        },
        "box_coder/pixels": {
            "inputs": {"PriorBox": PRIORS, "TargetBox": TARGETS},
            "attrs": {"box_normalized": False, "variance": [0.5, 0.25, 2.0, 1.0]},
            "outputs": {"OutputBox": encoded(TARGETS, 1, [0.5, 0.25, 2, 1])},
        },
        "box_coder/decoded": {
            "inputs": {"PriorBox": PRIORS, "PriorBoxVar": VARIANCES, "TargetBox": CODES},
            "attrs": {"code_type": "decode_center_size"}, "outputs": {"OutputBox": decoded(CODES, VARIANCES)},
        },
        "box_coder/other": {
            "inputs": {"PriorBox": PRIORS, "TargetBox": CODES.transpose(1, 0, 2).copy()},
            "attrs": {"code_type": "decode_center_size", "axis": 1},
            "outputs": {"OutputBox": decoded(CODES).transpose(1, 0, 2)},
        },
        "box_clip": {
            "inputs": {"Input": (WIDE, [[2, 3]]), "ImInfo": np.array([[10, 18, 1.0], [30, 34, 2.0]])},
            "outputs": {"Output": (CLIPPED, [[2, 3]])},
        },
        "polygon_box_transform": {"inputs": {"Input": CORNERS}, "outputs": {"Output": PLACES - CORNERS}},
        "bipartite_match": {
            "inputs": {"DistMat": (DIST, [[2, 1]])},
            "outputs": {
                "ColToRowMatchIndices": np.array([[0, -1, -1, 1], [-1, -1, 0, -1]], "int32"),
                "ColToRowMatchDist": np.array([[0.9, 0, 0, 0.7], [0, 0, 0.6, 0]]),
            },
        },
        "bipartite_match/more": {
            "inputs": {"DistMat": DIST}, "attrs": {"match_type": "per_prediction", "dist_threshold": 0.45},
            "outputs": {
                "ColToRowMatchIndices": np.array([[0, 0, 2, 1]], "int32"),
                "ColToRowMatchDist": np.array([[0.9, 0.85, 0.6, 0.7]]),
            },
        },
        "mine_hard_examples": {
            "inputs": {"MatchIndices": MATCHES, **LOSSES}, "attrs": {"neg_pos_ratio": 1.5},
            "outputs": {
                "NegIndices": (np.array([[1], [2], [4], [5]], "int32"), [[3, 1]]), "UpdatedMatchIndices": MATCHES,
            },
        },
        "mine_hard_examples/all": {
            "inputs": {"MatchIndices": MATCHES, "LocLoss": np.eye(2, 6) * 9, **LOSSES},
            "attrs": {"mining_type": "hard_example", "sample_size": 2},
            "outputs": {
                "NegIndices": (np.array([[5], [1], [5]], "int32"), [[1, 2]]),
                "UpdatedMatchIndices": np.array([[0, -1, -1, -1, -1, -1], [-1] * 6], "int32"),
            },
        },
        "multiclass_nms": {
            "inputs": {"BBoxes": NEAR, "Scores": SCORES}, "outputs": {"Out": (np.array(KEPT), [[len(KEPT)]])},
            "attrs": {"score_threshold": 0.2, "nms_top_k": -1, "keep_top_k": -1},
        },
        "multiclass_nms/best": {
            "inputs": {"BBoxes": NEAR, "Scores": SCORES},
            "outputs": {"Out": (np.array(sorted(sorted(KEPT, key=lambda r: -r[1])[:3], key=lambda r: (r[0], -r[1]))),
                                [[3]])},
            "attrs": {"score_threshold": 0.2, "nms_top_k": -1, "keep_top_k": 3},
        },
        "multiclass_nms/by_class": {
            "inputs": {"BBoxes": (np.stack([NEAR[0]] * 3, 1), [[8]]), "Scores": (SCORES[0].T.copy(), [[8]])},
            "outputs": {"Out": lambda out: np.testing.assert_allclose(
                sorted(map(tuple, out)), sorted(map(tuple, KEPT)), 1e-6)},
            "attrs": {"score_threshold": 0.2, "nms_top_k": -1, "keep_top_k": -1},
        },
        "multiclass_nms2": {
            "inputs": {"BBoxes": NEAR, "Scores": SCORES},
            "outputs": {
                "Out": (np.array(KEPT), [[len(KEPT)]]),
                "Index": (np.array([[int((SCORES[0, int(k)] == s).argmax())] for k, s, *_ in KEPT], "int32"),
                          [[len(KEPT)]]),
            },
            "attrs": {"score_threshold": 0.2, "nms_top_k": -1, "keep_top_k": -1},
        },
        "multiclass_nms3": {
            "inputs": {"BBoxes": NEAR, "Scores": SCORES},
            "outputs": {
                "Out": np.array(KEPT), "NmsRoisNum": np.array([len(KEPT)], "int32"),
                "Index": np.array([[int((SCORES[0, int(k)] == s).argmax())] for k, s, *_ in KEPT], "int32"),
            },
            "attrs": {"score_threshold": 0.2, "nms_top_k": -1, "keep_top_k": -1},
        },
        "multiclass_nms3/by_class": {
            "inputs": {
                "BBoxes": np.stack([NEAR[0]] * 3, 1), "Scores": SCORES[0].T.copy(),
                "RoisNum": np.array([0, 8], "int32"),
            },
            "outputs": {
                "Out": lambda out: np.testing.assert_allclose(
                    sorted(map(tuple, out)), sorted(map(tuple, KEPT)), 1e-6),
                "NmsRoisNum": np.array([0, len(KEPT)], "int32"),
            },
            "attrs": {"score_threshold": 0.2, "nms_top_k": -1, "keep_top_k": -1},
        },
        "yolo_box": {
            "inputs": {"X": HEAD, "ImgSize": SIZES}, "outputs": dict(zip(("Boxes", "Scores"), FOUND, strict=True)),
            "attrs": {"anchors": ANCHORS, "class_num": 2, "conf_thresh": 0.4},
        },
    },
)  # fmt: skip


def test_more_boxes_stay_or_go_with_other_scores():
    attrs = {"score_threshold": 0.2, "nms_top_k": -1, "keep_top_k": -1}
    one = run_op("multiclass_nms", {"BBoxes": NEAR, "Scores": SCORES * 0.3}, attrs)["Out"]
    assert len(np.asarray(one)) == len(plain.suppressed(NEAR[0], SCORES[0] * 0.3, 0.3, 0.2)) != len(KEPT)


def test_the_limit_falls_with_eta():
    attrs = {"score_threshold": 0.2, "nms_top_k": -1, "keep_top_k": -1, "nms_threshold": 0.9}
    operands = {"BBoxes": NEAR, "Scores": SCORES}
    rows = [np.asarray(run_op("multiclass_nms", operands, {**attrs, "nms_eta": eta})["Out"]) for eta in (0.5, 1.0)]
    assert len(rows[0]) < len(rows[1])


def test_where_no_box_stays():
    operands, attrs = {"BBoxes": NEAR, "Scores": SCORES}, {"score_threshold": 2.0, "nms_top_k": -1, "keep_top_k": -1}
    found = run_op("multiclass_nms", operands, attrs)["Out"]
    assert found.lod() == [[0, 1]] and np.asarray(found).tolist() == [[-1.0]]
    assert run_op("multiclass_nms2", operands, attrs)["Out"].shape() == [0, 6]


def test_regions_need_images():
    with pytest.raises(RuleError, match="does not contain LoD"):
        run_op("roi_pool", {"X": IMAGES, "ROIs": ROIS})
    with pytest.raises(RuleError, match="must have a sequence for each image"):
        run_op("roi_align", {"X": IMAGES, "ROIs": (ROIS, [[3]])})


def test_channels_for_each_anchor():
    with pytest.raises(RuleError, match="must have channels for each anchor"):
        run_op("yolo_box", {"X": HEAD, "ImgSize": SIZES}, {"anchors": ANCHORS})
    with pytest.raises(RuleError, match="must name some of its anchors"):
        run_op("yolov3_loss", GIVEN, {**TASK, "anchor_mask": [3]})


def test_a_density_for_each_size():
    attrs = {"fixed_sizes": [4.0, 5.0], "fixed_ratios": [1.0], "densities": [2], "variances": SPREAD}
    with pytest.raises(RuleError, match="a density for each of them"):
        run_op("density_prior_box", MAPS, attrs)


def test_sizes_for_each_smaller_one():
    with pytest.raises(RuleError, match="must have a greater number for each"):
        run_op("prior_box", MAPS, {"min_sizes": [4.0], "max_sizes": [3.0], "variances": SPREAD})


@pytest.mark.parametrize("op", ["prior_box", "density_prior_box"])
def test_one_step_without_the_other_counts_for_nothing(op):
    """As Paddle 2.6.2: both are taken from the sizes of image and map."""
    dense = {"fixed_sizes": [4.0], "fixed_ratios": [1.0], "densities": [2]}
    sizes = {"min_sizes": [4.0]} if op == "prior_box" else dense
    attrs = {**sizes, "variances": SPREAD}
    plain = run_op(op, MAPS, attrs)["Boxes"]
    for step in ({"step_w": 3.0}, {"step_h": 3.0}):
        np.testing.assert_array_equal(run_op(op, MAPS, {**attrs, **step})["Boxes"], plain)
    assert np.any(run_op(op, MAPS, {**attrs, "step_w": 3.0, "step_h": 3.0})["Boxes"] != plain)


def test_a_threshold_below_every_overlap_leaves_the_best_box_of_each_class():
    boxes = np.array([[[0, 0, 1, 1], [5, 5, 6, 6], [8, 8, 9, 9]]], "float32")
    scores = np.array([[[0.3, 0.9, 0.5], [0.8, 0.4, 0.2]]], "float32")
    attrs = {"score_threshold": 0.1, "nms_top_k": -1, "keep_top_k": -1, "background_label": -1, "nms_threshold": -1.0}
    out = run_op("multiclass_nms", {"BBoxes": boxes, "Scores": scores}, attrs)["Out"]
    np.testing.assert_allclose(np.asarray(out)[:, :3], [[0, 0.9, 5], [1, 0.8, 0]], rtol=1e-6)


def test_points_without_end_are_refused():
    """Found by random tests of kernels: a GPU goes through all of them."""
    box = ([[0.0, 0.0, 2.0, 2.0]], [[1]])
    with pytest.raises(RuleError, match="sampling_ratio"):
        run_op("roi_align", {"X": IMAGES[:1], "ROIs": box}, {"sampling_ratio": 2**31 - 1})
    with pytest.raises(RuleError, match="sampling_ratio"):
        given = {"X": IMAGES[:1], "ROIs": box, "Out@GRAD": np.ones((1, IMAGES.shape[1], 1, 1))}
        run_op("roi_align_grad", given, {"sampling_ratio": 8000}, ["X@GRAD"])
