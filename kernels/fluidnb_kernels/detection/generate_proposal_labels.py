"""generate_proposal_labels: which proposed regions the network that classifies learns from, and what."""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidnb.errors import EnforceNotMet
from fluidnb.op import Array, Attr, Binder, Context, op
from fluidnb.values.copies import on_host
from fluidnb_kernels.detection.boxes import overlaps
from fluidnb_kernels.detection.region_sampling import (
    NEAR,
    deltas,
    one_row_each,
    reservoir,
    same_sequences,
    write_sampled,
)
from fluidnb_kernels.rules import attributes
from fluidnb_kernels.sequences import all_given, as_level, require_lod, slices

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


def _counts(b: Binder) -> tuple[int, ...]:
    """Number of selected regions of each image."""
    if not all_given(b, *_SLOTS) or not b.lod("RpnRois") or not b.lod("GtBoxes"):
        return ()
    generator = b.rng.rewind() if b.attr("use_random") else None
    values: tuple[Any, ...] = tuple(on_host(b[s]) for s in _SLOTS)
    return tuple(len(own[0]) for own in _labelled((*values, *_how(b)), generator))


def _infer(c: Context) -> None:
    c.check_inputs()
    for slot in _SLOTS[:4]:
        require_lod(c, slot, 1)
    for slot in ("RpnRois", "GtBoxes"):
        one_row_each(c, "ImInfo", slot)
    same_sequences(c, "GtBoxes", "GtClasses", "IsCrowd")
    count, level = -1, None
    if isinstance(c, Binder):
        level = as_level(_counts(c))
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
        "GtClasses: int32[objects, 1] lod": "their classes; a sequence for each image",
        "IsCrowd: int32[objects, 1] lod": "1 for a crowd; a sequence for each image",
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
    infer=_infer,
    guard=_counts,
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
