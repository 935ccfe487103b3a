"""iou_similarity, box_clip, box_coder, box_decoder_and_assign, polygon_box_transform: boxes as four numbers."""

import numpy as np

from fluidnb.op import Array, Attr, Binder, Context, op, product
from fluidnb_kernels.cuda import Source, by_rows, ctype, of_dtype, typed, wide_dtype
from fluidnb_kernels.emit import FLOATS
from fluidnb_kernels.rules import checked, fits
from fluidnb_kernels.sequences import offsets_of, one_sequence_each, owners, require_lod

CUDA = Source(__file__, "boxes.cu", typed(("encoded decoded overlaps clipped corners", FLOATS)))


def overlaps(x: Array, y: Array, normalized: bool) -> Array:
    """Computes the intersection over the union of every pair of boxes [n, 4] and [m, 4], as [n, m]."""
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
    """Write `overlaps` into ``out`` [n, m]."""
    out[...] = overlaps(x, y, normalized)


@op(
    "iou_similarity",
    inputs={"X: float[n, 4]": "boxes: left, top, right, bottom", "Y: float[m, 4]": "boxes"},
    outputs={"Out": "[n, m]"},
    attrs={"box_normalized": Attr("bool", True, "whether boxes end at right and bottom, or behind the pixel there")},
    cost="8 * Out",
    infer=checked(lambda c: c.set("Out", (c["X"].shape[0], c["Y"].shape[0]), c["X"].dtype, c.lod("X"))),
    dtypes=FLOATS,
    cuda=FLOATS,
)
def iou_similarity(b: Binder) -> None:
    """Out[i, j] = the area that X[i] and Y[j] share over the area that they cover together.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("iou_similarity", {"X": [[0.0, 0.0, 2.0, 1.0]], "Y": [[1.0, 0.0, 2.0, 1.0]]})["Out"]
        array([[0.5]])

    Source: Fluid's iou_similarity_op.
    """
    x, y, out, normalized = b["X"], b["Y"], b["Out"], b.attr("box_normalized")
    if not b.on_cuda:
        return b(write_overlaps, x, y, normalized, out)
    operands = x, of_dtype(b, y, x.dtype), out, np.float64(not normalized), np.int64(len(y))
    return by_rows(b, CUDA, f"overlaps<{ctype(x.dtype)}>", len(x), len(y), *operands)


def _clip_infer(c: Context) -> None:
    x, info = c["Input"], c["ImInfo"]
    c.check_inputs()
    require_lod(c, "Input", levels=1)
    if c.runtime:
        one_sequence_each(c, "Input", info.shape[0])
    c.set("Output", x.shape, x.dtype, c.lod("Input"))


def clip(x: Array, info: Array, images: Array, out: Array) -> None:
    """Write boxes, none beyond its image; ``info`` [images, 3] has heights, widths and scales."""
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
    cuda=FLOATS,
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
    x, out, images = b["Input"], b["Output"], owners(np.diff(offsets_of(b, "Input")))
    if not b.on_cuda:
        b(clip, x, b["ImInfo"], images, out)
    elif out.size:
        info, width = of_dtype(b, b["ImInfo"], wide_dtype(x.dtype)), np.int64(x.size // len(x))
        operands = x, info, b.table(images.astype(np.int32)), out, width
        by_rows(b, CUDA, f"clipped<{ctype(x.dtype)}>", len(x), int(width), *operands)


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
    cuda=FLOATS,
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
    n, planes, h, w = x.shape
    if b.on_cuda:
        return by_rows(b, CUDA, f"corners<{ctype(x.dtype)}>", n * planes * h, w, x, out, np.int64(h), np.int64(w))
    b(np.subtract, np.arange(w, dtype=x.dtype) * 4, x[:, ::2], out=out[:, ::2])
    return b(np.subtract, np.arange(h, dtype=x.dtype).reshape(-1, 1) * 4, x[:, 1::2], out=out[:, 1::2])


def _coder_infer(c: Context) -> None:
    prior, target = c["PriorBox"], c["TargetBox"]
    c.check_inputs("PriorBox", "PriorBoxVar")
    spread = c.attr("variance")
    c.require(
        len(spread) in (0, 4) and not (spread and c.has("PriorBoxVar")),
        "box_coder takes variances as Input(PriorBoxVar) or as Attr(variance) of 4 numbers.",
        expected="one of them", received=f"Attr(variance) {spread}" + " and PriorBoxVar" * c.has("PriorBoxVar"),
    )  # fmt: skip
    encodes, message = c.attr("code_type") == "encode_center_size", "Input(TargetBox) of box_coder must hold boxes."
    fits(c, "TargetBox", (-1, 4) if encodes else (-1, -1, 4), message)
    if encodes:
        return c.set("OutputBox", (target.shape[0], prior.shape[0], 4), target.dtype, c.lod("TargetBox"))
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
    """Write boxes [n, 4] relative to priors [m, 4] as codes [n, m, 4]; ``spread`` has divisors [m, 4] or [4]."""
    place, size = _middles(prior, more)
    mine = (target[:, None, :2] + target[:, None, 2:]) / 2
    sizes = target[:, None, 2:] - target[:, None, :2] + target.dtype.type(more)
    code = np.concatenate([(mine - place) / size, np.log(np.abs(sizes / size))], -1)
    out[...] = code if spread is None else code / spread


def decode(prior: Array, spread: Array | None, target: Array, more: float, axis: int, out: Array) -> None:
    """Write the boxes that codes [n, m, 4], for axis 1 [m, n, 4], mean; the inverse of `encode`."""
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
    dtypes=FLOATS, cuda=FLOATS,
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
    prior, spread, target, out = (b[slot] for slot in ("PriorBox", "PriorBoxVar", "TargetBox", "OutputBox"))
    encodes, axis, fixed = b.attr("code_type") == "encode_center_size", b.attr("axis"), b.attr("variance")
    more = 0.0 if b.attr("box_normalized") else 1.0
    if not b.on_cuda:
        spread = np.array(fixed, target.dtype) if spread is None and fixed else spread
        function, how = (encode, ()) if encodes else (decode, (axis,))
        return b(function, prior, spread, target, more, *how, out)
    wide, (rows, m) = wide_dtype(target.dtype), out.shape[:2]
    spread = np.uintp(0) if spread is None else of_dtype(b, spread, wide)
    numbers = np.int32(bool(fixed)), *map(np.float64, fixed or [1.0] * 4)
    operands = of_dtype(b, prior, wide), spread, *numbers, target, out, np.float64(more)
    name, sizes = ("encoded", ()) if encodes else ("decoded", (np.int32(axis),))
    return by_rows(b, CUDA, f"{name}<{ctype(out.dtype)}>", rows, 4 * m, *operands, *sizes, np.int64(m))


BOX_CLASSES = Source(__file__, "box_classes.cu", typed(("boxes best", FLOATS)))


def _infer(c: Context) -> None:
    c.check_inputs()
    prior, target, width = c["PriorBox"], c["TargetBox"], product((4, c["BoxScore"].shape[1]))
    fits(c, "TargetBox", (-1, width), "Input(TargetBox) of box_decoder_and_assign has four columns for each class.")
    c.set("DecodeBox", target.shape, target.dtype, c.lod("TargetBox"))
    c.set("OutputAssignBox", prior.shape, prior.dtype, c.lod("PriorBox"))


def decode_classes(
    prior: Array, spread: Array, code: Array, score: Array, most: float, out: Array | None, best: Array | None
) -> None:
    """Write the box of each class [n, 4 · classes], and that of the class with the highest score [n, 4]; or None."""
    one, two = prior.dtype.type(1), prior.dtype.type(2)
    size = (prior[:, 2:] - prior[:, :2] + one)[:, None]
    middle = prior[:, None, :2] + size / two
    moved = code.reshape(len(code), -1, 4) * spread
    place = moved[..., :2] * size + middle
    reach = np.exp(np.minimum(moved[..., 2:], prior.dtype.type(most))) * size / two
    boxes = np.concatenate([place - reach, place + reach - one], -1)
    if out is not None:
        out[...] = boxes.reshape(out.shape)
    if best is not None:
        best[...] = prior
        if score.shape[1] > 1 and len(score):
            likeliest = score[:, 1:].argmax(1) + 1
            rows = np.flatnonzero(score[np.arange(len(score)), likeliest] > -1)
            best[rows] = boxes[rows, likeliest[rows]]


@op(
    "box_decoder_and_assign",
    inputs={
        "PriorBox: float[n, 4]": "left, top, right, bottom",
        "PriorBoxVar: float[4]": "factors of the codes",
        "TargetBox: float[n, 4 · classes]": "codes of the box of each class",
        "BoxScore: float[n, classes]": "how likely each class is; class 0 is that of no object",
    },
    outputs={
        "DecodeBox": "[n, 4 · classes]: the boxes",
        "OutputAssignBox": "[n, 4]: the box of the likeliest class, or the prior where there is none",
    },
    attrs={"box_clip": Attr("float", 4.135, "the largest logarithm by which a box may grow")},
    infer=_infer,
    dtypes=FLOATS,
    cuda=FLOATS,
)
def box_decoder_and_assign(b: Binder) -> None:
    """DecodeBox = what TargetBox means for each class; OutputAssignBox = the box of the class with the highest score.

    Example:
        >>> from fluidnb.testing import run_op
        >>> given = {"PriorBox": [[0.0, 0.0, 3.0, 3.0]], "PriorBoxVar": [0.5, 0.5, 1.0, 1.0]}
        >>> given |= {"TargetBox": [[0.0] * 4 + [1.0, 0.0, 0.0, 0.0]], "BoxScore": [[0.7, 0.3]]}
        >>> run_op("box_decoder_and_assign", given)["OutputAssignBox"]
        array([[2., 0., 5., 3.]])

    Source: Dai et al., "R-FCN" (2016); Fluid's box_decoder_and_assign_op.
    """
    prior, spread, code, score = (b[s] for s in ("PriorBox", "PriorBoxVar", "TargetBox", "BoxScore"))
    out, best, most = b["DecodeBox"], b["OutputAssignBox"], b.attr("box_clip")
    if not b.on_cuda:
        return b(decode_classes, prior, spread, code, score, most, out, best)
    operands = *(of_dtype(b, v, wide_dtype(code.dtype)) for v in (prior, spread)), code
    classes, dtype = score.shape[1], ctype(code.dtype)
    numbers = np.float64(most), np.int64(classes)
    if out is not None:
        by_rows(b, BOX_CLASSES, f"boxes<{dtype}>", len(code), 4 * classes, *operands, out, *numbers)
    if best is not None:
        score = of_dtype(b, score, code.dtype)
        by_rows(b, BOX_CLASSES, f"best<{dtype}>", len(code), 4, *operands, score, best, *numbers)
