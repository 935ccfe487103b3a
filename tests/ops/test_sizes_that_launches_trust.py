"""Sizes that CUDA launches trust: an operator refuses an input that is smaller than what its launches go through."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from fluidnb.errors import EnforceNotMet
from fluidnb.op import RuleError
from fluidnb.testing import run_op

P, ONE = np.ones((2, 3), "float32"), np.ones(1, "float32")
STEP = {"Param": P, "Grad": P, "LearningRate": ONE}
ADAM = {**STEP, "Moment1": P, "Moment2": P, "Beta1Pow": ONE, "Beta2Pow": ONE}
COUNTS = {f"in_{name}": np.zeros(1, "int64") for name in ("num_accumulates", "old_num_accumulates", "num_updates")}
MEANS = {"param": P, "in_sum_1": P, "in_sum_2": P, "in_sum_3": P, **COUNTS}
LABEL = np.zeros((2, 1), "int64")
NCE = {"Input": P, "Weight": np.ones((4, 3), "float32"), "Label": LABEL, "Bias": np.ones((4, 1), "float32")}
TREE = {"X": P, "W": np.ones((3, 3), "float32"), "Label": LABEL}
CHANNELS = {slot: np.ones(3, "float32") for slot in ("Scale", "Bias", "Mean", "Variance")}
RANKED = {"Score": P[:, :1], "Label": P[:, :1], "QueryID": LABEL}
CASES: list[tuple[str, dict[str, Any], dict[str, Any], str, Any]] = [
    ("adam", ADAM, {}, "Beta1Pow", P),
    ("adam", ADAM, {}, "Beta2Pow", P),
    ("adamw", ADAM, {}, "Beta2Pow", P),
    ("lamb", ADAM, {"weight_decay": 0.1}, "Beta1Pow", P),
    ("adamax", {**STEP, "Moment": P, "InfNorm": P, "Beta1Pow": ONE}, {}, "Beta1Pow", P),
    ("rmsprop", {**STEP, "MeanSquare": P, "Moment": P, "MeanGrad": P}, {}, "MeanGrad", ONE),
    ("average_accumulates", MEANS, {"max_average_window": 10}, "in_sum_2", ONE),
    ("average_accumulates", MEANS, {"max_average_window": 10}, "in_num_updates", np.zeros(2, "int64")),
    ("nce", NCE, {"num_total_classes": 4, "sampler": 2}, "CustomDistProbs", np.ones(3, "float32")),
    ("nce", NCE, {"num_total_classes": 4}, "SampleWeight", np.ones((1, 1), "float32")),
    ("hierarchical_sigmoid", TREE, {"num_classes": 4}, "Bias", np.ones((2, 1), "float32")),
    ("batch_norm", {"X": P, **CHANNELS}, {}, "MomentumTensor", P),
    ("pow", {"X": P}, {}, "FactorTensor", ONE[:0]),
    ("pow", {"X": P}, {}, "FactorTensor", P),
    ("scale", {"X": P}, {}, "ScaleTensor", ONE[:0]),
    ("clip", {"X": P}, {"min": 0.0, "max": 1.0}, "Min", ONE[:0]),
    ("clip", {"X": P}, {"min": 0.0, "max": 1.0}, "Max", P),
    ("adam", ADAM, {}, "Beta1Tensor", ONE[:0]),
    ("adam", ADAM, {}, "SkipUpdate", np.zeros(0, "bool")),
    ("fill_constant", {}, {"shape": [2]}, "ValueTensor", ONE[:0]),
    ("allclose", {"Input": P, "Other": P}, {}, "Rtol", ONE[:0]),
    ("positive_negative_pair", RANKED, {}, "AccumulateNeutralPair", P),
]


@pytest.mark.parametrize(("op", "inputs", "attrs", "slot", "value"), CASES, ids=[f"{c[0]}.{c[3]}" for c in CASES])
def test_another_size_is_refused(op: str, inputs: dict[str, Any], attrs: dict[str, Any], slot: str, value: Any) -> None:
    if slot in inputs:
        run_op(op, inputs, attrs)
    with pytest.raises(RuleError, match=slot):
        run_op(op, {**inputs, slot: value}, attrs)


IMAGE, LARGER, COLUMN = np.ones((1, 1, 2, 2)), np.ones((1, 1, 4, 4)), P[:, :1]
RESIZED = {"out_h": 4, "out_w": 4, "interp_method": "nearest"}
VECTORS, CROPPED = np.ones((1, 3, 4)), {"shape": [1, 1, 2, 2], "offsets": [0] * 4}
GRADIENTS: list[tuple[str, dict[str, Any], dict[str, Any], str, Any]] = [
    ("softmax_with_cross_entropy", {"Softmax": P, "Label": LABEL, "Loss@GRAD": COLUMN}, {}, "Loss@GRAD", COLUMN[:1]),
    ("softmax_with_cross_entropy", {"Softmax": P, "Label": LABEL, "Loss@GRAD": COLUMN}, {}, "Label", LABEL[:1]),
    ("softmax_with_cross_entropy", {"Softmax": P, "Label": P, "Loss@GRAD": COLUMN}, {"soft_label": True}, "Label", ONE),
    ("smooth_l1_loss", {"Diff": P, "Out@GRAD": COLUMN}, {}, "Out@GRAD", COLUMN[:1]),
    ("smooth_l1_loss", {"Diff": P, "Out@GRAD": COLUMN}, {}, "InsideWeight", COLUMN),
    ("cross", {"X": VECTORS, "Y": VECTORS, "Out@GRAD": VECTORS}, {}, "Out@GRAD", VECTORS.transpose(0, 2, 1).copy()),
    ("pad2d", {"X": IMAGE, "Out@GRAD": LARGER}, {"paddings": [1, 1, 1, 1]}, "Out@GRAD", LARGER[..., :0]),
    ("pad2d", {"X": IMAGE, "Out@GRAD": LARGER}, {"paddings": [1, 1, 1, 1]}, "Out@GRAD", LARGER[:, :, :3]),
    ("nearest_interp_v2", {"X": IMAGE, "Out@GRAD": LARGER}, RESIZED, "Out@GRAD", np.ones((1, 1, 4, 15))),
    ("crop", {"X": LARGER, "Out@GRAD": IMAGE}, CROPPED, "Out@GRAD", LARGER[:, :, :1]),
]


@pytest.mark.parametrize(
    ("op", "inputs", "attrs", "slot", "value"), GRADIENTS, ids=[f"{k}.{c[0]}.{c[3]}" for k, c in enumerate(GRADIENTS)]
)
def test_a_gradient_of_another_size_is_refused(
    op: str, inputs: dict[str, Any], attrs: dict[str, Any], slot: str, value: Any
) -> None:
    """Found by random tests of kernels: launches read outside of it, or left a part of the result as it was."""
    outputs = ["Logits@GRAD" if "Softmax" in inputs else "X@GRAD"]
    if slot in inputs:
        run_op(f"{op}_grad", inputs, attrs, outputs)
    with pytest.raises(RuleError, match=re.escape(slot)):
        run_op(f"{op}_grad", {**inputs, slot: value}, attrs, outputs)


V, LINES = np.ones(3), (np.ones((3, 2)), [[2, 1]])
MATRIX = {"X": P, "Out@GRAD": P}
NORM = {"X": IMAGE, "Scale": V[:1], "SavedMean": V[:1], "SavedVariance": V[:1], "Y@GRAD": IMAGE}
COLUMNS = {"X": P, "Means": P[0], "Scales": P[0], "Y@GRAD": P}
MATCHED = {"Label": LABEL, "MatchX": COLUMN, "XShape": np.ones((0, 2, 3)), "Y@GRAD": COLUMN}
MARGIN = {"Activated": COLUMN, "Label": COLUMN, "Out@GRAD": COLUMN}
CTC = {"Logits": LINES, "WarpCTCGrad": LINES[0], "Loss@GRAD": np.ones((2, 1))}
KEPT = {"X": V, "Mask": np.array([True, False, True]), "Y@GRAD": V[:2]}
REGION = (np.array([[0.0, 0.0, 1.0, 1.0]]), [[1]])
POOLED = {"X": IMAGE, "ROIs": REGION, "Argmax": np.full((1, 1, 1, 1), 3), "Out@GRAD": IMAGE[:, :, :1, :1]}
PADDED = {"X": LINES, "Out@GRAD": np.ones((2, 2, 2))}
UNPADDED = {"X": PADDED["Out@GRAD"], "Out@GRAD": LINES}
PLACED = {"Ids": (np.zeros((3, 1), "int64"), [[1, 2]]), "Updates": (np.ones((3, 1)), [[1, 2]]), "Out@GRAD": P}
DOUBLE = {"Out": P, "grad_out": P, "grad_x@GRAD": P}
PRODUCTS = {"X": P, "Y": P, "DOut": P, "DDX": P, "DDY": P}
#: Gradient operator, inputs, attributes, the output that is asked for, and an input with another size.
OTHERS: list[tuple[str, dict[str, Any], dict[str, Any], str, str, Any]] = [
    ("tanh_grad_grad", DOUBLE, {}, "grad_out@GRAD", "grad_out", P[:1]),
    ("tanh_grad_grad", DOUBLE, {}, "grad_out@GRAD", "grad_x@GRAD", P[:1]),
    ("square_grad_grad", {"X": P, "grad_out": P, "grad_x@GRAD": P}, {}, "X@GRAD", "grad_out", P[:1]),
    ("elementwise_mul_grad_grad", PRODUCTS, {}, "DDOut", "DDX", P[:1]),
    ("elementwise_mul_grad_grad", PRODUCTS, {}, "DDOut", "DOut", P[:1]),
    ("batch_norm_grad", NORM, {}, "X@GRAD", "SavedMean", V[:2]),
    ("batch_norm_grad", NORM, {}, "X@GRAD", "Y@GRAD", IMAGE[..., :1]),
    ("data_norm_grad", COLUMNS, {}, "X@GRAD", "Means", V[:2]),
    ("data_norm_grad", COLUMNS, {}, "X@GRAD", "Y@GRAD", P[:1]),
    ("affine_channel_grad", {**MATRIX, "Scale": V}, {}, "X@GRAD", "Scale", V[:2]),
    ("affine_channel_grad", {**MATRIX, "Scale": V}, {}, "X@GRAD", "Out@GRAD", P[:1]),
    ("dropout_grad", {"Mask": np.ones((2, 3), "uint8"), "Out@GRAD": P}, {}, "X@GRAD", "Mask", np.ones((1, 3), "uint8")),
    ("huber_loss_grad", {"Residual": COLUMN, "Out@GRAD": COLUMN}, {"delta": 1.0}, "X@GRAD", "Out@GRAD", COLUMN[:1]),
    ("margin_rank_loss_grad", MARGIN, {}, "X1@GRAD", "Label", COLUMN[:1]),
    ("sigmoid_cross_entropy_with_logits_grad", {**MATRIX, "Label": P}, {}, "X@GRAD", "Label", P[:1]),
    ("cross_entropy_grad2", MATCHED, {}, "X@GRAD", "MatchX", COLUMN[:1]),
    ("warpctc_grad", CTC, {}, "Logits@GRAD", "WarpCTCGrad", LINES[0][:2]),
    ("warpctc_grad", CTC, {}, "Logits@GRAD", "Loss@GRAD", np.ones((1, 1))),
    ("masked_select_grad", KEPT, {}, "X@GRAD", "Y@GRAD", V[:1]),
    ("roi_pool_grad", POOLED, {}, "X@GRAD", "X", IMAGE[:, :, :0]),
    ("sequence_pad_grad", PADDED, {}, "X@GRAD", "Out@GRAD", np.ones((1, 2, 2))),
    ("sequence_unpad_grad", UNPADDED, {}, "X@GRAD", "Out@GRAD", (V[:, None], [[2, 1]])),
    ("sequence_unpad_grad", UNPADDED, {}, "X@GRAD", "Out@GRAD", (LINES[0], [[3]])),
    ("sequence_scatter_grad", PLACED, {}, "Updates@GRAD", "Out@GRAD", P[:1]),
    ("temporal_shift_grad", {"Out@GRAD": LARGER.reshape(2, 2, 2, 2)}, {"seg_num": 2}, "X@GRAD", "Out@GRAD", LARGER),
    ("expand_as_v2_grad", {"X": V, "Out@GRAD": np.ones((2, 3))}, {"target_shape": [2, 3]}, "X@GRAD", "X", V[:2]),
    ("meshgrid_grad", {"X": [V, V], "outputs@GRAD": [np.ones((3, 3))] * 2}, {}, "X@GRAD", "outputs@GRAD", [P, P]),
]


@pytest.mark.parametrize(
    ("op", "inputs", "attrs", "output", "slot", "value"), OTHERS,
    ids=[f"{k}.{c[0]}.{c[4]}" for k, c in enumerate(OTHERS)],
)
def test_what_the_forward_rule_cannot_check_is_refused(
    op: str, inputs: dict[str, Any], attrs: dict[str, Any], output: str, slot: str, value: Any
) -> None:
    """Found by giving each input of each operator other sizes (tests/cuda/test_other_operands.py)."""
    run_op(op, inputs, attrs, {output: 2} if op == "meshgrid_grad" else [output])
    with pytest.raises(RuleError):
        run_op(op, {**inputs, slot: value}, attrs, {output: 2} if op == "meshgrid_grad" else [output])


def test_a_position_outside_of_the_image_is_refused() -> None:
    with pytest.raises(EnforceNotMet, match="Argmax"):
        run_op("roi_pool_grad", {**POOLED, "Argmax": np.full((1, 1, 1, 1), 4)}, {}, ["X@GRAD"])


def test_an_anchor_that_the_map_does_not_have_is_refused() -> None:
    boxes, labels = np.full((1, 1, 4), 0.5), np.zeros((1, 1), "int32")
    inputs = {"X": np.zeros((1, 6, 2, 2)), "GTBox": boxes, "GTLabel": labels}
    learned = {"ObjectnessMask": np.zeros((1, 1, 2, 2)), "GTMatchMask": labels, "Loss@GRAD": V[:1]}
    attrs = {"anchors": [10, 13], "anchor_mask": [0], "class_num": 1}
    run_op("yolov3_loss_grad", {**inputs, **learned}, attrs, ["X@GRAD"])
    with pytest.raises(EnforceNotMet, match="GTMatchMask"):
        run_op("yolov3_loss_grad", {**inputs, **learned, "GTMatchMask": labels + 1}, attrs, ["X@GRAD"])


def test_each_parameter_has_a_velocity_of_its_shape() -> None:
    inputs = {"Param": [P, P], "Grad": [P, P], "Velocity": [P, P[:1]], "LearningRate": [ONE, ONE]}
    with pytest.raises(RuleError, match="Param and Velocity must have the same shape"):
        run_op("lars_momentum", inputs, {"mu": 0.9}, {"ParamOut": 2, "VelocityOut": 2})
