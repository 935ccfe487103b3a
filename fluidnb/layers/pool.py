"""Layers of pooling."""

from __future__ import annotations

from collections.abc import Sequence

from fluidnb.errors import OpValueError, near
from fluidnb.layers.one_op import one_op
from fluidnb.layers.windows import check_image, check_switch, per_axis
from fluidnb.op import takes
from fluidnb.program import Variable
from fluidnb.program import layer_calls as naming

__all__ = ["pool2d", "pool3d"]

Sizes = int | Sequence[int]


@naming.layer
@takes(pool_type=("max", "avg"))
def pool2d(
    input: Variable,
    pool_size: Sizes = -1,
    pool_type: str = "max",
    pool_stride: Sizes = 1,
    pool_padding: Sizes = 0,
    global_pooling: bool = False,
    use_cudnn: bool = True,
    ceil_mode: bool = False,
    name: str | None = None,
    exclusive: bool = True,
) -> Variable:
    """The largest element, or the mean, of each window of images.

    Args:
        input: images [batch, channels, height, width].
        pool_size: height and width of a window, or one number for both.
        pool_type: ``"max"`` or ``"avg"``.
        pool_stride: stride of the window.
        pool_padding: how far windows may reach over the image on each side.
        global_pooling: one window that is the whole image, whatever ``pool_size``.
        use_cudnn: whether to use cuDNN on a GPU.
        ceil_mode: whether a window that hangs over the end counts.
        name: name of the layer.
        exclusive: whether a mean is of the elements of the image alone, without the padding.

    Returns:
        [batch, channels, height, width] with sizes ``(size + 2 · padding - window) / stride + 1``, rounded down, or up
        with ``ceil_mode``.

    Raises:
        OpTypeError: an argument of another type.
        OpValueError: an unknown ``pool_type``, no ``pool_size``, or a window larger than the image.

    Example:
        >>> with fluid.program_guard(fluid.Program()):
        ...     y = fluid.layers.pool2d(fluid.layers.data("x", [3, 8, 8]), pool_size=2, pool_stride=2)
        >>> y.shape
        (-1, 3, 4, 4)

    Source: Fluid's layers.pool2d.
    """
    return _pool(
        "pool2d", 2, input, pool_size, pool_type, pool_stride, pool_padding, global_pooling, use_cudnn, ceil_mode, name,
        exclusive,
    )  # fmt: skip


@naming.layer
@takes(pool_type=("max", "avg"))
def pool3d(
    input: Variable,
    pool_size: Sizes = -1,
    pool_type: str = "max",
    pool_stride: Sizes = 1,
    pool_padding: Sizes = 0,
    global_pooling: bool = False,
    use_cudnn: bool = True,
    ceil_mode: bool = False,
    name: str | None = None,
    exclusive: bool = True,
) -> Variable:
    """The largest element, or the mean, of each window of volumes; as `pool2d` with a depth before height and width.

    Args:
        input: volumes [batch, channels, depth, height, width].
        pool_size: sizes of a window, or one number for all.
        pool_type: ``"max"`` or ``"avg"``.
        pool_stride: stride of the window.
        pool_padding: how far windows may reach over the volume on each side.
        global_pooling: one window that is the whole volume.
        use_cudnn: whether to use cuDNN on a GPU.
        ceil_mode: whether a window that hangs over the end counts.
        name: name of the layer.
        exclusive: whether a mean is of the elements of the volume alone.

    Returns:
        [batch, channels, depth, height, width].

    Raises:
        OpTypeError: an argument of another type.
        OpValueError: an unknown ``pool_type``, no ``pool_size``, or a window larger than the volume.

    Example:
        >>> with fluid.program_guard(fluid.Program()):
        ...     y = fluid.layers.pool3d(fluid.layers.data("x", [3, 4, 8, 8]), pool_type="avg", global_pooling=True)
        >>> y.shape
        (-1, 3, 1, 1, 1)

    Source: Fluid's layers.pool3d.
    """
    return _pool(
        "pool3d", 3, input, pool_size, pool_type, pool_stride, pool_padding, global_pooling, use_cudnn, ceil_mode, name,
        exclusive,
    )  # fmt: skip


def _pool(
    layer: str, rank: int, input: Variable, size: Sizes, kind: str, stride: Sizes, padding: Sizes, whole: bool,
    use_cudnn: bool, ceil_mode: bool, name: str | None, exclusive: bool,
) -> Variable:  # fmt: skip
    if kind not in ("max", "avg"):
        raise OpValueError(
            f"Unknown pool_type: '{kind}'. It can only be 'max' or 'avg'.", expected="'max' or 'avg'",
            received=repr(kind), hint=near(str(kind), ("max", "avg")) or "max takes the largest, avg the mean.",
        )  # fmt: skip
    check_image(input, rank, layer)
    check_switch(use_cudnn, layer)
    if not whole and size == -1:
        raise OpValueError(
            "When the global_pooling is False, pool_size must be passed and be a valid value.",
            expected="sizes of a window", received=f"pool_size={size}",
        )  # fmt: skip
    attrs = {
        "pooling_type": kind, "ksize": per_axis(size, rank, "pool_size", layer), "global_pooling": whole,
        "strides": per_axis(stride, rank, "pool_stride", layer),
        "paddings": per_axis(padding, rank, "pool_padding", layer),
        "use_cudnn": use_cudnn, "ceil_mode": ceil_mode, "exclusive": exclusive,
    }  # fmt: skip
    return one_op(layer, {"X": input}, attrs, name=name)
