"""Reductions and the mean."""

import numpy as np
import pytest

from fluidnb.op import RuleError
from fluidnb.testing import OpTest, run_op
from tests.ops.cases import Differentiable, Forward, distinct, family

X = distinct(2, 3, 4) + 0.01
FUNCTIONS = {
    "reduce_sum": np.sum,
    "reduce_mean": np.mean,
    "reduce_max": np.max,
    "reduce_min": np.min,
    "reduce_prod": np.prod,
}
#: name -> (attributes, numpy's axes, whether they are kept)
HOW = {
    "one": ({"dim": [1]}, 1, False),
    "two": ({"dim": [0, 2]}, (0, 2), False),
    "last": ({"dim": [-1]}, 2, False),
    "kept": ({"dim": [1], "keep_dim": True}, 1, True),
    "all": ({"reduce_all": True}, None, False),
    "none": ({"dim": []}, None, False),
    "all_kept": ({"reduce_all": True, "keep_dim": True}, None, True),
}


def _case(function, x, how):
    attrs, axes, keep = HOW[how]
    out = np.asarray(function(x, axis=axes, keepdims=keep))
    return {"inputs": {"X": x}, "attrs": attrs, "outputs": {"Out": out if out.ndim else out.reshape(1)}}


family(globals(), Differentiable, {f"{op}/{how}": _case(f, X, how) for op, f in FUNCTIONS.items() for how in HOW})
TRUTH = X > 0
family(
    globals(),
    Forward,
    {
        "reduce_all": _case(np.all, TRUTH, "one"),
        "reduce_any": _case(np.any, TRUTH, "two"),
        "reduce_all/numbers": _case(np.all, TRUTH * 0.5, "one"),
        "reduce_any/numbers": _case(np.any, TRUTH * 3, "two"),
        "reduce_sum/whole": _case(np.sum, np.arange(24).reshape(2, 3, 4), "two"),
        "reduce_mean/whole": {
            "inputs": {"X": np.array([[-1, 2], [-2, 2], [-4, 4]])}, "outputs": {"Out": np.array([-2, 2])},
        },
        "reduce_max/no_dimension": {
            "inputs": {"X": np.array(3.0)}, "attrs": {"dim": [-1]}, "outputs": {"Out": np.array([3.0])},
        },
        "reduce_sum/cast": {
            "inputs": {"X": np.arange(3, dtype="int32")}, "attrs": {"reduce_all": True, "out_dtype": 3},
            "outputs": {"Out": np.array([3])},
        },
    },
)  # fmt: skip
family(
    globals(),
    Differentiable,
    {
        "mean": {"inputs": {"X": X}, "outputs": {"Out": X.mean().reshape(1)}},
        "mean/vector": {"inputs": {"X": X[0, 0]}, "outputs": {"Out": X[0, 0].mean().reshape(1)}},
        "squared_l2_norm": {"inputs": {"X": X}, "outputs": {"Out": (X * X).sum().reshape(1)}},
    },
)


class TestTheLodStaysWhereRowsStay(OpTest):
    op_type, attrs = "reduce_sum", {"dim": [1]}
    inputs = {"X": (np.ones((3, 2)), [[1, 2]])}
    outputs = {"Out": (np.full(3, 2.0), [[1, 2]])}

    def test_output(self):
        self.check_output()


def test_a_reduction_over_a_dimension_that_is_not_there():
    with pytest.raises(RuleError, match=r"range \[-dims\(input\), dims\(input\)\)"):
        run_op("reduce_sum", {"X": np.ones((2, 2))}, {"dim": [2]})
