"""Layers of Fluid that fluidnb does not have: a call says why, and what to use instead."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from fluidnb.errors import NotBuiltYet

#: (why, what to use instead) -> the layers of which it is true
_GROUPS = {
    (
        "it belongs to the networks that find boxes in images, whose layers are not built",
        "LayerHelper.append_op appends what there is as an operator: op.has_op(\"roi_align\") and so on.",
    ): """anchor_generator bipartite_match box_clip box_coder box_decoder_and_assign collect_fpn_proposals
        deformable_conv deformable_roi_pooling density_prior_box detection_output distribute_fpn_proposals
        generate_proposal_labels generate_proposals iou_similarity multi_box_head multiclass_nms
        polygon_box_transform prior_box psroi_pool retinanet_detection_output retinanet_target_assign roi_align
        roi_perspective_transform roi_pool rpn_target_assign sigmoid_focal_loss ssd_loss target_assign yolo_box
        yolov3_loss""",
    (
        "reading files inside a program needs the reader operators, which are not built",
        "feed each batch: paddle.batch, fluid.reader and fluid.DataFeeder make it.",
    ): """Preprocessor batch create_py_reader_by_data double_buffer open_files py_reader random_data_generator read_file
        shuffle""",
    (
        "it wraps a fused kernel of the GPU library cuDNN",
        "layers.DynamicRNN with lstm_unit, or dynamic_lstm, computes the same.",
    ): "lstm",
    (
        "it serves one kind of model, and is not built",
        "put it together of other layers, or define an operator with fluidnb.op.",
    ): "continuous_value_model data_norm hash npair_loss similarity_focus spectral_norm tree_conv",
}  # fmt: skip

#: layer -> (why, what to use instead)
ABSENT = {name: facts for facts, names in _GROUPS.items() for name in names.split()}


def absent(name: str) -> Callable[..., NoReturn]:
    """What stands in the place of a layer that there is not.

    Args:
        name: one of `ABSENT`.

    Returns:
        A function that raises, whatever it is given; looking at the name does not.

    Example:
        >>> fluid.layers.tree_conv(None, None, 6)
        Traceback (most recent call last):
        fluidnb.errors.NotBuiltYet: fluid.layers.tree_conv is not part of fluidnb yet: it serves one kind of model, ...
          ...
    """
    return refusal(f"fluid.layers.{name}", *ABSENT[name])


def refusal(path: str, why: str, instead: str) -> Callable[..., NoReturn]:
    """What stands in the place of something of Fluid's that there is not.

    Args:
        path: its name from ``fluid`` on.
        why: why there is none.
        instead: what to use.

    Returns:
        A function that raises, whatever it is given; so does a class statement with it as base.

    Example:
        >>> refusal("fluid.nets.magic", "it does not exist", "fluid.layers.fc does.")(3)
        Traceback (most recent call last):
        fluidnb.errors.NotBuiltYet: fluid.nets.magic is not part of fluidnb yet: it does not exist.
          hint:     fluid.layers.fc does.
    """

    def refuse(*args: Any, **kwargs: Any) -> NoReturn:
        raise NotBuiltYet(f"{path} is not part of fluidnb yet: {why}.", hint=instead)

    refuse.__name__ = refuse.__qualname__ = path.rpartition(".")[2]
    refuse.__doc__ = f"Not part of fluidnb yet: {why}."
    vars(refuse)["__mro_entries__"] = refuse
    return refuse
