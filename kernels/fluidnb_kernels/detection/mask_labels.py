"""generate_mask_labels: what the part of a network that draws objects shall learn."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from fluidnb.errors import EnforceNotMet
from fluidnb.op import Array, Attr, Binder, Context, kernel, op
from fluidnb.values.copies import on_host
from fluidnb_kernels.cuda import BLOCKS, Source, each, of_dtype, typed
from fluidnb_kernels.detection.boxes import overlaps
from fluidnb_kernels.detection.polygons import bounds, mask
from fluidnb_kernels.detection.region_targets import same_sequences
from fluidnb_kernels.emit import reading
from fluidnb_kernels.sequences import all_given, as_level, one_sequence_each, require_lod, sized, slices
from fluidnb_kernels.tensor.strided_copy import fill

_DTYPES = ("float32", "float64")
#: Masks that a block draws, a warp each.
_WARPS = 8

CUDA = Source(__file__, "mask_labels.cu", typed(("learners bounds seen drawn", _DTYPES)))


def _infer(c: Context) -> None:
    c.check_inputs()
    for slot in ("GtClasses", "IsCrowd", "Rois", "LabelsInt32"):
        require_lod(c, slot, 1)
    require_lod(c, "GtSegms", 3)
    if c.runtime:
        _same_images(c)
    count, level = sized(c, _counts)
    size = c.attr("num_classes") * c.attr("resolution") ** 2
    c.set("MaskRois", (count, 4), c["Rois"].dtype, level)
    c.set("RoiHasMaskInt32", (count, 1), np.int32, level)
    c.set("MaskInt32", (count, size), np.int32, level)


def _same_images(c: Context) -> None:
    images = len(c.lod("Rois")[0]) - 1
    for slot in ("GtClasses", "IsCrowd", "LabelsInt32", "GtSegms"):
        one_sequence_each(c, slot, images, f"{images}, as Rois has", 0)
    c.require(
        c["ImInfo"].shape[0] == images, "Input(ImInfo) of generate_mask_labels has a row for each image.",
        expected=images, received=c["ImInfo"].shape[0],
    )  # fmt: skip
    same_sequences(c, "Rois", "LabelsInt32")
    same_sequences(c, "GtClasses", "IsCrowd", "GtSegms")


def _counts(b: Context) -> tuple[int, ...]:
    """The number of masks of each image: one for each region with an object, at least one where there are regions."""
    if not all_given(b, "LabelsInt32") or not b.lod("LabelsInt32"):
        return ()
    labels = on_host(b["LabelsInt32"]).reshape(-1)
    return tuple(max(int((labels[p] > 0).sum()), int(p.stop > p.start)) for p in slices(b.lod("LabelsInt32")[0]))


def _objects(b: Binder) -> list[list[list[slice]]]:
    """The corners of each polygon of each object of each image."""
    images, objects, polygons = b.lod("GtSegms")
    corners = slices(polygons)
    of_object = [corners[part] for part in slices(objects)]
    return [of_object[part] for part in slices(images)]


def of_image(
    rois: Array, labels: Array, objects: list[list[Array]], scale: Array, size: int, classes: int
) -> Iterator[tuple[int, Array]]:
    """Yield the number of each region that learns, and its mask: int32 [classes, size, size], -1 outside its class.

    An image without objects has its first region without one, and -1 everywhere.
    """
    chosen = np.flatnonzero(labels > 0)
    nothing = np.full((classes, size, size), -1, np.int32)
    if not len(chosen):
        yield int((labels == 0).argmax()), nothing
        return
    if not objects:
        raise EnforceNotMet(
            "A region has a class, but its image has no object with a mask.",
            expected="an object whose class is above 0 and that is no crowd", received="none",
            hint="GtClasses and IsCrowd of generate_mask_labels say which objects count.",
        )  # fmt: skip
    if labels.max() >= classes:
        raise EnforceNotMet(
            "A label of generate_mask_labels is no class.", expected=f"up to {classes - 1}", received=int(labels.max()),
            hint="num_classes counts the class of no object, too.",
        )  # fmt: skip
    boxes = rois[chosen] / scale
    nearest = overlaps(boxes, np.stack([bounds(polygons) for polygons in objects]), False).argmax(1)
    for region, box, owner in zip(chosen, boxes, nearest, strict=True):
        found = nothing.copy()
        found[labels[region]] = mask(objects[owner], box, size)
        yield int(region), found


def write_masks(
    info: Array, classes_of: Array, crowd: Array, corners: Array, rois: Array, labels: Array, parts: tuple[Any, ...],
    sizes: tuple[int, int], outs: tuple[Array | None, Array | None, Array | None],
) -> None:  # fmt: skip
    """Write the results of `of_image` for every image; outputs without a consumer are None.

    ``parts`` has the objects and the regions of each image, and the corners of each polygon of each object.
    """
    chosen, numbers, masks = outs
    row = 0
    for scale, objects, regions, polygons in zip(info[:, 2], *parts, strict=True):
        if regions.start == regions.stop:
            continue
        counts = (classes_of[objects] > 0) & (crowd[objects] == 0)
        drawn = [[corners[p] for p in polygons[i]] for i in np.flatnonzero(counts)]
        own = rois[regions]
        for region, found in of_image(own, labels[regions], drawn, scale, *sizes):
            for out, value in ((chosen, own[region] / scale * scale), (numbers, region), (masks, found.reshape(-1))):
                if out is not None:
                    out[row] = value
            row += 1


@op(
    "generate_mask_labels",
    inputs={
        "ImInfo: float[images, 3]": "height, width, and how much larger the network sees the image",
        "GtClasses: int32[objects, 1] lod": "their classes; a sequence for each image",
        "IsCrowd: int32[objects, 1] lod": "1 for a crowd, which has no mask; a sequence for each image",
        "GtSegms: float[corners, 2] lod 3": "x and y; sequences of images, of objects, of polygons",
        "Rois: float[regions, 4] lod": "left, top, right, bottom; a sequence for each image",
        "LabelsInt32: int32[regions, 1] lod": "the class of each, 0 for none; a sequence for each image",
    },
    outputs={
        "MaskRois": "[masks, 4]: the regions that learn; a sequence for each image",
        "RoiHasMaskInt32": "int32 [masks, 1]: their numbers, counted in their image",
        "MaskInt32": "int32 [masks, num_classes · resolution²]: 0 and 1 in the class of the region, -1 in the others",
    },
    attrs={
        "num_classes": Attr("int", doc="how many classes there are, with that of no object", gt=0),
        "resolution": Attr("int", doc="rows and columns of a mask", gt=0),
    },
    infer=_infer,
    guard=_counts,
    data_shape=True,
    dtypes=_DTYPES,
    dtype_slot="Rois",
)  # fmt: skip
def generate_mask_labels(b: Binder) -> None:
    """MaskInt32[i, class, y, x] = 1 where pixel (y, x) of region i is in the object that overlaps the region most.

    Objects are compared by the boxes around their polygons. An image whose regions are all of class 0 gives one region
    that learns nothing.

    Example:
        >>> from fluidnb.testing import run_op
        >>> image = {"ImInfo": [[4.0, 4.0, 1.0]], "Rois": ([[0.0, 0.0, 4.0, 4.0]], [[1]])}
        >>> image |= {s: (np.array([[v]]), [[1]]) for s, v in (("GtClasses", 1), ("IsCrowd", 0), ("LabelsInt32", 1))}
        >>> image["GtSegms"] = ([[0.0, 0.0], [2.0, 0.0], [2.0, 4.0], [0.0, 4.0]], [[1], [1], [4]])
        >>> run_op("generate_mask_labels", image, {"num_classes": 2, "resolution": 2})["MaskInt32"].array
        array([[-1, -1, -1, -1,  1,  0,  1,  0]], dtype=int32)

    Source: He et al., "Mask R-CNN" (ICCV 2017); Fluid's generate_mask_labels_op.
    """
    parts = (slices(b.lod("GtClasses")[0]), slices(b.lod("Rois")[0]), _objects(b))
    sizes = (b.attr("resolution"), b.attr("num_classes"))
    flat = {s: reading(b, b[s], (b[s].size,)) for s in ("GtClasses", "IsCrowd", "LabelsInt32")}
    corners = b["GtSegms"]
    if corners.dtype.kind != "f":
        corners = b.tmp(corners.shape, b["Rois"].dtype)
        b(np.copyto, corners, b["GtSegms"], "unsafe")
    b(
        write_masks, b["ImInfo"], flat["GtClasses"], flat["IsCrowd"], corners, b["Rois"], flat["LabelsInt32"],
        parts, sizes, tuple(b[s] for s in ("MaskRois", "RoiHasMaskInt32", "MaskInt32")),
    )  # fmt: skip


@kernel("generate_mask_labels", place="cuda", dtypes=_DTYPES)
def generate_mask_labels_on_cuda(b: Binder) -> None:
    """The regions that learn, the object that each sees, and a warp for each mask; what does not fit stops a kernel."""
    rois, size, classes = b["Rois"], b.attr("resolution"), b.attr("num_classes")
    counts, (images, objects, polygons) = _counts(b), b.lod("GtSegms")
    rows, dtype = sum(counts), rois.dtype
    if not rows:
        return
    chosen, numbers, masks = (b[s] for s in ("MaskRois", "RoiHasMaskInt32", "MaskInt32"))
    info, corners = of_dtype(b, b["ImInfo"], dtype), of_dtype(b, b["GtSegms"], dtype)
    labels, kinds, crowd = (
        of_dtype(b, b[slot], np.dtype(np.int64)) for slot in ("LabelsInt32", "GtClasses", "IsCrowd")
    )
    level, of_image, of_object, starts = (
        b.table(np.array(v, np.int32)) for v in (b.lod("Rois")[0], images, objects, polygons)
    )
    region, c = b.tmp((rows,), np.int32), {"float32": "float", "float64": "double"}[dtype.name]
    first, outs = (
        b.table(np.array(as_level(counts), np.int32)),
        [np.uintp(0) if o is None else o for o in (chosen, numbers)],
    )
    each(b, CUDA, f"learners<{c}>", len(rois), rois, info, labels, level, first, region, *outs)
    if masks is not None:
        boxes, seen = b.tmp((len(objects) - 1, 4), dtype), b.tmp((rows,), np.int32)
        tiny = np.float64(np.finfo(dtype).tiny)
        each(b, CUDA, f"bounds<{c}>", len(boxes), corners, of_object, starts, boxes, tiny)
        objects_of = rois, info, labels, kinds, crowd, boxes, level, of_image, region, seen
        each(b, CUDA, f"seen<{c}>", rows, *objects_of, np.int64(classes - 1))
        fill(b, masks, -1)
        passed, grid = b.tmp((rows, size * size), np.int32), (min(BLOCKS, -(-rows // _WARPS)),)
        operands = corners, rois, info, labels, level, of_object, starts, region, seen, passed, masks
        b(CUDA[f"drawn<{c}>"], grid, (32, _WARPS), 0, *operands, *map(np.int64, (size, classes, rows)))
