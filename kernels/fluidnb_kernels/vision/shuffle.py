"""pixel_shuffle, shuffle_channel, space_to_depth and temporal_shift: channels that move."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from fluidnb.op import Array, Attr, Binder, Context, default_grad, grad_op, like_forward, op
from fluidnb.op.c_code import Constant, c_code
from fluidnb_kernels.cuda import by_rows, vector
from fluidnb_kernels.emit import of_paddle2, reading, writing, written
from fluidnb_kernels.sliding import shape_in, split_shape
from fluidnb_kernels.tensor.strided_copy import WORDS, layout_of, move, parts_in_c
from fluidnb_kernels.vision.launch import CUDA


def _emit_copy(b: Binder, x: Array, shape: Sequence[int], order: Sequence[int], out: Array) -> None:
    """Emit x in a shape of more dimensions, in another order of these, into out."""
    if b.on_cuda:
        of = layout_of(x, shape).transpose(order)
        return move(b, out, x, to=layout_of(out, of.shape), of=of)
    whole = reading(b, x, shape).transpose(order)
    view = writing(b, out, whole.shape)
    b(np.copyto, view, whole)
    return written(b, out, view)


def _image(c: Context, name: str, factor: int, what: str) -> tuple[int, int, tuple[int, ...]]:
    x, layout = c["X"], c.attr("data_format", "NCHW")
    c.check_inputs()
    n, channels, sizes = split_shape(x.shape, layout)
    c.require(
        factor > 0 and (channels < 0 or channels % factor == 0),
        f"{what} of {name} must divide the number of channels.",
        expected=f"a divisor of {channels}", received=factor,
    )  # fmt: skip
    return n, channels, sizes


def _pixel_infer(c: Context) -> None:
    r = c.attr("upscale_factor")
    n, channels, sizes = _image(c, "pixel_shuffle", r * r, "The square of Attr(upscale_factor)")
    sizes = tuple(m * r if m >= 0 else -1 for m in sizes)
    channels = channels // (r * r) if channels >= 0 else -1
    c.set("Out", shape_in(c.attr("data_format"), n, channels, sizes), c["X"].dtype, c.lod("X"))


@op(
    "pixel_shuffle",
    inputs={"X: float[n, c · r², h, w]": "[n, h, w, c · r²] with data_format NHWC"},
    outputs={"Out": "[n, c, h · r, w · r], or [n, h · r, w · r, c]"},
    attrs={
        "upscale_factor": Attr("int", 1, "r, by how much height and width grow", gt=0),
        "data_format": Attr("string", "NCHW", "where the channels are", enum=("NCHW", "NHWC")),
    },
    infer=_pixel_infer,
    grad=default_grad("Out@GRAD", wrt=["X"]),
    cuda=True,
)
def pixel_shuffle(b: Binder) -> None:
    """Out[n, c, h · r + i, w · r + j] = X[n, (c · r + i) · r + j, h, w]: groups of channels become squares.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("pixel_shuffle", {"X": np.arange(4.0).reshape(1, 4, 1, 1)}, {"upscale_factor": 2})["Out"][0, 0]
        array([[0., 1.],
               [2., 3.]])

    Source: Shi et al., "Real-Time Single Image and Video Super-Resolution" (2016); Fluid's pixel_shuffle_op.
    """
    _emit_copy(b, b["X"], _pixels(b, "X"), (0, 1, 4, 2, 5, 3), b["Out"])


def _pixels(c: Context, slot: str) -> tuple[int, ...]:
    """The shape of an input of pixel_shuffle with its groups of channels as dimensions."""
    r, layout = c.attr("upscale_factor", 1), c.attr("data_format", "NCHW")
    n, channels, (h, w) = split_shape(c[slot].shape, layout)
    groups = (channels // (r * r), r, r)
    return (n, h, w, *groups) if layout == "NHWC" else (n, *groups, h, w)


@c_code("pixel_shuffle", function="rearranged", file="../tensor/strided_copy.c")
def _pixel_shuffle_in_c(c: Context) -> dict[str, Constant]:
    of = layout_of(c["X"], _pixels(c, "X")).transpose(0, 1, 4, 2, 5, 3)
    return parts_in_c(c["Out"], c["X"], to=layout_of(c["Out"], of.shape), of=of)


@c_code("pixel_shuffle_grad", function="rearranged_grad", file="../tensor/strided_copy.c")
def _pixel_shuffle_grad_in_c(c: Context) -> dict[str, Constant]:
    to = layout_of(c["X@GRAD"], _pixels(c, "X@GRAD")).transpose(0, 1, 4, 2, 5, 3)
    return parts_in_c(c["X@GRAD"], c["Out@GRAD"], to=to, of=layout_of(c["Out@GRAD"], to.shape))


def _pixel_grad_infer(c: Context) -> None:
    g, r, layout = c["Out@GRAD"], c.attr("upscale_factor", 1), c.attr("data_format", "NCHW")
    n, channels, sizes = split_shape(g.shape, layout)
    smaller = tuple(m // r if m >= 0 else -1 for m in sizes)
    c.set("X@GRAD", shape_in(layout, n, channels * r * r if channels >= 0 else -1, smaller), g.dtype, c.lod("Out@GRAD"))


@grad_op("pixel_shuffle_grad", infer=_pixel_grad_infer, cuda=True)
def pixel_shuffle_grad(b: Binder) -> None:
    """dX[n, (c · r + i) · r + j, h, w] = dOut[n, c, h · r + i, w · r + j]."""
    g, r, layout = b["Out@GRAD"], b.attr("upscale_factor", 1), b.attr("data_format", "NCHW")
    n, channels, (h, w) = split_shape(g.shape, layout)
    squares = (h // r, r, w // r, r)
    shape = (n, *squares, channels) if layout == "NHWC" else (n, channels, *squares)
    _emit_copy(b, g, shape, (0, 1, 3, 5, 2, 4), b["X@GRAD"])


def _group_infer(c: Context) -> None:
    _image(c, "shuffle_channel", c.attr("group"), "Attr(group)")
    c.set("Out", c["X"].shape, c["X"].dtype, c.lod("X"))


@op(
    "shuffle_channel",
    inputs={"X: float[n, c, h, w]": ""},
    outputs={"Out": "the shape of X"},
    attrs={"group": Attr("int", 1, "how many groups the channels fall into", gt=0)},
    infer=_group_infer,
    grad=default_grad("Out@GRAD", wrt=["X"]),
    cuda=True,
)
def shuffle_channel(b: Binder) -> None:
    """Out[n, j · group + i] = X[n, i · C / group + j]: the first channels of all groups, then the second ones.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("shuffle_channel", {"X": np.arange(4.0).reshape(1, 4, 1, 1)}, {"group": 2})["Out"].ravel()
        array([0., 2., 1., 3.])

    Source: Zhang et al., "ShuffleNet" (2018); Fluid's shuffle_channel_op.
    """
    n, channels, h, w = b["X"].shape
    group = b.attr("group")
    _emit_copy(b, b["X"], (n, group, channels // group, h, w), (0, 2, 1, 3, 4), b["Out"])


@grad_op("shuffle_channel_grad", cuda=True)
def shuffle_channel_grad(b: Binder) -> None:
    """dX = dOut with the channels back in their groups.

    In a program that Paddle 2 wrote, dX = dOut shuffled once more, as there: the same only where two shuffles cancel.
    """
    n, channels, h, w = b["Out@GRAD"].shape
    group = b.attr("group", 1)
    rows = group if of_paddle2(b) else channels // group
    _emit_copy(b, b["Out@GRAD"], (n, rows, channels // rows, h, w), (0, 2, 1, 3, 4), b["X@GRAD"])


def _depth_infer(c: Context) -> None:
    r = c.attr("blocksize")
    n, channels, (h, w) = _image(c, "space_to_depth", r * r, "The square of Attr(blocksize)")
    c.require(
        all(m < 0 or m % r == 0 for m in (h, w)), "Attr(blocksize) of space_to_depth must divide height and width.",
        expected=f"multiples of {r}", received=f"{h} x {w}",
    )  # fmt: skip
    shape = (n, channels * r * r if channels >= 0 else -1, *(m // r if m >= 0 else -1 for m in (h, w)))
    c.set("Out", shape, c["X"].dtype, c.lod("X"))


def _squares(x: Array, r: int) -> tuple[int, ...]:
    """The shape of an output of space_to_depth as squares: image, channel, row, row in it, column, column in it."""
    n, channels, h, w = x.shape
    return n, channels // (r * r), h, r, w, r


@op(
    "space_to_depth",
    inputs={"X: float[n, c · r², h, w]": "h and w multiples of r"},
    outputs={"Out": "[n, c · r⁴, h / r, w / r]"},
    attrs={"blocksize": Attr("long", 2, "r, the side of a square", gt=1)},
    infer=_depth_infer,
    grad=default_grad("X", "Out@GRAD", wrt=["X"]),
    cuda=True,
)
def space_to_depth(b: Binder) -> None:
    """Out = Z read in another shape, where Z[n, c, h · r + i, w · r + j] = X[n, (i · r + j) · C + c, h, w].

    C is the number of channels of Z, those of X divided by r². As in Fluid, Z has the squares arranged in space, and
    its numbers in the order of memory are those of Out: what YOLO's networks call a reorganisation.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("space_to_depth", {"X": np.arange(16.0).reshape(1, 4, 2, 2)})["Out"][0, :4, 0, 0]
        array([0., 4., 1., 5.])

    Source: Redmon and Farhadi, "YOLO9000" (CVPR 2017); Fluid's space_to_depth_op.
    """
    x, r = b["X"], b.attr("blocksize")
    n, channels, h, _, w, _ = _squares(x, r)
    _emit_copy(b, x, (n, r, r, channels, h, w), (0, 3, 4, 1, 5, 2), b["Out"])


@grad_op("space_to_depth_grad", cuda=True)
def space_to_depth_grad(b: Binder) -> None:
    """dX[n, (i · r + j) · C + c, h, w] = dZ[n, c, h · r + i, w · r + j], with dOut read in the shape of Z."""
    _emit_copy(b, b["Out@GRAD"], _squares(b["X"], b.attr("blocksize", 2)), (0, 3, 5, 1, 2, 4), b["X@GRAD"])


def _check_videos(c: Context, x: Any) -> None:
    """Require images that make whole videos."""
    steps = c.attr("seg_num")
    c.require(
        x.ndim == 4 and steps > 0 and (x.shape[0] < 0 or x.shape[0] % steps == 0),
        f"The images of {c.definition.type} must make whole videos.",
        expected=f"4 sizes, the first a multiple of {steps}, which is seg_num", received=list(x.shape),
    )  # fmt: skip


def _infer(c: Context) -> None:
    x = c["X"]
    c.check_inputs()
    _check_videos(c, x)
    c.set("Out", x.shape, x.dtype, c.lod("X"))


def _shift_grad_infer(c: Context) -> None:
    _check_videos(c, c["Out@GRAD"])
    like_forward(c)


def _moved(b: Binder, channels: int) -> tuple[int, int]:
    """The channels before which all move on, and those before which the others move back."""
    ratio = np.float32(b.attr("shift_ratio", 0.25))
    return int(np.float32(channels) * ratio), int(np.float32(channels) * np.float32(2) * ratio)


def _launch_shift(b: Binder, x: Array, out: Array, step: int) -> None:
    """Emit what `_emit_shift` does on a GPU, in one launch over the rows of images."""
    n, last = len(x), b.attr("data_format", "NCHW") == "NHWC"
    if last:
        image, width = x.shape[1] * x.shape[2], x.shape[3]
    else:
        image, width = x.shape[1], x.shape[2] * x.shape[3]
    at_once = vector(x, out)
    if last or width % at_once:
        word, words = WORDS[x.dtype.itemsize], width
    else:
        word, words = WORDS[x.dtype.itemsize * at_once], width // at_once
    sizes = map(np.int64, (image, b.attr("seg_num"), *_moved(b, width if last else image), words))
    by_rows(b, CUDA, f"shifted<{word}>", n * image, words, x, out, *sizes, np.int32(step), np.int32(last))


def _emit_shift(b: Binder, x: Array, out: Array, step: int) -> None:
    """Emit the first channels moved by a step in time, the second ones against it, the others as they are."""
    if b.on_cuda:
        return _launch_shift(b, x, out, step)
    layout, steps = b.attr("data_format", "NCHW"), b.attr("seg_num")
    shape = (len(x) // steps, steps, *x.shape[1:])
    view = writing(b, out, shape)
    source, target = (v.swapaxes(0, 1) for v in (reading(b, x, shape), view))
    if layout == "NHWC":
        source, target = np.moveaxis(source, -1, 2), np.moveaxis(target, -1, 2)
    one, two = _moved(b, source.shape[2])
    for part, by in ((slice(0, one), step), (slice(one, two), -step), (slice(two, None), 0)):
        s, t = source[:, :, part], target[:, :, part]
        if t.size == 0:
            continue
        if by > 0:
            b(np.copyto, t[1:], s[:-1])
            b(np.copyto, t[:1], b.const(0, t.dtype))
        elif by < 0:
            b(np.copyto, t[:-1], s[1:])
            b(np.copyto, t[-1:], b.const(0, t.dtype))
        else:
            b(np.copyto, t, s)
    written(b, out, view)


@op(
    "temporal_shift",
    inputs={"X: float[videos · seg_num, c, h, w]": "the images of each video in order"},
    outputs={"Out": "the shape of X"},
    attrs={
        "seg_num": Attr("int", doc="images in a video", gt=0),
        "shift_ratio": Attr(
            "float", 0.25, "share of the channels that moves on, and of those that move back",
            check=lambda r: None if 0 < r < 0.5 else "'shift_ratio' of temporal_shift must be between 0 and 0.5.",
        ),
        "data_format": Attr("string", "NCHW", "where the channels are", enum=("NCHW", "NHWC")),
    },
    infer=_infer,
    grad=default_grad("Out@GRAD", wrt=["X"]), cuda=True,
)  # fmt: skip
def temporal_shift(b: Binder) -> None:
    """Out[t] = X[t - 1] in the first channels, X[t + 1] in the next, X[t] in the others; 0 beyond the video.

    Example:
        >>> from fluidnb.testing import run_op
        >>> x = np.arange(1.0, 9.0).reshape(2, 4, 1, 1)
        >>> run_op("temporal_shift", {"X": x}, {"seg_num": 2})["Out"][:, :, 0, 0]
        array([[0., 6., 3., 4.],
               [1., 0., 7., 8.]])

    Source: Lin et al., "TSM: Temporal Shift Module for Efficient Video Understanding" (2019); Fluid's
    temporal_shift_op.
    """
    _emit_shift(b, b["X"], b["Out"], 1)


@grad_op("temporal_shift_grad", infer=_shift_grad_infer, cuda=True)
def temporal_shift_grad(b: Binder) -> None:
    """dX = dOut with the channels moved the other way."""
    _emit_shift(b, b["Out@GRAD"], b["X@GRAD"], -1)
