"""Operators that repeat, shift, pad, crop and concatenate tensors."""

import numpy as np
import pytest

from fluidnb.op import RuleError
from fluidnb.testing import run_op
from tests.ops.cases import Differentiable, Forward, family, values
from tests.tools.refused import refused

A, B, V, W = values(2, 3, seed=1), values(2, 3, seed=2), values(3, seed=3), values(2, seed=4)
X = values(2, 1, 3, seed=5)
FLAT, DEEP = values(1, 2, 3, 4, seed=6), values(1, 2, 3, 4, 2, seed=7)
WIDE, OTHER = values(3, 5, seed=8), values(3, 5, seed=9)
GRID = np.meshgrid(V, W, indexing="ij")


def bordered(x, mode, *pairs, **how):
    """numpy's own border, for dimensions from the second on."""
    return np.pad(x, [(0, 0), (0, 0), *pairs], mode, **how)


def last(x):
    """Channels last."""
    return np.moveaxis(x, 1, -1).copy()


TWO, THREE = [1, 2, 3, 0], [3, 1, 2, 0, 1, 1]
SIDES = {2: [(1, 2), (3, 0)], 3: [(1, 1), (2, 0), (3, 1)]}

family(
    globals(),
    Differentiable,
    {
        "tile": {"inputs": {"X": A}, "attrs": {"repeat_times": [2, 1, 2]}, "outputs": {"Out": np.tile(A, (2, 1, 2))}},
        "tile/few": {"inputs": {"X": X}, "attrs": {"repeat_times": [2]}, "outputs": {"Out": np.tile(X, 2)}},
        "tile/sequences": {
            "inputs": {"X": (A, [[1, 1]])}, "attrs": {"repeat_times": [1, 2]},
            "outputs": {"Out": (np.tile(A, (1, 2)), [[1, 1]])},
        },
        "expand_v2": {
            "inputs": {"X": X}, "attrs": {"shape": [4, -1, 2, 3]},
            "outputs": {"Out": np.broadcast_to(X, (4, 2, 2, 3)).copy()},
        },
        "expand_v2/same": {"inputs": {"X": A}, "attrs": {"shape": [-1, 3]}, "outputs": {"Out": A}},
        "expand_as_v2": {
            "inputs": {"X": X, "Y": np.zeros((5, 2, 4, 3), "int64")}, "grads": ("X",),
            "outputs": {"Out": np.broadcast_to(X, (5, 2, 4, 3)).copy()},
        },
        "expand_as_v2/both": {  # as Paddle: the attribute decides, unless it has -1
            "inputs": {"X": V, "Y": np.zeros((2, 3))}, "attrs": {"target_shape": [4, 3]}, "grads": ("X",),
            "outputs": {"Out": np.tile(V, (4, 1))},
        },
        "expand_as_v2/batch": {
            "inputs": {"X": V, "Y": np.zeros((2, 3))}, "attrs": {"target_shape": [-1, 3]}, "grads": ("X",),
            "outputs": {"Out": np.tile(V, (2, 1))},
        },
        "expand_as_v2/shape": {
            "inputs": {"X": V}, "attrs": {"target_shape": [2, 3]}, "outputs": {"Out": np.tile(V, (2, 1))},
        },
        "meshgrid": {"inputs": {"X": [V, W]}, "outputs": {"Out": [g.copy() for g in GRID]}, "loss": ("Out",)},
        "roll": {
            "inputs": {"X": A}, "attrs": {"shifts": [1, -1], "axis": [0, 1]},
            "outputs": {"Out": np.roll(A, (1, -1), (0, 1))},
        },
        "roll/list": {"inputs": {"X": A}, "attrs": {"shifts": [2]}, "outputs": {"Out": np.roll(A, 2)}},
        "unbind": {"inputs": {"X": A}, "outputs": {"Out": [A[0], A[1]]}, "loss": ("Out",)},
        "unbind/columns": {
            "inputs": {"X": FLAT}, "attrs": {"axis": -2}, "outputs": {"Out": [FLAT[:, :, i].copy() for i in range(3)]},
            "loss": ("Out",),
        },
        "crop_tensor": {
            "inputs": {"X": WIDE}, "attrs": {"shape": [2, 3], "offsets": [1, 1]}, "outputs": {"Out": WIDE[1:, 1:4]},
        },
        "crop_tensor/rest": {
            "inputs": {"X": WIDE}, "attrs": {"shape": [-1, 2], "offsets": [1, 0]}, "outputs": {"Out": WIDE[1:, :2]},
        },
        "crop_tensor/all": {"inputs": {"X": WIDE}, "outputs": {"Out": WIDE}},
        "partial_concat": {
            "inputs": {"X": [WIDE, OTHER]}, "attrs": {"start_index": 1, "length": 2},
            "outputs": {"Out": np.concatenate([WIDE[:, 1:3], OTHER[:, 1:3]], 1)},
        },
        "partial_concat/end": {
            "inputs": {"X": [WIDE, OTHER, WIDE + 1]}, "attrs": {"start_index": -2},
            "outputs": {"Out": np.concatenate([WIDE[:, 3:], OTHER[:, 3:], WIDE[:, 3:] + 1], 1)},
        },
        "partial_sum": {
            "inputs": {"X": [WIDE, OTHER, WIDE + 1]}, "attrs": {"start_index": 1, "length": 3},
            "outputs": {"Out": (2 * WIDE + OTHER + 1)[:, 1:4]},
        },
        "pad2d": {
            "inputs": {"X": FLAT}, "attrs": {"paddings": TWO, "pad_value": 0.5},
            "outputs": {"Out": bordered(FLAT, "constant", *SIDES[2], constant_values=0.5)},
        },
        **{
            f"pad2d/{mode}": {
                "inputs": {"X": FLAT}, "attrs": {"paddings": TWO, "mode": mode},
                "outputs": {"Out": bordered(FLAT, mode, *SIDES[2])},
            }
            for mode in ("reflect", "edge")
        },
        "pad2d/channels_last": {
            "inputs": {"X": last(FLAT)}, "attrs": {"paddings": TWO, "mode": "edge", "data_format": "NHWC"},
            "outputs": {"Out": last(bordered(FLAT, "edge", *SIDES[2]))},
        },
        "pad3d": {
            "inputs": {"X": DEEP}, "attrs": {"paddings": THREE, "value": -2.0},
            "outputs": {"Out": bordered(DEEP, "constant", *SIDES[3], constant_values=-2.0)},
        },
        "pad3d/replicate": {
            "inputs": {"X": DEEP}, "attrs": {"paddings": THREE, "mode": "replicate"},
            "outputs": {"Out": bordered(DEEP, "edge", *SIDES[3])},
        },
        "pad3d/circular_several_times": {
            "inputs": {"X": DEEP}, "attrs": {"paddings": [9, 4, 0, 0, 0, 7], "mode": "circular"},
            "outputs": {"Out": np.pad(DEEP, ((0, 0), (0, 0), (0, 7), (0, 0), (9, 4)), "wrap")},
        },
        "pad3d/circular": {
            "inputs": {"X": DEEP}, "attrs": {"paddings": [2, 1, 2, 0, 1, 3], "mode": "circular"},
            "outputs": {"Out": bordered(DEEP, "wrap", (1, 3), (2, 0), (2, 1))},
        },
        "pad3d/mirror_channels_last": {
            "inputs": {"X": last(DEEP)},
            "attrs": {"paddings": [1, 0, 2, 3, 0, 2], "mode": "reflect", "data_format": "NDHWC"},
            "outputs": {"Out": last(bordered(DEEP, "reflect", (0, 2), (2, 3), (1, 0)))},
        },
    },
)  # fmt: skip
family(
    globals(),
    Forward,
    {
        "tile/whole": {
            "inputs": {"X": np.arange(3)}, "attrs": {"repeat_times": [2]}, "outputs": {"Out": np.tile(np.arange(3), 2)},
        },
        "roll/whole": {
            "inputs": {"X": np.arange(4)}, "attrs": {"shifts": [1], "axis": [0]},
            "outputs": {"Out": np.array([3, 0, 1, 2])},
        },
        "pad2d/whole": {
            "inputs": {"X": np.ones((1, 1, 1, 1), int)}, "attrs": {"paddings": [0, 1, 0, 0], "pad_value": 7.0},
            "outputs": {"Out": np.array([[[[1], [7]]]])},
        },
    },
)  # fmt: skip


@pytest.mark.parametrize(
    ("op", "inputs", "attrs", "want"),
    [
        ("tile", {"X": A, "RepeatTimes": np.array([2, 1])}, {}, np.tile(A, (2, 1))),
        ("tile", {"X": A, "repeat_times_tensor": [np.array([2]), np.array([1])]}, {}, np.tile(A, (2, 1))),
        ("expand_v2", {"X": V, "Shape": np.array([2, -1], "int32")}, {}, np.tile(V, (2, 1))),
        ("expand_v2", {"X": V, "expand_shapes_tensor": [np.array([2]), np.array([3])]}, {}, np.tile(V, (2, 1))),
        ("roll", {"X": V, "ShiftsTensor": np.array([1])}, {"axis": [0]}, np.roll(V, 1)),
        ("crop_tensor", {"X": WIDE, "Shape": np.array([-1, 2]), "Offsets": np.array([1, 3])}, {}, WIDE[1:, 3:]),
        (
            "crop_tensor", {"X": WIDE, "ShapeTensor": [np.array([1]), np.array([2])],
                            "OffsetsTensor": [np.array([2]), np.array([0])]}, {}, WIDE[2:, :2],
        ),
        ("pad2d", {"X": FLAT, "Paddings": np.array(TWO, "int32")}, {"paddings": []},
         bordered(FLAT, "constant", *SIDES[2])),
    ],
)  # fmt: skip
def test_numbers_that_come_as_variables(op, inputs, attrs, want):
    np.testing.assert_array_equal(run_op(op, inputs, attrs)["Out"], want)


@pytest.mark.parametrize(
    ("op", "inputs", "attrs", "outputs", "message"),
    [
        ("tile", {"X": A}, {"repeat_times": [0, 1]}, None, "must be positive"),
        ("expand_v2", {"X": A}, {"shape": [3]}, None, "cannot drop dimensions"),
        ("expand_v2", {"X": A}, {"shape": [4, 3]}, None, "repeats dimensions of size 1 only"),
        ("expand_as_v2", {"X": A, "Y": B[:1]}, {}, None, "repeats dimensions of size 1 only"),
        ("meshgrid", {"X": [V, A]}, {}, {"Out": 2}, "must have the shape .its length"),
        ("meshgrid", {"X": [V, W]}, {}, None, "an output for each input"),
        ("roll", {"X": A}, {"shifts": [1], "axis": [0, 1]}, None, "a number for each dimension"),
        ("roll", {"X": A}, {"shifts": [1], "axis": [2]}, None, "must name a dimension"),
        ("unbind", {"X": A}, {}, {"Out": 3}, "an output for each part"),
        ("crop_tensor", {"X": WIDE}, {"shape": [2, 3], "offsets": [2, 0]}, None, "must be inside X"),
        ("crop_tensor", {"X": WIDE}, {"shape": [2]}, None, "a size and an offset for each dimension"),
        ("partial_concat", {"X": [WIDE, A]}, {}, None, "d = 5 as in Input"),
        ("partial_sum", {"X": [WIDE]}, {"start_index": 3, "length": 3}, None, "must be inside X"),
        ("pad2d", {"X": A}, {"paddings": TWO}, None, "must hold images"),
        ("pad2d", {"X": FLAT}, {"paddings": [1, 1]}, None, "needs 4 numbers"),
        ("pad2d", {"X": FLAT}, {"paddings": [3, 0, 0, 0], "mode": "reflect"}, None, "does not fit X"),
        ("pad2d", {"X": FLAT}, {"paddings": [-1, 0, 0, 0]}, None, "does not fit X"),
        ("pad3d", {"X": DEEP}, {"paddings": [0, -1, 0, 0, 0, 0], "mode": "circular"}, None, "does not fit X"),
    ],
)
def test_what_does_not_fit(op, inputs, attrs, outputs, message):
    with refused(RuleError, message):
        run_op(op, inputs, attrs, outputs)
