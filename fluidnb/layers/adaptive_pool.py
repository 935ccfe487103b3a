"""Layers of pooling into a given number of windows."""

from __future__ import annotations

from typing import Any

from fluidnb.errors import OpValueError, near
from fluidnb.layer_helper import LayerHelper
from fluidnb.layers.one_op import one_op
from fluidnb.layers.pool import Sizes
from fluidnb.layers.windows import check_image, per_axis
from fluidnb.op import takes
from fluidnb.program import Variable
from fluidnb.program import layer_calls as naming

__all__ = ["adaptive_pool2d", "adaptive_pool3d"]


@naming.layer
@takes(input="pool2d.X", pool_type=("max", "avg"))
def adaptive_pool2d(
    input: Variable, pool_size: Sizes, pool_type: str = "max", require_index: bool = False, name: str | None = None
) -> Any:
    """Adaptive max or average pooling of images to a given number of windows.

    Window i of n along an axis goes from ``floor(i · size / n)`` to before ``ceil((i + 1) · size / n)``.

    Args:
        input: images [batch, channels, height, width].
        pool_size: how many windows there are down and across, or one number for both.
        pool_type: ``"max"`` or ``"avg"``.
        require_index: whether to give, for ``"max"``, where the elements were, too.
        name: name of the layer.

    Returns:
        [batch, channels, *pool_size]; with ``require_index`` also int32 of the same shape: places in the image,
        counted row by row.

    Raises:
        OpTypeError: an argument of another type.
        OpValueError: an unknown ``pool_type``, or indices of means.

    Example:
        >>> with fluid.program_guard(fluid.Program()):
        ...     y, where = fluid.layers.adaptive_pool2d(fluid.layers.data("x", [3, 7, 9]), 3, require_index=True)
        >>> y.shape, where.shape
        ((-1, 3, 3, 3), (-1, 3, 3, 3))

    Source: Fluid's layers.adaptive_pool2d.
    """
    return _shared("adaptive_pool2d", 2, input, pool_size, pool_type, require_index, name)


@naming.layer
@takes(input="pool3d.X", pool_type=("max", "avg"))
def adaptive_pool3d(
    input: Variable, pool_size: Sizes, pool_type: str = "max", require_index: bool = False, name: str | None = None
) -> Any:
    """The largest element, or the mean, of windows that share out volumes; as `adaptive_pool2d` with a depth.

    Args:
        input: volumes [batch, channels, depth, height, width].
        pool_size: how many windows there are along each axis, or one number for all.
        pool_type: ``"max"`` or ``"avg"``.
        require_index: whether to give, for ``"max"``, where the elements were, too.
        name: name of the layer.

    Returns:
        [batch, channels, *pool_size]; with ``require_index`` also int32 of the same shape.

    Raises:
        OpTypeError: an argument of another type.
        OpValueError: an unknown ``pool_type``, or indices of means.

    Example:
        >>> with fluid.program_guard(fluid.Program()):
        ...     y = fluid.layers.adaptive_pool3d(fluid.layers.data("x", [3, 4, 7, 9]), [2, 3, 3], pool_type="avg")
        >>> y.shape
        (-1, 3, 2, 3, 3)

    Source: Fluid's layers.adaptive_pool3d.
    """
    return _shared("adaptive_pool3d", 3, input, pool_size, pool_type, require_index, name)


def _shared(
    layer: str, rank: int, input: Variable, size: Sizes, kind: str, require_index: bool, name: str | None
) -> Any:
    if kind not in ("max", "avg"):
        raise OpValueError(
            f"Unknown pool_type: '{kind}'. It can only be 'max' or 'avg'.", expected="'max' or 'avg'",
            received=repr(kind), hint=near(str(kind), ("max", "avg")) or "max takes the largest, avg the mean.",
        )  # fmt: skip
    if kind == "avg" and require_index:
        raise OpValueError(
            "invalid setting 'require_index' true when 'pool_type' is 'avg'.", expected="require_index=False",
            received="require_index=True", hint="a mean comes from no one place.",
        )  # fmt: skip
    check_image(input, rank, layer)
    attrs = {"ksize": per_axis(size, rank, "pool_size", layer), "adaptive": True}
    if kind == "avg":
        return one_op(f"pool{rank}d", {"X": input}, {**attrs, "pooling_type": kind}, name=name)
    helper = LayerHelper(f"max_pool{rank}d_with_index", name=name)
    out = helper.create_tmp_variable(input.dtype)
    mask = helper.create_tmp_variable("int32", stop_gradient=True)
    helper.append_op(
        type=f"max_pool{rank}d_with_index", inputs={"X": [input]}, outputs={"Out": [out], "Mask": [mask]}, attrs=attrs
    )
    return (out, mask) if require_index else out
