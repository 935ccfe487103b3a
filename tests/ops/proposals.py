"""Proposing regions and what to learn from them written out plainly, to hold the operators against."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tests.ops.boxes import overlap

Array = np.ndarray


def delta(box: Any, target: Any) -> list[float]:
    """A box as seen from another one, both made of pixels."""
    (w, h), (u, v) = ((b[2] - b[0] + 1, b[3] - b[1] + 1) for b in (box, target))
    x, y = target[0] + u / 2 - box[0] - w / 2, target[1] + v / 2 - box[1] - h / 2
    return [x / w, y / h, math.log(u / w), math.log(v / h)]


def undelta(box: Any, code: Any) -> list[float]:
    """The inverse of `delta`, with sizes that grow 62.5-fold at most."""
    w, h = box[2] - box[0] + 1, box[3] - box[1] + 1
    x, y = code[0] * w + box[0] + w / 2, code[1] * h + box[1] + h / 2
    u, v = (math.exp(min(c, math.log(1000 / 16))) * s for c, s in ((code[2], w), (code[3], h)))
    return [x - u / 2, y - v / 2, x + u / 2 - 1, y + v / 2 - 1]


def proposals(scores: Array, codes: Array, info: Any, anchors: Array, variances: Array, attrs: dict[str, Any]) -> Any:
    """The regions of one image and their scores: maps [a, h, w] and [4 a, h, w], anchors [h, w, a, 4]."""
    height, width, scale = info
    found = []
    for i, j, a in np.ndindex(*anchors.shape[:3]):
        box = undelta(anchors[i, j, a], codes[4 * a : 4 * a + 4, i, j] * variances[i, j, a])
        found.append((scores[a, i, j], [max(min(v, (width, height)[k % 2] - 1), 0) for k, v in enumerate(box)]))
    found.sort(key=lambda pair: -pair[0])
    first = attrs["pre_nms_topN"]
    kept = []
    for score, box in found[: first if first > 0 else None]:
        w, h = box[2] - box[0], box[3] - box[1]
        least = max(attrs["min_size"], 1)
        if min(w, h) / scale + 1 < least or box[0] + (w + 1) / 2 > width or box[1] + (h + 1) / 2 > height:
            continue
        if attrs["nms_thresh"] <= 0 or all(overlap(box, other, 1) <= attrs["nms_thresh"] for _, other in kept):
            kept.append((score, box))
    if attrs["nms_thresh"] > 0 and attrs["post_nms_topN"] > 0:
        kept = kept[: attrs["post_nms_topN"]]
    return np.array([b for _, b in kept]).reshape(-1, 4), np.array([s for s, _ in kept]).reshape(-1, 1)


def assigned(anchors: Array, objects: Array, info: Any, attrs: dict[str, Any]) -> tuple[Any, ...]:
    """The targets of the anchors of one image, the first ones where there are too many."""
    height, width, scale = info
    edge = attrs["rpn_straddle_thresh"]
    inside = [k for k, (x0, y0, x1, y1) in enumerate(anchors)
              if edge < 0 or (x0 >= -edge and y0 >= -edge and x1 < width + edge and y1 < height + edge)]  # fmt: skip
    shared = {k: [overlap(anchors[k], o * scale, 1) for o in objects] for k in inside}
    most = [max((shared[k][j] for k in inside), default=-1) for j in range(len(objects))]
    front = [k for k in inside if max(shared[k], default=-1) >= attrs["rpn_positive_overlap"]
             or any(abs(s - m) < 1e-5 for s, m in zip(shared[k], most, strict=True))]  # fmt: skip
    front = front[: int(attrs["rpn_fg_fraction"] * attrs["rpn_batch_size_per_im"])]
    back = [k for k in inside if max(shared[k], default=-1) < attrs["rpn_negative_overlap"]]
    back = back[: attrs["rpn_batch_size_per_im"] - len(front)]
    twice = [k for k in back if k in front]
    kept = [k for k in front if k not in twice]
    boxed = [front[0]] * len(twice) + kept
    targets = [delta(anchors[k], objects[int(np.argmax(shared[k]))] * scale) for k in boxed]
    weights = [[0.0] * 4] * len(twice) + [[1.0] * 4] * len(kept)
    return boxed, kept + sorted(back), [1] * len(kept) + [0] * len(back), targets, weights


def labelled(rois: Array, classes: Any, crowd: Any, boxes: Array, scale: float, attrs: dict[str, Any]) -> Any:
    """The targets of the regions of one image, the first ones where there are too many."""
    front, back = [], []
    for k, row in enumerate([*boxes, *(rois / scale)]):
        shared = [overlap(row, b, 1) for b in boxes]
        best = -1 if k < len(crowd) and crowd[k] else max(shared, default=0)
        if best > attrs["fg_thresh"]:
            front.append((row, int(np.argmax(shared)), best))
        elif attrs["bg_thresh_lo"] <= best < attrs["bg_thresh_hi"]:
            back.append((row, None, best))
    front = front[: int(attrs["batch_size_per_im"] * attrs["fg_fraction"])]
    chosen = front + back[: attrs["batch_size_per_im"] - len(front)]
    labels = [0 if o is None else classes[o] for _, o, _ in chosen]
    targets = np.zeros((len(chosen), attrs["class_nums"], 4))
    for i, ((row, owner, _), label) in enumerate(zip(chosen, labels, strict=True)):
        if label > 0:
            targets[i, label] = np.array(delta(row, boxes[owner])) / attrs["bbox_reg_weights"]
    weights = np.zeros_like(targets)
    weights[[i for i, v in enumerate(labels) if v > 0], [v for v in labels if v > 0]] = 1
    flat = [v.reshape(len(chosen), -1) for v in (targets, weights)]
    rows, best = [row for row, _, _ in chosen], [best for _, _, best in chosen]
    return np.array(rows).reshape(-1, 4) * scale, labels, *flat, np.array(best)


def means(x: Array, roi: Any, sizes: tuple[int, int], scale: float) -> Array:
    """One region of one image [c · rows · columns, h, w]: the mean of each part in the part's own channel."""
    left, top = (math.floor(v + 0.5) * scale for v in roi[:2])
    right, bottom = ((math.floor(v + 0.5) + 1) * scale for v in roi[2:])
    high, wide = max(bottom - top, 0.1) / sizes[0], max(right - left, 0.1) / sizes[1]
    out = np.zeros((x.shape[0] // (sizes[0] * sizes[1]), *sizes))
    for c, i, j in np.ndindex(*out.shape):
        plane = x[(c * sizes[0] + i) * sizes[1] + j]
        pixels = [plane[y, z]
                  for y in range(max(math.floor(top + i * high), 0), min(math.ceil(top + (i + 1) * high), x.shape[1]))
                  for z in range(max(math.floor(left + j * wide), 0), min(math.ceil(left + (j + 1) * wide), x.shape[2]))
                  ]  # fmt: skip
        out[c, i, j] = np.mean(pixels) if pixels else 0
    return out


def levels(rois: Array, lowest: int, highest: int, level: int, scale: float) -> list[int]:
    """The level of each region."""
    found = []
    for x0, y0, x1, y1 in rois:
        area = (x1 - x0 + 1) * (y1 - y0 + 1) if x1 >= x0 and y1 >= y0 else 0
        size = math.floor(level + math.log2(math.sqrt(area) / scale)) if area else lowest
        found.append(min(max(size, lowest), highest))
    return found
