"""Labels of the mask branch of Mask R-CNN."""

from __future__ import annotations

from fluidnb.layers.several import several
from fluidnb.program import Variable
from fluidnb.program import layer_calls as naming

__all__ = ["generate_mask_labels"]


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
        im_info: float [images, 3]: height, width, and how much larger the network sees the image.
        gt_classes: int32 [objects, 1], their classes; a sequence for each image.
        is_crowd: int32 [objects, 1], 1 for a crowd, which has no mask; a sequence for each image.
        gt_segms: float [corners, 2], with three levels of sequences: objects of images, polygons of objects, corners.
        rois: float [regions, 4]: left, top, right, bottom; a sequence for each image.
        labels_int32: int32 [regions, 1], the class of each, 0 for none; a sequence for each image.
        num_classes: how many classes there are, with that of no object.
        resolution: rows and columns of a mask.

    Returns:
        The regions that learn [masks, 4]; their numbers within their image, int32 [masks, 1]; the masks, int32
        [masks, num_classes · resolution²]: 0 and 1 in the class of the region, -1 in the others. No gradient passes.

    Raises:
        OpTypeError: an argument is not a Variable.
        RuleError: shapes do not fit; while running, also sequences.

    Example:
        >>> numbers = {"dtype": "int32", "lod_level": 1}
        >>> classes, crowd, labels = (fluid.layers.data(n, [1], **numbers) for n in ("classes", "crowd", "labels"))
        >>> corners, rois = fluid.layers.data("corners", [2], lod_level=3), fluid.layers.data("rois", [4], lod_level=1)
        >>> info = fluid.layers.data("info", [3])
        >>> found = fluid.layers.generate_mask_labels(info, classes, crowd, corners, rois, labels, 81, 14)
        >>> [v.shape for v in found]
        [(-1, 4), (-1, 1), (-1, 15876)]

    Source: Fluid's layers.generate_mask_labels.
    """
    inputs = {
        "ImInfo": im_info, "GtClasses": gt_classes, "IsCrowd": is_crowd, "GtSegms": gt_segms, "Rois": rois,
        "LabelsInt32": labels_int32,
    }  # fmt: skip
    outputs = {"MaskRois": rois.dtype, "RoiHasMaskInt32": "int32", "MaskInt32": "int32"}
    attrs = {"num_classes": num_classes, "resolution": resolution}
    regions, numbers, masks = several("generate_mask_labels", inputs, outputs, attrs, constant=tuple(outputs))
    return regions, numbers, masks
