"""Layers that match priors with objects, and choose among detections."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fluidnb.layer_helper import LayerHelper
from fluidnb.layers.one_op import one_op
from fluidnb.layers.several import several
from fluidnb.op import takes
from fluidnb.program import Variable
from fluidnb.program import layer_calls as naming

__all__ = ["bipartite_match", "detection_map", "multiclass_nms", "target_assign"]


def _given(**attrs: Any) -> dict[str, Any]:
    """The attributes that are not None."""
    return {name: value for name, value in attrs.items() if value is not None}


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
        name: name of the layer.

    Returns:
        The object of each prior, int32 [images, priors], counted within its image, -1 for none; how close they are,
        float [images, priors], 0 for none.

    Raises:
        OpTypeError: the matrix is not a Variable.
        OpValueError: an unknown match type.
        RuleError: the input is no matrix.

    Example:
        >>> index, close = fluid.layers.bipartite_match(fluid.layers.data("iou", [3]))
        >>> feed = {"iou": np.float32([[0.9, 0.8, 0.1], [0.7, 0.3, 0.2]])}
        >>> for value in fluid.Executor(fluid.CPUPlace()).run(feed=feed, fetch_list=[index, close]):
        ...     print(value)
        [[ 0  1 -1]]
        [[0.9 0.3 0. ]]

    Source: Fluid's layers.bipartite_match.
    """
    index, distance = several(
        "bipartite_match", {"DistMat": dist_matrix},
        {"ColToRowMatchIndices": "int32", "ColToRowMatchDist": dist_matrix.dtype},
        _given(match_type=match_type, dist_threshold=dist_threshold), name=name,
        constant=("ColToRowMatchIndices", "ColToRowMatchDist"),
    )  # fmt: skip
    return index, distance


@naming.layer
@takes(matched_indices="target_assign.MatchIndices", negative_indices="target_assign.NegIndices")
def target_assign(
    input: Variable,
    matched_indices: Variable,
    negative_indices: Variable | None = None,
    mismatch_value: int | None = None,
    name: str | None = None,
) -> tuple[Variable, Variable]:
    """Targets of priors: the row of the object that each is matched with.

    Args:
        input: targets [objects, priors or 1, width]; a sequence for each image. With fewer columns than priors, prior j
            takes column ``j % columns``.
        matched_indices: int32 [images, priors], the object of each prior within its image, -1 for none.
        negative_indices: int32 [negatives, 1], priors that learn ``mismatch_value``; a sequence for each image.
        mismatch_value: the target of a prior without an object; 0 by default.
        name: name of the layer.

    Returns:
        Targets [images, priors, width]; weights float32 [images, priors, 1]: 1 for a prior with an object and for a
        negative, else 0.

    Raises:
        OpTypeError: an argument is not a Variable.
        RuleError: shapes do not fit; while running, also sequences.
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

    Source: Fluid's layers.target_assign.
    """
    inputs: dict[str, Variable | list[Variable]] = {"X": input, "MatchIndices": matched_indices}
    inputs |= _given(NegIndices=negative_indices)
    target, weight = several(
        "target_assign", inputs, {"Out": input.dtype, "OutWeight": "float32"}, _given(mismatch_value=mismatch_value),
        name=name, constant=("Out", "OutWeight"),
    )  # fmt: skip
    return target, weight


@naming.layer
def multiclass_nms(
    bboxes: Variable,
    scores: Variable,
    score_threshold: float,
    nms_top_k: int,
    keep_top_k: int,
    nms_threshold: float = 0.3,
    normalized: bool = True,
    nms_eta: float = 1.0,
    background_label: int = 0,
    name: str | None = None,
) -> Variable:
    """Non-maximum suppression, class by class: of boxes that overlap, the one with the highest score.

    Args:
        bboxes: float [images, n, 4]: left, top, right, bottom; [images, n, 8, 16, 24 or 32]: x and y of each corner of
            a polygon; or [n, classes, 4], a sequence for each image.
        scores: float [images, classes, n]; or [n, classes], a sequence for each image.
        score_threshold: what a score must exceed.
        nms_top_k: how many boxes of a class are considered, the highest scores first; -1 for all.
        keep_top_k: how many boxes of an image are kept; -1 for all.
        nms_threshold: a box is dropped if its overlap with a better one exceeds this.
        normalized: whether coordinates are parts of the image; False for pixels, whose boxes include the last one.
        nms_eta: factor of ``nms_threshold`` after each box that is kept, while it is above 1/2.
        background_label: a class that is left out; -1 for none.
        name: name of the layer.

    Returns:
        Float [boxes, 6]: class, score, left, top, right, bottom (or the corners); a sequence for each image. Where no
        image has a box, [[-1]].

    Raises:
        OpTypeError: an argument is not a Variable.
        RuleError: the shapes do not fit together.

    Example:
        >>> boxes, scores = fluid.layers.data("boxes", [3, 4]), fluid.layers.data("scores", [2, 3])
        >>> found = fluid.layers.multiclass_nms(boxes, scores, score_threshold=0.1, nms_top_k=-1, keep_top_k=-1)
        >>> feed = {"boxes": np.float32([[[0, 0, 1, 1], [0, 0, 1, 0.9], [2, 2, 3, 3]]])}
        >>> feed["scores"] = np.float32([[[0, 0, 0], [0.5, 0.9, 0.7]]])
        >>> np.array(fluid.Executor(fluid.CPUPlace()).run(feed=feed, fetch_list=[found], return_numpy=False)[0])
        array([[1. , 0.9, 0. , 0. , 1. , 0.9],
               [1. , 0.7, 2. , 2. , 3. , 3. ]], dtype=float32)

    Source: Fluid's layers.multiclass_nms.
    """
    attrs = {
        "background_label": background_label, "score_threshold": score_threshold, "nms_top_k": nms_top_k,
        "nms_threshold": nms_threshold, "nms_eta": nms_eta, "keep_top_k": keep_top_k, "normalized": normalized,
    }  # fmt: skip
    return one_op("multiclass_nms", {"BBoxes": bboxes, "Scores": scores}, attrs, name=name, stop_gradient=True)


@naming.layer
@takes(ap_version=("integral", "11point"))
def detection_map(
    detect_res: Variable,
    label: Variable,
    class_num: int,
    background_label: int = 0,
    overlap_threshold: float = 0.3,
    evaluate_difficult: bool = True,
    has_state: Variable | None = None,
    input_states: Sequence[Variable] | None = None,
    out_states: Sequence[Variable] | None = None,
    ap_version: str = "integral",
) -> Variable:
    """Mean average precision (mAP) of detections.

    Args:
        detect_res: float [detections, 6]: class, score, left, top, right, bottom; a sequence for each image.
        label: float [objects, 5]: class, left, top, right, bottom; or [objects, 6] with 1 for difficult after the
            class; a sequence for each image.
        class_num: how many classes there are, with the background.
        background_label: ignored (compatibility): a class without objects never counts.
        overlap_threshold: what the overlap (intersection over union) of a right detection with its object exceeds.
        evaluate_difficult: whether difficult objects count.
        has_state: int32 [1], whether ``input_states`` are read; None for not.
        input_states: counts so far: objects of each class int32 [class_num, 1]; scores and flags of right detections
            [n, 2], and of wrong ones, a sequence for each class.
        out_states: variables for the counts with this batch; None creates them.
        ap_version: ``"integral"`` of precision over recall, or ``"11point"`` (VOC 2007).

    Returns:
        Float [1].

    Raises:
        OpTypeError: an argument is not a Variable.
        OpValueError: no number of classes, or an unknown version.
        RuleError: shapes do not fit; while running, also sequences.

    Example:
        >>> found, label = (fluid.layers.data(n, [width], lod_level=1) for n, width in (("found", 6), ("label", 5)))
        >>> mean = fluid.layers.detection_map(found, label, class_num=2)
        >>> boxes = np.float32([[1, 0.9, 0, 0, 0.5, 0.5], [1, 0.8, 0.5, 0.5, 1, 1]])
        >>> feed = {"found": fluid.create_lod_tensor(boxes, [[2]])}
        >>> feed["label"] = fluid.create_lod_tensor(boxes[1:, [0, 2, 3, 4, 5]], [[1]])
        >>> fluid.Executor(fluid.CPUPlace()).run(feed=feed, fetch_list=[mean])
        [array([0.5], dtype=float32)]

    Source: Fluid's layers.detection_map.
    """
    helper = LayerHelper("detection_map")
    inputs = {"DetectRes": detect_res, "Label": label} | _given(HasState=has_state)
    if input_states is not None:
        inputs |= dict(zip(("PosCount", "TruePos", "FalsePos"), input_states, strict=True))
    mean = helper.create_tmp_variable(detect_res.dtype, stop_gradient=True)
    states = out_states or [
        helper.create_tmp_variable(dtype, stop_gradient=True) for dtype in ("int32", "float32", "float32")
    ]
    outputs = dict(zip(("AccumPosCount", "AccumTruePos", "AccumFalsePos"), states, strict=True)) | {"MAP": mean}
    attrs = _given(
        class_num=class_num, overlap_threshold=overlap_threshold, evaluate_difficult=evaluate_difficult,
        ap_type=ap_version,
    )  # fmt: skip
    helper.append_op(
        type="detection_map", inputs={s: [v] for s, v in inputs.items()}, outputs={s: [v] for s, v in outputs.items()},
        attrs=attrs,
    )  # fmt: skip
    return mean
