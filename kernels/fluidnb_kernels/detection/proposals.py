"""generate_proposals, distribute_fpn_proposals and collect_fpn_proposals: regions that may hold objects."""

from typing import Any

import numpy as np

from fluidnb.op import Array, Attr, Binder, Context, op, product
from fluidnb.values.copies import on_host
from fluidnb_kernels.detection.nms import falling
from fluidnb_kernels.detection.region_targets import write_rows
from fluidnb_kernels.emit import of_paddle2, store
from fluidnb_kernels.rules import agree, attributes, fits
from fluidnb_kernels.sequences import all_given, as_level, require_lod, sized, slices

#: The largest logarithm by which a box may grow.
GROWTH = float(np.log(1000.0 / 16.0))


def decoded(anchors: Array, variances: Array, codes: Array) -> Array:
    """The boxes [n, 4] that codes of anchors mean."""
    one, half = anchors.dtype.type(1), anchors.dtype.type(0.5)
    size = anchors[:, 2:] - anchors[:, :2] + one
    scaled = variances * codes
    middle = scaled[:, :2] * size + anchors[:, :2] + half * size
    reach = np.exp(np.minimum(scaled[:, 2:], anchors.dtype.type(GROWTH))) * size * half
    return np.concatenate([middle - reach, middle + reach - one], 1)


def separate(boxes: Array, scores: Array, how: Any) -> Array:
    """The regions left by non-maximum suppression, the highest score first."""
    one = boxes.dtype.type(1)
    area = (boxes[:, 2:] - boxes[:, :2] + one).prod(1)
    most, limit = np.zeros(len(boxes), boxes.dtype), boxes.dtype.type(how.nms_thresh)
    kept: list[int] = []
    # of equal scores the last comes first, as in Fluid
    order = (len(scores) - 1 - falling(scores[::-1])).tolist()
    for spot in order:
        if most[spot] > limit:
            continue
        kept.append(spot)
        if len(kept) == how.post_nms_topN:
            break
        own = boxes[spot]
        between = np.minimum(boxes[:, 2:], own[2:]) - np.maximum(boxes[:, :2], own[:2])
        shared = np.where((between >= 0).all(1), (between + one).prod(1), 0)
        np.maximum(most, shared / (area + area[spot] - shared), out=most)
        if how.eta < 1 and limit > 0.5:
            limit *= boxes.dtype.type(how.eta)
    return np.array(kept, np.int64)


def of_image(
    scores: Array, codes: Array, info: Array, anchors: Array, variances: Array, how: Any
) -> tuple[Array, Array]:
    """The regions of one image, and their scores."""
    order = falling(scores)
    if 0 < how.pre_nms_topN < len(order):
        order = order[: how.pre_nms_topN]
    height, width, scale = info
    edge = np.array([width, height, width, height], anchors.dtype) - anchors.dtype.type(1)
    boxes = np.maximum(np.minimum(decoded(anchors[order], variances[order], codes[order]), edge), 0)
    size, one = boxes[:, 2:] - boxes[:, :2], boxes.dtype.type(1)
    middle = boxes[:, :2] + (size + one) / boxes.dtype.type(2)
    wide = size / scale + one >= boxes.dtype.type(max(how.min_size, 1.0))
    kept = np.flatnonzero(wide.all(1) & (middle <= info[1::-1]).all(1))
    boxes, scores = boxes[kept], scores[order[kept]]
    if how.nms_thresh > 0:
        kept = separate(boxes, scores, how)
        boxes, scores = boxes[kept], scores[kept]
    return boxes, scores


def proposed(operands: tuple[Array, ...], how: Any) -> list[tuple[Array, Array]]:
    """The regions of every image, and their scores."""
    scores, codes, info, anchors, variances = operands
    flat = [np.ascontiguousarray(v).reshape(-1, 4) for v in (anchors, variances)]
    rows = scores.transpose(0, 2, 3, 1).reshape(len(scores), -1)
    moved = codes.transpose(0, 2, 3, 1).reshape(len(codes), -1, 4)
    return [of_image(rows[i], moved[i], info[i], flat[0], flat[1], how) for i in range(len(scores))]


_SLOTS = ("Scores", "BboxDeltas", "ImInfo", "Anchors", "Variances")


def _generate_proposals_counts(b: Context) -> tuple[int, ...]:
    """Number of selected regions of each image."""
    if not all_given(b, *_SLOTS):
        return ()
    return tuple(len(rows) for rows, _ in proposed(tuple(on_host(b[s]) for s in _SLOTS), attributes(b)))


def _infer(c: Context) -> None:
    scores = c["Scores"].shape
    c.check_inputs()
    wanted = (-1, product((4, scores[1])), -1, -1)
    fits(c, "BboxDeltas", wanted, "Input(BboxDeltas) of generate_proposals does not go with its Scores.")
    count, lod = sized(c, _generate_proposals_counts)
    c.set("RpnRois", (count, 4), c["Anchors"].dtype, lod)
    c.set("RpnRoiProbs", (count, 1), c["Scores"].dtype, lod)


def _write(operands: tuple[Array, ...], how: Any, outs: tuple[Array | None, ...]) -> None:
    write_rows(outs, proposed(operands, how))


@op(
    "generate_proposals",
    inputs={
        "Scores: float[images, anchors, height, width]": "how sure the network is of an object",
        "BboxDeltas: float[images, 4 · anchors, height, width]": "boxes as deltas of the anchors",
        "ImInfo: float[images, 3]": "height, width, and how much larger the network sees the image",
        "Anchors: float[height, width, anchors, 4]": "left, top, right, bottom",
        "Variances: float[height, width, anchors, 4]": "factors of the deltas",
    },
    outputs={
        "RpnRois": "[regions, 4]; a sequence for each image",
        "RpnRoiProbs": "[regions, 1]: their scores; a sequence for each image",
    },
    attrs={
        "pre_nms_topN": Attr("int", doc="how many regions of an image are kept before NMS; 0 or less for all"),
        "post_nms_topN": Attr("int", doc="how many of them stay; 0 or less for all"),
        "nms_thresh": Attr("float", doc="above which overlap with a better region a region goes; 0 or less for none"),
        "min_size": Attr("float", doc="the least width and height of a region, in the image as it was; at least 1"),
        "eta": Attr("float", doc="factor of nms_thresh after each region that stays, while it is above 1/2"),
    },
    infer=_infer,
    guard=_generate_proposals_counts,
    data_shape=True,
    host_only="searches step by step: each step depends on the one before",
    dtypes=("float32", "float64"),
    dtype_slot="Anchors",
)
def generate_proposals(b: Binder) -> None:
    """RpnRois = the boxes that the highest Scores and their BboxDeltas mean, without those that overlap a better one.

    Boxes are held within their image. Where none stays, the image has no region.

    Example:
        >>> from fluidnb.testing import run_op
        >>> one = {"Scores": np.full((1, 1, 1, 1), 0.5), "BboxDeltas": np.zeros((1, 4, 1, 1))}
        >>> one |= {"ImInfo": [[9.0, 9.0, 1.0]], "Variances": np.ones((1, 1, 1, 4))}
        >>> one["Anchors"] = np.array([-2.0, 0.0, 5.0, 5.0]).reshape(1, 1, 1, 4)
        >>> attrs = {"pre_nms_topN": 9, "post_nms_topN": 9, "nms_thresh": 0.5, "min_size": 1.0, "eta": 1.0}
        >>> run_op("generate_proposals", one, attrs)["RpnRois"].array
        array([[0., 0., 5., 5.]])

    Source: Ren et al., "Faster R-CNN" (2015); Fluid's generate_proposals_op.
    """
    b(_write, tuple(b[s] for s in _SLOTS), attributes(b), (b["RpnRois"], b["RpnRoiProbs"]))


_DTYPES = ("float32", "float64")


def levels_of(rois: Array, lowest: int, highest: int, level: int, scale: int, offset: bool = True) -> Array:
    """The level of each region, int64."""
    size = rois[:, 2:] - rois[:, :2]
    area = np.where((size < 0).any(1), 0, (size + rois.dtype.type(offset)).prod(1))
    with np.errstate(divide="ignore"):
        found = np.floor(np.log2(np.sqrt(area) / rois.dtype.type(scale)) + rois.dtype.type(level))
    return np.clip(np.nan_to_num(found, nan=lowest), lowest, highest).astype(np.int64)


def _how(c: Context) -> tuple[int, int, int, int, bool]:
    numbers = c.attr("min_level"), c.attr("max_level"), c.attr("refer_level"), c.attr("refer_scale")
    return *numbers, c.attr("pixel_offset", True)


def _offsets(c: Context, slot: str, numbers: str) -> list[tuple[int, ...]]:
    """The offsets of the images in each variable of a slot, by numbers of regions where they are given; () if unfit."""
    rows = [len(x) for x in c.all(slot)]
    if not c.has(numbers):
        return [tuple(lod[-1]) if lod else () for lod in c.lods(slot)]
    counts = [on_host(n).reshape(-1) for n in c.all(numbers) if n is not None]
    if len(counts) != len(rows):
        return [()] * len(rows)
    return [as_level(n) if (n >= 0).all() and n.sum() == m else () for n, m in zip(counts, rows, strict=True)]


def _require_numbers(c: Context, slot: str, numbers: str) -> None:
    """Require numbers of regions that add up to the regions of each level, for the same images on all of them."""
    c.require(
        len({len(o) for o in _offsets(c, slot, numbers)} - {0}) == 1 and all(_offsets(c, slot, numbers)),
        f"Input({numbers}) of {c.definition.type} must have the number of regions of each image.",
        expected=f"numbers that add up to {[len(x) for x in c.all(slot)]}, the rows of {slot}",
        received=[on_host(n).reshape(-1).tolist()[:20] for n in c.all(numbers)],
    )  # fmt: skip


def _fpn_levels_counts(c: Context) -> tuple[tuple[int, ...], ...]:
    """For each level, how many regions of each image it has."""
    count = c.attr("max_level") - c.attr("min_level") + 1
    if not all_given(c, "FpnRois") or count != len(c.outputs.get("MultiFpnRois", ())):
        return ()
    offsets = _offsets(c, "FpnRois", "RoisNum")[0]
    if not offsets:
        return ()
    found, parts = levels_of(on_host(c["FpnRois"]), *_how(c)), slices(offsets)
    levels = range(c.attr("min_level"), c.attr("max_level") + 1)
    return tuple(tuple(int((found[part] == level).sum()) for part in parts) for level in levels)


def _distribute_infer(c: Context) -> None:
    c.check_inputs()
    if not c.has("RoisNum"):
        require_lod(c, "FpnRois", 1)
    elif c.runtime:
        _require_numbers(c, "FpnRois", "RoisNum")
    wanted = c.attr("max_level") - c.attr("min_level") + 1
    for slot in ("MultiFpnRois", *(["MultiLevelRoIsNum"] if c.outputs.get("MultiLevelRoIsNum") else [])):
        have = len(c.outputs.get(slot, ()))
        c.require(
            have == wanted, f"Output({slot}) of distribute_fpn_proposals has a variable for each level.",
            expected=f"{wanted}: levels {c.attr('min_level')} to {c.attr('max_level')}", received=have,
        )  # fmt: skip
    x, images = c["FpnRois"], c["RoisNum"].shape[0] if c.has("RoisNum") else -1
    counts = _fpn_levels_counts(c) if c.runtime else None
    for i in range(wanted):
        level = None if counts is None else as_level(counts[i])
        c.set("MultiFpnRois", (-1 if level is None else level[-1], 4), x.dtype, (level,), i)
        c.set("MultiLevelRoIsNum", (images if level is None else len(level) - 1,), np.int32, (), i)
    rows = x.shape[0]
    c.set("RestoreIndex", (rows, 1) if isinstance(c, Binder) and of_paddle2(c) else (1, rows), np.int32)


def distribute(rois: Array, found: Array, outs: list[Array | None], restore: Array | None) -> None:
    """Write the regions of each level (from 0 on), and the row of each region among those of all levels."""
    for level, out in enumerate(outs):
        if out is not None:
            out[...] = rois[found == level]
    if restore is not None:
        rows = np.empty(len(rois), np.int32)
        rows[np.argsort(found, kind="stable")] = np.arange(len(rois))
        restore[...] = rows.reshape(restore.shape)


def write_distributed(
    rois: Array, how: tuple[int, int, int, int, bool], outs: list[Array | None], restore: Any,
    counts: tuple[tuple[int, ...], ...], numbers: list[Array | None],
) -> None:  # fmt: skip
    """Write the results of `distribute` for the levels of `levels_of`, and the numbers of regions."""
    distribute(rois, levels_of(rois, *how) - how[0], outs, restore)
    store(numbers, counts[: len(numbers)])


@op(
    "distribute_fpn_proposals",
    inputs={
        "FpnRois: float[regions, 4] lod": "left, top, right, bottom; a sequence for each image",
        "RoisNum?: int[images]": "how many regions each image has, instead of sequences",
    },
    outputs={
        "MultiFpnRois*": "[regions, 4] for each level; a sequence for each image",
        "RestoreIndex": "int32 [1, regions]: the row of each region when those of all levels follow each other",
        "MultiLevelRoIsNum*?": "int32 [images] for each level: how many regions of each image it has",
    },
    attrs={
        "min_level": Attr("int", doc="the lowest level"),
        "max_level": Attr("int", doc="the highest level"),
        "refer_level": Attr("int", doc="the level of regions whose area is refer_scale squared"),
        "refer_scale": Attr("int", doc="see refer_level", gt=0),
        "pixel_offset": Attr("bool", True, "whether a region from 0 to 9 is ten pixels wide; else nine"),
    },
    check=lambda a: "max_level must not be lower than min_level." if a["max_level"] < a["min_level"] else None,
    infer=_distribute_infer,
    guard=_fpn_levels_counts,
    data_shape=True,
    host_only="the size of its output depends on the values",
    dtypes=_DTYPES,
    dtype_slot="FpnRois",
)
def distribute_fpn_proposals(b: Binder) -> None:
    """MultiFpnRois[l] = the regions of level l: ``floor(refer_level + log2(sqrt(area) / refer_scale))``.

    In a program of Paddle 2, RestoreIndex is [regions, 1].

    Example:
        >>> from fluidnb.testing import run_op
        >>> rois = [[0.0, 0.0, 9.0, 9.0], [0.0, 0.0, 4.0, 4.0], [0.0, 0.0, 8.0, 9.0]]
        >>> attrs = {"min_level": 2, "max_level": 3, "refer_level": 3, "refer_scale": 8}
        >>> out = run_op("distribute_fpn_proposals", {"FpnRois": (rois, [[3]])}, attrs,
        ...     {"MultiFpnRois": 2, "RestoreIndex": 1})
        >>> [len(level.array) for level in out["MultiFpnRois"]], out["RestoreIndex"]
        ([1, 2], array([[1, 0, 2]], dtype=int32))

    Source: Lin et al., "Feature Pyramid Networks" (2017); Fluid's distribute_fpn_proposals_op.
    """
    outs, numbers = b.all("MultiFpnRois"), b.all("MultiLevelRoIsNum")
    b(write_distributed, b["FpnRois"], _how(b), outs, b["RestoreIndex"], _fpn_levels_counts(b), numbers)


def collect(scores: list[Array], offsets: list[tuple[int, ...]], most: int) -> tuple[Array, tuple[int, ...]]:
    """Rows, in all levels together, of the regions with the highest scores by image, and how many each image has."""
    image = np.concatenate([np.repeat(np.arange(len(o) - 1), np.diff(o)) for o in offsets])
    joined = np.concatenate([s.reshape(-1) for s in scores])
    best = len(joined) - 1 - falling(joined[::-1])[:most]  # of equal scores the later region comes first
    best = best[np.argsort(image[best], kind="stable")]
    return best, tuple(np.bincount(image[best], minlength=len(offsets[0]) - 1).tolist())


def _collected_counts(c: Context) -> tuple[int, ...]:
    """Number of regions of each image that stay."""
    scores = c.all("MultiLevelScores")
    if any(s is None for s in scores):
        return ()
    offsets = _offsets(c, "MultiLevelScores", "MultiLevelRoIsNum")
    return collect([on_host(s) for s in scores], offsets, c.attr("post_nms_topN"))[1] if all(offsets) else ()


def _collect_infer(c: Context) -> None:
    rois, scores = c.all("MultiLevelRois"), c.all("MultiLevelScores")
    c.require(
        len(rois) == len(scores), "collect_fpn_proposals needs scores for each level.",
        expected=f"{len(rois)} variables in MultiLevelScores", received=len(scores),
    )  # fmt: skip
    for i, (r, s) in enumerate(zip(rois, scores, strict=True)):
        c.require(
            agree(r.shape, (-1, 4)) and agree(s.shape, (r.shape[0], 1)),
            f"Level {i} of collect_fpn_proposals must have regions and a score for each.",
            expected="[regions, 4] and [regions, 1]", received=f"{list(r.shape)} and {list(s.shape)}",
        )  # fmt: skip
    if not c.runtime:
        numbers = c.all("MultiLevelRoIsNum")
        c.set("RoisNum", numbers[0].shape if numbers else (-1,), np.int32)
        return c.set("FpnRois", (-1, 4), rois[0].dtype, (None,))
    if c.has("MultiLevelRoIsNum"):
        _require_numbers(c, "MultiLevelScores", "MultiLevelRoIsNum")
    first = c.lods("MultiLevelScores")[0]
    for slot in () if c.has("MultiLevelRoIsNum") else ("MultiLevelRois", "MultiLevelScores"):
        for i, lod in enumerate(c.lods(slot)):
            c.require(
                len(lod) == 1 and bool(first) and len(lod[0]) == len(first[0]),
                f"Input({slot}) of collect_fpn_proposals must have a sequence for each image.",
                expected="one level with as many sequences in every variable", received=f"{lod} in variable {i}",
            )  # fmt: skip
    level = as_level(_collected_counts(c))
    c.set("RoisNum", (len(level) - 1,), np.int32)
    return c.set("FpnRois", (level[-1], 4), rois[0].dtype, (level,))


def write_collected(
    rois: list[Array], scores: list[Array], offsets: list[tuple[int, ...]], most: int, outs: list[Array | None]
) -> None:
    """Write the regions that `collect` chooses, and how many each image has."""
    rows, counts = collect(scores, offsets, most)
    store(outs, (np.concatenate(rois)[rows], counts))


@op(
    "collect_fpn_proposals",
    inputs={
        "MultiLevelRois*: float[regions, 4] lod": "regions of each level; a sequence for each image",
        "MultiLevelScores*: float[regions, 1] lod": "their scores on each level; a sequence for each image",
        "MultiLevelRoIsNum*?: int[images]": "how many regions of each image a level has, instead of sequences",
    },
    outputs={
        "FpnRois": "[regions, 4]; a sequence for each image",
        "RoisNum?": "int32 [images]: how many regions each image has",
    },
    attrs={"post_nms_topN": Attr("int", doc="how many regions of all images stay", gt=0)},
    infer=_collect_infer,
    guard=_collected_counts,
    data_shape=True,
    host_only="the size of its output depends on the values",
    dtypes=_DTYPES,
    dtype_slot="MultiLevelRois",
)
def collect_fpn_proposals(b: Binder) -> None:
    """FpnRois = the regions with the highest scores among all levels and images, image after image.

    Example:
        >>> from fluidnb.testing import run_op
        >>> low, high = ([[0.0, 0.0, 1.0, 1.0]], [[1]]), ([[0.0, 0.0, 9.0, 9.0]], [[1]])
        >>> given = {"MultiLevelRois": [low, high], "MultiLevelScores": [([[0.2]], [[1]]), ([[0.9]], [[1]])]}
        >>> run_op("collect_fpn_proposals", given, {"post_nms_topN": 1})["FpnRois"].array
        array([[0., 0., 9., 9.]])

    Source: Lin et al., "Feature Pyramid Networks" (2017); Fluid's collect_fpn_proposals_op.
    """
    scores, offsets = b.all("MultiLevelScores"), _offsets(b, "MultiLevelScores", "MultiLevelRoIsNum")
    b(
        write_collected, b.all("MultiLevelRois"), scores, offsets, b.attr("post_nms_topN"),
        [b["FpnRois"], b["RoisNum"]],
    )  # fmt: skip
