"""Region proposals of Faster R-CNN and Mask R-CNN, and what they learn."""

from collections.abc import Sequence
from typing import Annotated

from fluidnb.arguments import Rule
from fluidnb.errors import OpValueError
from fluidnb.layer_helper import LayerHelper
from fluidnb.layers.one_op import one_op, several
from fluidnb.layers.shape import gather, reshape
from fluidnb.op import takes
from fluidnb.program import Variable
from fluidnb.program import layer_calls as naming

__all__ = [
    "collect_fpn_proposals", "distribute_fpn_proposals", "generate_mask_labels", "generate_proposal_labels",
    "generate_proposals", "rpn_target_assign",
]  # fmt: skip

#: The number of a level of a pyramid of images.
Level = Annotated[int, Rule("an int from 0 to 1,000", lambda n: 0 <= n <= 1000)]


@naming.layer
@takes(
    bbox_pred="float[images, anchors, 4]", cls_logits="float[images, anchors, 1]",
    anchor_box="rpn_target_assign.Anchor", anchor_var="float[anchors, 4]",
)  # fmt: skip
def rpn_target_assign(
    bbox_pred: Variable, cls_logits: Variable, anchor_box: Variable, anchor_var: Variable, gt_boxes: Variable,
    is_crowd: Variable, im_info: Variable, rpn_batch_size_per_im: int = 256, rpn_straddle_thresh: float = 0.0,
    rpn_fg_fraction: float = 0.5, rpn_positive_overlap: float = 0.7, rpn_negative_overlap: float = 0.3,
    use_random: bool = True,
) -> tuple[Variable, Variable, Variable, Variable, Variable]:  # fmt: skip
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
    scores: Variable, bbox_deltas: Variable, im_info: Variable, anchors: Variable, variances: Variable,
    pre_nms_top_n: int = 6000, post_nms_top_n: int = 1000, nms_thresh: float = 0.5, min_size: float = 0.1,
    eta: float = 1.0, name: str | None = None,
) -> tuple[Variable, Variable]:  # fmt: skip
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
    rpn_rois: Variable, gt_classes: Variable, is_crowd: Variable, gt_boxes: Variable, im_info: Variable,
    batch_size_per_im: int = 256, fg_fraction: float = 0.25, fg_thresh: float = 0.25, bg_thresh_hi: float = 0.5,
    bg_thresh_lo: float = 0.0, bbox_reg_weights: Sequence[float] = (0.1, 0.1, 0.2, 0.2), class_nums: int | None = None,
    use_random: bool = True, is_cls_agnostic: bool = False, is_cascade_rcnn: bool = False,
) -> tuple[Variable, Variable, Variable, Variable, Variable]:  # fmt: skip
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
    multi_rois: list[Variable], multi_scores: list[Variable], min_level: int, max_level: int, post_nms_top_n: int,
    name: str | None = None,
) -> Variable:  # fmt: skip
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
def generate_mask_labels(
    im_info: Variable, gt_classes: Variable, is_crowd: Variable, gt_segms: Variable, rois: Variable,
    labels_int32: Variable, num_classes: int, resolution: int,
) -> tuple[Variable, Variable, Variable]:  # fmt: skip
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
