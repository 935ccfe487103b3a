"""SSD: matching of objects and priors, targets, loss, heads, detections."""

import math
from collections.abc import Sequence
from typing import Any

from fluidnb.errors import OpValueError
from fluidnb.layers.activation import softmax
from fluidnb.layers.boxes import box_coder, iou_similarity, multiclass_nms, numbers
from fluidnb.layers.conv import Sizes, conv2d
from fluidnb.layers.creation import cast
from fluidnb.layers.losses import smooth_l1, softmax_with_cross_entropy
from fluidnb.layers.math import elementwise_div, reduce_sum
from fluidnb.layers.one_op import several
from fluidnb.layers.prior_boxes import prior_box
from fluidnb.layers.shape import concat, flatten, reshape, transpose
from fluidnb.op import takes
from fluidnb.program import Variable
from fluidnb.program import layer_calls as naming

__all__ = ["bipartite_match", "detection_output", "multi_box_head", "ssd_loss", "target_assign"]


@naming.layer
@takes(dist_matrix="bipartite_match.DistMat")
def bipartite_match(
    dist_matrix: Variable, match_type: str | None = None, dist_threshold: float | None = None, name: str | None = None
) -> tuple[Variable, Variable]:
    """Greedy matching of objects (rows) and priors (columns): the closest pair first, each once.

    Args:
        dist_matrix: float [objects, priors], for example of `iou_similarity`; a sequence for each image, or one image.
        match_type: ``"bipartite"`` (the default), or ``"per_prediction"``, where a prior that is left takes the closest
            object if it is close enough.
        dist_threshold: for ``"per_prediction"``, how close; 0.5 by default.

    Returns:
        The object of each prior, int32 [images, priors], counted within its image, -1 for none; how close they are,
        float [images, priors], 0 for none.

    Example:
        >>> index, close = fluid.layers.bipartite_match(fluid.layers.data("iou", [3]))
        >>> feed = {"iou": np.float32([[0.9, 0.8, 0.1], [0.7, 0.3, 0.2]])}
        >>> for value in fluid.Executor(fluid.CPUPlace()).run(feed=feed, fetch_list=[index, close]):
        ...     print(value)
        [[ 0  1 -1]]
        [[0.9 0.3 0. ]]
    """
    index, distance = several(
        "bipartite_match", {"DistMat": dist_matrix},
        {"ColToRowMatchIndices": "int32", "ColToRowMatchDist": dist_matrix.dtype},
        {"match_type": match_type, "dist_threshold": dist_threshold}, name=name,
        constant=("ColToRowMatchIndices", "ColToRowMatchDist"),
    )  # fmt: skip
    return index, distance


@naming.layer
@takes(matched_indices="target_assign.MatchIndices", negative_indices="target_assign.NegIndices")
def target_assign(
    input: Variable, matched_indices: Variable, negative_indices: Variable | None = None,
    mismatch_value: int | None = None, name: str | None = None,
) -> tuple[Variable, Variable]:  # fmt: skip
    """Targets of priors: the row of the object that each is matched with.

    Args:
        input: targets [objects, priors or 1, width]; a sequence for each image. With fewer columns than priors, prior j
            takes column ``j % columns``.
        matched_indices: int32 [images, priors], the object of each prior within its image, -1 for none.
        negative_indices: int32 [negatives, 1], priors that learn ``mismatch_value``; a sequence for each image.
        mismatch_value: the target of a prior without an object; 0 by default.

    Returns:
        Targets [images, priors, width]; weights float32 [images, priors, 1]: 1 for a prior with an object and for a
        negative, else 0.

    Raises:
        EnforceNotMet: while running, an index is outside.

    Example:
        >>> label = fluid.layers.data("label", [1, 1], dtype="int32", lod_level=1)
        >>> match = fluid.layers.data("match", [3], dtype="int32")
        >>> target, weight = fluid.layers.target_assign(label, match, mismatch_value=9)
        >>> labels = fluid.create_lod_tensor(np.int32([5, 7]).reshape(2, 1, 1), [[2]])
        >>> feed = {"label": labels, "match": np.int32([[1, -1, 0]])}
        >>> for value in fluid.Executor(fluid.CPUPlace()).run(feed=feed, fetch_list=[target, weight]):
        ...     print(value.ravel())
        [7 9 5]
        [1. 0. 1.]
    """
    inputs = {"X": input, "MatchIndices": matched_indices, "NegIndices": negative_indices}
    outputs, attrs = {"Out": input.dtype, "OutWeight": "float32"}, {"mismatch_value": mismatch_value}
    target, weight = several("target_assign", inputs, outputs, attrs, name=name, constant=tuple(outputs))
    return target, weight


@naming.layer
@takes(
    loc="float[batch, priors, 4]", scores="float[batch, priors, classes]", prior_box="box_coder.PriorBox",
    prior_box_var="box_coder.PriorBoxVar",
)  # fmt: skip
def detection_output(
    loc: Variable, scores: Variable, prior_box: Variable, prior_box_var: Variable, background_label: int = 0,
    nms_threshold: float = 0.3, nms_top_k: int = 400, keep_top_k: int = 200, score_threshold: float = 0.01,
    nms_eta: float = 1.0,
) -> Variable:  # fmt: skip
    """Detections of SSD: decoded boxes and softmax scores after non-maximum suppression.

    Args:
        loc: codes of boxes, float [batch, priors, 4].
        scores: class scores before softmax, float [batch, priors, classes].
        prior_box: float [priors, 4]: left, top, right, bottom as parts of the image.
        prior_box_var: their variances, float [priors, 4].
        score_threshold: what a probability must exceed.

    Returns:
        Float [boxes, 6]: class, probability, left, top, right, bottom; a sequence for each image. Where no image has a
        box, [[-1]]. No gradient passes.

    Example:
        >>> loc, scores = fluid.layers.data("loc", [2, 4]), fluid.layers.data("scores", [2, 3])
        >>> prior, variance = (fluid.layers.data(n, [2, 4], append_batch_size=False) for n in ("prior", "variance"))
        >>> found = fluid.layers.detection_output(loc, scores, prior, variance, score_threshold=0.5)
        >>> feed = {"loc": np.zeros((1, 2, 4), "float32"), "variance": np.full((2, 4), 0.1, "float32")}
        >>> feed |= {"prior": np.float32([[0, 0, 0.5, 0.5], [0.5, 0.5, 1, 1]])}
        >>> feed["scores"] = np.float32([[[0, 9, 0], [9, 0, 0]]])
        >>> out = fluid.Executor(fluid.CPUPlace()).run(feed=feed, fetch_list=[found], return_numpy=False)
        >>> np.array(out[0]).round(2)
        array([[1. , 1. , 0. , 0. , 0.5, 0.5]], dtype=float32)
    """
    boxes = box_coder(prior_box, prior_box_var, loc, code_type="decode_center_size")
    by_class = transpose(softmax(scores), perm=[0, 2, 1])
    by_class.stop_gradient = True
    return multiclass_nms(
        boxes, by_class, score_threshold, nms_top_k, keep_top_k, nms_threshold, nms_eta=nms_eta,
        background_label=background_label,
    )  # fmt: skip


@naming.layer
@takes(
    location="float[batch, priors, 4]", confidence="float[batch, priors, classes]", gt_box="float[objects, 4] lod",
    gt_label="int[objects, 1] lod", prior_box="box_coder.PriorBox", match_type="bipartite_match.match_type",
)  # fmt: skip
def ssd_loss(
    location: Variable, confidence: Variable, gt_box: Variable, gt_label: Variable, prior_box: Variable,
    prior_box_var: Variable | Sequence[float] | None = None, background_label: int = 0, overlap_threshold: float = 0.5,
    neg_pos_ratio: float = 3.0, neg_overlap: float = 0.5, loc_loss_weight: float = 1.0, conf_loss_weight: float = 1.0,
    match_type: str = "per_prediction", mining_type: str = "max_negative", normalize: bool = True,
    sample_size: int | None = None,
) -> Variable:  # fmt: skip
    """Loss of SSD: of the codes of matched priors, and of the classes of matched priors and hard negatives.

    Objects and priors are matched by overlap (`bipartite_match`). Of the priors without an object, those with the
    highest class loss are negatives: ``neg_pos_ratio`` for each match. The loss of a prior is
    ``conf_loss_weight · softmax cross entropy + loc_loss_weight · smooth L1``.

    Args:
        location: predicted codes of boxes, float [batch, priors, 4].
        confidence: predicted class scores before softmax, float [batch, priors, classes].
        gt_box: objects, float [objects, 4]: left, top, right, bottom as parts of the image; a sequence for each image.
        gt_label: their classes, int32 or int64 [objects, 1]; a sequence for each image.
        prior_box: float [priors, 4]: left, top, right, bottom as parts of the image.
        prior_box_var: their variances [priors, 4], or four numbers for all; None for none.
        background_label: the class of priors without an object.
        overlap_threshold: with ``match_type="per_prediction"``, which overlap lets a prior match more.
        neg_pos_ratio: negatives for each match.
        neg_overlap: a prior whose overlap with an object reaches this is no negative.
        loc_loss_weight: weight of the codes.
        conf_loss_weight: weight of the classes.
        match_type: ``"per_prediction"`` or ``"bipartite"``.
        mining_type: ``"max_negative"``, the one that Fluid has.
        normalize: whether the loss is divided by the number of matched priors of the batch.
        sample_size: ignored (compatibility): it belongs to another ``mining_type``.

    Returns:
        Float [batch, 1], the sum over the priors.

    Example:
        >>> loc, scores = fluid.layers.data("loc", [4, 4]), fluid.layers.data("scores", [4, 3])
        >>> prior, variance = (fluid.layers.data(n, [4, 4], append_batch_size=False) for n in ("prior", "variance"))
        >>> box = fluid.layers.data("box", [4], lod_level=1)
        >>> label = fluid.layers.data("label", [1], dtype="int32", lod_level=1)
        >>> loss = fluid.layers.ssd_loss(loc, scores, box, label, prior, variance)
        >>> corners = np.float32([[0, 0], [0.5, 0], [0, 0.5], [0.5, 0.5]])
        >>> priors = np.concatenate([corners, corners + 0.5], 1)
        >>> feed = {"prior": priors, "variance": np.full((4, 4), 0.1, "float32")}
        >>> feed |= {"box": fluid.create_lod_tensor(priors[:1], [[1]]), "loc": np.zeros((1, 4, 4), "float32")}
        >>> feed |= {"label": fluid.create_lod_tensor(np.int32([[2]]), [[1]]), "scores": np.zeros((1, 4, 3), "float32")}
        >>> fluid.Executor(fluid.CPUPlace()).run(feed=feed, fetch_list=[loss])[0].round(4)  # 4 · log(3)
        array([[4.3944]], dtype=float32)

    Source: Liu et al., "SSD: Single Shot MultiBox Detector" (2016).
    """
    if mining_type != "max_negative":
        raise OpValueError(
            "Only support mining_type == max_negative now.", expected='"max_negative"', received=repr(mining_type)
        )
    for argument, variable, rank, words in (
        ("confidence", confidence, 3, "[batch, priors, classes]"), ("prior_box", prior_box, 2, "[priors, 4]"),
    ):  # fmt: skip
        if len(variable.shape) != rank:
            raise OpValueError(
                f"{argument} of ssd_loss has the wrong number of dimensions.", expected=words,
                received=list(variable.shape),
            )  # fmt: skip
    priors = max(confidence.shape[1], prior_box.shape[0])  # one of them may be -1

    matches, overlap = bipartite_match(iou_similarity(gt_box, prior_box), match_type, overlap_threshold)
    label = reshape(gt_label, [0] * (len(gt_label.shape) - 1) + [-1, 1])
    label.stop_gradient = True

    rows = flatten(confidence, axis=2)
    first_guess = _rows(target_assign(label, matches, mismatch_value=background_label)[0], "int64")
    difficulty = reshape(_class_loss(rows, first_guess), [-1, priors])
    difficulty.stop_gradient = True
    negatives, kept = several(
        "mine_hard_examples", {"ClsLoss": difficulty, "MatchIndices": matches, "MatchDist": overlap},
        {"NegIndices": "int32", "UpdatedMatchIndices": matches.dtype},
        {"neg_pos_ratio": neg_pos_ratio, "neg_dist_threshold": neg_overlap, "mining_type": mining_type},
        constant=("NegIndices", "UpdatedMatchIndices"),
    )  # fmt: skip

    codes = box_coder(prior_box, prior_box_var, gt_box, code_type="encode_center_size")
    codes, code_weight = target_assign(codes, kept, mismatch_value=background_label)
    kinds, kind_weight = target_assign(label, kept, negatives, mismatch_value=background_label)
    code_weight, kind_weight = _rows(code_weight), _rows(kind_weight)

    conf_loss = _class_loss(rows, _rows(kinds, "int64")) * kind_weight
    loc_loss = smooth_l1(flatten(location, axis=2), _rows(codes)) * code_weight
    loss = reshape(conf_loss * conf_loss_weight + loc_loss * loc_loss_weight, [-1, priors])
    loss = reduce_sum(loss, dim=1, keep_dim=True)
    return elementwise_div(loss, reduce_sum(code_weight)) if normalize else loss


def _class_loss(scores: Variable, kinds: Variable) -> Variable:
    """The cross entropy of each prior [batch · priors, 1]."""
    loss = softmax_with_cross_entropy(scores, kinds)
    assert isinstance(loss, Variable)
    return loss


def _rows(x: Variable, dtype: str | None = None) -> Variable:
    """Targets [batch, priors, width] as [batch · priors, width], of another dtype; no gradient passes."""
    out = flatten(x, axis=2)
    if dtype is not None:
        out = cast(out, dtype)
    out.stop_gradient = True
    return out


def _sizes(
    maps: int, base_size: int, low: int | None, high: int | None, small: Any, large: Any
) -> tuple[list[Any], list[Any]]:
    """Smaller and larger sides of the priors of each feature map."""
    if maps > 2 and small is None and large is None:
        sides = [base_size, *(n for n in (low, high) if n is not None)]
        numbers(sides, "base_size, min_ratio or max_ratio", "multi_box_head")
        if low is None or high is None or high < low:
            raise OpValueError(
                "multi_box_head needs the sizes of priors.", expected="min_ratio <= max_ratio, or min_sizes, max_sizes",
                received=f"min_ratio {low}, max_ratio {high}",
            )  # fmt: skip
        step = math.floor((high - low) / (maps - 2))
        ratios = list(range(int(low), int(high) + 1, step)) if step else [low]
        if len(ratios) < maps - 1:
            raise OpValueError(
                "min_ratio and max_ratio of multi_box_head are too close.",
                expected=f"a difference of {maps - 2} or more, for {maps} feature maps", received=f"{low} and {high}",
            )  # fmt: skip
        small = [base_size * 0.1, *(base_size * r / 100 for r in ratios)]
        large = [base_size * 0.2, *(base_size * (r + step) / 100 for r in ratios)]
    elif small is None or large is None:
        raise OpValueError(
            "multi_box_head needs min_sizes and max_sizes.", expected=f"{maps} of each, one for each feature map",
            received=f"min_sizes {small}, max_sizes {large}",
            hint="with three feature maps or more, min_ratio and max_ratio give them.",
        )  # fmt: skip
    return small, large


def _one_each(value: Any, argument: str, maps: int) -> Any:
    """An argument that has an element for each feature map."""
    if not isinstance(value, list | tuple) or len(value) < maps:
        raise OpValueError(
            f"{argument} of multi_box_head should be list or tuple, and the length of inputs and {argument} should be "
            "the same.", expected=f"{maps} of them, one for each feature map", received=repr(value),
        )  # fmt: skip
    return value


@naming.layer
@takes(inputs="prior_box.Input", image="prior_box.Image")
def multi_box_head(
    inputs: Sequence[Variable], image: Variable, base_size: int, num_classes: int,
    aspect_ratios: Sequence[float | Sequence[float]], min_ratio: int | None = None, max_ratio: int | None = None,
    min_sizes: Sequence[float | Sequence[float]] | None = None,
    max_sizes: Sequence[float | Sequence[float]] | None = None, steps: Sequence[float] | None = None,
    step_w: Sequence[float] | None = None, step_h: Sequence[float] | None = None, offset: float = 0.5,
    variance: Sequence[float] = (0.1, 0.1, 0.2, 0.2), flip: bool = True, clip: bool = False, kernel_size: Sizes = 1,
    pad: Sizes = 0, stride: Sizes = 1, name: str | None = None, min_max_aspect_ratios_order: bool = False,
) -> tuple[Variable, Variable, Variable, Variable]:  # fmt: skip
    """Heads of SSD: for each feature map prior boxes, and convolutions that give their codes and class scores.

    Args:
        inputs: feature maps [batch, channels, h, w].
        base_size: side of the image in pixels, of which ratios are parts.
        num_classes: how many classes there are, with the background.
        aspect_ratios: for each map the width over height of its priors: a number or a list.
        min_ratio: with three maps or more, the smallest prior of the second map, in percent of ``base_size``.
        max_ratio: the smallest prior of the last map, in percent; the ratios between are evenly spaced.
        min_sizes: for each map the sides of its squares, in pixels, instead of ratios: a number or a list.
        max_sizes: for each map larger sides; see `prior_box`.
        steps: for each map the pixels from one place to the next; None for the image's size over the map's.
        step_w: the same, across alone.
        step_h: the same, down alone.
        offset: where in its place a prior has its center, from 0 to 1.
        flip: whether the inverse of each aspect ratio counts, too.
        clip: whether priors end at the edges of the image.
        kernel_size: of the convolutions.
        pad: of the convolutions.
        stride: of the convolutions.
        name: ignored (compatibility).
        min_max_aspect_ratios_order: see `prior_box`.

    Returns:
        Codes [batch, priors, 4]; class scores [batch, priors, num_classes]; priors and their variances, [priors, 4]
        each, or [h, w, priors, 4] for a single map.

    Raises:
        OpValueError: an argument has not one element for each map.

    Example:
        >>> image, fine = fluid.layers.data("image", [3, 64, 64]), fluid.layers.data("fine", [8, 8, 8])
        >>> coarse = fluid.layers.data("coarse", [16, 4, 4])
        >>> sizes = {"min_sizes": [8.0, 20.0], "max_sizes": [16.0, 40.0]}
        >>> found = fluid.layers.multi_box_head([fine, coarse], image, 64, 3, [[2.0], [2.0]], **sizes)
        >>> [v.shape for v in found]
        [(-1, 320, 4), (-1, 320, 3), (320, 4), (320, 4)]

    Source: Liu et al., "SSD: Single Shot MultiBox Detector" (2016).
    """
    if not inputs:
        raise OpValueError(
            "inputs of multi_box_head must not be empty.", expected="a feature map or more", received="no elements"
        )
    if num_classes < 1:
        raise OpValueError(
            "num_classes of multi_box_head must be a number of classes.", expected="an int, 1 or more",
            received=repr(num_classes),
        )  # fmt: skip
    maps = len(inputs)
    small, large = _sizes(maps, base_size, min_ratio, max_ratio, min_sizes, max_sizes)
    each: dict[str, Any] = {
        "min_sizes": small, "max_sizes": large, "aspect_ratios": aspect_ratios or [[]] * maps,
        "step_w": steps or step_w or [0.0] * maps, "step_h": steps or step_h or [0.0] * maps,
    }  # fmt: skip
    each = {argument: _one_each(value, argument, maps) for argument, value in each.items()}
    codes: list[Variable] = []
    scores: list[Variable] = []
    boxes: list[Variable] = []
    variances: list[Variable] = []
    for i, input in enumerate(inputs):
        box, spread = prior_box(
            input, image, each["min_sizes"][i], each["max_sizes"][i], each["aspect_ratios"][i], variance, flip, clip,
            (each["step_w"][i], each["step_h"][i]), offset, None, min_max_aspect_ratios_order,
        )  # fmt: skip
        priors = box.shape[2]
        for out, width in ((codes, 4), (scores, num_classes)):
            head = conv2d(input, priors * width, kernel_size, stride=stride, padding=pad)
            out.append(reshape(transpose(head, perm=[0, 2, 3, 1]), [0, -1, width]))
        boxes.append(box)
        variances.append(spread)
    if maps == 1:
        return codes[0], scores[0], boxes[0], variances[0]
    return concat(codes, axis=1), concat(scores, axis=1), _stacked(boxes), _stacked(variances)


def _stacked(maps: list[Variable]) -> Variable:
    """The priors of all maps as [priors, 4]; no gradient passes."""
    out = concat([flatten(x, axis=3) for x in maps])
    out.stop_gradient = True
    return out
