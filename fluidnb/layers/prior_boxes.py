"""Prior boxes and anchors at every position of a feature map."""

from collections.abc import Sequence
from typing import Any

from fluidnb.errors import OpTypeError
from fluidnb.layers.boxes import numbers
from fluidnb.layers.one_op import several
from fluidnb.program import Variable
from fluidnb.program import layer_calls as naming

__all__ = ["anchor_generator", "density_prior_box", "prior_box"]


def _pair(
    op_type: str, inputs: dict[str, Variable | list[Variable]], slot: str, attrs: dict[str, Any], name: str | None
) -> tuple[Variable, Variable]:
    """Append a generator of boxes; gradients end at both outputs."""
    dtype = getattr(inputs["Input"], "dtype", None)
    boxes, variances = several(
        op_type, inputs, {slot: dtype, "Variances": dtype}, attrs, name=name, constant=(slot, "Variances")
    )
    return boxes, variances


@naming.layer
def prior_box(
    input: Variable, image: Variable, min_sizes: float | Sequence[float],
    max_sizes: float | Sequence[float] | None = None, aspect_ratios: float | Sequence[float] = (1.0,),
    variance: Sequence[float] = (0.1, 0.1, 0.2, 0.2), flip: bool = False, clip: bool = False,
    steps: Sequence[float] = (0.0, 0.0), offset: float = 0.5, name: str | None = None,
    min_max_aspect_ratios_order: bool = False,
) -> tuple[Variable, Variable]:  # fmt: skip
    """Prior boxes of some sizes and aspect ratios at every place of a feature map, for SSD.

    Args:
        input: feature map [batch, channels, h, w].
        min_sizes: sides of squares, in pixels; each also has the aspect ratios.
        max_sizes: for each of them a larger one, whose geometric mean with it is the side of one more square; or None.
        aspect_ratios: width over height; 1 is always there.
        flip: whether the inverse of each ratio counts, too.
        clip: whether boxes end at the edges of the image.
        offset: where in its place a box has its center, from 0 to 1.
        min_max_aspect_ratios_order: whether the squares come first: min, max, then the other ratios (Caffe's order).

    Returns:
        Boxes float [h, w, priors, 4]: left, top, right, bottom as parts of the image; their variances, of that shape.

    Example:
        >>> conv, image = fluid.layers.data("conv", [8, 3, 3]), fluid.layers.data("image", [3, 30, 30])
        >>> boxes, variances = fluid.layers.prior_box(conv, image, [10.0], [20.0], [2.0], flip=True)
        >>> boxes.shape
        (3, 3, 4, 4)

    Source: Liu et al., "SSD: Single Shot MultiBox Detector" (2016).
    """
    step_w, step_h = numbers(steps, "steps", "prior_box", count=2)
    attrs: dict[str, Any] = {
        "min_sizes": numbers(min_sizes, "min_sizes", "prior_box", one=True),
        "aspect_ratios": numbers(aspect_ratios, "aspect_ratios", "prior_box", one=True),
        "variances": numbers(variance, "variance", "prior_box", count=4), "flip": flip, "clip": clip,
        "step_w": step_w, "step_h": step_h, "offset": offset,
        "min_max_aspect_ratios_order": min_max_aspect_ratios_order,
    }  # fmt: skip
    large = [] if max_sizes is None else numbers(max_sizes, "max_sizes", "prior_box", one=True)
    if large and large[0] > 0:
        attrs["max_sizes"] = large
    return _pair("prior_box", {"Input": input, "Image": image}, "Boxes", attrs, name)


@naming.layer
def density_prior_box(
    input: Variable, image: Variable, densities: Sequence[int] | None = None,
    fixed_sizes: Sequence[float] | None = None, fixed_ratios: Sequence[float] | None = None,
    variance: Sequence[float] = (0.1, 0.1, 0.2, 0.2), clip: bool = False, steps: Sequence[float] = (0.0, 0.0),
    offset: float = 0.5, flatten_to_2d: bool = False, name: str | None = None,
) -> tuple[Variable, Variable]:  # fmt: skip
    """Prior boxes of some sizes and aspect ratios at several points of every place of a feature map, for FaceBoxes.

    Args:
        input: feature map [batch, channels, h, w].
        densities: for each size the number of points along each side of a place.
        fixed_sizes: sides of squares, in pixels.
        fixed_ratios: width over height.
        clip: ignored (compatibility): boxes always end at the edges of the image, as in Fluid.
        offset: where in its place the points have their center, from 0 to 1.
        flatten_to_2d: whether the results are [h · w · priors, 4].

    Returns:
        Boxes float [h, w, priors, 4]: left, top, right, bottom as parts of the image; their variances, of that shape.

    Example:
        >>> conv, image = fluid.layers.data("conv", [8, 3, 3]), fluid.layers.data("image", [3, 30, 30])
        >>> boxes, variances = fluid.layers.density_prior_box(conv, image, [2, 1], [4.0, 8.0], [1.0])
        >>> boxes.shape
        (3, 3, 5, 4)

    Source: Zhang et al., "FaceBoxes" (2017).
    """
    layer = "density_prior_box"
    step_w, step_h = numbers(steps, "steps", layer, count=2)
    many = numbers(densities, "densities", layer)
    if any(n != int(n) for n in many):
        raise OpTypeError(
            "densities of density_prior_box must be whole numbers.", expected="a list of ints", received=densities
        )
    attrs = {
        "densities": [int(n) for n in many], "fixed_sizes": numbers(fixed_sizes, "fixed_sizes", layer),
        "fixed_ratios": numbers(fixed_ratios, "fixed_ratios", layer),
        "variances": numbers(variance, "variance", layer, count=4), "clip": clip, "step_w": step_w, "step_h": step_h,
        "offset": offset, "flatten_to_2d": flatten_to_2d,
    }  # fmt: skip
    return _pair(layer, {"Input": input, "Image": image}, "Boxes", attrs, name)


@naming.layer
def anchor_generator(
    input: Variable, anchor_sizes: float | Sequence[float] | None = None,
    aspect_ratios: float | Sequence[float] | None = None, variance: Sequence[float] = (0.1, 0.1, 0.2, 0.2),
    stride: Sequence[float] | None = None, offset: float = 0.5, name: str | None = None,
) -> tuple[Variable, Variable]:  # fmt: skip
    """Anchors of some sizes and aspect ratios at every place of a feature map, for Faster R-CNN.

    Args:
        input: feature map [batch, channels, h, w].
        anchor_sizes: sides of squares of the same area, in pixels of the image.
        aspect_ratios: height over width.
        stride: pixels from one place to the next, across and down.
        offset: where in its place an anchor has its center, from 0 to 1.

    Returns:
        Anchors float [h, w, anchors, 4]: left, top, right, bottom in pixels; their variances, of that shape.

    Example:
        >>> conv = fluid.layers.data("conv", [8, 3, 3])
        >>> anchors, _ = fluid.layers.anchor_generator(conv, [32.0, 64.0], [0.5, 1.0, 2.0], stride=[16.0, 16.0])
        >>> anchors.shape
        (3, 3, 6, 4)

    Source: Ren et al., "Faster R-CNN" (2015).
    """
    layer = "anchor_generator"
    attrs = {
        "anchor_sizes": numbers(anchor_sizes, "anchor_sizes", layer, one=True),
        "aspect_ratios": numbers(aspect_ratios, "aspect_ratios", layer, one=True),
        "variances": numbers(variance, "variance", layer, count=4), "stride": numbers(stride, "stride", layer, count=2),
        "offset": offset,
    }  # fmt: skip
    return _pair(layer, {"Input": input}, "Anchors", attrs, name)
