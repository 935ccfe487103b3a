"""Layers that make images larger or smaller."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fluidnb.errors import OpTypeError, OpValueError
from fluidnb.layers.one_op import check_variable, one_op
from fluidnb.layers.windows import check_image
from fluidnb.op import takes
from fluidnb.program import Variable
from fluidnb.program import layer_calls as naming

__all__ = ["image_resize", "image_resize_short", "resize_bilinear", "resize_nearest"]

_METHODS = {"BILINEAR": "bilinear", "NEAREST": "nearest"}


@naming.layer
@takes(input="bilinear_interp.X", actual_shape="bilinear_interp.OutSize", resample=("BILINEAR", "NEAREST"))
def image_resize(
    input: Variable,
    out_shape: Sequence[int] | Variable | None = None,
    scale: float | None = None,
    name: str | None = None,
    resample: str = "BILINEAR",
    actual_shape: Variable | None = None,
    align_corners: bool = True,
    align_mode: int = 1,
) -> Variable:
    """Images in another size.

    Args:
        input: images [batch, channels, height, width].
        out_shape: the new height and width, or an integer variable [2] with them.
        scale: by how much height and width grow, where ``out_shape`` is None.
        name: name of the layer.
        resample: ``"BILINEAR"``, of the four pixels around, or ``"NEAREST"``, of the nearest one.
        actual_shape: an integer variable [2] that wins over ``out_shape`` and ``scale`` when the program runs.
        align_corners: whether the corners stay where they are: element k of n is at ``k · (size - 1) / (n - 1)``.
        align_mode: without ``align_corners``, for BILINEAR: 1 for ``k · size / n``, 0 for
            ``(k + 1/2) · size / n - 1/2``.

    Returns:
        [batch, channels, height, width], float or as the input.

    Raises:
        OpTypeError: the input is not a Variable, or the shape neither numbers nor a Variable.
        OpValueError: neither ``out_shape`` nor ``scale``, or an argument out of range.

    Example:
        >>> with fluid.program_guard(fluid.Program()):
        ...     y = fluid.layers.image_resize(fluid.layers.data("x", [3, 6, 9]), out_shape=[12, 12])
        ...     z = fluid.layers.image_resize(y, scale=0.5, resample="NEAREST")
        >>> y.shape, z.shape
        ((-1, 3, 12, 12), (-1, 3, 6, 6))

    Source: Fluid's layers.image_resize.
    """
    if resample not in _METHODS:
        raise OpValueError(
            "The 'resample' of image_resize can only be 'BILINEAR' or 'NEAREST' currently.",
            expected="'BILINEAR' or 'NEAREST'", received=repr(resample),
        )  # fmt: skip
    return _resized("image_resize", _METHODS[resample], input, out_shape, scale, name, actual_shape, align_corners,
                    align_mode)  # fmt: skip


@naming.layer
@takes(input="bilinear_interp.X", actual_shape="bilinear_interp.OutSize")
def resize_bilinear(
    input: Variable,
    out_shape: Sequence[int] | Variable | None = None,
    scale: float | None = None,
    name: str | None = None,
    actual_shape: Variable | None = None,
    align_corners: bool = True,
    align_mode: int = 1,
) -> Variable:
    """Images in another size, each pixel of the four around its place, by how near they are.

    Args:
        input: images [batch, channels, height, width].
        out_shape: the new height and width, or an integer variable [2] with them.
        scale: by how much height and width grow, where ``out_shape`` is None.
        name: name of the layer.
        actual_shape: an integer variable [2] that wins over both when the program runs.
        align_corners: whether the corners stay where they are; see `image_resize`.
        align_mode: see `image_resize`.

    Returns:
        [batch, channels, height, width].

    Raises:
        OpTypeError: the input is not a Variable, or the shape neither numbers nor a Variable.
        OpValueError: neither ``out_shape`` nor ``scale``, or an argument out of range.

    Example:
        >>> with fluid.program_guard(fluid.Program()):
        ...     y = fluid.layers.resize_bilinear(fluid.layers.data("x", [3, 6, 9]), scale=2.0)
        >>> y.shape
        (-1, 3, 12, 18)

    Source: Fluid's layers.resize_bilinear.
    """
    return _resized("resize_bilinear", "bilinear", input, out_shape, scale, name, actual_shape, align_corners,
                    align_mode)  # fmt: skip


@naming.layer
@takes(input="nearest_interp.X", actual_shape="nearest_interp.OutSize")
def resize_nearest(
    input: Variable,
    out_shape: Sequence[int] | Variable | None = None,
    scale: float | None = None,
    name: str | None = None,
    actual_shape: Variable | None = None,
    align_corners: bool = True,
) -> Variable:
    """Images in another size, each pixel the nearest one to its place.

    Args:
        input: images [batch, channels, height, width].
        out_shape: the new height and width, or an integer variable [2] with them.
        scale: by how much height and width grow, where ``out_shape`` is None.
        name: name of the layer.
        actual_shape: an integer variable [2] that wins over both when the program runs.
        align_corners: whether the corners stay where they are; see `image_resize`.

    Returns:
        [batch, channels, height, width].

    Raises:
        OpTypeError: the input is not a Variable, or the shape neither numbers nor a Variable.
        OpValueError: neither ``out_shape`` nor ``scale``, or a number that is not positive.

    Example:
        >>> with fluid.program_guard(fluid.Program()):
        ...     y = fluid.layers.resize_nearest(fluid.layers.data("x", [3, 6, 9]), out_shape=(3, 3))
        >>> y.shape
        (-1, 3, 3, 3)

    Source: Fluid's layers.resize_nearest.
    """
    return _resized("resize_nearest", "nearest", input, out_shape, scale, name, actual_shape, align_corners, 1)


@naming.layer
@takes(input="bilinear_interp.X", resample=("BILINEAR", "NEAREST"))
def image_resize_short(input: Variable, out_short_len: int, resample: str = "BILINEAR") -> Variable:
    """Images whose shorter side gets a length, and the other one what keeps their form.

    Args:
        input: images [batch, channels, height, width] of a known height and width.
        out_short_len: the new length of the shorter side.
        resample: ``"BILINEAR"`` or ``"NEAREST"``.

    Returns:
        [batch, channels, height, width].

    Raises:
        OpTypeError: the input is not a Variable.
        OpValueError: the input is not a batch of images, or their size is not known.

    Example:
        >>> with fluid.program_guard(fluid.Program()):
        ...     y = fluid.layers.image_resize_short(fluid.layers.data("x", [3, 6, 9]), 4)
        >>> y.shape
        (-1, 3, 4, 6)

    Source: Fluid's layers.image_resize_short.
    """
    check_image(input, 2, "image_resize_short")
    sizes = input.shape[2:]
    if min(sizes) <= 0:
        raise OpValueError(
            "image_resize_short needs to know the height and width of its input.",
            expected="[batch, channels, height, width] with both", received=list(input.shape),
            hint="image_resize with a scale does not need them.",
        )  # fmt: skip
    new = [int(n * (out_short_len / min(sizes)) + 0.5) for n in sizes]
    new[sizes.index(min(sizes))] = out_short_len
    return image_resize(input, out_shape=new, resample=resample)


def _resized(
    layer: str, method: str, input: Variable, out_shape: Any, scale: float | None, name: str | None,
    actual_shape: Variable | None, align_corners: bool, align_mode: int,
) -> Variable:  # fmt: skip
    check_image(input, 2, layer)
    inputs, attrs = {"X": input}, {"interp_method": method, "align_corners": align_corners, "align_mode": align_mode}
    if align_mode not in (0, 1):
        raise OpValueError(f"align_mode of {layer} can only be 0 or 1.", expected="0 or 1", received=align_mode)
    if out_shape is None and scale is None:
        raise OpValueError(
            "One of out_shape and scale must not be None.", expected="out_shape=[height, width] or scale",
            received="neither", hint=f"{layer} has to know how large the images become.",
        )  # fmt: skip
    if isinstance(out_shape, Variable):
        inputs["OutSize"] = out_shape
    elif out_shape is not None:
        attrs["out_h"], attrs["out_w"] = _pair(layer, out_shape)
    elif scale is not None:
        if isinstance(scale, bool) or scale <= 0:
            raise OpValueError(
                f"scale of {layer} must be a positive number.", expected="a number > 0", received=repr(scale)
            )
        attrs["scale"] = float(scale)
    if actual_shape is not None:
        check_variable(actual_shape, "actual_shape", layer)
        inputs["OutSize"] = actual_shape
    return one_op(f"{method}_interp", inputs, attrs, name=name)


def _pair(layer: str, out_shape: Any) -> tuple[int, int]:
    """Height and width."""
    if not isinstance(out_shape, Sequence) or isinstance(out_shape, str):
        raise OpTypeError(
            f"out_shape of {layer} should be a list or tuple or Variable.", expected="[height, width]",
            received=f"{out_shape!r} ({type(out_shape).__name__})",
        )  # fmt: skip
    if len(out_shape) != 2 or not all(isinstance(n, int | np.integer) and n > 0 for n in out_shape):
        raise OpValueError(
            f"out_shape of {layer} must be a height and a width.", expected="two positive integers",
            received=repr(out_shape),
        )  # fmt: skip
    return int(out_shape[0]), int(out_shape[1])
