"""distribute_fpn_proposals, collect_fpn_proposals: regions and the levels of a pyramid of images."""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidnb.op import Array, Attr, Binder, Context, op
from fluidnb.values.copies import on_host
from fluidnb_kernels.detection.nms import falling
from fluidnb_kernels.emit import of_paddle2
from fluidnb_kernels.rules import agree
from fluidnb_kernels.sequences import all_given, as_level, require_lod, slices

_DTYPES = ("float32", "float64")


def levels_of(rois: Array, lowest: int, highest: int, level: int, scale: int) -> Array:
    """The level of each region, int64."""
    size = rois[:, 2:] - rois[:, :2]
    area = np.where((size < 0).any(1), 0, (size + rois.dtype.type(1)).prod(1))
    with np.errstate(divide="ignore"):
        found = np.floor(np.log2(np.sqrt(area) / rois.dtype.type(scale)) + rois.dtype.type(level))
    return np.clip(np.nan_to_num(found, nan=lowest), lowest, highest).astype(np.int64)


def _how(c: Context) -> tuple[int, int, int, int]:
    return c.attr("min_level"), c.attr("max_level"), c.attr("refer_level"), c.attr("refer_scale")


def _counts(c: Context) -> tuple[tuple[int, ...], ...]:
    """For each level, how many regions of each image it has."""
    count = c.attr("max_level") - c.attr("min_level") + 1
    if not all_given(c, "FpnRois") or not c.lod("FpnRois") or count != len(c.outputs.get("MultiFpnRois", ())):
        return ()
    found, parts = levels_of(on_host(c["FpnRois"]), *_how(c)), slices(c.lod("FpnRois")[-1])
    levels = range(c.attr("min_level"), c.attr("max_level") + 1)
    return tuple(tuple(int((found[part] == level).sum()) for part in parts) for level in levels)


def _distribute_infer(c: Context) -> None:
    c.check_inputs()
    require_lod(c, "FpnRois", 1)
    wanted, have = c.attr("max_level") - c.attr("min_level") + 1, len(c.outputs.get("MultiFpnRois", ()))
    c.require(
        have == wanted, "Output(MultiFpnRois) of distribute_fpn_proposals has a variable for each level.",
        expected=f"{wanted}: levels {c.attr('min_level')} to {c.attr('max_level')}", received=have,
    )  # fmt: skip
    x = c["FpnRois"]
    counts = _counts(c) if c.runtime else None
    for i in range(wanted):
        level = None if counts is None else as_level(counts[i])
        c.set("MultiFpnRois", (-1 if level is None else level[-1], 4), x.dtype, (level,), i)
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


def write_distributed(rois: Array, how: tuple[int, int, int, int], outs: list[Array | None], restore: Any) -> None:
    """Write the results of `distribute` for the levels of `levels_of`."""
    distribute(rois, levels_of(rois, *how) - how[0], outs, restore)


@op(
    "distribute_fpn_proposals",
    inputs={"FpnRois: float[regions, 4] lod": "left, top, right, bottom; a sequence for each image"},
    outputs={
        "MultiFpnRois*": "[regions, 4] for each level; a sequence for each image",
        "RestoreIndex": "int32 [1, regions]: the row of each region when those of all levels follow each other",
    },
    attrs={
        "min_level": Attr("int", doc="the lowest level"),
        "max_level": Attr("int", doc="the highest level"),
        "refer_level": Attr("int", doc="the level of regions whose area is refer_scale squared"),
        "refer_scale": Attr("int", doc="see refer_level", gt=0),
    },
    check=lambda a: "max_level must not be lower than min_level." if a["max_level"] < a["min_level"] else None,
    infer=_distribute_infer,
    guard=_counts,
    data_shape=True,
    host_only="the size of its output depends on the values",
    dtypes=_DTYPES,
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
    b(write_distributed, b["FpnRois"], _how(b), b.all("MultiFpnRois"), b["RestoreIndex"])


def collect(scores: list[Array], offsets: list[tuple[int, ...]], most: int) -> tuple[Array, tuple[int, ...]]:
    """Rows, in all levels together, of the regions with the highest scores by image, and how many each image has."""
    image = np.concatenate([np.repeat(np.arange(len(o) - 1), np.diff(o)) for o in offsets])
    best = falling(np.concatenate([s.reshape(-1) for s in scores]))[:most]
    best = best[np.argsort(image[best], kind="stable")]
    return best, tuple(np.bincount(image[best], minlength=len(offsets[0]) - 1).tolist())


def _collected(c: Context) -> tuple[Array, tuple[int, ...]]:
    offsets = [tuple(lod[-1]) for lod in c.lods("MultiLevelScores")]
    return collect([on_host(s) for s in c.all("MultiLevelScores")], offsets, c.attr("post_nms_topN"))


def _collected_counts(c: Context) -> tuple[int, ...]:
    given = all(v is not None for v in c.all("MultiLevelScores")) and all(c.lods("MultiLevelScores"))
    return _collected(c)[1] if given else ()


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
        return c.set("FpnRois", (-1, 4), rois[0].dtype, (None,))
    first = c.lods("MultiLevelScores")[0]
    for slot in ("MultiLevelRois", "MultiLevelScores"):
        for i, lod in enumerate(c.lods(slot)):
            c.require(
                len(lod) == 1 and bool(first) and len(lod[0]) == len(first[0]),
                f"Input({slot}) of collect_fpn_proposals must have a sequence for each image.",
                expected="one level with as many sequences in every variable", received=f"{lod} in variable {i}",
            )  # fmt: skip
    level = as_level(_collected(c)[1])
    return c.set("FpnRois", (level[-1], 4), rois[0].dtype, (level,))


def write_collected(
    rois: list[Array], scores: list[Array], offsets: list[tuple[int, ...]], most: int, out: Array
) -> None:
    """Write the regions that `collect` chooses."""
    out[...] = np.concatenate(rois)[collect(scores, offsets, most)[0]]


@op(
    "collect_fpn_proposals",
    inputs={
        "MultiLevelRois*: float[regions, 4] lod": "regions of each level; a sequence for each image",
        "MultiLevelScores*: float[regions, 1] lod": "their scores on each level; a sequence for each image",
    },
    outputs={"FpnRois": "[regions, 4]; a sequence for each image"},
    attrs={"post_nms_topN": Attr("int", doc="how many regions of all images stay", gt=0)},
    infer=_collect_infer,
    guard=_collected_counts,
    data_shape=True,
    host_only="the size of its output depends on the values",
    dtypes=_DTYPES,
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
    offsets = [tuple(lod[-1]) for lod in b.lods("MultiLevelScores")]
    b(
        write_collected, b.all("MultiLevelRois"), b.all("MultiLevelScores"), offsets, b.attr("post_nms_topN"),
        b["FpnRois"],
    )  # fmt: skip
