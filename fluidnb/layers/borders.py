"""A border around images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fluidnb.layers.one_op import one_op
from fluidnb.op import takes
from fluidnb.program import Variable
from fluidnb.program import layer_calls as naming

__all__ = ["pad2d"]


@naming.layer
@takes(input="float[n, c, h, w]")
def pad2d(
    input: Variable,
    paddings: Sequence[int] | Variable = (0, 0, 0, 0),
    mode: str = "constant",
    pad_value: float = 0.0,
    data_format: str = "NCHW",
    name: str | None = None,
) -> Variable:
    """Images with a border.

    Args:
        input: [N, C, H, W], or [N, H, W, C] with ``data_format="NHWC"``.
        paddings: how much: top, bottom, left, right; or an int32 variable [4] of these.
        mode: ``constant`` fills it with a value, ``reflect`` with the image mirrored at its outermost
            pixels, ``edge`` with its outermost pixels.
        pad_value: the value of a constant border.
        data_format: ``NCHW`` or ``NHWC``.
        name: name of the layer.

    Returns:
        The larger images.

    Raises:
        OpValueError: there are not four numbers, one is negative or too large to be mirrored, the mode or the format
            is another, or the input does not hold images.

    Example:
        >>> image = fluid.layers.data("image", [3, 32, 32])
        >>> fluid.layers.pad2d(image, paddings=[1, 2, 0, 3], mode="reflect").shape
        (-1, 3, 35, 35)
    """
    inputs: dict[str, Variable | list[Variable]] = {"X": input}
    attrs: dict[str, Any] = {"mode": mode, "pad_value": float(pad_value), "data_format": data_format}
    if isinstance(paddings, Variable):
        inputs["Paddings"] = paddings
    else:
        attrs["paddings"] = list(paddings)
    return one_op("pad2d", inputs, attrs, name=name)
