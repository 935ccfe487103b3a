"""rpn_target_assign: which anchors the network that proposes regions learns from, and what."""

from __future__ import annotations

from typing import Any

import numpy as np

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


def _infer(c: Context) -> None:
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
        "IsCrowd: int32[objects, 1] lod": "1 for a crowd, which does not count; a sequence for each image",
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
    infer=_infer,
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
