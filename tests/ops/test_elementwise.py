"""Arithmetic of two tensors."""

import numpy as np
import pytest

from fluidnb.op import RuleError
from fluidnb.testing import OpTest, run_op
from tests.ops.cases import Differentiable, Forward, distinct, family, values

FUNCTIONS = {
    "elementwise_add": np.add,
    "elementwise_sub": np.subtract,
    "elementwise_mul": np.multiply,
    "elementwise_div": np.divide,
    "elementwise_max": np.maximum,
    "elementwise_min": np.minimum,
    "elementwise_fmax": np.fmax,
    "elementwise_fmin": np.fmin,
    "elementwise_pow": np.power,
}
#: name -> (shape of X, shape of Y, axis, shape of Y as numpy broadcasts it)
SHAPES = {
    "same": ((2, 3), (2, 3), -1, (2, 3)),
    "same_from_one": ((2, 3), (2, 3), 1, (2, 3)),  # Fluid does not look at axis then
    "tail": ((2, 3, 4), (3, 4), -1, (3, 4)),
    "middle": ((2, 3, 4), (3,), 1, (3, 1)),
    "head": ((2, 3), (2,), 0, (2, 1)),
    "ones": ((2, 3, 4), (3, 1, 1), 1, (3, 1)),
    "single": ((2, 3), (1,), -1, (1,)),
    "both": ((2, 1, 4), (3, 1), -1, (3, 1)),
    "wider": ((3,), (2, 3), -1, (2, 3)),
    "sized_one": ((1,), (1,), -1, (1,)),
}


def _operands(name, x, y):
    """Positive numbers, none of X near one of Y (where max and min have a kink)."""
    both = np.abs(distinct(int(np.prod(x)) + int(np.prod(y)))) + 0.5
    return both[: int(np.prod(x))].reshape(x), both[int(np.prod(x)) :].reshape(y) + 0.03


def _case(name, function, shapes):
    x, y, axis, seen = shapes
    a, b = _operands(name, x, y)
    return {"inputs": {"X": a, "Y": b}, "attrs": {"axis": axis}, "outputs": {"Out": function(a, b.reshape(seen))}}


family(
    globals(),
    Differentiable,
    {f"{op}/{how}": _case(op, f, SHAPES[how]) for op, f in FUNCTIONS.items() for how in SHAPES},
)
family(
    globals(),
    Forward,
    {
        "elementwise_floordiv": {
            "inputs": {"X": np.array([5.5, -5.5]), "Y": np.array([2.0])}, "outputs": {"Out": np.array([2.0, -3.0])},
        },
        "elementwise_floordiv/whole": {
            "inputs": {"X": np.array([5, -5]), "Y": np.array([2])}, "outputs": {"Out": np.array([2, -3])},
        },
        "elementwise_mod": {
            "inputs": {"X": np.array([5.5, -5.5]), "Y": np.array([2.0])}, "outputs": {"Out": np.array([1.5, 0.5])},
        },
        "elementwise_div/whole": {
            "inputs": {"X": np.array([7, -7, 7, 6]), "Y": np.array([2, 2, -2, 3])},
            "outputs": {"Out": np.array([3, -3, -3, 2])},
        },
    },
)  # fmt: skip


class TestTheLodOfXGoesOn(OpTest):
    op_type = "elementwise_add"
    inputs = {"X": (np.ones((3, 2)), [[1, 2]]), "Y": np.ones(2)}
    outputs = {"Out": (np.full((3, 2), 2.0), [[1, 2]])}

    def test_output(self):
        self.check_output()

    def test_grad(self):
        self.check_grad(["X", "Y"])


def test_ties_of_max_send_the_gradient_to_y():
    x = {"X": [1.0, 2.0], "Y": [1.0, 1.0], "Out@GRAD": [5.0, 7.0]}
    got = run_op("elementwise_max_grad", x, {"axis": -1}, ["X@GRAD", "Y@GRAD"])
    assert got["X@GRAD"].tolist() == [0, 7] and got["Y@GRAD"].tolist() == [5, 0]


def test_only_the_gradient_that_is_wanted_is_made():
    x = {"X": np.ones((2, 3)), "Y": np.ones(3), "Out@GRAD": np.ones((2, 3))}
    for op in ("add", "sub", "mul", "max"):
        got = run_op(f"elementwise_{op}_grad", x, {"axis": -1}, ["Y@GRAD"])
        assert list(got) == ["Y@GRAD"] and got["Y@GRAD"].shape == (3,)


def test_shapes_that_do_not_fit():
    with pytest.raises(RuleError, match="Broadcast dimension mismatch") as e:
        run_op("elementwise_add", {"X": np.ones((2, 3)), "Y": np.ones(2)})
    assert "[2, 3]" in str(e.value.expected) and "[2]" in str(e.value.received)
    with pytest.raises(RuleError, match="Broadcast dimension mismatch"):
        run_op("elementwise_add", {"X": np.ones((2, 3, 4)), "Y": np.ones((3, 4))}, {"axis": 2})


def test_operands_of_two_dtypes():
    with pytest.raises(RuleError, match=r"DataType of Paddle Op elementwise_add must be the same. Get \(float64\) != "):
        run_op("elementwise_add", {"X": np.ones(2), "Y": np.ones(2, "float32")})


def test_random_values_are_those_of_numpy():
    a, b = values(3, 4, seed=1), values(3, 4, seed=2)
    assert np.array_equal(run_op("elementwise_sub", {"X": a, "Y": b})["Out"], a - b)


@pytest.mark.parametrize("name", ["fmax", "fmin"])
def test_a_number_wins_over_nan(name):
    """Where one is NaN, the other is the result and gets the gradient; where both are, X gets it, as in Paddle."""
    x, y = np.array([2, 5, np.nan, np.nan]), np.array([np.nan, 4, 3, np.nan])
    wanted = np.array([2, 5 if name == "fmax" else 4, 3, np.nan])
    np.testing.assert_array_equal(run_op(f"elementwise_{name}", {"X": x, "Y": y})["Out"], wanted)
    out = run_op(f"elementwise_{name}_grad", {"X": x, "Y": y, "Out": wanted, "Out@GRAD": np.ones(4)},
                 outputs={"X@GRAD": 1, "Y@GRAD": 1})  # fmt: skip
    assert out["X@GRAD"].tolist() == [1, float(name == "fmax"), 0, 1]
    assert out["Y@GRAD"].tolist() == [0, float(name == "fmin"), 1, 0]
