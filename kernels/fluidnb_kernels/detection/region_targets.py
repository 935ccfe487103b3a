"""rpn_target_assign, generate_proposal_labels, generate_mask_labels: which regions a network learns from."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from fluidnb.errors import EnforceNotMet
from fluidnb.op import Array, Attr, Binder, Context, kernel, op
from fluidnb.values.copies import on_host
from fluidnb_kernels.cuda import BLOCKS, Source, each, of_dtype, typed
from fluidnb_kernels.detection.boxes import overlaps
from fluidnb_kernels.detection.polygons import bounds, mask
from fluidnb_kernels.emit import reading
from fluidnb_kernels.rules import attributes
from fluidnb_kernels.sequences import all_given, as_level, one_sequence_each, require_lod, sized, slices
from fluidnb_kernels.tensor.strided_copy import fill

#: How near two overlaps are that count as equal, as in Fluid.
NEAR = 1e-5


def reservoir(candidates: Array, most: int, generator: np.random.Generator | None) -> Array:
    """At most ``most`` of the candidates: a uniform sample, or the first ones without a generator.

    Source: Vitter, "Random sampling with a reservoir" (1985).
    """
    most = max(most, 0)
    if len(candidates) <= most:
        return candidates
    chosen = candidates[:most].copy()
    if generator is not None:
        draws = generator.random(len(candidates) - most)
        for i, draw in enumerate(draws, most):
            spot = int(draw * (i + 1))
            if spot < most:
                chosen[spot] = candidates[i]
    return chosen


def deltas(boxes: Array, targets: Array) -> Array:
    """Box regression targets: offsets of centers over the size of a box, and logarithms of the ratio of sizes.

    Source: Girshick et al., "Rich Feature Hierarchies for Accurate Object Detection" (2014).
    """
    one, half = boxes.dtype.type(1), boxes.dtype.type(0.5)
    size, goal = (v[:, 2:] - v[:, :2] + one for v in (boxes, targets))
    middle, aim = boxes[:, :2] + half * size, targets[:, :2] + half * goal
    return np.concatenate([(aim - middle) / size, np.log(goal / size)], 1)


def one_row_each(c: Context, slot: str, what: str) -> None:
    """Require, while running, that an input has a row for each sequence of another one."""
    if c.runtime:
        images, rows = len(c.lod(what)[-1]) - 1, c[slot].shape[0]
        c.require(
            rows == images, f"Input({slot}) of {c.definition.type} must have a row for each image.",
            expected=f"{images}, as {what} has sequences", received=rows,
        )  # fmt: skip


def same_sequences(c: Context, like: str, *slots: str) -> None:
    """Require that inputs have the sequences of another one, while running."""
    if not c.runtime:
        return
    for slot in slots:
        c.require(
            c.lod(slot)[0] == c.lod(like)[0], f"The images of {slot} and {like} must have as many rows.",
            expected=f"{list(c.lod(like)[0])}, as {like} has", received=list(c.lod(slot)[0]),
        )  # fmt: skip


def write_sampled(
    sampled: Callable[[Any, Any], Sequence[Sequence[Array]]], stream: Any, operands: tuple[Any, ...],
    outs: Sequence[Array | None],
) -> None:  # fmt: skip
    """Write the examples of every image, drawn from a stream or the first ones."""
    write_rows(outs, sampled(operands, None if stream is None else stream.rewind()))


def write_rows(outs: Sequence[Array | None], rows: Sequence[Sequence[Array]]) -> None:
    """Write for each output its rows of all images, one image after the other; outputs without a consumer are None."""
    for k, out in enumerate(outs):
        if out is not None and out.size:
            out[...] = np.concatenate([own[k].reshape(-1, *out.shape[1:]) for own in rows])


def assign(
    anchors: Array, objects: Array, info: Array, how: Any, generator: np.random.Generator | None
) -> tuple[Array, Array, Array, Array, Array]:
    """The examples of one image; without a generator the first ones.

    Returns numbers of the anchors with boxes and of those with labels, labels, deltas, and whether each box counts.
    """
    height, width, scale = info
    inside = np.arange(len(anchors))
    if how.rpn_straddle_thresh >= 0:
        most = np.array([width, height], anchors.dtype) + anchors.dtype.type(how.rpn_straddle_thresh)
        inside = np.flatnonzero(
            (anchors[:, :2] >= -anchors.dtype.type(how.rpn_straddle_thresh)).all(1) & (anchors[:, 2:] < most).all(1)
        )
    objects = objects * scale
    shared = overlaps(anchors[inside], objects, False)
    best = shared.max(1, initial=-np.inf)
    nearest = shared.argmax(1) if shared.shape[1] else np.zeros(len(inside), np.int64)
    of_object = (abs(shared - shared.max(0, initial=-np.inf)) < NEAR).any(1)
    front = np.flatnonzero(of_object | (best >= how.rpn_positive_overlap))
    front = reservoir(front, int(np.float32(how.rpn_fg_fraction) * np.float32(how.rpn_batch_size_per_im)), generator)
    back = reservoir(np.flatnonzero(best < how.rpn_negative_overlap), how.rpn_batch_size_per_im - len(front), generator)
    # an anchor that is nearest to an object and overlaps it little may be drawn twice: it counts as background, and
    # the first anchor with an object replaces it among the boxes, with weight 0
    twice = np.intersect1d(front, back)
    kept = np.setdiff1d(front, twice)
    boxed = np.concatenate([np.repeat(front[:1], len(twice)), kept])
    weights = np.ones((len(boxed), 4), anchors.dtype)
    weights[: len(twice)] = 0
    scored = np.concatenate([kept, np.sort(back)])
    labels = (np.arange(len(scored)) < len(kept)).astype(np.int32)
    targets = deltas(anchors[inside[boxed]], objects[nearest[boxed]]) if len(boxed) else np.zeros((0, 4), anchors.dtype)
    return inside[boxed], inside[scored], labels, targets, weights


def _assigned(operands: tuple[Any, ...], generator: np.random.Generator | None) -> list[tuple[Array, ...]]:
    """The examples of every image, with anchors numbered through all images; the operands are those of `_operands`."""
    anchors, boxes, crowd, info, objects, how = operands
    flat, found = crowd.reshape(-1), []
    for i, part in enumerate(objects):
        own = boxes[part][flat[part] == 0]
        boxed, scored, *more = assign(anchors, own, info[i], how, generator)
        found.append((boxed + i * len(anchors), scored + i * len(anchors), *more))
    return found


def _operands(b: Binder) -> tuple[Any, ...]:
    """The inputs, the objects of each image, and what decides."""
    return b["Anchor"], b["GtBoxes"], b["IsCrowd"], b["ImInfo"], slices(b.lod("GtBoxes")[-1]), attributes(b)


def _guard(b: Binder) -> tuple[tuple[int, int], ...]:
    """Number of anchors of each image with box targets, and with labels."""
    if not all_given(b, "Anchor", "GtBoxes", "IsCrowd", "ImInfo") or not b.lod("GtBoxes"):
        return ()
    *values, objects, how = _operands(b)
    generator = b.rng.rewind() if b.attr("use_random") else None
    found = _assigned((*map(on_host, values), objects, how), generator)
    return tuple((len(own[0]), len(own[1])) for own in found)


def _rpn_target_assign_infer(c: Context) -> None:
    c.check_inputs()
    for slot in ("GtBoxes", "IsCrowd"):
        require_lod(c, slot, 1)
    one_row_each(c, "ImInfo", "GtBoxes")
    same_sequences(c, "GtBoxes", "IsCrowd")
    boxed: tuple[int, tuple[Any, ...]] = (-1, (None,))
    scored = boxed
    if isinstance(c, Binder):
        counts = _guard(c)
        levels = [as_level([count[k] for count in counts]) for k in range(2)]
        boxed, scored = ((level[-1], (level,)) for level in levels)
    dtype = c["Anchor"].dtype
    c.set("LocationIndex", (boxed[0],), np.int32, boxed[1])
    c.set("ScoreIndex", (scored[0],), np.int32, scored[1])
    c.set("TargetLabel", (scored[0], 1), np.int32, scored[1])
    c.set("TargetBBox", (boxed[0], 4), dtype, boxed[1])
    c.set("BBoxInsideWeight", (boxed[0], 4), dtype, boxed[1])


@op(
    "rpn_target_assign",
    inputs={
        "Anchor: float[anchors, 4]": "left, top, right, bottom",
        "GtBoxes: float[objects, 4] lod": "boxes in the image as it was; a sequence for each image",
        "IsCrowd: int32[objects, 1] lod | int32[objects] lod":
            "1 for a crowd, which does not count; a sequence for each image",
        "ImInfo: float[images, 3]": "height, width, and how much larger the network sees the image",
    },
    outputs={
        "LocationIndex": "int32 [boxes]: the anchors that learn boxes; a sequence for each image",
        "ScoreIndex": "int32 [labels]: the anchors that learn labels; a sequence for each image",
        "TargetLabel": "int32 [labels, 1]: 1 for an anchor with an object, 0 for one without",
        "TargetBBox": "[boxes, 4]: the objects as deltas of their anchors",
        "BBoxInsideWeight": "[boxes, 4]: 1, and 0 for a box that does not count",
    },
    attrs={
        "rpn_batch_size_per_im": Attr("int", 256, "how many anchors of an image learn labels, at most"),
        "rpn_straddle_thresh": Attr("float", doc="how far an anchor may reach beyond its image; below 0 any distance"),
        "rpn_positive_overlap": Attr("float", 0.7, "the overlap from which an anchor has an object"),
        "rpn_negative_overlap": Attr("float", 0.3, "the overlap below which an anchor has none"),
        "rpn_fg_fraction": Attr("float", 0.25, "the share of anchors with an object, at most"),
        "use_random": Attr("bool", True, "whether anchors are drawn at random; otherwise the first ones are taken"),
    },
    infer=_rpn_target_assign_infer,
    guard=_guard,
    data_shape=True,
    random=True,
    host_only="the size of its output depends on the values",
    dtypes=("float32", "float64"),
    dtype_slot="Anchor",
)
def rpn_target_assign(b: Binder) -> None:
    """ScoreIndex and LocationIndex = anchors that learn whether there is an object, and where.

    An anchor has an object where it overlaps one by ``rpn_positive_overlap`` or more, or overlaps it as much as any
    anchor does; it has none where it overlaps each by less than ``rpn_negative_overlap``. Anchors are numbered through
    all images. Where too many qualify, they are drawn at random from the operator's stream.

    Example:
        >>> from fluidnb.testing import run_op
        >>> anchors = [[0.0, 0.0, 3.0, 3.0], [4.0, 4.0, 7.0, 7.0]]
        >>> given = {"Anchor": anchors, "GtBoxes": ([[0.0, 0.0, 3.0, 3.0]], [[1]]), "ImInfo": [[8.0, 8.0, 1.0]]}
        >>> given["IsCrowd"] = (np.array([[0]], "int32"), [[1]])
        >>> out = run_op("rpn_target_assign", given, {"rpn_straddle_thresh": 0.0})
        >>> out["LocationIndex"].array, out["ScoreIndex"].array, out["TargetLabel"].array.ravel()
        (array([0], dtype=int32), array([0, 1], dtype=int32), array([1, 0], dtype=int32))

    Source: Ren et al., "Faster R-CNN" (2015); Fluid's rpn_target_assign_op.
    """
    outs = tuple(b[s] for s in ("LocationIndex", "ScoreIndex", "TargetLabel", "TargetBBox", "BBoxInsideWeight"))
    b(write_sampled, _assigned, b.rng if b.attr("use_random") else None, _operands(b), outs)


_SLOTS = ("RpnRois", "GtClasses", "IsCrowd", "GtBoxes", "ImInfo")


def sample(
    shared: Array, crowd: Array, how: Any, generator: np.random.Generator | None
) -> tuple[Array, Array, Array, Array]:
    """Samples rows with an object and rows without; gives them, the objects of the first, and the largest overlaps.

    ``shared`` has overlaps [objects + regions, objects], the objects themselves first; a crowd's own box is no example.
    """
    best = shared.max(1, initial=0)
    best[: len(crowd)][crowd != 0] = -1
    front = np.flatnonzero(best > how.fg_thresh)
    front = reservoir(front, int(np.float32(how.batch_size_per_im) * np.float32(how.fg_fraction)), generator)
    objects = (abs(best[front, None] - shared[front]) < NEAR).argmax(1) if len(front) else front
    back = np.flatnonzero((best <= how.fg_thresh) & (best >= how.bg_thresh_lo) & (best < how.bg_thresh_hi))
    back = reservoir(back, how.batch_size_per_im - len(front), generator)
    return front, back, objects, best[np.concatenate([front, back])]


def of_image(
    rois: Array, classes: Array, crowd: Array, boxes: Array, scale: Any, how: Any,
    generator: np.random.Generator | None,
) -> tuple[Array, ...]:  # fmt: skip
    """The examples of one image: regions, labels, targets, their two weights, and how much each overlaps an object.

    Regions are in pixels of the network's input, objects in those of the image. Without a generator: the first ones.
    """
    rows = np.concatenate([boxes, rois / scale])
    front, back, objects, best = sample(overlaps(rows, boxes, False), crowd, how, generator)
    chosen = rows[np.concatenate([front, back])]
    labels = np.concatenate([classes[objects], np.zeros(len(back), classes.dtype)]).astype(np.int32)
    columns = np.minimum(labels, 1) if how.is_cls_agnostic else labels
    wrong = labels[(labels < 0) | (columns >= how.class_nums)]
    if len(wrong):
        raise EnforceNotMet(
            "A label of generate_proposal_labels is no class.", expected=f"0 to {how.class_nums - 1}",
            received=int(wrong[0]), hint="class_nums counts the class of no object, too.",
        )  # fmt: skip
    codes = deltas(chosen[: len(front)], boxes[objects]) / np.array(how.bbox_reg_weights, rows.dtype)
    targets = np.zeros((len(chosen), how.class_nums, 4), rows.dtype)
    weights = np.zeros_like(targets)
    learns = np.flatnonzero(labels[: len(front)] > 0)
    targets[learns, columns[learns]], weights[learns, columns[learns]] = codes[learns], 1
    return chosen * scale, labels, targets, weights, weights, best


def _labelled(operands: tuple[Any, ...], generator: np.random.Generator | None) -> list[tuple[Array, ...]]:
    """The examples of every image; the operands are the values of the slots and what `_how` gives."""
    rois, classes, crowd, boxes, info, images, how = operands
    classes, crowd = classes.reshape(-1), crowd.reshape(-1)
    return [
        of_image(rois[own], classes[part], crowd[part], boxes[part], scale, how, generator)
        for own, part, scale in zip(*images, info[:, 2], strict=True)
    ]


def _how(b: Context) -> tuple[tuple[list[slice], list[slice]], Any]:
    """The regions and the objects of each image, and the attributes."""
    return (slices(b.lod("RpnRois")[-1]), slices(b.lod("GtBoxes")[-1])), attributes(b)


def _region_targets_counts(b: Binder) -> tuple[int, ...]:
    """Number of selected regions of each image."""
    if not all_given(b, *_SLOTS) or not b.lod("RpnRois") or not b.lod("GtBoxes"):
        return ()
    generator = b.rng.rewind() if b.attr("use_random") else None
    values: tuple[Any, ...] = tuple(on_host(b[s]) for s in _SLOTS)
    return tuple(len(own[0]) for own in _labelled((*values, *_how(b)), generator))


def _generate_proposal_labels_infer(c: Context) -> None:
    c.check_inputs()
    for slot in _SLOTS[:4]:
        require_lod(c, slot, 1)
    for slot in ("RpnRois", "GtBoxes"):
        one_row_each(c, "ImInfo", slot)
    same_sequences(c, "GtBoxes", "GtClasses", "IsCrowd")
    count, level = -1, None
    if isinstance(c, Binder):
        level = as_level(_region_targets_counts(c))
        count = level[-1]
    dtype, wide = c["RpnRois"].dtype, (count, 4 * c.attr("class_nums"))
    c.set("Rois", (count, 4), dtype, (level,))
    c.set("LabelsInt32", (count, 1), np.int32, (level,))
    for slot in ("BboxTargets", "BboxInsideWeights", "BboxOutsideWeights"):
        c.set(slot, wide, dtype, (level,))
    c.set("MaxOverlapWithGT", (count,), dtype, (level,))


@op(
    "generate_proposal_labels",
    inputs={
        "RpnRois: float[regions, 4] lod": "left, top, right, bottom; a sequence for each image",
        "GtClasses: int32[objects, 1] lod | int32[objects] lod": "their classes; a sequence for each image",
        "IsCrowd: int32[objects, 1] lod | int32[objects] lod": "1 for a crowd; a sequence for each image",
        "GtBoxes: float[objects, 4] lod": "boxes in the image as it was; a sequence for each image",
        "ImInfo: float[images, 3]": "height, width, and how much larger the network sees the image",
    },
    outputs={
        "Rois": "[examples, 4]; a sequence for each image",
        "LabelsInt32": "int32 [examples, 1]: the class of each, 0 for none",
        "BboxTargets": "[examples, 4 · class_nums]: the object as deltas of the region, in the columns of its class",
        "BboxInsideWeights": "the same shape: 1 where there is a target",
        "BboxOutsideWeights": "the same shape: 1 where there is a target",
        "MaxOverlapWithGT?": "[examples]: how much each overlaps an object; of later Paddle",
    },
    attrs={
        "batch_size_per_im": Attr("int", doc="how many regions of an image are examples, at most"),
        "fg_fraction": Attr("float", doc="the share of examples with an object, at most"),
        "fg_thresh": Attr("float", doc="the overlap above which a region has an object"),
        "bg_thresh_hi": Attr("float", doc="the overlap below which a region has none"),
        "bg_thresh_lo": Attr("float", doc="the overlap from which a region has none"),
        "bbox_reg_weights": Attr("floats", doc="four divisors of the deltas"),
        "class_nums": Attr("int", doc="how many classes there are, with that of no object", gt=0),
        "is_cls_agnostic": Attr("bool", False, "whether all objects share the columns of class 1"),
        "is_cascade_rcnn": Attr("bool", False, "the stages of a cascade are not built", enum=(False,)),
        "use_random": Attr("bool", True, "whether regions are drawn at random; otherwise the first ones are taken"),
    },
    check=lambda a: None if len(a["bbox_reg_weights"]) == 4 else "bbox_reg_weights must be four numbers.",
    infer=_generate_proposal_labels_infer,
    guard=_region_targets_counts,
    data_shape=True,
    random=True,
    host_only="the size of its output depends on the values",
    dtypes=("float32", "float64"),
    dtype_slot="RpnRois",
)
def generate_proposal_labels(b: Binder) -> None:
    """Rois = regions and objects that overlap an object much or little; the others are no examples.

    A region has the class of the object that it overlaps most, where that is more than ``fg_thresh``, and class 0 where
    it is from ``bg_thresh_lo`` to below ``bg_thresh_hi``. The boxes of the objects are regions too. Where too many
    qualify, they are drawn at random from the operator's stream.

    Example:
        >>> from fluidnb.testing import run_op
        >>> given = {"RpnRois": ([[0.0, 0.0, 7.0, 3.0]], [[1]]), "GtBoxes": ([[0.0, 0.0, 3.0, 3.0]], [[1]])}
        >>> given |= {s: (np.array([[v]], "int32"), [[1]]) for s, v in (("GtClasses", 1), ("IsCrowd", 0))}
        >>> attrs = {"batch_size_per_im": 4, "fg_fraction": 0.5, "fg_thresh": 0.4, "bg_thresh_hi": 0.5}
        >>> attrs |= {"bg_thresh_lo": 0.0, "bbox_reg_weights": [1.0] * 4, "class_nums": 2}
        >>> out = run_op("generate_proposal_labels", {**given, "ImInfo": [[8.0, 8.0, 1.0]]}, attrs)
        >>> out["LabelsInt32"].array.ravel(), out["BboxTargets"].array[1].round(2)
        (array([1, 1], dtype=int32), array([ 0.  ,  0.  ,  0.  ,  0.  , -0.25,  0.  , -0.69,  0.  ]))

    Source: Ren et al., "Faster R-CNN" (2015); Fluid's generate_proposal_labels_op.
    """
    outs = tuple(b[slot] for slot in b.definition.outputs)
    b(write_sampled, _labelled, b.rng if b.attr("use_random") else None, (*(b[s] for s in _SLOTS), *_how(b)), outs)


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
    count, level = sized(c, _mask_labels_counts)
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


def _mask_labels_counts(b: Context) -> tuple[int, ...]:
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


def masks_of_image(
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
    """Write the results of `masks_of_image` for every image; outputs without a consumer are None.

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
        for region, found in masks_of_image(own, labels[regions], drawn, scale, *sizes):
            for out, value in ((chosen, own[region] / scale * scale), (numbers, region), (masks, found.reshape(-1))):
                if out is not None:
                    out[row] = value
            row += 1


@op(
    "generate_mask_labels",
    inputs={
        "ImInfo: float[images, 3]": "height, width, and how much larger the network sees the image",
        "GtClasses: int32[objects, 1] lod | int32[objects] lod": "their classes; a sequence for each image",
        "IsCrowd: int32[objects, 1] lod | int32[objects] lod":
            "1 for a crowd, which has no mask; a sequence for each image",
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
    guard=_mask_labels_counts,
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
    counts, (images, objects, polygons) = _mask_labels_counts(b), b.lod("GtSegms")
    rows, dtype = sum(counts), rois.dtype
    if not rows:
        return
    chosen, numbers, masks = (b[s] for s in ("MaskRois", "RoiHasMaskInt32", "MaskInt32"))
    info, corners = of_dtype(b, b["ImInfo"], dtype), of_dtype(b, b["GtSegms"], dtype)
    labels, kinds, crowd = (
        of_dtype(b, b[slot], np.dtype(np.int64)) for slot in ("LabelsInt32", "GtClasses", "IsCrowd")
    )
    level, masks_of_image, of_object, starts = (
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
        objects_of = rois, info, labels, kinds, crowd, boxes, level, masks_of_image, region, seen
        each(b, CUDA, f"seen<{c}>", rows, *objects_of, np.int64(classes - 1))
        fill(b, masks, -1)
        passed, grid = b.tmp((rows, size * size), np.int32), (min(BLOCKS, -(-rows // _WARPS)),)
        operands = corners, rois, info, labels, level, of_object, starts, region, seen, passed, masks
        b(CUDA[f"drawn<{c}>"], grid, (32, _WARPS), 0, *operands, *map(np.int64, (size, classes, rows)))
