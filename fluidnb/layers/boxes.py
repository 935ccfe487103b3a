"""Layers on boxes: overlaps, codes relative to priors, limits, non-maximum suppression."""

from collections.abc import Sequence
from numbers import Real
from typing import Any

from fluidnb.errors import OpTypeError, OpValueError, typed
from fluidnb.layers.one_op import as_attr, as_input, one_op, several
from fluidnb.program import Variable
from fluidnb.program import layer_calls as naming

__all__ = [
    "box_clip", "box_coder", "box_decoder_and_assign", "iou_similarity", "multiclass_nms", "polygon_box_transform",
]  # fmt: skip


def numbers(value: Any, argument: str, layer: str, *, count: int | None = None, one: bool = False) -> list[float]:
    """Gives an argument as a list of floats; there must be ``count``, unless that is None."""
    values = [value] if one and isinstance(value, Real) else value
    expected = f"{'a number, or ' * one}a list of {'' if count is None else f'{count} '}numbers"
    if not isinstance(values, Sequence) or not all(isinstance(v, Real) for v in values):
        raise OpTypeError(f"{argument} of {layer} must be numbers.", expected=expected, received=typed(value))
    if count is not None and len(values) != count:
        raise OpValueError(f"{argument} of {layer} must be {count} numbers.", expected=expected, received=repr(value))
    return [float(v) for v in values]


@naming.layer
def iou_similarity(x: Variable, y: Variable, name: str | None = None) -> Variable:
    """Intersection over union of every pair of boxes.

    Args:
        x: float [n, 4]: left, top, right, bottom; sequences are propagated.
        y: float [m, 4].
        name: name of the result.

    Returns:
        float [n, m].

    Example:
        >>> x, y = fluid.layers.data("x", [4], lod_level=1), fluid.layers.data("y", [4])
        >>> iou = fluid.layers.iou_similarity(x, y)
        >>> boxes = {"x": [[0.0, 0.0, 2.0, 1.0]], "y": [[1.0, 0.0, 2.0, 1.0], [2.0, 0.0, 3.0, 1.0]]}
        >>> boxes = {name: np.array(value, "float32") for name, value in boxes.items()}
        >>> fluid.Executor(fluid.CPUPlace()).run(feed=boxes, fetch_list=[iou])[0]
        array([[0.5, 0. ]], dtype=float32)
    """
    return one_op("iou_similarity", {"X": x, "Y": y}, out_name=name)


@naming.layer
def box_coder(
    prior_box: Variable, prior_box_var: Variable | Sequence[float] | None, target_box: Variable,
    code_type: str = "encode_center_size", box_normalized: bool = True, name: str | None = None, axis: int = 0,
) -> Variable:  # fmt: skip
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

    Example:
        >>> prior, target = fluid.layers.data("prior", [4]), fluid.layers.data("target", [4])
        >>> code = fluid.layers.box_coder(prior, [0.1, 0.1, 0.2, 0.2], target)
        >>> boxes = {"prior": np.float32([[0, 0, 1, 1]]), "target": np.float32([[0.5, 0, 1.5, 1]])}
        >>> fluid.Executor(fluid.CPUPlace()).run(feed=boxes, fetch_list=[code])[0].round(4)
        array([[[5., 0., 0., 0.]]], dtype=float32)
    """
    inputs = {"PriorBox": prior_box, "TargetBox": target_box, "PriorBoxVar": as_input(prior_box_var)}
    attrs: dict[str, object] = {"code_type": code_type, "box_normalized": box_normalized, "axis": axis}
    if as_attr(prior_box_var) is not None:
        attrs["variance"] = numbers(prior_box_var, "prior_box_var", "box_coder", count=4)
    return one_op("box_coder", inputs, attrs, slot="OutputBox", out_name=name)


@naming.layer
def box_clip(input: Variable, im_info: Variable, name: str | None = None) -> Variable:
    """Boxes limited to their image.

    Args:
        input: float [boxes, …, 4]: left, top, right, bottom in pixels; a sequence for each image.
        im_info: float [images, 3]: height and width as the network sees the image, and its scale.

    Returns:
        The shape of ``input``; coordinates from 0 to ``round(size / scale) - 1``.

    Example:
        >>> boxes, info = fluid.layers.data("boxes", [4], lod_level=1), fluid.layers.data("info", [3])
        >>> clipped = fluid.layers.box_clip(boxes, info)
        >>> feed = {"boxes": fluid.create_lod_tensor(np.float32([[-1, 0, 9, 3]]), [[1]])}
        >>> feed["info"] = np.float32([[8, 8, 1]])
        >>> out = fluid.Executor(fluid.CPUPlace()).run(feed=feed, fetch_list=[clipped], return_numpy=False)
        >>> np.array(out[0])
        array([[0., 0., 7., 3.]], dtype=float32)
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

    Example:
        >>> corners = fluid.layers.polygon_box_transform(fluid.layers.data("offsets", [2, 1, 2]))
        >>> feed = {"offsets": np.ones((1, 2, 1, 2), "float32")}
        >>> fluid.Executor(fluid.CPUPlace()).run(feed=feed, fetch_list=[corners])[0].ravel()
        array([-1.,  3., -1., -1.], dtype=float32)
    """
    return one_op("polygon_box_transform", {"Input": input}, slot="Output", out_name=name)


@naming.layer
def box_decoder_and_assign(
    prior_box: Variable, prior_box_var: Variable, target_box: Variable, box_score: Variable, box_clip: float,
    name: str | None = None,
) -> tuple[Variable, Variable]:  # fmt: skip
    """Boxes of all classes from their deltas, and for each prior the box of its likeliest class.

    Args:
        prior_box: [n, 4]: left, top, right, bottom.
        prior_box_var: [4]: factors of the deltas.
        target_box: [n, 4 · classes]: deltas for each class.
        box_score: [n, classes]: how likely each class is; class 0 is that of no object.
        box_clip: the largest logarithm by which a box may grow, ``log(1000 / 16)`` as a rule.

    Returns:
        [n, 4 · classes] and [n, 4]. No gradient passes.

    Example:
        >>> shapes = {"prior": [4], "deltas": [12], "scores": [3]}
        >>> prior, deltas, scores = (fluid.layers.data(n, s) for n, s in shapes.items())
        >>> spread = fluid.layers.data("spread", [4], append_batch_size=False)
        >>> [v.shape for v in fluid.layers.box_decoder_and_assign(prior, spread, deltas, scores, 4.135)]
        [(-1, 12), (-1, 4)]

    Source: Dai et al., "R-FCN" (2016).
    """
    inputs = {"PriorBox": prior_box, "PriorBoxVar": prior_box_var, "TargetBox": target_box, "BoxScore": box_score}
    outputs = {"DecodeBox": prior_box.dtype, "OutputAssignBox": prior_box.dtype}
    boxes, best = several("box_decoder_and_assign", inputs, outputs, {"box_clip": box_clip}, name=name)
    return boxes, best


@naming.layer
def multiclass_nms(
    bboxes: Variable, scores: Variable, score_threshold: float, nms_top_k: int, keep_top_k: int,
    nms_threshold: float = 0.3, normalized: bool = True, nms_eta: float = 1.0, background_label: int = 0,
    name: str | None = None,
) -> Variable:  # fmt: skip
    """Non-maximum suppression, class by class: of boxes that overlap, the one with the highest score.

    Args:
        bboxes: float [images, n, 4]: left, top, right, bottom; [images, n, 8, 16, 24 or 32]: x and y of each corner of
            a polygon; or [n, classes, 4], a sequence for each image.
        scores: float [images, classes, n]; or [n, classes], a sequence for each image.
        score_threshold: what a score must exceed.
        normalized: whether coordinates are parts of the image; False for pixels, whose boxes include the last one.
        background_label: a class that is left out; -1 for none.

    Returns:
        Float [boxes, 6]: class, score, left, top, right, bottom (or the corners); a sequence for each image. Where no
        image has a box, [[-1]].

    Example:
        >>> boxes, scores = fluid.layers.data("boxes", [3, 4]), fluid.layers.data("scores", [2, 3])
        >>> found = fluid.layers.multiclass_nms(boxes, scores, score_threshold=0.1, nms_top_k=-1, keep_top_k=-1)
        >>> feed = {"boxes": np.float32([[[0, 0, 1, 1], [0, 0, 1, 0.9], [2, 2, 3, 3]]])}
        >>> feed["scores"] = np.float32([[[0, 0, 0], [0.5, 0.9, 0.7]]])
        >>> np.array(fluid.Executor(fluid.CPUPlace()).run(feed=feed, fetch_list=[found], return_numpy=False)[0])
        array([[1. , 0.9, 0. , 0. , 1. , 0.9],
               [1. , 0.7, 2. , 2. , 3. , 3. ]], dtype=float32)
    """
    attrs = {
        "background_label": background_label, "score_threshold": score_threshold, "nms_top_k": nms_top_k,
        "nms_threshold": nms_threshold, "nms_eta": nms_eta, "keep_top_k": keep_top_k, "normalized": normalized,
    }  # fmt: skip
    return one_op("multiclass_nms", {"BBoxes": bboxes, "Scores": scores}, attrs, name=name, stop_gradient=True)
