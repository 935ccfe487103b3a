"""detection_map: the mean average precision of the boxes that a detector finds."""

from typing import Any

import numpy as np

from fluidnb.op import Array, Attr, Binder, Context, op
from fluidnb_kernels.detection.boxes import overlaps
from fluidnb_kernels.rules import agree, attributes
from fluidnb_kernels.sequences import all_given, as_level, require_lod, slices

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
    found, classes = c["DetectRes"], c.attr("class_num")
    c.require(
        agree(found.shape, (-1, 6)) or _nothing(found.shape), "Input(DetectRes) of detection_map must hold detections.",
        expected="[detections, 6]: class, score, left, top, right, bottom", received=list(found.shape),
    )  # fmt: skip
    c.check_inputs("Label")
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
    c.check_inputs(*_STATES)
    c.require(
        count is not None and count.size == classes, "Input(PosCount) of detection_map must have a number per class.",
        expected=[classes, 1], received=None if count is None else list(count.shape),
    )  # fmt: skip
    for slot in ("TruePos", "FalsePos"):
        level = c.lod(slot)
        c.require(
            len(level) == 1 and level == c.lod("TruePos"),
            f"Input({slot}) of detection_map must have a sequence for each class.",
            expected="one level, the same for TruePos and FalsePos", received=[list(part) for part in level],
        )  # fmt: skip


def _continues(c: Context) -> bool:
    """Whether the counts so far are read."""
    state = c["HasState"]
    return c.has("PosCount") and state is not None and bool(np.asarray(state).reshape(-1)[:1].any())


def matches(boxes: Array, objects: Array, difficult: Array, limit: float) -> tuple[Array, Array]:
    """Whether each detection [n, 4] of one class in one image, best first, is right, and whether it counts."""
    shared = overlaps(np.clip(boxes, 0, 1), objects, True)
    best = shared.argmax(1)
    found = shared.max(1) > np.float32(limit)
    counts = ~(found & difficult[best])
    right = np.zeros(len(boxes), bool)
    spots = np.flatnonzero(found & counts)
    right[spots[np.unique(best[spots], return_index=True)[1]]] = True
    return right, counts


def average_precision(true: Array, false: Array, objects: int, kind: str) -> float:
    """Computes the average precision of one class from right and wrong detections, rows of score and 0 or 1."""
    right, wrong = (
        np.cumsum(rows[np.argsort(-rows[:, 0].astype(np.float32), kind="stable"), 1].astype(np.int64))
        for rows in (true, false)
    )
    with np.errstate(divide="ignore", invalid="ignore"):  # states may hold detections of a class without objects
        precision = right.astype(true.dtype) / (right + wrong).astype(true.dtype)
        recall = right.astype(true.dtype) / true.dtype.type(objects)
    if kind == "11point":
        best = [np.fmax.reduce(precision[~(recall < j / 10)], initial=0) for j in range(11)]
        return float(np.sum(best) / 11)
    step = np.abs(np.diff(recall, prepend=recall.dtype.type(0)))
    return float((precision * step)[step > _STEP].sum())


def _batch(c: Context) -> Any:
    """The attributes, and the offsets of detections and objects by image, and of the detections in the states."""
    batch = attributes(c)
    batch.detections, batch.objects, batch.states = (
        c.lod(slot)[0] if c.lod(slot) else () for slot in ("DetectRes", "Label", "TruePos")
    )
    if _nothing(c["DetectRes"].shape):
        batch.detections = (0,) * len(batch.objects)
    if not _continues(c):
        batch.states = ()
    return batch


def tally(found: Array, label: Array, states: States, batch: Any) -> tuple[dict[int, int], Rows, Rows]:
    """Collects objects, right and wrong detections of each class, with those of the batches before."""
    counts: dict[int, int] = {}
    true: Rows = {}
    false: Rows = {}
    count, right, wrong = states
    if batch.states and count is not None and right is not None and wrong is not None:
        counts = dict(enumerate(count.reshape(-1).tolist()))
        for k, part in enumerate(slices(batch.states)):
            if part.stop > part.start:
                true[k], false[k] = [right[part]], [wrong[part]]
    kinds, labels = label[:, 0].astype(np.int64), found[:, 0].astype(np.int64)
    hard = np.zeros(len(label), bool)
    if label.shape[1] == 6 and not batch.evaluate_difficult:
        hard = np.abs(label[:, 1]) >= _NONE
    for k, n in zip(*np.unique(kinds[~hard], return_counts=True), strict=True):
        counts[int(k)] = counts.get(int(k), 0) + int(n)
    for objects, part in zip(slices(batch.objects), slices(batch.detections), strict=True):
        for k in np.unique(labels[part]).tolist():
            own, rows = objects.start + np.flatnonzero(kinds[objects] == k), found[part][labels[part] == k]
            right = np.zeros(len(rows), bool)
            if len(own):
                rows = rows[np.argsort(-rows[:, 1], kind="stable")]
                right, stays = matches(rows[:, 2:], label[own, -4:], hard[own], batch.overlap_threshold)
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
    if len(batch.detections) != len(batch.objects) or len(batch.states) and not all_given(c, *_STATES):
        return ()
    states = (c["PosCount"], c["TruePos"], c["FalsePos"])
    true = tally(c["DetectRes"], c["Label"], states, batch)[1]
    return (*(sum(map(len, true.get(k, []))) for k in range(batch.class_num)), len(batch.states))


def write(found: Array, label: Array, states: States, batch: Any, outs: tuple[Array | None, ...]) -> None:
    """Write the mean over the classes, and the states for the next batch; ``outs`` may be None."""
    objects, true, false = tally(found, label, states, batch)
    counts, *rows, mean = outs
    if counts is not None:
        counts[:, 0] = [objects.get(k, 0) for k in range(batch.class_num)]
    for out, kept in zip(rows, (true, false), strict=True):
        if out is not None:
            parts = [part for k in range(batch.class_num) for part in kept.get(k, [])]
            out[...] = np.concatenate([np.zeros((0, 2), out.dtype), *parts])
    if mean is not None:
        each = [
            average_precision(np.concatenate(true[k]), np.concatenate(false[k]), n, batch.ap_type) if k in true else 0.0
            for k, n in sorted(objects.items())
            if n != batch.background_label
        ]
        mean[0] = np.mean(each) if each else 0


@op(
    "detection_map",
    inputs={
        "DetectRes: float[detections, 6] lod": "class, score, left, top, right, bottom; a sequence for each image",
        "Label: float[objects, 5] lod | float[objects, 6] lod":
            "class, 1 for difficult (of 6 columns), left, top, right, bottom; a sequence for each image",
        "HasState?: int32[1]": "whether PosCount, TruePos and FalsePos are read; left out, they are not",
        "PosCount?: int32[class_num, 1] | int32[class_num]": "objects of each class so far",
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
