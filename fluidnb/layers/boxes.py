"""Layers of arithmetic with boxes: overlaps, codes relative to priors, clipping to the image."""

from __future__ import annotations

from collections.abc import Sequence

from fluidnb.layers.number_lists import numbers
from fluidnb.layers.one_op import one_op
from fluidnb.program import Variable
from fluidnb.program import layer_calls as naming

__all__ = ["box_clip", "box_coder", "iou_similarity", "polygon_box_transform"]


@naming.layer
def iou_similarity(x: Variable, y: Variable, name: str | None = None) -> Variable:
    """Intersection over union of every pair of boxes.

    Args:
        x: float [n, 4]: left, top, right, bottom; sequences are propagated.
        y: float [m, 4].
        name: name of the result.

    Returns:
        float [n, m].

    Raises:
        OpTypeError: an argument is not a Variable.
        RuleError: an argument has another shape.

    Example:
        >>> x, y = fluid.layers.data("x", [4], lod_level=1), fluid.layers.data("y", [4])
        >>> iou = fluid.layers.iou_similarity(x, y)
        >>> boxes = {"x": [[0.0, 0.0, 2.0, 1.0]], "y": [[1.0, 0.0, 2.0, 1.0], [2.0, 0.0, 3.0, 1.0]]}
        >>> boxes = {name: np.array(value, "float32") for name, value in boxes.items()}
        >>> fluid.Executor(fluid.CPUPlace()).run(feed=boxes, fetch_list=[iou])[0]
        array([[0.5, 0. ]], dtype=float32)

    Source: Fluid's layers.iou_similarity.
    """
    return one_op("iou_similarity", {"X": x, "Y": y}, out_name=name)


@naming.layer
def box_coder(
    prior_box: Variable,
    prior_box_var: Variable | Sequence[float] | None,
    target_box: Variable,
    code_type: str = "encode_center_size",
    box_normalized: bool = True,
    name: str | None = None,
    axis: int = 0,
) -> Variable:
    """Encodes boxes relative to priors, or decodes such codes to boxes.

    With center (x, y), size (w, h) and variances v, the code of target t relative to prior p is
    ``((t.x - p.x) / p.w / v0, (t.y - p.y) / p.h / v1, log(t.w / p.w) / v2, log(t.h / p.h) / v3)``.

    Args:
        prior_box: float [m, 4]: left, top, right, bottom.
        prior_box_var: variances, a variable [m, 4] or four numbers for all priors; None for none.
        target_box: boxes [n, 4] to encode; or codes [n, m, 4] to decode, [m, n, 4] with ``axis=1``.
        code_type: ``"encode_center_size"`` or ``"decode_center_size"``.
        box_normalized: whether coordinates are parts of the image; False for pixels, whose boxes include the last one.
        name: name of the result.
        axis: to decode, the axis of ``target_box`` that has no priors: 0 or 1.

    Returns:
        Codes [n, m, 4], or boxes of the shape of ``target_box``.

    Raises:
        OpTypeError: an argument is not a Variable, or the variances are neither a Variable nor numbers.
        OpValueError: an unknown code type or axis.
        RuleError: the shapes do not fit together.

    Example:
        >>> prior, target = fluid.layers.data("prior", [4]), fluid.layers.data("target", [4])
        >>> code = fluid.layers.box_coder(prior, [0.1, 0.1, 0.2, 0.2], target)
        >>> boxes = {"prior": np.float32([[0, 0, 1, 1]]), "target": np.float32([[0.5, 0, 1.5, 1]])}
        >>> fluid.Executor(fluid.CPUPlace()).run(feed=boxes, fetch_list=[code])[0].round(4)
        array([[[5., 0., 0., 0.]]], dtype=float32)

    Source: Fluid's layers.box_coder.
    """
    inputs: dict[str, Variable | list[Variable]] = {"PriorBox": prior_box, "TargetBox": target_box}
    attrs: dict[str, object] = {"code_type": code_type, "box_normalized": box_normalized, "axis": axis}
    if isinstance(prior_box_var, Variable):
        inputs["PriorBoxVar"] = prior_box_var
    elif prior_box_var is not None:
        attrs["variance"] = numbers(prior_box_var, "prior_box_var", "box_coder", count=4)
    return one_op("box_coder", inputs, attrs, slot="OutputBox", out_name=name)


@naming.layer
def box_clip(input: Variable, im_info: Variable, name: str | None = None) -> Variable:
    """Boxes limited to their image.

    Args:
        input: float [boxes, …, 4]: left, top, right, bottom in pixels; a sequence for each image.
        im_info: float [images, 3]: height and width as the network sees the image, and its scale.
        name: name of the layer.

    Returns:
        The shape of ``input``; coordinates from 0 to ``round(size / scale) - 1``.

    Raises:
        OpTypeError: an argument is not a Variable.
        RuleError: an argument has another shape; while running, also sequences that do not fit.

    Example:
        >>> boxes, info = fluid.layers.data("boxes", [4], lod_level=1), fluid.layers.data("info", [3])
        >>> clipped = fluid.layers.box_clip(boxes, info)
        >>> feed = {"boxes": fluid.create_lod_tensor(np.float32([[-1, 0, 9, 3]]), [[1]])}
        >>> feed["info"] = np.float32([[8, 8, 1]])
        >>> out = fluid.Executor(fluid.CPUPlace()).run(feed=feed, fetch_list=[clipped], return_numpy=False)
        >>> np.array(out[0])
        array([[0., 0., 7., 3.]], dtype=float32)

    Source: Fluid's layers.box_clip.
    """
    return one_op("box_clip", {"Input": input, "ImInfo": im_info}, slot="Output", name=name)


@naming.layer
def polygon_box_transform(input: Variable, name: str | None = None) -> Variable:
    """Corners of quadrilaterals from the offsets that a text detector (EAST) gives at each place of a map.

    Args:
        input: float [batch, 2 · corners, height, width]: offsets in x and y of each corner, in turn.
        name: name of the result.

    Returns:
        The shape of ``input``: ``4 · column - offset`` in channels of x, ``4 · row - offset`` in channels of y.

    Raises:
        OpTypeError: the input is not a Variable.
        RuleError: the input has other than four dimensions, or an odd number of channels.

    Example:
        >>> corners = fluid.layers.polygon_box_transform(fluid.layers.data("offsets", [2, 1, 2]))
        >>> feed = {"offsets": np.ones((1, 2, 1, 2), "float32")}
        >>> fluid.Executor(fluid.CPUPlace()).run(feed=feed, fetch_list=[corners])[0].ravel()
        array([-1.,  3., -1., -1.], dtype=float32)

    Source: Fluid's layers.polygon_box_transform.
    """
    return one_op("polygon_box_transform", {"Input": input}, slot="Output", out_name=name)
