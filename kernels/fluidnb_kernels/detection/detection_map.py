"""detection_map: the mean average precision of the boxes that a detector finds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from fluidnb.op import Attr, Binder, Context, op
from fluidnb_kernels.detection.boxes import overlaps
from fluidnb_kernels.rules import agree, whole_numbers
from fluidnb_kernels.sequences import all_given, as_level, require_lod

Array = Any
#: Class -> rows of score and flag [n, 2], in the order in which they were found.
Rows = dict[int, list[Array]]
#: Objects of each class, right and wrong detections; None where there are none yet.
States = tuple[Array | None, Array | None, Array | None]

_STATES = ("PosCount", "TruePos", "FalsePos")
#: What recall must exceed before a precision counts in the integral.
_STEP = 1e-6
#: How many classes the states may have: their LoD has an offset for each.
_MOST_CLASSES = 1 << 20
#: What the mark of a difficult object must reach.
_NONE = 1e-6


def _infer(c: Context) -> None:
    found, label, classes = c["DetectRes"], c["Label"], c.attr("class_num")
    c.require(
        agree(found.shape, (-1, 6)) or _nothing(found.shape), "Input(DetectRes) of detection_map must hold detections.",
        expected="[detections, 6]: class, score, left, top, right, bottom", received=list(found.shape),
    )  # fmt: skip
    c.require(
        label.ndim == 2 and label.shape[1] in (5, 6, -1), "Input(Label) of detection_map must hold objects.",
        expected="[objects, 5]: class, left, top, right, bottom; or [objects, 6] with 1 for difficult after the class",
        received=list(label.shape),
    )  # fmt: skip
    missing = [s for s in _STATES if not c.has(s)]
    c.require(
        missing in ([], list(_STATES)), "detection_map takes all its counts so far, or none of them.",
        expected=", ".join(_STATES), received=f"no {', '.join(missing)}",
    )  # fmt: skip
    for slot in ("DetectRes", "Label"):
        require_lod(c, slot, 1)
    rows = -1
    level: tuple[Any, ...] = (None,)
    if c.runtime:
        images = len(c.lod("Label")[0]) - 1
        c.require(
            _nothing(found.shape) or len(c.lod("DetectRes")[0]) - 1 == images,
            "Input(DetectRes) of detection_map must have a sequence for each image.",
            expected=f"{images}, as Label has", received=len(c.lod("DetectRes")[0]) - 1,
        )  # fmt: skip
        if _continues(c):
            _check_states(c, classes)
        level = (as_level(_lengths(c)[:classes]),)
        rows = level[0][-1]
    c.set("AccumPosCount", (classes, 1), np.int32)
    c.set("AccumTruePos", (rows, 2), found.dtype, level)
    c.set("AccumFalsePos", (rows, 2), found.dtype, level)
    c.set("MAP", (1,), found.dtype)


def _nothing(shape: tuple[int, ...]) -> bool:
    """Whether this is what multiclass_nms gives where no image has a detection."""
    return tuple(shape) == (1, 1)


def _check_states(c: Context, classes: int) -> None:
    count = c["PosCount"]
    whole_numbers(c, "PosCount")
    c.require(
        count is not None and count.size == classes, "Input(PosCount) of detection_map must have a number per class.",
        expected=[classes, 1], received=None if count is None else list(count.shape),
    )  # fmt: skip
    for slot in ("TruePos", "FalsePos"):
        rows, level = c[slot], c.lod(slot)
        c.require(
            rows is not None and rows.ndim == 2 and rows.shape[1] == 2,
            f"Input({slot}) of detection_map must hold scores and flags.", expected="[detections, 2]",
            received=None if rows is None else list(rows.shape),
        )  # fmt: skip
        c.require(
            len(level) == 1 and level == c.lod("TruePos"),
            f"Input({slot}) of detection_map must have a sequence for each class.",
            expected="one level, the same for TruePos and FalsePos", received=[list(part) for part in level],
        )  # fmt: skip


def _continues(c: Context) -> bool:
    """Whether the counts so far are read."""
    state = c["HasState"]
    return c.has("PosCount") and state is not None and bool(np.asarray(state).reshape(-1)[:1].any())


def _parts(level: tuple[int, ...]) -> Iterator[slice]:
    return (slice(a, b) for a, b in zip(level[:-1], level[1:], strict=True))


def matches(boxes: Array, objects: Array, difficult: Array, limit: float) -> tuple[Array, Array]:
    """Decides which detections of one class in one image are right; each object is found once.

    Args:
        boxes: detections [n, 4], the highest score first.
        objects: [m, 4].
        difficult: bool [m], the objects whose detections do not count.
        limit: what the overlap (intersection over union) must exceed.

    Returns:
        bool [n] each: whether a detection is right, and whether it counts.

    Example:
        >>> box, none = np.array([[0.0, 0.0, 1.0, 1.0]]), np.zeros(1, bool)
        >>> matches(np.repeat(box, 2, 0), box, none, 0.5)[0]
        array([ True, False])
    """
    shared = overlaps(np.clip(boxes, 0, 1), objects, True)
    best = shared.argmax(1)
    found = shared.max(1) > np.float32(limit)
    counts = ~(found & difficult[best])
    right = np.zeros(len(boxes), bool)
    spots = np.flatnonzero(found & counts)
    right[spots[np.unique(best[spots], return_index=True)[1]]] = True
    return right, counts


def average_precision(true: Array, false: Array, objects: int, eleven: bool) -> float:
    """Computes the average precision of one class.

    Args:
        true: [n, 2]: score, and 1 for a right detection.
        false: [n, 2]: score, and 1 for a wrong one.
        eleven: whether the mean is over eleven recalls (VOC 2007), else it is the integral over recall.

    Example:
        >>> rows = np.array([[0.9, 1.0], [0.8, 0.0]])
        >>> average_precision(rows, np.array([[0.9, 0.0], [0.8, 1.0]]), 2, False)
        0.5
    """
    right, wrong = (
        np.cumsum(rows[np.argsort(-rows[:, 0].astype(np.float32), kind="stable"), 1].astype(np.int64))
        for rows in (true, false)
    )
    with np.errstate(divide="ignore", invalid="ignore"):  # states may hold detections of a class without objects
        precision = right.astype(true.dtype) / (right + wrong).astype(true.dtype)
        recall = right.astype(true.dtype) / true.dtype.type(objects)
    if eleven:
        best = [np.fmax.reduce(precision[~(recall < j / 10)], initial=0) for j in range(11)]
        return float(np.sum(best) / 11)
    step = np.abs(np.diff(recall, prepend=recall.dtype.type(0)))
    return float((precision * step)[step > _STEP].sum())


@dataclass(frozen=True, slots=True)
class Batch:
    """The levels of a batch and the attributes that decide what counts.

    Args:
        detections: offsets of the detections of each image.
        objects: offsets of the objects of each image.
        kept: offsets of the detections of each class in the states; () where states are not read.
        classes: how many classes the states have.
        limit: what the overlap with an object must exceed.
        every: whether difficult objects count.
        eleven: see `average_precision`.
        background: a class with this many objects has no average precision.
    """

    detections: tuple[int, ...]
    objects: tuple[int, ...]
    kept: tuple[int, ...]
    classes: int
    limit: float
    every: bool
    eleven: bool
    background: int


def _batch(c: Context) -> Batch:
    detections, objects, kept = (c.lod(slot)[0] if c.lod(slot) else () for slot in ("DetectRes", "Label", "TruePos"))
    if _nothing(c["DetectRes"].shape):
        detections = (0,) * len(objects)
    return Batch(
        detections, objects, kept if _continues(c) else (), c.attr("class_num"), c.attr("overlap_threshold"),
        c.attr("evaluate_difficult"), c.attr("ap_type") == "11point", c.attr("background_label"),
    )  # fmt: skip


def tally(found: Array, label: Array, states: States, batch: Batch) -> tuple[dict[int, int], Rows, Rows]:
    """Counts the objects of each class, and collects right and wrong detections.

    Args:
        found: detections [n, 6].
        label: objects [m, 5] or [m, 6].
        states: objects, right and wrong detections of the batches before.

    Returns:
        Objects, right and wrong detections of each class, with those of the batches before.
    """
    counts: dict[int, int] = {}
    true: Rows = {}
    false: Rows = {}
    count, right, wrong = states
    if batch.kept and count is not None and right is not None and wrong is not None:
        counts = dict(enumerate(count.reshape(-1).tolist()))
        for k, part in enumerate(_parts(batch.kept)):
            if part.stop > part.start:
                true[k], false[k] = [right[part]], [wrong[part]]
    kinds, labels = label[:, 0].astype(np.int64), found[:, 0].astype(np.int64)
    hard = np.zeros(len(label), bool)
    if label.shape[1] == 6 and not batch.every:
        hard = np.abs(label[:, 1]) >= _NONE
    for k, n in zip(*np.unique(kinds[~hard], return_counts=True), strict=True):
        counts[int(k)] = counts.get(int(k), 0) + int(n)
    for objects, part in zip(_parts(batch.objects), _parts(batch.detections), strict=True):
        for k in np.unique(labels[part]).tolist():
            own, rows = objects.start + np.flatnonzero(kinds[objects] == k), found[part][labels[part] == k]
            right = np.zeros(len(rows), bool)
            if len(own):
                rows = rows[np.argsort(-rows[:, 1], kind="stable")]
                right, stays = matches(rows[:, 2:], label[own, -4:], hard[own], batch.limit)
                right, rows = right[stays], rows[stays]
            if len(rows):
                true.setdefault(k, []).append(np.stack([rows[:, 1], right.astype(rows.dtype)], 1))
                false.setdefault(k, []).append(np.stack([rows[:, 1], (~right).astype(rows.dtype)], 1))
    return counts, true, false


def _lengths(c: Context) -> tuple[int, ...]:
    """Number of detections of each class in the state, and whether the state is read."""
    if not all_given(c, "DetectRes", "Label") or not c.lod("Label"):
        return ()
    batch = _batch(c)
    if len(batch.detections) != len(batch.objects) or len(batch.kept) and not all_given(c, *_STATES):
        return ()
    states = (c["PosCount"], c["TruePos"], c["FalsePos"])
    true = tally(c["DetectRes"], c["Label"], states, batch)[1]
    return (*(sum(map(len, true.get(k, []))) for k in range(batch.classes)), len(batch.kept))


def write(found: Array, label: Array, states: States, batch: Batch, outs: tuple[Array | None, ...]) -> None:
    """Write the mean over the classes, and the states for the next batch.

    Args:
        found: see `tally`.
        label: see `tally`.
        states: see `tally`.
        batch: see `tally`.
        outs: objects of each class, right and wrong detections, the mean; written, or None.
    """
    objects, true, false = tally(found, label, states, batch)
    counts, *rows, mean = outs
    if counts is not None:
        counts[:, 0] = [objects.get(k, 0) for k in range(batch.classes)]
    for out, kept in zip(rows, (true, false), strict=True):
        if out is not None:
            parts = [part for k in range(batch.classes) for part in kept.get(k, [])]
            out[...] = np.concatenate([np.zeros((0, 2), out.dtype), *parts])
    if mean is not None:
        each = [
            average_precision(np.concatenate(true[k]), np.concatenate(false[k]), n, batch.eleven) if k in true else 0.0
            for k, n in sorted(objects.items())
            if n != batch.background
        ]
        mean[0] = np.mean(each) if each else 0


@op(
    "detection_map",
    inputs={
        "DetectRes: float[detections, 6] lod": "class, score, left, top, right, bottom; a sequence for each image",
        "Label: float[objects, 5] lod | float[objects, 6] lod":
            "class, 1 for difficult (of 6 columns), left, top, right, bottom; a sequence for each image",
        "HasState?: int32[1]": "whether PosCount, TruePos and FalsePos are read; left out, they are not",
        "PosCount?: int32[class_num, 1]": "objects of each class so far",
        "TruePos?: float[n, 2] lod": "score of each detection so far, and 1 if it is right; a sequence for each class",
        "FalsePos?: float[n, 2] lod": "score of each detection so far, and 1 if it is wrong; a sequence for each class",
    },
    outputs={
        "AccumPosCount": "PosCount with this batch",
        "AccumTruePos": "TruePos with this batch",
        "AccumFalsePos": "FalsePos with this batch",
        "MAP": "[1]: the mean average precision",
    },
    attrs={
        "class_num": Attr("int", doc="how many classes there are, with the background", gt=0),
        "background_label": Attr("int", 0, "classes with this many objects do not count"),
        "overlap_threshold": Attr("float", 0.5, "what the overlap with an object must exceed"),
        "evaluate_difficult": Attr("bool", True, "whether difficult objects count"),
        "ap_type": Attr("string", "integral", "integral over recall, or 11point (VOC 2007)",
                        enum=("integral", "11point")),
    },
    check=lambda a: None if a["class_num"] <= _MOST_CLASSES else f"class_num must be {_MOST_CLASSES} or less.",
    infer=_infer,
    guard=_lengths,
    unset=_STATES,
    data_shape=True,
    host_only="counts matches of a whole pass, one after the other",
    dtypes=("float32", "float64"),
    dtype_slot="DetectRes",
)  # fmt: skip
def detection_map(b: Binder) -> None:
    """MAP = the mean over classes of the average precision of detections, the highest score first.

    A detection is right if the object of its class that it overlaps most (intersection over union) is found for the
    first time. A class without objects does not count; one without detections counts 0 (v1.4 leaves it out).

    Example:
        >>> from fluidnb.testing import run_op
        >>> found = ([[1.0, 0.9, 0.0, 0.0, 0.5, 0.5], [1.0, 0.8, 0.5, 0.5, 1.0, 1.0]], [[2]])
        >>> label = ([[1.0, 0.5, 0.5, 1.0, 1.0]], [[1]])
        >>> run_op("detection_map", {"DetectRes": found, "Label": label}, {"class_num": 2})["MAP"]
        array([0.5])

    Source: Everingham et al., "The PASCAL Visual Object Classes Challenge" (2010); Fluid's detection_map_op.
    """
    states = (b["PosCount"], b["TruePos"], b["FalsePos"])
    outs = tuple(b[slot] for slot in ("AccumPosCount", "AccumTruePos", "AccumFalsePos", "MAP"))
    b(write, b["DetectRes"], b["Label"], states, _batch(b), outs)
