"""Pooling by oneDNN."""

from collections.abc import Sequence

import numpy as np

from fluidnb.op import Array, Binder
from fluidnb_kernels.onednn.images import channels_last, dense, run, windows_of
from fluidnb_kernels.onednn.library import SOURCE, TARGET, Layout, Primitive, cached, integers
from fluidnb_kernels.sliding import Axis

_INFERENCE, _LARGEST, _MEAN_OF_IMAGE = 96, 0x1FF, 0x3FF


@cached
def _primitive(
    largest: bool, images: tuple[int, ...], windows: tuple[int, ...], axes: tuple[Axis, ...]
) -> Primitive | None:
    """The pooling for shapes; None where oneDNN has none."""
    x, y = (Layout.of(shape, channels_last(shape)) for shape in (images, windows))
    strides, dilations, low, high = windows_of(axes)
    how, sizes = _LARGEST if largest else _MEAN_OF_IMAGE, integers([a.window for a in axes])
    try:
        return Primitive("pooling_forward", _INFERENCE, how, x.handle, y.handle, strides, sizes, dilations, low, high)
    except NotImplementedError:
        return None


def pool(b: Binder, x: Array, out: Array, axes: Sequence[Axis], largest: bool) -> bool:
    """Emit the largest elements of windows, or the mean of their elements in the image; False: oneDNN has none."""
    within = all(a.low < a.window and (a.out - 1) * a.stride < a.low + a.size for a in axes)
    primitive = _primitive(largest, x.shape, out.shape, tuple(axes)) if within and x.size and out.size else None
    if primitive is None:
        return False
    result = dense(b, out, False)
    run(b, primitive.call(SOURCE, TARGET), dense(b, x, True), result)
    if result is not out:
        b(np.copyto, out, result)
    return True
