"""Layers of object detection: boxes, priors, matching, regions, proposals, masks, SSD and YOLOv3."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Real
from typing import Annotated, Any

from fluidnb.arguments import Rule
from fluidnb.errors import OpTypeError, OpValueError, typed
from fluidnb.layer_helper import LayerHelper
from fluidnb.layers.activation import softmax
from fluidnb.layers.conv import Sizes, conv2d
from fluidnb.layers.creation import cast
from fluidnb.layers.losses import smooth_l1, softmax_with_cross_entropy
from fluidnb.layers.math import elementwise_div, reduce_sum
from fluidnb.layers.one_op import as_attr, as_input, one_op, several
from fluidnb.layers.shape import concat, flatten, gather, reshape, transpose
from fluidnb.op import takes
from fluidnb.program import Variable
from fluidnb.program import layer_calls as naming

__all__ = [
    "anchor_generator", "bipartite_match", "box_clip", "box_coder", "box_decoder_and_assign", "collect_fpn_proposals",
    "density_prior_box", "detection_map", "detection_output", "distribute_fpn_proposals", "generate_mask_labels",
    "generate_proposal_labels", "generate_proposals", "iou_similarity", "multi_box_head", "multiclass_nms",
    "polygon_box_transform", "prior_box", "psroi_pool", "roi_align", "roi_perspective_transform", "roi_pool",
    "rpn_target_assign", "ssd_loss", "target_assign", "yolo_box", "yolov3_loss",
]  # fmt: skip


def numbers(value: Any, argument: str, layer: str, *, count: int | None = None, one: bool = False) -> list[float]:
    """Gives an argument as a list of floats.

    Args:
        count: how many there must be; None for any number.
    """
    values = [value] if one and isinstance(value, Real) else value
    expected = f"{'a number, or ' * one}a list of {'' if count is None else f'{count} '}numbers"
    if not isinstance(values, Sequence) or not all(isinstance(v, Real) for v in values):
        raise OpTypeError(f"{argument} of {layer} must be numbers.", expected=expected, received=typed(value))
    if count is not None and len(values) != count:
        raise OpValueError(f"{argument} of {layer} must be {count} numbers.", expected=expected, received=repr(value))
    return [float(v) for v in values]


@naming.layer
def iou_similarity(x: Variable, y: Variable, name: str | None = None) -> Variable:
    """Intersection over union of every pair of boxes.

    Args:
        x: float [n, 4]: left, top, right, bottom; sequences are propagated.
        y: float [m, 4].
        name: name of the result.

    Returns:
        float [n, m].

    Example:
        >>> x, y = fluid.layers.data("x", [4], lod_level=1), fluid.layers.data("y", [4])
        >>> iou = fluid.layers.iou_similarity(x, y)
        >>> boxes = {"x": [[0.0, 0.0, 2.0, 1.0]], "y": [[1.0, 0.0, 2.0, 1.0], [2.0, 0.0, 3.0, 1.0]]}
        >>> boxes = {name: np.array(value, "float32") for name, value in boxes.items()}
        >>> fluid.Executor(fluid.CPUPlace()).run(feed=boxes, fetch_list=[iou])[0]
        array([[0.5, 0. ]], dtype=float32)
    """
    return one_op("iou_similarity", {"X": x, "Y": y}, out_name=name)


@naming.layer
def box_coder(
    prior_box: Variable,
    prior_box_var: Variable | Sequence[float] | None,
    target_box: Variable,
    code_type: str = "encode_center_size",
    box_normalized: bool = True,
    name: str | None = None,
    axis: int = 0,
) -> Variable:
    """Encodes boxes relative to priors, or decodes such codes to boxes.

    With center (x, y), size (w, h) and variances v, the code of target t relative to prior p is
    ``((t.x - p.x) / p.w / v0, (t.y - p.y) / p.h / v1, log(t.w / p.w) / v2, log(t.h / p.h) / v3)``.

    Args:
        prior_box: float [m, 4]: left, top, right, bottom.
        prior_box_var: variances, a variable [m, 4] or four numbers for all priors; None for none.
        target_box: boxes [n, 4] to encode; or codes [n, m, 4] to decode, [m, n, 4] with ``axis=1``.
        code_type: ``"encode_center_size"`` or ``"decode_center_size"``.
        box_normalized: whether coordinates are parts of the image; False for pixels, whose boxes include the last one.
        name: name of the result.
        axis: to decode, the axis of ``target_box`` that has no priors: 0 or 1.

    Returns:
        Codes [n, m, 4], or boxes of the shape of ``target_box``.

    Example:
        >>> prior, target = fluid.layers.data("prior", [4]), fluid.layers.data("target", [4])
        >>> code = fluid.layers.box_coder(prior, [0.1, 0.1, 0.2, 0.2], target)
        >>> boxes = {"prior": np.float32([[0, 0, 1, 1]]), "target": np.float32([[0.5, 0, 1.5, 1]])}
        >>> fluid.Executor(fluid.CPUPlace()).run(feed=boxes, fetch_list=[code])[0].round(4)
        array([[[5., 0., 0., 0.]]], dtype=float32)
    """
    inputs = {"PriorBox": prior_box, "TargetBox": target_box, "PriorBoxVar": as_input(prior_box_var)}
    attrs: dict[str, object] = {"code_type": code_type, "box_normalized": box_normalized, "axis": axis}
    if as_attr(prior_box_var) is not None:
        attrs["variance"] = numbers(prior_box_var, "prior_box_var", "box_coder", count=4)
    return one_op("box_coder", inputs, attrs, slot="OutputBox", out_name=name)


@naming.layer
def box_clip(input: Variable, im_info: Variable, name: str | None = None) -> Variable:
    """Boxes limited to their image.

    Args:
        input: float [boxes, …, 4]: left, top, right, bottom in pixels; a sequence for each image.
        im_info: float [images, 3]: height and width as the network sees the image, and its scale.

    Returns:
        The shape of ``input``; coordinates from 0 to ``round(size / scale) - 1``.

    Example:
        >>> boxes, info = fluid.layers.data("boxes", [4], lod_level=1), fluid.layers.data("info", [3])
        >>> clipped = fluid.layers.box_clip(boxes, info)
        >>> feed = {"boxes": fluid.create_lod_tensor(np.float32([[-1, 0, 9, 3]]), [[1]])}
        >>> feed["info"] = np.float32([[8, 8, 1]])
        >>> out = fluid.Executor(fluid.CPUPlace()).run(feed=feed, fetch_list=[clipped], return_numpy=False)
        >>> np.array(out[0])
        array([[0., 0., 7., 3.]], dtype=float32)
    """
    return one_op("box_clip", {"Input": input, "ImInfo": im_info}, slot="Output", name=name)


@naming.layer
def polygon_box_transform(input: Variable, name: str | None = None) -> Variable:
    """Corners of quadrilaterals from the offsets that a text detector (EAST) gives at each place of a map.

    Args:
        input: float [batch, 2 · corners, height, width]: offsets in x and y of each corner, in turn.
        name: name of the result.

    Returns:
        The shape of ``input``: ``4 · column - offset`` in channels of x, ``4 · row - offset`` in channels of y.

    Example:
        >>> corners = fluid.layers.polygon_box_transform(fluid.layers.data("offsets", [2, 1, 2]))
        >>> feed = {"offsets": np.ones((1, 2, 1, 2), "float32")}
        >>> fluid.Executor(fluid.CPUPlace()).run(feed=feed, fetch_list=[corners])[0].ravel()
        array([-1.,  3., -1., -1.], dtype=float32)
    """
    return one_op("polygon_box_transform", {"Input": input}, slot="Output", out_name=name)


def _pair(
    op_type: str, inputs: dict[str, Variable | list[Variable]], slot: str, attrs: dict[str, Any], name: str | None
) -> tuple[Variable, Variable]:
    """Append a generator of boxes; gradients end at both outputs."""
    dtype = getattr(inputs["Input"], "dtype", None)
    boxes, variances = several(
        op_type, inputs, {slot: dtype, "Variances": dtype}, attrs, name=name, constant=(slot, "Variances")
    )
    return boxes, variances


@naming.layer
def prior_box(
    input: Variable,
    image: Variable,
    min_sizes: float | Sequence[float],
    max_sizes: float | Sequence[float] | None = None,
    aspect_ratios: float | Sequence[float] = (1.0,),
    variance: Sequence[float] = (0.1, 0.1, 0.2, 0.2),
    flip: bool = False,
    clip: bool = False,
    steps: Sequence[float] = (0.0, 0.0),
    offset: float = 0.5,
    name: str | None = None,
    min_max_aspect_ratios_order: bool = False,
) -> tuple[Variable, Variable]:
    """Prior boxes of some sizes and aspect ratios at every place of a feature map, for SSD.

    Args:
        input: feature map [batch, channels, h, w].
        min_sizes: sides of squares, in pixels; each also has the aspect ratios.
        max_sizes: for each of them a larger one, whose geometric mean with it is the side of one more square; or None.
        aspect_ratios: width over height; 1 is always there.
        flip: whether the inverse of each ratio counts, too.
        clip: whether boxes end at the edges of the image.
        offset: where in its place a box has its center, from 0 to 1.
        min_max_aspect_ratios_order: whether the squares come first: min, max, then the other ratios (Caffe's order).

    Returns:
        Boxes float [h, w, priors, 4]: left, top, right, bottom as parts of the image; their variances, of that shape.

    Example:
        >>> conv, image = fluid.layers.data("conv", [8, 3, 3]), fluid.layers.data("image", [3, 30, 30])
        >>> boxes, variances = fluid.layers.prior_box(conv, image, [10.0], [20.0], [2.0], flip=True)
        >>> boxes.shape
        (3, 3, 4, 4)

    Source: Liu et al., "SSD: Single Shot MultiBox Detector" (2016).
    """
    step_w, step_h = numbers(steps, "steps", "prior_box", count=2)
    attrs: dict[str, Any] = {
        "min_sizes": numbers(min_sizes, "min_sizes", "prior_box", one=True),
        "aspect_ratios": numbers(aspect_ratios, "aspect_ratios", "prior_box", one=True),
        "variances": numbers(variance, "variance", "prior_box", count=4), "flip": flip, "clip": clip,
        "step_w": step_w, "step_h": step_h, "offset": offset,
        "min_max_aspect_ratios_order": min_max_aspect_ratios_order,
    }  # fmt: skip
    large = [] if max_sizes is None else numbers(max_sizes, "max_sizes", "prior_box", one=True)
    if large and large[0] > 0:
        attrs["max_sizes"] = large
    return _pair("prior_box", {"Input": input, "Image": image}, "Boxes", attrs, name)


@naming.layer
def density_prior_box(
    input: Variable,
    image: Variable,
    densities: Sequence[int] | None = None,
    fixed_sizes: Sequence[float] | None = None,
    fixed_ratios: Sequence[float] | None = None,
    variance: Sequence[float] = (0.1, 0.1, 0.2, 0.2),
    clip: bool = False,
    steps: Sequence[float] = (0.0, 0.0),
    offset: float = 0.5,
    flatten_to_2d: bool = False,
    name: str | None = None,
) -> tuple[Variable, Variable]:
    """Prior boxes of some sizes and aspect ratios at several points of every place of a feature map, for FaceBoxes.

    Args:
        input: feature map [batch, channels, h, w].
        densities: for each size the number of points along each side of a place.
        fixed_sizes: sides of squares, in pixels.
        fixed_ratios: width over height.
        clip: ignored (compatibility): boxes always end at the edges of the image, as in Fluid.
        offset: where in its place the points have their center, from 0 to 1.
        flatten_to_2d: whether the results are [h · w · priors, 4].

    Returns:
        Boxes float [h, w, priors, 4]: left, top, right, bottom as parts of the image; their variances, of that shape.

    Example:
        >>> conv, image = fluid.layers.data("conv", [8, 3, 3]), fluid.layers.data("image", [3, 30, 30])
        >>> boxes, variances = fluid.layers.density_prior_box(conv, image, [2, 1], [4.0, 8.0], [1.0])
        >>> boxes.shape
        (3, 3, 5, 4)

    Source: Zhang et al., "FaceBoxes" (2017).
    """
    layer = "density_prior_box"
    step_w, step_h = numbers(steps, "steps", layer, count=2)
    many = numbers(densities, "densities", layer)
    if any(n != int(n) for n in many):
        raise OpTypeError(
            "densities of density_prior_box must be whole numbers.", expected="a list of ints", received=densities
        )
    attrs = {
        "densities": [int(n) for n in many], "fixed_sizes": numbers(fixed_sizes, "fixed_sizes", layer),
        "fixed_ratios": numbers(fixed_ratios, "fixed_ratios", layer),
        "variances": numbers(variance, "variance", layer, count=4), "clip": clip, "step_w": step_w, "step_h": step_h,
        "offset": offset, "flatten_to_2d": flatten_to_2d,
    }  # fmt: skip
    return _pair(layer, {"Input": input, "Image": image}, "Boxes", attrs, name)


@naming.layer
def anchor_generator(
    input: Variable,
    anchor_sizes: float | Sequence[float] | None = None,
    aspect_ratios: float | Sequence[float] | None = None,
    variance: Sequence[float] = (0.1, 0.1, 0.2, 0.2),
    stride: Sequence[float] | None = None,
    offset: float = 0.5,
    name: str | None = None,
) -> tuple[Variable, Variable]:
    """Anchors of some sizes and aspect ratios at every place of a feature map, for Faster R-CNN.

    Args:
        input: feature map [batch, channels, h, w].
        anchor_sizes: sides of squares of the same area, in pixels of the image.
        aspect_ratios: height over width.
        stride: pixels from one place to the next, across and down.
        offset: where in its place an anchor has its center, from 0 to 1.

    Returns:
        Anchors float [h, w, anchors, 4]: left, top, right, bottom in pixels; their variances, of that shape.

    Example:
        >>> conv = fluid.layers.data("conv", [8, 3, 3])
        >>> anchors, _ = fluid.layers.anchor_generator(conv, [32.0, 64.0], [0.5, 1.0, 2.0], stride=[16.0, 16.0])
        >>> anchors.shape
        (3, 3, 6, 4)

    Source: Ren et al., "Faster R-CNN" (2015).
    """
    layer = "anchor_generator"
    attrs = {
        "anchor_sizes": numbers(anchor_sizes, "anchor_sizes", layer, one=True),
        "aspect_ratios": numbers(aspect_ratios, "aspect_ratios", layer, one=True),
        "variances": numbers(variance, "variance", layer, count=4), "stride": numbers(stride, "stride", layer, count=2),
        "offset": offset,
    }  # fmt: skip
    return _pair(layer, {"Input": input}, "Anchors", attrs, name)


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
        normalized: whether coordinates are parts of the image; False for pixels, whose boxes include the last one.
        background_label: a class that is left out; -1 for none.

    Returns:
        Float [boxes, 6]: class, score, left, top, right, bottom (or the corners); a sequence for each image. Where no
        image has a box, [[-1]].

    Example:
        >>> boxes, scores = fluid.layers.data("boxes", [3, 4]), fluid.layers.data("scores", [2, 3])
        >>> found = fluid.layers.multiclass_nms(boxes, scores, score_threshold=0.1, nms_top_k=-1, keep_top_k=-1)
        >>> feed = {"boxes": np.float32([[[0, 0, 1, 1], [0, 0, 1, 0.9], [2, 2, 3, 3]]])}
        >>> feed["scores"] = np.float32([[[0, 0, 0], [0.5, 0.9, 0.7]]])
        >>> np.array(fluid.Executor(fluid.CPUPlace()).run(feed=feed, fetch_list=[found], return_numpy=False)[0])
        array([[1. , 0.9, 0. , 0. , 1. , 0.9],
               [1. , 0.7, 2. , 2. , 3. , 3. ]], dtype=float32)
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

    Example:
        >>> found, label = (fluid.layers.data(n, [width], lod_level=1) for n, width in (("found", 6), ("label", 5)))
        >>> mean = fluid.layers.detection_map(found, label, class_num=2)
        >>> boxes = np.float32([[1, 0.9, 0, 0, 0.5, 0.5], [1, 0.8, 0.5, 0.5, 1, 1]])
        >>> feed = {"found": fluid.create_lod_tensor(boxes, [[2]])}
        >>> feed["label"] = fluid.create_lod_tensor(boxes[1:, [0, 2, 3, 4, 5]], [[1]])
        >>> fluid.Executor(fluid.CPUPlace()).run(feed=feed, fetch_list=[mean])
        [array([0.5], dtype=float32)]
    """
    inputs = {"DetectRes": detect_res, "Label": label, "HasState": has_state}
    if input_states is not None:
        inputs |= dict(zip(("PosCount", "TruePos", "FalsePos"), input_states, strict=True))
    states: Sequence[Variable | str] = out_states or ("int32", "float32", "float32")
    outputs: dict[str, Any] = {"MAP": detect_res.dtype}
    outputs |= dict(zip(("AccumPosCount", "AccumTruePos", "AccumFalsePos"), states, strict=True))
    attrs = {
        "class_num": class_num, "overlap_threshold": overlap_threshold, "evaluate_difficult": evaluate_difficult,
        "ap_type": ap_version,
    }  # fmt: skip
    return several("detection_map", inputs, outputs, attrs, constant=tuple(outputs))[0]


@naming.layer
def roi_pool(
    input: Variable, rois: Variable, pooled_height: int = 1, pooled_width: int = 1, spatial_scale: float = 1.0
) -> Variable:
    """The largest pixel of each part of each region.

    Args:
        input: images [batch, channels, height, width].

    Returns:
        [regions, channels, pooled_height, pooled_width].

    Example:
        >>> x, rois = fluid.layers.data("x", [8, 32, 32]), fluid.layers.data("rois", [4], lod_level=1)
        >>> fluid.layers.roi_pool(x, rois, 7, 7, 0.25).shape
        (-1, 8, 7, 7)

    Source: Girshick, "Fast R-CNN" (2015).
    """
    attrs = {"pooled_height": pooled_height, "pooled_width": pooled_width, "spatial_scale": spatial_scale}
    out, _ = several(
        "roi_pool", {"X": input, "ROIs": rois}, {"Out": input.dtype, "Argmax": "int64"}, attrs, constant=("Argmax",)
    )
    return out


@naming.layer
def roi_align(
    input: Variable,
    rois: Variable,
    pooled_height: int = 1,
    pooled_width: int = 1,
    spatial_scale: float = 1.0,
    sampling_ratio: int = -1,
    name: str | None = None,
) -> Variable:
    """The mean of each part of each region, read at evenly spaced points between pixels.

    Args:
        input: images [batch, channels, height, width].
        sampling_ratio: points of a part along each axis; 0 or less for one for each pixel.

    Returns:
        [regions, channels, pooled_height, pooled_width].

    Example:
        >>> x, rois = fluid.layers.data("x", [8, 32, 32]), fluid.layers.data("rois", [4], lod_level=1)
        >>> fluid.layers.roi_align(x, rois, 7, 7, 0.25, sampling_ratio=2).shape
        (-1, 8, 7, 7)

    Source: He et al., "Mask R-CNN" (2017).
    """
    attrs = {
        "pooled_height": pooled_height, "pooled_width": pooled_width, "spatial_scale": spatial_scale,
        "sampling_ratio": sampling_ratio,
    }  # fmt: skip
    return one_op("roi_align", {"X": input, "ROIs": rois}, attrs, name=name)


@naming.layer
def psroi_pool(
    input: Variable,
    rois: Variable,
    output_channels: int,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    name: str | None = None,
) -> Variable:
    """The mean of each part of each region, in a channel that belongs to the part.

    Args:
        input: images [batch, output_channels · pooled_height · pooled_width, height, width].
        output_channels: channels of the result.

    Returns:
        [regions, output_channels, pooled_height, pooled_width].

    Example:
        >>> x, rois = fluid.layers.data("x", [18, 32, 32]), fluid.layers.data("rois", [4], lod_level=1)
        >>> fluid.layers.psroi_pool(x, rois, 2, 0.25, 3, 3).shape
        (-1, 2, 3, 3)

    Source: Dai et al., "R-FCN" (2016).
    """
    attrs = {
        "output_channels": output_channels, "spatial_scale": spatial_scale, "pooled_height": pooled_height,
        "pooled_width": pooled_width,
    }  # fmt: skip
    return one_op("psroi_pool", {"X": input, "ROIs": rois}, attrs, name=name)


@naming.layer
def roi_perspective_transform(
    input: Variable, rois: Variable, transformed_height: int, transformed_width: int, spatial_scale: float = 1.0
) -> Variable:
    """Quadrilaterals of images as upright rectangles, read between pixels.

    Args:
        input: images [batch, channels, height, width].
        rois: quadrilaterals [regions, 8]: x and y of the corners, from the top left one clockwise; a sequence for each
            image.
        transformed_height: rows of the result.
        transformed_width: columns of the result; a narrower region leaves those on the right at 0.

    Returns:
        [regions, channels, transformed_height, transformed_width].

    Example:
        >>> x, rois = fluid.layers.data("x", [8, 32, 32]), fluid.layers.data("rois", [8], lod_level=1)
        >>> fluid.layers.roi_perspective_transform(x, rois, 8, 20, 0.25).shape
        (-1, 8, 8, 20)

    Source: Liu et al., "FOTS" (2018).
    """
    attrs = {
        "transformed_height": transformed_height, "transformed_width": transformed_width, "spatial_scale": spatial_scale
    }
    return one_op("roi_perspective_transform", {"X": input, "ROIs": rois}, attrs)


#: The number of a level of a pyramid of images.
Level = Annotated[int, Rule("an int from 0 to 1,000", lambda n: 0 <= n <= 1000)]


@naming.layer
@takes(
    bbox_pred="float[images, anchors, 4]", cls_logits="float[images, anchors, 1]",
    anchor_box="rpn_target_assign.Anchor", anchor_var="float[anchors, 4]",
)  # fmt: skip
def rpn_target_assign(
    bbox_pred: Variable,
    cls_logits: Variable,
    anchor_box: Variable,
    anchor_var: Variable,
    gt_boxes: Variable,
    is_crowd: Variable,
    im_info: Variable,
    rpn_batch_size_per_im: int = 256,
    rpn_straddle_thresh: float = 0.0,
    rpn_fg_fraction: float = 0.5,
    rpn_positive_overlap: float = 0.7,
    rpn_negative_overlap: float = 0.3,
    use_random: bool = True,
) -> tuple[Variable, Variable, Variable, Variable, Variable]:
    """Predictions of the anchors that learn, with what they learn.

    Args:
        bbox_pred: predicted boxes as deltas [images, anchors, 4].
        cls_logits: predicted scores [images, anchors, 1].
        anchor_box: [anchors, 4]: left, top, right, bottom.
        anchor_var: variances of the anchors; they are not used.
        is_crowd: int32 [objects, 1], 1 for a crowd, which does not count; a sequence for each image.
        rpn_batch_size_per_im: how many anchors of an image learn scores, at most.
        rpn_straddle_thresh: how far an anchor may reach beyond its image; below 0 any distance.
        rpn_fg_fraction: the share of anchors with an object, at most.
        rpn_positive_overlap: the overlap from which an anchor has an object.
        rpn_negative_overlap: the overlap below which an anchor has none.
        use_random: whether anchors are drawn at random; otherwise the first ones are taken.

    Returns:
        Predicted scores [labels, 1] and boxes [boxes, 4] of the anchors that learn; labels, int32 [labels, 1]; targets
        of the boxes [boxes, 4]; and their weights, 1 or 0 [boxes, 4].

    Example:
        >>> deltas, scores, anchors = (fluid.layers.data(n, s) for n, s in (("d", [9, 4]), ("s", [9, 1]), ("a", [4])))
        >>> boxes, info = fluid.layers.data("boxes", [4], lod_level=1), fluid.layers.data("info", [3])
        >>> crowd = fluid.layers.data("crowd", [1], dtype="int32", lod_level=1)
        >>> found = fluid.layers.rpn_target_assign(deltas, scores, anchors, anchors, boxes, crowd, info)
        >>> [v.shape for v in found]
        [(-1, 1), (-1, 4), (-1, 1), (-1, 4), (-1, 4)]

    Source: Ren et al., "Faster R-CNN" (2015).
    """
    inputs = {"Anchor": anchor_box, "GtBoxes": gt_boxes, "IsCrowd": is_crowd, "ImInfo": im_info}
    outputs = {
        "LocationIndex": "int32", "ScoreIndex": "int32", "TargetLabel": "int32", "TargetBBox": anchor_box.dtype,
        "BBoxInsideWeight": anchor_box.dtype,
    }  # fmt: skip
    attrs = {
        "rpn_batch_size_per_im": rpn_batch_size_per_im, "rpn_straddle_thresh": rpn_straddle_thresh,
        "rpn_positive_overlap": rpn_positive_overlap, "rpn_negative_overlap": rpn_negative_overlap,
        "rpn_fg_fraction": rpn_fg_fraction, "use_random": use_random,
    }  # fmt: skip
    boxed, scored, labels, targets, weights = several(
        "rpn_target_assign", inputs, outputs, attrs, constant=tuple(outputs)
    )
    scores = gather(reshape(cls_logits, [-1, 1]), scored)
    return scores, gather(reshape(bbox_pred, [-1, 4]), boxed), labels, targets, weights


@naming.layer
def generate_proposals(
    scores: Variable,
    bbox_deltas: Variable,
    im_info: Variable,
    anchors: Variable,
    variances: Variable,
    pre_nms_top_n: int = 6000,
    post_nms_top_n: int = 1000,
    nms_thresh: float = 0.5,
    min_size: float = 0.1,
    eta: float = 1.0,
    name: str | None = None,
) -> tuple[Variable, Variable]:
    """Regions that may hold an object: the best of those that overlap.

    Args:
        scores: [images, anchors, height, width]: how sure the network is of an object.
        bbox_deltas: [images, 4 · anchors, height, width]: boxes as deltas of the anchors.
        anchors: [height, width, anchors, 4], as `anchor_generator` gives them.
        variances: the shape of the anchors: factors of the deltas.
        pre_nms_top_n: how many regions of an image are kept before NMS, the highest scores first; 0 or less for all.
        post_nms_top_n: how many of them stay; 0 or less for all.
        nms_thresh: above which overlap with a better region a region goes; 0 or less for none.
        min_size: the least width and height of a region in the image as it was; 1 if it is less.
        eta: factor of nms_thresh after each region that stays, while it is above 1/2.

    Returns:
        Regions [regions, 4] and their scores [regions, 1], with a sequence for each image. No gradient passes.

    Example:
        >>> shapes = {"scores": [3, 8, 8], "deltas": [12, 8, 8], "info": [3]}
        >>> scores, deltas, info = (fluid.layers.data(n, s) for n, s in shapes.items())
        >>> anchors, spread = (fluid.layers.data(n, [8, 8, 3, 4], append_batch_size=False) for n in ("a", "v"))
        >>> [v.shape for v in fluid.layers.generate_proposals(scores, deltas, info, anchors, spread)]
        [(-1, 4), (-1, 1)]

    Source: Ren et al., "Faster R-CNN" (2015).
    """
    inputs = {
        "Scores": scores, "BboxDeltas": bbox_deltas, "ImInfo": im_info, "Anchors": anchors, "Variances": variances,
    }  # fmt: skip
    outputs = {"RpnRois": bbox_deltas.dtype, "RpnRoiProbs": scores.dtype}
    attrs = {
        "pre_nms_topN": pre_nms_top_n, "post_nms_topN": post_nms_top_n, "nms_thresh": nms_thresh,
        "min_size": min_size, "eta": eta,
    }  # fmt: skip
    rois, probabilities = several("generate_proposals", inputs, outputs, attrs, name=name, constant=tuple(outputs))
    return rois, probabilities


@naming.layer
def generate_proposal_labels(
    rpn_rois: Variable,
    gt_classes: Variable,
    is_crowd: Variable,
    gt_boxes: Variable,
    im_info: Variable,
    batch_size_per_im: int = 256,
    fg_fraction: float = 0.25,
    fg_thresh: float = 0.25,
    bg_thresh_hi: float = 0.5,
    bg_thresh_lo: float = 0.0,
    bbox_reg_weights: Sequence[float] = (0.1, 0.1, 0.2, 0.2),
    class_nums: int | None = None,
    use_random: bool = True,
    is_cls_agnostic: bool = False,
    is_cascade_rcnn: bool = False,
) -> tuple[Variable, Variable, Variable, Variable, Variable]:
    """Regions from which a network learns to classify objects and to correct their boxes.

    Args:
        rpn_rois: regions [regions, 4]; a sequence for each image. The boxes of the objects are added to them.
        gt_classes: int32 [objects, 1], the classes of the objects; a sequence for each image.
        is_crowd: int32 [objects, 1], 1 for a crowd; a sequence for each image.
        batch_size_per_im: how many regions of an image are examples, at most.
        fg_fraction: the share of examples with an object, at most.
        fg_thresh: the overlap above which a region has an object.
        bg_thresh_hi: the overlap below which it has none.
        bg_thresh_lo: the overlap from which it has none.
        bbox_reg_weights: four divisors of the deltas.
        class_nums: how many classes there are, with that of no object.
        use_random: whether regions are drawn at random; otherwise the first ones are taken.
        is_cls_agnostic: whether all objects share the columns of class 1.
        is_cascade_rcnn: False; the stages of a cascade are not built.

    Returns:
        Regions [examples, 4], their classes, int32 [examples, 1], targets of their boxes, and two weights
        [examples, 4 · class_nums] that are 1 where there is a target; a sequence for each image. No gradient passes.

    Raises:
        OpValueError: class_nums is left out.

    Example:
        >>> rois, boxes = (fluid.layers.data(n, [4], lod_level=1) for n in ("rois", "boxes"))
        >>> classes, crowd = (fluid.layers.data(n, [1], dtype="int32", lod_level=1) for n in ("classes", "crowd"))
        >>> info = fluid.layers.data("info", [3])
        >>> found = fluid.layers.generate_proposal_labels(rois, classes, crowd, boxes, info, class_nums=10)
        >>> [v.shape for v in found]
        [(-1, 4), (-1, 1), (-1, 40), (-1, 40), (-1, 40)]

    Source: Ren et al., "Faster R-CNN" (2015).
    """
    if class_nums is None:
        raise OpValueError(
            "generate_proposal_labels needs class_nums.", expected="how many classes there are, with that of no object",
            received="None", hint="class_nums=81 for the 80 classes of COCO.",
        )  # fmt: skip
    inputs = {"RpnRois": rpn_rois, "GtClasses": gt_classes, "IsCrowd": is_crowd, "GtBoxes": gt_boxes, "ImInfo": im_info}
    float_type = rpn_rois.dtype
    outputs = {"Rois": float_type, "LabelsInt32": "int32", "BboxTargets": float_type, "BboxInsideWeights": float_type,
               "BboxOutsideWeights": float_type}  # fmt: skip
    attrs = {
        "batch_size_per_im": batch_size_per_im, "fg_fraction": fg_fraction, "fg_thresh": fg_thresh,
        "bg_thresh_hi": bg_thresh_hi, "bg_thresh_lo": bg_thresh_lo, "bbox_reg_weights": list(bbox_reg_weights),
        "class_nums": class_nums, "use_random": use_random, "is_cls_agnostic": is_cls_agnostic,
        "is_cascade_rcnn": is_cascade_rcnn,
    }  # fmt: skip
    rois, labels, targets, inside, outside = several(
        "generate_proposal_labels", inputs, outputs, attrs, constant=tuple(outputs)
    )
    return rois, labels, targets, inside, outside


@naming.layer
def distribute_fpn_proposals(
    fpn_rois: Variable, min_level: Level, max_level: Level, refer_level: int, refer_scale: int, name: str | None = None
) -> tuple[list[Variable], Variable]:
    """Regions by the level of a pyramid of images that suits their size.

    Args:
        fpn_rois: regions [regions, 4]; a sequence for each image.
        min_level: the lowest level.
        max_level: the highest level.
        refer_level: the level of regions whose area is ``refer_scale`` squared; twice as wide is a level higher.
        refer_scale: see ``refer_level``.

    Returns:
        A list with the regions of each level, and int32 [1, regions]: the row of each region when all levels follow
        each other.

    Example:
        >>> rois = fluid.layers.data("rois", [4], lod_level=1)
        >>> levels, restore = fluid.layers.distribute_fpn_proposals(rois, 2, 5, 4, 224)
        >>> len(levels), levels[0].shape, restore.shape
        (4, (-1, 4), (1, -1))

    Source: Lin et al., "Feature Pyramid Networks" (2017).
    """
    helper = LayerHelper("distribute_fpn_proposals", name=name)
    levels = [helper.create_tmp_variable(fpn_rois.dtype, True) for _ in range(min_level, max_level + 1)]
    restore = helper.create_tmp_variable("int32", True)
    helper.append_op(
        type="distribute_fpn_proposals",
        inputs={"FpnRois": [fpn_rois]},
        outputs={"MultiFpnRois": levels, "RestoreIndex": [restore]},
        attrs={
            "min_level": min_level, "max_level": max_level, "refer_level": refer_level, "refer_scale": refer_scale,
        },
    )  # fmt: skip
    return levels, restore


@naming.layer
@takes(multi_rois="collect_fpn_proposals.MultiLevelRois", multi_scores="collect_fpn_proposals.MultiLevelScores")
def collect_fpn_proposals(
    multi_rois: list[Variable],
    multi_scores: list[Variable],
    min_level: int,
    max_level: int,
    post_nms_top_n: int,
    name: str | None = None,
) -> Variable:
    """The regions with the highest scores among all levels of a pyramid of images.

    Args:
        multi_rois: for each level regions [regions, 4]; a sequence for each image.
        multi_scores: for each level their scores [regions, 1]; a sequence for each image.
        min_level: the lowest level.
        max_level: the highest level.
        post_nms_top_n: how many regions of all images stay.

    Returns:
        [regions, 4], a sequence for each image. No gradient passes.

    Raises:
        OpValueError: there are not as many variables as levels.

    Example:
        >>> rois = [fluid.layers.data(f"rois{i}", [4], lod_level=1) for i in (2, 3)]
        >>> scores = [fluid.layers.data(f"scores{i}", [1], lod_level=1) for i in (2, 3)]
        >>> fluid.layers.collect_fpn_proposals(rois, scores, 2, 3, 100).shape
        (-1, 4)

    Source: Lin et al., "Feature Pyramid Networks" (2017).
    """
    count = max_level - min_level + 1
    for argument, value in (("multi_rois", multi_rois), ("multi_scores", multi_scores)):
        if len(value) < count:
            raise OpValueError(
                f"{argument} of collect_fpn_proposals must have a variable for each level.",
                expected=f"a list of {count} Variables: levels {min_level} to {max_level}", received=repr(value),
            )  # fmt: skip
    inputs = {"MultiLevelRois": list(multi_rois)[:count], "MultiLevelScores": list(multi_scores)[:count]}
    attrs = {"post_nms_topN": post_nms_top_n}
    return one_op("collect_fpn_proposals", inputs, attrs, slot="FpnRois", name=name, stop_gradient=True)


@naming.layer
def box_decoder_and_assign(
    prior_box: Variable,
    prior_box_var: Variable,
    target_box: Variable,
    box_score: Variable,
    box_clip: float,
    name: str | None = None,
) -> tuple[Variable, Variable]:
    """Boxes of all classes from their deltas, and for each prior the box of its likeliest class.

    Args:
        prior_box: [n, 4]: left, top, right, bottom.
        prior_box_var: [4]: factors of the deltas.
        target_box: [n, 4 · classes]: deltas for each class.
        box_score: [n, classes]: how likely each class is; class 0 is that of no object.
        box_clip: the largest logarithm by which a box may grow, ``log(1000 / 16)`` as a rule.

    Returns:
        [n, 4 · classes] and [n, 4]. No gradient passes.

    Example:
        >>> shapes = {"prior": [4], "deltas": [12], "scores": [3]}
        >>> prior, deltas, scores = (fluid.layers.data(n, s) for n, s in shapes.items())
        >>> spread = fluid.layers.data("spread", [4], append_batch_size=False)
        >>> [v.shape for v in fluid.layers.box_decoder_and_assign(prior, spread, deltas, scores, 4.135)]
        [(-1, 12), (-1, 4)]

    Source: Dai et al., "R-FCN" (2016).
    """
    inputs = {"PriorBox": prior_box, "PriorBoxVar": prior_box_var, "TargetBox": target_box, "BoxScore": box_score}
    outputs = {"DecodeBox": prior_box.dtype, "OutputAssignBox": prior_box.dtype}
    boxes, best = several("box_decoder_and_assign", inputs, outputs, {"box_clip": box_clip}, name=name)
    return boxes, best


@naming.layer
def generate_mask_labels(
    im_info: Variable,
    gt_classes: Variable,
    is_crowd: Variable,
    gt_segms: Variable,
    rois: Variable,
    labels_int32: Variable,
    num_classes: int,
    resolution: int,
) -> tuple[Variable, Variable, Variable]:
    """For each region with an object, the pixels of the region that belong to the object.

    Args:
        gt_classes: int32 [objects, 1], their classes; a sequence for each image.
        is_crowd: int32 [objects, 1], 1 for a crowd, which has no mask; a sequence for each image.
        gt_segms: float [corners, 2], with three levels of sequences: objects of images, polygons of objects, corners.
        labels_int32: int32 [regions, 1], the class of each, 0 for none; a sequence for each image.
        num_classes: how many classes there are, with that of no object.
        resolution: rows and columns of a mask.

    Returns:
        The regions that learn [masks, 4]; their numbers within their image, int32 [masks, 1]; the masks, int32
        [masks, num_classes · resolution²]: 0 and 1 in the class of the region, -1 in the others. No gradient passes.

    Example:
        >>> numbers = {"dtype": "int32", "lod_level": 1}
        >>> classes, crowd, labels = (fluid.layers.data(n, [1], **numbers) for n in ("classes", "crowd", "labels"))
        >>> corners, rois = fluid.layers.data("corners", [2], lod_level=3), fluid.layers.data("rois", [4], lod_level=1)
        >>> info = fluid.layers.data("info", [3])
        >>> found = fluid.layers.generate_mask_labels(info, classes, crowd, corners, rois, labels, 81, 14)
        >>> [v.shape for v in found]
        [(-1, 4), (-1, 1), (-1, 15876)]
    """
    inputs = {
        "ImInfo": im_info, "GtClasses": gt_classes, "IsCrowd": is_crowd, "GtSegms": gt_segms, "Rois": rois,
        "LabelsInt32": labels_int32,
    }  # fmt: skip
    outputs = {"MaskRois": rois.dtype, "RoiHasMaskInt32": "int32", "MaskInt32": "int32"}
    attrs = {"num_classes": num_classes, "resolution": resolution}
    regions, numbers, masks = several("generate_mask_labels", inputs, outputs, attrs, constant=tuple(outputs))
    return regions, numbers, masks


def _whole(value: Any, argument: str, layer: str) -> list[int]:
    """A list of whole numbers."""
    if any(n != int(n) for n in numbers(value, argument, layer)):
        raise OpTypeError(
            f"{argument} of {layer} must be whole numbers.", expected="a list of ints", received=repr(value)
        )
    return [int(n) for n in value]


@naming.layer
def yolov3_loss(
    x: Variable,
    gt_box: Variable,
    gt_label: Variable,
    anchors: Sequence[int],
    anchor_mask: Sequence[int],
    class_num: int,
    ignore_thresh: float,
    downsample_ratio: int,
    gt_score: Variable | None = None,
    use_label_smooth: bool = True,
    name: str | None = None,
) -> Variable:
    """Loss of one feature map of YOLOv3: of places, sizes, objectness and classes.

    Args:
        x: float [batch, masks · (5 + class_num), h, w]: for each anchor x, y, w, h, objectness and class scores.
        gt_box: float [batch, objects, 4]: center x, y, width, height as parts of the image; all 0 for none.
        gt_label: int32 [batch, objects], their classes.
        anchors: widths and heights of all anchors in pixels, in turn.
        anchor_mask: the anchors of this map.
        ignore_thresh: a box whose overlap with an object exceeds this has no objectness loss unless it is responsible.
        downsample_ratio: pixels of the image to one of the map.
        gt_score: float [batch, objects], weights of the objects (mixup); None for 1 each.
        use_label_smooth: whether class labels are smoothed by ``min(1 / class_num, 1 / 40)``.
        name: name of the result.

    Returns:
        Float [batch].

    Example:
        >>> x, box = fluid.layers.data("x", [21, 4, 4]), fluid.layers.data("box", [6, 4])
        >>> label = fluid.layers.data("label", [6], dtype="int32")
        >>> sizes = [10, 13, 16, 30, 33, 23, 30, 61]
        >>> fluid.layers.yolov3_loss(x, box, label, sizes, [0, 1, 2], 2, 0.7, 32).shape
        (-1,)

    Source: Redmon and Farhadi, "YOLOv3" (2018).
    """
    helper = LayerHelper("yolov3_loss", name=name)
    inputs = {"X": x, "GTBox": gt_box, "GTLabel": gt_label, "GTScore": gt_score}
    loss = x.dtype if name is None else helper.create_variable(name=name, dtype=x.dtype)
    attrs = {
        "anchors": _whole(anchors, "anchors", "yolov3_loss"), "class_num": class_num, "ignore_thresh": ignore_thresh,
        "anchor_mask": _whole(anchor_mask, "anchor_mask", "yolov3_loss"), "downsample_ratio": downsample_ratio,
        "use_label_smooth": use_label_smooth,
    }  # fmt: skip
    masks = ("ObjectnessMask", "GTMatchMask")
    outputs = {"Loss": loss, **dict.fromkeys(masks, "int32")}
    return several("yolov3_loss", inputs, outputs, attrs, constant=masks, helper=helper)[0]


@naming.layer
def yolo_box(
    x: Variable,
    img_size: Variable,
    anchors: Sequence[int],
    class_num: int,
    conf_thresh: float,
    downsample_ratio: int,
    name: str | None = None,
) -> tuple[Variable, Variable]:
    """Decodes one feature map of YOLOv3 to boxes and scores.

    Args:
        x: float [batch, anchors · (5 + class_num), h, w].
        img_size: int32 [batch, 2], height and width of each image.
        anchors: widths and heights of the map's anchors in pixels, in turn.
        conf_thresh: a box whose objectness is below this is all 0, as are its scores.
        downsample_ratio: pixels of the network's input to one of the map.

    Returns:
        Boxes float [batch, anchors · h · w, 4]: left, top, right, bottom in pixels of the image; scores float
        [batch, anchors · h · w, class_num].

    Example:
        >>> x, size = fluid.layers.data("x", [14, 4, 4]), fluid.layers.data("size", [2], dtype="int32")
        >>> boxes, scores = fluid.layers.yolo_box(x, size, [10, 13, 16, 30], 2, 0.01, 32)
        >>> boxes.shape, scores.shape
        ((-1, 32, 4), (-1, 32, 2))

    Source: Redmon and Farhadi, "YOLOv3" (2018).
    """
    attrs = {
        "anchors": _whole(anchors, "anchors", "yolo_box"), "class_num": class_num, "conf_thresh": conf_thresh,
        "downsample_ratio": downsample_ratio,
    }  # fmt: skip
    outputs = {"Boxes": x.dtype, "Scores": x.dtype}
    boxes, scores = several("yolo_box", {"X": x, "ImgSize": img_size}, outputs, attrs, name=name)
    return boxes, scores


@naming.layer
@takes(
    loc="float[batch, priors, 4]", scores="float[batch, priors, classes]", prior_box="box_coder.PriorBox",
    prior_box_var="box_coder.PriorBoxVar",
)  # fmt: skip
def detection_output(
    loc: Variable,
    scores: Variable,
    prior_box: Variable,
    prior_box_var: Variable,
    background_label: int = 0,
    nms_threshold: float = 0.3,
    nms_top_k: int = 400,
    keep_top_k: int = 200,
    score_threshold: float = 0.01,
    nms_eta: float = 1.0,
) -> Variable:
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
    location: Variable,
    confidence: Variable,
    gt_box: Variable,
    gt_label: Variable,
    prior_box: Variable,
    prior_box_var: Variable | Sequence[float] | None = None,
    background_label: int = 0,
    overlap_threshold: float = 0.5,
    neg_pos_ratio: float = 3.0,
    neg_overlap: float = 0.5,
    loc_loss_weight: float = 1.0,
    conf_loss_weight: float = 1.0,
    match_type: str = "per_prediction",
    mining_type: str = "max_negative",
    normalize: bool = True,
    sample_size: int | None = None,
) -> Variable:
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
        given = [base_size, *(n for n in (low, high) if n is not None)]
        numbers(given, "base_size, min_ratio or max_ratio", "multi_box_head")
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
    inputs: Sequence[Variable],
    image: Variable,
    base_size: int,
    num_classes: int,
    aspect_ratios: Sequence[float | Sequence[float]],
    min_ratio: int | None = None,
    max_ratio: int | None = None,
    min_sizes: Sequence[float | Sequence[float]] | None = None,
    max_sizes: Sequence[float | Sequence[float]] | None = None,
    steps: Sequence[float] | None = None,
    step_w: Sequence[float] | None = None,
    step_h: Sequence[float] | None = None,
    offset: float = 0.5,
    variance: Sequence[float] = (0.1, 0.1, 0.2, 0.2),
    flip: bool = True,
    clip: bool = False,
    kernel_size: Sizes = 1,
    pad: Sizes = 0,
    stride: Sizes = 1,
    name: str | None = None,
    min_max_aspect_ratios_order: bool = False,
) -> tuple[Variable, Variable, Variable, Variable]:
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
