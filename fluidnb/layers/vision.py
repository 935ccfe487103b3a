"""Layers that sample images, rearrange their elements, and extract windows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fluidnb.errors import OpValueError
from fluidnb.layers.one_op import one_op
from fluidnb.layers.pool import Sizes
from fluidnb.layers.windows import per_axis
from fluidnb.op import takes
from fluidnb.program import Variable
from fluidnb.program import layer_calls as naming

__all__ = [
    "affine_channel", "affine_grid", "grid_sampler", "pixel_shuffle", "shuffle_channel", "similarity_focus",
    "space_to_depth", "temporal_shift", "unfold",
]  # fmt: skip


@naming.layer
@takes(data_layout=("NCHW", "NHWC"))
def affine_channel(
    x: Variable, scale: Any = None, bias: Any = None, data_layout: str = "NCHW", name: str | None = None,
    act: Any = None,
) -> Variable:  # fmt: skip
    """Each channel times a factor plus a summand: ``act(x · scale + bias)``.

    Args:
        x: [batch, channels, …] or, with ``data_layout="NHWC"``, [batch, …, channels].
        scale: the factors, a variable [channels].
        bias: the summands, a variable [channels].
        data_layout: ``"NCHW"`` or ``"NHWC"``.
        name: name of the layer.
        act: activation.

    Returns:
        A variable of the shape of ``x``.

    Raises:
        OpTypeError: an argument is not a Variable.
        RuleError: scale or bias has another length than there are channels.

    Example:
        >>> with fluid.program_guard(fluid.Program(), fluid.Program()):
        ...     scale, bias = (fluid.layers.create_parameter([3], "float32") for _ in range(2))
        ...     y = fluid.layers.affine_channel(fluid.layers.data("x", [3, 8, 8]), scale, bias)
        >>> y.shape
        (-1, 3, 8, 8)

    Source: Fluid's layers.affine_channel.
    """
    inputs = {"X": x, "Scale": scale, "Bias": bias}
    return one_op("affine_channel", inputs, {"data_layout": data_layout}, name=name, act=act)


@naming.layer
def affine_grid(theta: Variable, out_shape: Sequence[int] | Variable, name: str | None = None) -> Variable:
    """Sampling grid of affine maps of images, for `grid_sampler`.

    Args:
        theta: the maps [batch, 2, 3].
        out_shape: the shape [batch, channels, height, width] of the images to make, or an int32 variable with it.
        name: name of the layer.

    Returns:
        [batch, height, width, 2]: x and y of a point for each element, from -1 to 1 across the image.

    Raises:
        OpTypeError: theta is not a Variable, or out_shape neither numbers nor a Variable.
        RuleError: theta holds no affine maps.

    Example:
        >>> with fluid.program_guard(fluid.Program()):
        ...     grid = fluid.layers.affine_grid(fluid.layers.data("theta", [2, 3]), [-1, 3, 4, 5])
        >>> grid.shape
        (-1, 4, 5, 2)

    Source: Fluid's layers.affine_grid.
    """
    if isinstance(out_shape, Variable):
        return one_op("affine_grid", {"Theta": theta, "OutputShape": out_shape}, slot="Output", name=name)
    return one_op("affine_grid", {"Theta": theta}, {"output_shape": list(out_shape)}, slot="Output", name=name)


@naming.layer
def grid_sampler(x: Variable, grid: Variable, name: str | None = None) -> Variable:
    """Images read at points, between elements linearly; 0 beyond the image.

    Args:
        x: images [batch, channels, height, width].
        grid: [batch, rows, columns, 2]: x and y of points, from -1 to 1 across the image.
        name: name of the layer.

    Returns:
        [batch, channels, rows, columns].

    Raises:
        OpTypeError: an argument is not a Variable.
        RuleError: the shapes do not go together.

    Example:
        >>> with fluid.program_guard(fluid.Program()):
        ...     x, theta = fluid.layers.data("x", [3, 8, 8]), fluid.layers.data("theta", [2, 3])
        ...     y = fluid.layers.grid_sampler(x, fluid.layers.affine_grid(theta, [-1, 3, 4, 5]))
        >>> y.shape
        (-1, 3, 4, 5)

    Source: Fluid's layers.grid_sampler.
    """
    return one_op("grid_sampler", {"X": x, "Grid": grid}, slot="Output", name=name)


@naming.layer
def pixel_shuffle(x: Variable, upscale_factor: int) -> Variable:
    """Groups of channels as squares of pixels: height and width grow by a factor, channels shrink by its square.

    Args:
        x: images [batch, channels, height, width].
        upscale_factor: the factor.

    Returns:
        [batch, channels / factor², height · factor, width · factor].

    Raises:
        OpTypeError: x is not a Variable, or the factor not a whole number.
        RuleError: the factor's square does not divide the channels.

    Example:
        >>> with fluid.program_guard(fluid.Program()):
        ...     y = fluid.layers.pixel_shuffle(fluid.layers.data("x", [8, 3, 4]), 2)
        >>> y.shape
        (-1, 2, 6, 8)

    Source: Fluid's layers.pixel_shuffle.
    """
    return one_op("pixel_shuffle", {"X": x}, {"upscale_factor": upscale_factor})


@naming.layer
def shuffle_channel(x: Variable, group: int, name: str | None = None) -> Variable:
    """The first channel of every group, then the second of every group, and so on.

    Args:
        x: images [batch, channels, height, width].
        group: how many groups the channels fall into.
        name: name of the layer.

    Returns:
        A variable of the shape of ``x``.

    Raises:
        OpTypeError: x is not a Variable, or the number not whole.
        RuleError: the number does not divide the channels.

    Example:
        >>> with fluid.program_guard(fluid.Program()):
        ...     y = fluid.layers.shuffle_channel(fluid.layers.data("x", [6, 3, 4]), group=2)
        >>> y.shape
        (-1, 6, 3, 4)

    Source: Fluid's layers.shuffle_channel.
    """
    return one_op("shuffle_channel", {"X": x}, {"group": group}, name=name)


@naming.layer
def space_to_depth(x: Variable, blocksize: int, name: str | None = None) -> Variable:
    """Height and width shrink by a factor, channels grow by its square: what YOLO's networks call a reorganisation.

    The channels of ``x`` are laid out as squares of pixels, and the image that this gives is read in the smaller shape.

    Args:
        x: images [batch, channels, height, width]; the factor divides height and width, its square the channels.
        blocksize: the factor, 2 or more.
        name: name of the layer.

    Returns:
        [batch, channels · blocksize², height / blocksize, width / blocksize].

    Raises:
        OpTypeError: x is not a Variable, or blocksize not an int.
        OpValueError: blocksize is below 2.
        RuleError: the sizes are no multiples.

    Example:
        >>> fluid.layers.space_to_depth(fluid.layers.data("x", [8, 4, 6]), blocksize=2).shape
        (-1, 32, 2, 3)

    Source: Fluid's layers.space_to_depth.
    """
    return one_op("space_to_depth", {"X": x}, {"blocksize": blocksize}, name=name)


@naming.layer
def temporal_shift(x: Variable, seg_num: int, shift_ratio: float = 0.25, name: str | None = None) -> Variable:
    """Some channels of a video's images a step later, as many a step earlier.

    Args:
        x: [videos · seg_num, channels, height, width]: the images of each video in order.
        seg_num: images in a video.
        shift_ratio: share of the channels that moves on, and of those that move back.
        name: name of the layer.

    Returns:
        A variable of the shape of ``x``.

    Raises:
        OpTypeError: x is not a Variable, or seg_num not a whole number.
        OpValueError: the ratio is not between 0 and 1/2.

    Example:
        >>> with fluid.program_guard(fluid.Program()):
        ...     y = fluid.layers.temporal_shift(fluid.layers.data("x", [6, 3, 4]), seg_num=2)
        >>> y.shape
        (-1, 6, 3, 4)

    Source: Fluid's layers.temporal_shift.
    """
    return one_op("temporal_shift", {"X": x}, {"seg_num": seg_num, "shift_ratio": shift_ratio}, name=name)


@naming.layer
def unfold(
    x: Variable, kernel_sizes: Sizes, strides: Sizes = 1, paddings: Sizes = 0, dilations: Sizes = 1,
    name: str | None = None,
) -> Variable:  # fmt: skip
    """The windows of images as columns.

    Args:
        x: images [batch, channels, height, width].
        kernel_sizes: height and width of a window, or one number for both.
        strides: stride of the window, down and across.
        paddings: zeros around the image: one number; down and across; or above, left, below, right.
        dilations: from element to element in a window.
        name: name of the layer.

    Returns:
        [batch, channels · height · width of a window, windows].

    Raises:
        OpTypeError: an argument of another type.
        OpValueError: other than one, two or four paddings.
        RuleError: a window larger than the padded image.

    Example:
        >>> with fluid.program_guard(fluid.Program()):
        ...     y = fluid.layers.unfold(fluid.layers.data("x", [3, 6, 6]), [3, 2], strides=[1, 2])
        >>> y.shape
        (-1, 18, 12)

    Source: Fluid's layers.unfold.
    """
    around = paddings if isinstance(paddings, int) else list(paddings)
    if isinstance(around, list) and len(around) not in (2, 4):
        raise OpValueError(
            "paddings should either be an integer or a list of 2 or 4 integers.",
            expected="one, two or four numbers", received=repr(paddings),
        )  # fmt: skip
    if isinstance(around, list) and len(around) == 2:
        around = around * 2
    attrs = {
        "kernel_sizes": per_axis(kernel_sizes, 2, "kernel_sizes", "unfold"),
        "strides": per_axis(strides, 2, "strides", "unfold"), "paddings": per_axis(around, 4, "paddings", "unfold"),
        "dilations": per_axis(dilations, 2, "dilations", "unfold"),
    }  # fmt: skip
    return one_op("unfold", {"X": x}, attrs, slot="Y", name=name)


@naming.layer
def similarity_focus(input: Variable, axis: int, indexes: list[int], name: str | None = None) -> Variable:
    """Mask of the largest elements of some slices, no two of them in one row or column.

    Args:
        input: [batch, a, b, c].
        axis: the dimension that is cut into slices, 1 to 3.
        indexes: which slices; a place counts where one of them has it.
        name: name of the result.

    Returns:
        The shape of ``input``: 1 and 0, the same along ``axis``. No gradient passes.

    Raises:
        OpTypeError: the input is not a Variable, or axis or indexes is not what it should be.
        OpValueError: there is no such axis or slice.

    Example:
        >>> fluid.layers.similarity_focus(fluid.layers.data("x", [3, 2, 2]), 1, [0]).shape
        (-1, 3, 2, 2)

    Source: He and Lin, "Pairwise Word Interaction Modeling" (2016); Fluid's layers.similarity_focus.
    """
    return one_op("similarity_focus", {"X": input}, {"axis": axis, "indexes": list(indexes)}, out_name=name)
