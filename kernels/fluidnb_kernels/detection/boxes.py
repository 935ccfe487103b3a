"""box_coder, box_clip, iou_similarity, polygon_box_transform: arithmetic with boxes."""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidnb.op import Attr, Binder, Context, kernel, op
from fluidnb_kernels.cuda import CTYPES, Source, ctype
from fluidnb_kernels.cuda.cast import of_dtype
from fluidnb_kernels.cuda.compute_dtype import wide_dtype
from fluidnb_kernels.cuda.row_grid import by_rows
from fluidnb_kernels.emit import FLOATS
from fluidnb_kernels.rules import agree
from fluidnb_kernels.sequences import offsets_of, require_lod

Array = Any


def four_wide(c: Context, slot: str, rank: int = 2) -> None:
    """Require that an input holds boxes.

    Raises:
        RuleError: it holds something else.
    """
    shape = c[slot].shape
    c.require(
        len(shape) == rank and shape[-1] in (4, -1), f"Input({slot}) of {c.definition.type} must hold boxes.",
        expected=f"[{'…, ' * (rank > 2)}boxes, 4]: left, top, right, bottom", received=list(shape),
    )  # fmt: skip


def overlaps(x: Array, y: Array, normalized: bool) -> Array:
    """The intersection over the union of every pair of boxes.

    Args:
        x: [n, 4].
        y: [m, 4].
        normalized: whether boxes end at their right and bottom, or behind the pixel there.

    Returns:
        [n, m].

    Example:
        >>> overlaps(np.array([[0.0, 0.0, 2.0, 1.0]]), np.array([[1.0, 0.0, 2.0, 1.0]]), True)
        array([[0.5]])
    """
    more = x.dtype.type(0 if normalized else 1)
    spans = []  # columns, since numpy multiplies two of them faster than it reduces an axis of two
    for low, high in ((0, 2), (1, 3)):
        span = np.minimum(x[:, None, high], y[:, high])
        span -= np.maximum(x[:, None, low], y[:, low])
        spans.append(np.maximum(span + more, 0))
    shared = spans[0] * spans[1]
    areas = [(v[:, 2] - v[:, 0] + more) * (v[:, 3] - v[:, 1] + more) for v in (x, y)]
    union = areas[0][:, None] + areas[1] - shared
    some = shared > 0
    return np.where(some, shared, 0) / np.where(some, union, 1)


def write_overlaps(x: Array, y: Array, normalized: bool, out: Array) -> None:
    """Write `overlaps`.

    Args:
        x: [n, 4].
        y: [m, 4].
        normalized: see `overlaps`.
        out: [n, m], written.
    """
    out[...] = overlaps(x, y, normalized)


def _iou_infer(c: Context) -> None:
    four_wide(c, "X")
    four_wide(c, "Y")
    c.set("Out", (c["X"].shape[0], c["Y"].shape[0]), c["X"].dtype, c.lod("X"))


@op(
    "iou_similarity",
    inputs={"X: float[n, 4]": "boxes: left, top, right, bottom", "Y: float[m, 4]": "boxes"},
    outputs={"Out": "[n, m]"},
    attrs={"box_normalized": Attr("bool", True, "whether boxes end at right and bottom, or behind the pixel there")},
    cost="8 * Out",
    infer=_iou_infer,
    dtypes=FLOATS,
)
def iou_similarity(b: Binder) -> None:
    """Out[i, j] = the area that X[i] and Y[j] share over the area that they cover together.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("iou_similarity", {"X": [[0.0, 0.0, 2.0, 1.0]], "Y": [[1.0, 0.0, 2.0, 1.0]]})["Out"]
        array([[0.5]])

    Source: Fluid's iou_similarity_op.
    """
    b(write_overlaps, b["X"], b["Y"], b.attr("box_normalized"), b["Out"])


def _clip_infer(c: Context) -> None:
    x, info = c["Input"], c["ImInfo"]
    c.require(
        x.ndim >= 2 and x.shape[-1] in (4, -1), "Input(Input) of box_clip must hold boxes.",
        expected="[boxes, …, 4]: left, top, right, bottom", received=list(x.shape),
    )  # fmt: skip
    c.require(
        info.ndim == 2 and info.shape[1] in (3, -1), "Input(ImInfo) of box_clip must describe images.",
        expected="[images, 3]: height, width, scale", received=list(info.shape),
    )  # fmt: skip
    require_lod(c, "Input", levels=1)
    if c.runtime:
        count = len(c.lod("Input")[-1]) - 1
        c.require(
            count == info.shape[0], "Input(Input) of box_clip must have a sequence for each image.",
            expected=info.shape[0], received=count,
        )  # fmt: skip
    c.set("Output", x.shape, x.dtype, c.lod("Input"))


def clip(x: Array, info: Array, images: Array, out: Array) -> None:
    """Write boxes, none beyond its image.

    Args:
        x: [boxes, …, 4].
        info: [images, 3]: height, width, scale.
        images: the image of each box.
    """
    sizes = info[:, 1::-1] / info[:, 2:]
    last = np.floor(sizes + info.dtype.type(0.5))[images].astype(x.dtype) - x.dtype.type(1)
    last = np.concatenate([last, last], 1).reshape(len(x), *[1] * (x.ndim - 2), 4)
    np.copyto(out, np.maximum(np.minimum(x, last), 0))


@op(
    "box_clip",
    inputs={
        "Input: float[n, …, 4] lod": "boxes; a sequence for each image",
        "ImInfo: float[images, 3]": "height, width, scale",
    },
    outputs={"Output": "the shape of Input"},
    infer=_clip_infer,
    dtypes=FLOATS,
)
def box_clip(b: Binder) -> None:
    """Output = Input held between 0 and the last pixel of its image, which is ``round(size / scale) - 1``.

    Example:
        >>> from fluidnb.testing import run_op
        >>> boxes, image = ([[-1.0, 0.0, 9.0, 3.0]], [[1]]), [[8.0, 8.0, 1.0]]
        >>> run_op("box_clip", {"Input": boxes, "ImInfo": image})["Output"].array
        array([[0., 0., 7., 3.]])

    Source: Fluid's box_clip_op.
    """
    offsets = offsets_of(b, "Input")
    b(clip, b["Input"], b["ImInfo"], np.repeat(np.arange(len(offsets) - 1), np.diff(offsets)), b["Output"])


def _polygon_infer(c: Context) -> None:
    x = c["Input"]
    c.require(
        x.ndim == 4 and x.shape[1] % 2 == 0, "Input(Input) of polygon_box_transform must be maps of coordinates.",
        expected="[batch, 2 · corners, height, width]", received=list(x.shape),
    )  # fmt: skip
    c.set("Output", x.shape, x.dtype, c.lod("Input"))


@op(
    "polygon_box_transform",
    inputs={"Input: float[n, 2 · corners, h, w]": "by how much each place is right of and below its corners"},
    outputs={"Output": "the shape of Input"},
    infer=_polygon_infer,
    dtypes=FLOATS,
)
def polygon_box_transform(b: Binder) -> None:
    """Output[n, 2k, y, x] = 4 · x - Input and Output[n, 2k + 1, y, x] = 4 · y - Input.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("polygon_box_transform", {"Input": np.ones((1, 2, 1, 2))})["Output"].ravel()
        array([-1.,  3., -1., -1.])

    Source: Zhou et al., "EAST" (2017); Fluid's polygon_box_transform_op.
    """
    x, out = b["Input"], b["Output"]
    h, w = x.shape[2:]
    b(np.subtract, np.arange(w, dtype=x.dtype) * 4, x[:, ::2], out=out[:, ::2])
    b(np.subtract, np.arange(h, dtype=x.dtype).reshape(-1, 1) * 4, x[:, 1::2], out=out[:, 1::2])


def _coder_infer(c: Context) -> None:
    prior, target = c["PriorBox"], c["TargetBox"]
    four_wide(c, "PriorBox")
    spread = c.attr("variance")
    c.require(
        len(spread) in (0, 4) and not (spread and c.has("PriorBoxVar")),
        "box_coder takes variances as Input(PriorBoxVar) or as Attr(variance) of 4 numbers.",
        expected="one of them", received=f"Attr(variance) {spread}" + " and PriorBoxVar" * c.has("PriorBoxVar"),
    )  # fmt: skip
    if c.has("PriorBoxVar"):
        c.require(
            agree(c["PriorBoxVar"].shape, prior.shape), "Input(PriorBoxVar) of box_coder must go with the priors.",
            expected=list(prior.shape), received=list(c["PriorBoxVar"].shape),
        )  # fmt: skip
    if c.attr("code_type") == "encode_center_size":
        four_wide(c, "TargetBox")
        return c.set("OutputBox", (target.shape[0], prior.shape[0], 4), target.dtype, c.lod("TargetBox"))
    four_wide(c, "TargetBox", 3)
    axis = c.attr("axis")
    m, n = target.shape[1 - axis], prior.shape[0]
    c.require(
        m == n or -1 in (m, n), "Input(PriorBox) of box_coder must have a box for each place of Input(TargetBox).",
        expected=m, received=n,
    )  # fmt: skip
    return c.set("OutputBox", target.shape, target.dtype, c.lod("TargetBox"))


def _middles(boxes: Array, more: float) -> tuple[Array, Array]:
    """Middles and sizes of boxes."""
    sizes = boxes[..., 2:] - boxes[..., :2] + boxes.dtype.type(more)
    return boxes[..., :2] + sizes / 2, sizes


def encode(prior: Array, spread: Array | None, target: Array, more: float, out: Array) -> None:
    """Write boxes as seen from priors.

    Args:
        prior: [m, 4].
        spread: [m, 4] or [4]: divisors, or None.
        target: [n, 4].
        more: 1 where a box ends behind its last pixel, else 0.
        out: [n, m, 4], written.
    """
    place, size = _middles(prior, more)
    mine = (target[:, None, :2] + target[:, None, 2:]) / 2
    sizes = target[:, None, 2:] - target[:, None, :2] + target.dtype.type(more)
    code = np.concatenate([(mine - place) / size, np.log(np.abs(sizes / size))], -1)
    out[...] = code if spread is None else code / spread


def decode(prior: Array, spread: Array | None, target: Array, more: float, axis: int, out: Array) -> None:
    """Write the boxes that codes mean; the inverse of `encode`.

    Args:
        prior: [m, 4].
        spread: [m, 4] or [4]: factors, or None.
        target: [n, m, 4], or [m, n, 4] for axis 1.
        more: 1 where a box ends behind its last pixel, else 0.
        axis: 0 where priors go with the second dimension, 1 where they go with the first.
    """
    place, size = (np.expand_dims(v, axis) for v in _middles(prior, more))
    if spread is not None:
        target = target * (np.expand_dims(spread, axis) if spread.ndim == 2 else spread)
    middle, half = target[..., :2] * size + place, np.exp(target[..., 2:]) * size / 2
    out[...] = np.concatenate([middle - half, middle + half - target.dtype.type(more)], -1)


@op(
    "box_coder",
    inputs={
        "PriorBox: float[m, 4]": "left, top, right, bottom",
        "PriorBoxVar?: float[m, 4]": "variances of the priors",
        "TargetBox: float[n, 4] | float[n, m, 4]": "boxes to encode, or codes to decode",
    },
    outputs={"OutputBox": "[n, m, 4]: codes, or boxes"},
    attrs={
        "code_type": Attr(
            "string", "encode_center_size", "encode_center_size or decode_center_size",
            enum=("encode_center_size", "decode_center_size"),
        ),
        "box_normalized": Attr("bool", True, "whether boxes end at right and bottom, or behind the pixel there"),
        "axis": Attr("int", 0, "decoding: 1 where the priors go with the first dimension of TargetBox", enum=(0, 1)),
        "variance": Attr("floats", [], "variances of all priors, instead of PriorBoxVar"),
    },
    cost="8 * OutputBox",
    infer=_coder_infer,
    dtypes=FLOATS,
)  # fmt: skip
def box_coder(b: Binder) -> None:
    """Boxes as seen from priors: the way between their middles over the prior's size, and logarithms of sizes.

    With x, y, w, h for middle and size, and v for the variances, the code of t seen from p is::

        dx, dy = (t.x - p.x) / p.w / v[0], (t.y - p.y) / p.h / v[1]
        dw, dh = log(t.w / p.w) / v[2], log(t.h / p.h) / v[3]

    Decoding is the inverse.

    Example:
        >>> from fluidnb.testing import run_op
        >>> boxes = {"PriorBox": [[0.0, 0.0, 1.0, 1.0]], "TargetBox": [[1.0, 0.0, 2.0, 1.0]]}
        >>> run_op("box_coder", boxes)["OutputBox"]
        array([[[1., 0., 0., 0.]]])

    Source: Girshick et al., "Rich Feature Hierarchies for Accurate Object Detection" (2014); Fluid's box_coder_op.
    """
    prior, target, spread = b["PriorBox"], b["TargetBox"], b["PriorBoxVar"]
    if spread is None and b.attr("variance"):
        spread = np.array(b.attr("variance"), target.dtype)
    more = 0.0 if b.attr("box_normalized") else 1.0
    if b.attr("code_type") == "encode_center_size":
        b(encode, prior, spread, target, more, b["OutputBox"])
    else:
        b(decode, prior, spread, target, more, b.attr("axis"), b["OutputBox"])


_NAMES = ("encoded", "decoded", "overlaps", "clipped", "corners")

CUDA = Source(__file__, "boxes.cu", lambda: (f"{name}<{CTYPES[t]}>" for name in _NAMES for t in FLOATS))


@kernel("iou_similarity", place="cuda", dtypes=FLOATS)
def _similar_on_cuda(b: Binder) -> None:
    """iou_similarity: a thread for each pair."""
    x, out = b["X"], b["Out"]
    more = np.float64(0 if b.attr("box_normalized") else 1)
    y, m = of_dtype(b, b["Y"], x.dtype), out.shape[1]
    by_rows(b, CUDA, f"overlaps<{ctype(x.dtype)}>", len(x), m, x, y, out, more, np.int64(m))


@kernel("box_clip", place="cuda", dtypes=FLOATS)
def _clip_on_cuda(b: Binder) -> None:
    """box_clip: a row for each box; which image it is on is a table."""
    x, out, offsets = b["Input"], b["Output"], offsets_of(b, "Input")
    if out.size:
        images = b.table(np.repeat(np.arange(len(offsets) - 1, dtype=np.int32), np.diff(offsets)))
        info, width = of_dtype(b, b["ImInfo"], wide_dtype(x.dtype)), x.size // len(x)
        by_rows(b, CUDA, f"clipped<{ctype(x.dtype)}>", len(x), width, x, info, images, out, np.int64(width))


@kernel("polygon_box_transform", place="cuda", dtypes=FLOATS)
def _polygons_on_cuda(b: Binder) -> None:
    """polygon_box_transform: a row for each row of a plane."""
    x = b["Input"]
    n, planes, h, w = x.shape
    name = f"corners<{ctype(x.dtype)}>"
    by_rows(b, CUDA, name, n * planes * h, w, x, b["Output"], np.int64(h), np.int64(w))


@kernel("box_coder", place="cuda", dtypes=FLOATS)
def _code_on_cuda(b: Binder) -> None:
    """box_coder: a row for each target."""
    target, out, given = b["TargetBox"], b["OutputBox"], b.attr("variance")
    wide = wide_dtype(target.dtype)
    spread = np.uintp(0) if b["PriorBoxVar"] is None else of_dtype(b, b["PriorBoxVar"], wide)
    fixed = np.int32(bool(given)), *map(np.float64, given or [1.0] * 4)
    more = np.float64(0 if b.attr("box_normalized") else 1)
    operands = of_dtype(b, b["PriorBox"], wide), spread, *fixed, target, out, more
    rows, m = out.shape[:2]
    if b.attr("code_type") == "encode_center_size":
        by_rows(b, CUDA, f"encoded<{ctype(out.dtype)}>", rows, 4 * m, *operands, np.int64(m))
    else:
        name, by_row = f"decoded<{ctype(out.dtype)}>", np.int32(b.attr("axis"))
        by_rows(b, CUDA, name, rows, 4 * m, *operands, by_row, np.int64(m))
