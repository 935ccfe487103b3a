"""Pixels of regions of interest (RoI): pooled, aligned, straightened."""

from fluidnb.layers.one_op import one_op, several
from fluidnb.program import Variable
from fluidnb.program import layer_calls as naming

__all__ = ["psroi_pool", "roi_align", "roi_perspective_transform", "roi_pool"]


@naming.layer
def roi_pool(
    input: Variable, rois: Variable, pooled_height: int = 1, pooled_width: int = 1, spatial_scale: float = 1.0
) -> Variable:
    """The largest pixel of each part of each region.

    Args:
        input: images [batch, channels, height, width].

    Returns:
        [regions, channels, pooled_height, pooled_width].

    Example:
        >>> x, rois = fluid.layers.data("x", [8, 32, 32]), fluid.layers.data("rois", [4], lod_level=1)
        >>> fluid.layers.roi_pool(x, rois, 7, 7, 0.25).shape
        (-1, 8, 7, 7)

    Source: Girshick, "Fast R-CNN" (2015).
    """
    attrs = {"pooled_height": pooled_height, "pooled_width": pooled_width, "spatial_scale": spatial_scale}
    out, _ = several(
        "roi_pool", {"X": input, "ROIs": rois}, {"Out": input.dtype, "Argmax": "int64"}, attrs, constant=("Argmax",)
    )
    return out


@naming.layer
def roi_align(
    input: Variable, rois: Variable, pooled_height: int = 1, pooled_width: int = 1, spatial_scale: float = 1.0,
    sampling_ratio: int = -1, name: str | None = None,
) -> Variable:  # fmt: skip
    """The mean of each part of each region, read at evenly spaced points between pixels.

    Args:
        input: images [batch, channels, height, width].
        sampling_ratio: points of a part along each axis; 0 or less for one for each pixel.

    Returns:
        [regions, channels, pooled_height, pooled_width].

    Example:
        >>> x, rois = fluid.layers.data("x", [8, 32, 32]), fluid.layers.data("rois", [4], lod_level=1)
        >>> fluid.layers.roi_align(x, rois, 7, 7, 0.25, sampling_ratio=2).shape
        (-1, 8, 7, 7)

    Source: He et al., "Mask R-CNN" (2017).
    """
    attrs = {
        "pooled_height": pooled_height, "pooled_width": pooled_width, "spatial_scale": spatial_scale,
        "sampling_ratio": sampling_ratio,
    }  # fmt: skip
    return one_op("roi_align", {"X": input, "ROIs": rois}, attrs, name=name)


@naming.layer
def psroi_pool(
    input: Variable, rois: Variable, output_channels: int, spatial_scale: float, pooled_height: int, pooled_width: int,
    name: str | None = None,
) -> Variable:  # fmt: skip
    """The mean of each part of each region, in a channel that belongs to the part.

    Args:
        input: images [batch, output_channels · pooled_height · pooled_width, height, width].
        output_channels: channels of the result.

    Returns:
        [regions, output_channels, pooled_height, pooled_width].

    Example:
        >>> x, rois = fluid.layers.data("x", [18, 32, 32]), fluid.layers.data("rois", [4], lod_level=1)
        >>> fluid.layers.psroi_pool(x, rois, 2, 0.25, 3, 3).shape
        (-1, 2, 3, 3)

    Source: Dai et al., "R-FCN" (2016).
    """
    attrs = {
        "output_channels": output_channels, "spatial_scale": spatial_scale, "pooled_height": pooled_height,
        "pooled_width": pooled_width,
    }  # fmt: skip
    return one_op("psroi_pool", {"X": input, "ROIs": rois}, attrs, name=name)


@naming.layer
def roi_perspective_transform(
    input: Variable, rois: Variable, transformed_height: int, transformed_width: int, spatial_scale: float = 1.0
) -> Variable:
    """Quadrilaterals of images as upright rectangles, read between pixels.

    Args:
        input: images [batch, channels, height, width].
        rois: quadrilaterals [regions, 8]: x and y of the corners, from the top left one clockwise; a sequence for each
            image.
        transformed_height: rows of the result.
        transformed_width: columns of the result; a narrower region leaves those on the right at 0.

    Returns:
        [regions, channels, transformed_height, transformed_width].

    Example:
        >>> x, rois = fluid.layers.data("x", [8, 32, 32]), fluid.layers.data("rois", [8], lod_level=1)
        >>> fluid.layers.roi_perspective_transform(x, rois, 8, 20, 0.25).shape
        (-1, 8, 8, 20)

    Source: Liu et al., "FOTS" (2018).
    """
    attrs = {
        "transformed_height": transformed_height, "transformed_width": transformed_width, "spatial_scale": spatial_scale
    }
    return one_op("roi_perspective_transform", {"X": input, "ROIs": rois}, attrs)
