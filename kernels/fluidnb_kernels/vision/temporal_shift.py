"""temporal_shift: channels of the images of a video moved to the image before or after."""

from __future__ import annotations

import numpy as np

from fluidnb.op import Array, Attr, Binder, Context, default_grad, grad_op, op
from fluidnb_kernels.cuda import by_rows, vector
from fluidnb_kernels.emit import reading, writing, written
from fluidnb_kernels.tensor.strided_copy import WORDS
from fluidnb_kernels.vision.launch import CUDA


def _infer(c: Context) -> None:
    x, steps = c["X"], c.attr("seg_num")
    c.check_inputs()
    c.require(
        steps > 0 and (x.shape[0] < 0 or x.shape[0] % steps == 0),
        "The images of temporal_shift must make whole videos.",
        expected=f"a multiple of {steps}, which is seg_num", received=x.shape[0],
    )  # fmt: skip
    c.set("Out", x.shape, x.dtype, c.lod("X"))


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


@grad_op("temporal_shift_grad", cuda=True)
def temporal_shift_grad(b: Binder) -> None:
    """dX = dOut with the channels moved the other way."""
    _emit_shift(b, b["Out@GRAD"], b["X@GRAD"], -1)
