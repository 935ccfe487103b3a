"""Layers that resize, sample, cut and rearrange images."""

from collections.abc import Sequence
from typing import Any

from fluidnb.errors import OpValueError
from fluidnb.layers.conv import Sizes, check_image, per_axis
from fluidnb.layers.one_op import as_attr, as_input, one_op
from fluidnb.op import takes
from fluidnb.program import Variable
from fluidnb.program import layer_calls as naming

__all__ = [
    "affine_channel", "affine_grid", "grid_sampler", "image_resize", "image_resize_short", "pad2d", "pixel_shuffle",
    "resize_bilinear", "resize_nearest", "shuffle_channel", "similarity_focus", "space_to_depth", "temporal_shift",
    "unfold",
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

    Returns:
        A variable of the shape of ``x``.

    Example:
        >>> scale, bias = (fluid.layers.create_parameter([3], "float32") for _ in range(2))
        >>> fluid.layers.affine_channel(fluid.layers.data("x", [3, 8, 8]), scale, bias).shape
        (-1, 3, 8, 8)
    """
    inputs = {"X": x, "Scale": scale, "Bias": bias}
    return one_op("affine_channel", inputs, {"data_layout": data_layout}, name=name, act=act)


@naming.layer
def affine_grid(theta: Variable, out_shape: Sequence[int] | Variable, name: str | None = None) -> Variable:
    """Sampling grid of affine maps of images, for `grid_sampler`.

    Args:
        theta: the maps [batch, 2, 3].
        out_shape: the shape [batch, channels, height, width] of the images to make, or an int32 variable with it.

    Returns:
        [batch, height, width, 2]: x and y of a point for each element, from -1 to 1 across the image.

    Example:
        >>> fluid.layers.affine_grid(fluid.layers.data("theta", [2, 3]), [-1, 3, 4, 5]).shape
        (-1, 4, 5, 2)
    """
    inputs = {"Theta": theta, "OutputShape": as_input(out_shape)}
    return one_op("affine_grid", inputs, {"output_shape": as_attr(out_shape)}, slot="Output", name=name)


@naming.layer
def grid_sampler(x: Variable, grid: Variable, name: str | None = None) -> Variable:
    """Images read at points, between elements linearly; 0 beyond the image.

    Args:
        x: images [batch, channels, height, width].
        grid: [batch, rows, columns, 2]: x and y of points, from -1 to 1 across the image.

    Returns:
        [batch, channels, rows, columns].

    Example:
        >>> x, theta = fluid.layers.data("x", [3, 8, 8]), fluid.layers.data("theta", [2, 3])
        >>> fluid.layers.grid_sampler(x, fluid.layers.affine_grid(theta, [-1, 3, 4, 5])).shape
        (-1, 3, 4, 5)
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

    Example:
        >>> fluid.layers.pixel_shuffle(fluid.layers.data("x", [8, 3, 4]), 2).shape
        (-1, 2, 6, 8)
    """
    return one_op("pixel_shuffle", {"X": x}, {"upscale_factor": upscale_factor})


@naming.layer
def shuffle_channel(x: Variable, group: int, name: str | None = None) -> Variable:
    """The first channel of every group, then the second of every group, and so on.

    Args:
        x: images [batch, channels, height, width].
        group: how many groups the channels fall into.

    Returns:
        A variable of the shape of ``x``.

    Example:
        >>> fluid.layers.shuffle_channel(fluid.layers.data("x", [6, 3, 4]), group=2).shape
        (-1, 6, 3, 4)
    """
    return one_op("shuffle_channel", {"X": x}, {"group": group}, name=name)


@naming.layer
def space_to_depth(x: Variable, blocksize: int, name: str | None = None) -> Variable:
    """Height and width shrink by a factor, channels grow by its square: what YOLO's networks call a reorganisation.

    The channels of ``x`` are laid out as squares of pixels, and the image that this gives is read in the smaller shape.

    Args:
        x: images [batch, channels, height, width]; the factor divides height and width, its square the channels.
        blocksize: the factor, 2 or more.

    Returns:
        [batch, channels · blocksize², height / blocksize, width / blocksize].

    Example:
        >>> fluid.layers.space_to_depth(fluid.layers.data("x", [8, 4, 6]), blocksize=2).shape
        (-1, 32, 2, 3)
    """
    return one_op("space_to_depth", {"X": x}, {"blocksize": blocksize}, name=name)


@naming.layer
def temporal_shift(x: Variable, seg_num: int, shift_ratio: float = 0.25, name: str | None = None) -> Variable:
    """Some channels of a video's images a step later, as many a step earlier.

    Args:
        x: [videos · seg_num, channels, height, width]: the images of each video in order.
        seg_num: images in a video.
        shift_ratio: share of the channels that moves on, and of those that move back.

    Returns:
        A variable of the shape of ``x``.

    Example:
        >>> fluid.layers.temporal_shift(fluid.layers.data("x", [6, 3, 4]), seg_num=2).shape
        (-1, 6, 3, 4)
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

    Returns:
        [batch, channels · height · width of a window, windows].

    Example:
        >>> fluid.layers.unfold(fluid.layers.data("x", [3, 6, 6]), [3, 2], strides=[1, 2]).shape
        (-1, 18, 12)
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

    Example:
        >>> fluid.layers.similarity_focus(fluid.layers.data("x", [3, 2, 2]), 1, [0]).shape
        (-1, 3, 2, 2)

    Source: He and Lin, "Pairwise Word Interaction Modeling" (2016).
    """
    return one_op("similarity_focus", {"X": input}, {"axis": axis, "indexes": list(indexes)}, out_name=name)


_METHODS = {"BILINEAR": "bilinear", "NEAREST": "nearest"}


@naming.layer
@takes(input="bilinear_interp.X", actual_shape="bilinear_interp.OutSize", resample=("BILINEAR", "NEAREST"))
def image_resize(
    input: Variable, out_shape: Sequence[int] | Variable | None = None, scale: float | None = None,
    name: str | None = None, resample: str = "BILINEAR", actual_shape: Variable | None = None,
    align_corners: bool = True, align_mode: int = 1,
) -> Variable:  # fmt: skip
    """Images in another size.

    Args:
        input: images [batch, channels, height, width].
        scale: by how much height and width grow, where ``out_shape`` is None.
        resample: ``"BILINEAR"``, of the four pixels around, or ``"NEAREST"``, of the nearest one.
        align_corners: whether the corners stay where they are: element k of n is at ``k · (size - 1) / (n - 1)``.
        align_mode: without ``align_corners``, for BILINEAR: 1 for ``k · size / n``, 0 for
            ``(k + 1/2) · size / n - 1/2``.

    Returns:
        [batch, channels, height, width], float or as the input.

    Raises:
        OpValueError: neither ``out_shape`` nor ``scale``.

    Example:
        >>> y = fluid.layers.image_resize(fluid.layers.data("x", [3, 6, 9]), out_shape=[12, 12])
        >>> z = fluid.layers.image_resize(y, scale=0.5, resample="NEAREST")
        >>> y.shape, z.shape
        ((-1, 3, 12, 12), (-1, 3, 6, 6))
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
    input: Variable, out_shape: Sequence[int] | Variable | None = None, scale: float | None = None,
    name: str | None = None, actual_shape: Variable | None = None, align_corners: bool = True, align_mode: int = 1,
) -> Variable:  # fmt: skip
    """Images in another size, each pixel of the four around its place, by how near they are.

    Args:
        input: images [batch, channels, height, width].
        scale: by how much height and width grow, where ``out_shape`` is None.
        align_corners: whether the corners stay where they are; see `image_resize`.
        align_mode: see `image_resize`.

    Returns:
        [batch, channels, height, width].

    Example:
        >>> fluid.layers.resize_bilinear(fluid.layers.data("x", [3, 6, 9]), scale=2.0).shape
        (-1, 3, 12, 18)
    """
    return _resized("resize_bilinear", "bilinear", input, out_shape, scale, name, actual_shape, align_corners,
                    align_mode)  # fmt: skip


@naming.layer
@takes(input="nearest_interp.X", actual_shape="nearest_interp.OutSize")
def resize_nearest(
    input: Variable, out_shape: Sequence[int] | Variable | None = None, scale: float | None = None,
    name: str | None = None, actual_shape: Variable | None = None, align_corners: bool = True,
) -> Variable:  # fmt: skip
    """Images in another size, each pixel the nearest one to its place.

    Args:
        input: images [batch, channels, height, width].
        scale: by how much height and width grow, where ``out_shape`` is None.
        align_corners: whether the corners stay where they are; see `image_resize`.

    Returns:
        [batch, channels, height, width].

    Example:
        >>> fluid.layers.resize_nearest(fluid.layers.data("x", [3, 6, 9]), out_shape=(3, 3)).shape
        (-1, 3, 3, 3)
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
        OpValueError: the size of the images is not known.

    Example:
        >>> fluid.layers.image_resize_short(fluid.layers.data("x", [3, 6, 9]), 4).shape
        (-1, 3, 4, 6)
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
    attrs: dict[str, Any] = {"interp_method": method, "align_corners": align_corners, "align_mode": align_mode}
    if align_mode not in (0, 1):
        raise OpValueError(f"align_mode of {layer} can only be 0 or 1.", expected="0 or 1", received=align_mode)
    if out_shape is None and scale is None:
        raise OpValueError(
            "One of out_shape and scale must not be None.", expected="out_shape=[height, width] or scale",
            received="neither", hint=f"{layer} has to know how large the images become.",
        )  # fmt: skip
    if out_shape is not None and not isinstance(out_shape, Variable):
        attrs["out_h"], attrs["out_w"] = _pair(layer, out_shape)
    elif out_shape is None and scale is not None:
        if isinstance(scale, bool) or scale <= 0:
            raise OpValueError(
                f"scale of {layer} must be a positive number.", expected="a number > 0", received=repr(scale)
            )
        attrs["scale"] = float(scale)
    inputs = {"X": input, "OutSize": as_input(out_shape) if actual_shape is None else actual_shape}
    return one_op(f"{method}_interp", inputs, attrs, name=name)


def _pair(layer: str, out_shape: Sequence[int]) -> tuple[int, int]:
    """Height and width."""
    if len(out_shape) != 2 or min(out_shape) < 1:
        raise OpValueError(
            f"out_shape of {layer} must be a height and a width.", expected="two positive integers",
            received=repr(out_shape),
        )  # fmt: skip
    return out_shape[0], out_shape[1]


@naming.layer
@takes(input="float[n, c, h, w]")
def pad2d(
    input: Variable, paddings: Sequence[int] | Variable = (0, 0, 0, 0), mode: str = "constant", pad_value: float = 0.0,
    data_format: str = "NCHW", name: str | None = None,
) -> Variable:  # fmt: skip
    """Images with a border.

    Args:
        input: [N, C, H, W], or [N, H, W, C] with ``data_format="NHWC"``.
        paddings: how much: top, bottom, left, right; or an int32 variable [4] of these.
        mode: ``constant`` fills it with a value, ``reflect`` with the image mirrored at its outermost
            pixels, ``edge`` with its outermost pixels.
        pad_value: the value of a constant border.
        data_format: ``NCHW`` or ``NHWC``.

    Returns:
        The larger images.

    Example:
        >>> image = fluid.layers.data("image", [3, 32, 32])
        >>> fluid.layers.pad2d(image, paddings=[1, 2, 0, 3], mode="reflect").shape
        (-1, 3, 35, 35)
    """
    inputs = {"X": input, "Paddings": as_input(paddings)}
    attrs = {"mode": mode, "pad_value": float(pad_value), "data_format": data_format, "paddings": as_attr(paddings)}
    return one_op("pad2d", inputs, attrs, name=name)
