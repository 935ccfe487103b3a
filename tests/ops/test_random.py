"""Random tensors and dropout."""

import numpy as np
import pytest

from fluidnb.errors import OpValueError
from fluidnb.op import RuleError
from fluidnb.testing import OpTest, run_op
from tests.ops.cases import Forward, family, values

N = 20_000


def moments(mean, std, low=-np.inf, high=np.inf):
    """A check of random numbers: their mean, spread and bounds."""

    def check(x):
        assert abs(x.mean() - mean) < 0.05 * std and abs(x.std() - std) < 0.03 * std
        assert (x >= low).all() and (x < high).all()
        assert len(np.unique(x)) > 0.9 * x.size

    return check


class TestUniformRandom(OpTest):
    op_type, attrs = "uniform_random", {"shape": [N], "min": 2.0, "max": 6.0}
    outputs = {"Out": moments(4.0, 4 / np.sqrt(12), 2.0, 6.001)}

    def test_output(self):
        self.op_type, self.attrs = "uniform_random", {**self.attrs, "seed": 3}
        self.check_output()


class TestGaussianRandom(OpTest):
    op_type, attrs = "gaussian_random", {"shape": [N], "mean": 3.0, "std": 2.0, "seed": 3}
    outputs = {"Out": moments(3.0, 2.0)}

    def test_output(self):
        self.check_output()


X = values(100, 20, low=1.0, high=2.0)


def kept(factor):
    """A check of dropout's Out: about the right number of zeros, the others a multiple of X."""

    def check(out):
        stays = out != 0
        assert abs(stays.mean() - 0.7) < 0.05
        np.testing.assert_allclose(out[stays], (X * factor)[stays], 1e-6)

    return check


def rate(mask):
    assert mask.dtype == np.uint8 and abs(mask.mean() - 0.7) < 0.05 and set(np.unique(mask)) == {0, 1}


SEEDED = {"dropout_prob": 0.3, "fix_seed": True, "seed": 5}
UP = {"dropout_implementation": "upscale_in_train"}
ONES = np.ones((100, 20), "uint8")
family(
    globals(),
    Forward,
    {
        "dropout": {"inputs": {"X": X}, "attrs": SEEDED, "outputs": {"Out": kept(1.0), "Mask": rate}},
        "dropout/up": {"inputs": {"X": X}, "attrs": SEEDED | UP, "outputs": {"Out": kept(1 / 0.7), "Mask": rate}},
        "dropout/test": {
            "inputs": {"X": X}, "attrs": {"dropout_prob": 0.25, "is_test": True},
            "outputs": {"Out": X * 0.75, "Mask": ONES},
        },
        "dropout/test_up": {
            "inputs": {"X": X}, "attrs": {"dropout_prob": 0.25, "is_test": True} | UP,
            "outputs": {"Out": X, "Mask": ONES},
        },
        "dropout/none": {"inputs": {"X": X}, "attrs": {"dropout_prob": 0.0}, "outputs": {"Out": X, "Mask": ONES}},
        "dropout/all": {
            "inputs": {"X": X}, "attrs": {"dropout_prob": 1.0} | UP, "outputs": {"Out": X * 0, "Mask": 0 * ONES},
        },
    },
)  # fmt: skip


@pytest.mark.parametrize("attrs", [{}, UP, {"is_test": True}, {"is_test": True} | UP])
def test_the_gradient_of_dropout_is_what_x_was_multiplied_with(attrs):
    attrs = {**SEEDED, **attrs}
    forward = run_op("dropout", {"X": X}, attrs)
    g = run_op("dropout_grad", {"Mask": forward["Mask"], "Out@GRAD": np.ones_like(X)}, attrs, ["X@GRAD"])["X@GRAD"]
    np.testing.assert_allclose(g, forward["Out"] / X, 1e-12)


@pytest.mark.parametrize("type", ["uniform_random", "gaussian_random"])
def test_seeds(type):
    def draw(**attrs):
        return run_op(type, attrs={"shape": [5], **attrs})["Out"]

    assert (draw(seed=3) == draw(seed=3)).all()
    assert (draw(seed=3) != draw(seed=4)).any()


def test_dropout_draws_anew_unless_its_seed_is_fixed():
    def draw(program_seed, **attrs):
        return run_op("dropout", {"X": X}, {"seed": 5, **attrs}, seed=program_seed)["Mask"]

    assert (draw(1) != draw(2)).any()
    assert (draw(1, fix_seed=True) == draw(2, fix_seed=True)).all()


def test_a_diagonal():
    x = run_op("uniform_random", attrs={"shape": [3, 7], "diag_num": 3, "diag_step": 1, "diag_val": 9.0})["Out"]
    assert (x == 9).sum() == 3 and x[0, 0] == x[1, 2] == x[2, 4] == 9
    with pytest.raises(RuleError, match="must be inside Out"):
        run_op("uniform_random", attrs={"shape": [3, 3], "diag_num": 3, "diag_step": 1})


def test_bad_attributes():
    with pytest.raises(OpValueError, match="'dropout_prob' must be between 0.0 and 1.0"):
        run_op("dropout", {"X": X}, {"dropout_prob": 1.5})
    with pytest.raises(OpValueError, match="can only be downgrade_in_infer or upscale_in_train"):
        run_op("dropout", {"X": X}, {"dropout_implementation": "sideways"})
    with pytest.raises(OpValueError, match="min must be less than max"):
        run_op("uniform_random", attrs={"shape": [1], "min": 1.0, "max": 0.0})


def each_alike(low, high):
    """A check of random whole numbers: all of them occur, each about as often as the others."""

    def check(x):
        numbers, counts = np.unique(x, return_counts=True)
        assert numbers.tolist() == list(range(low, high))
        assert abs(counts / x.size * (high - low) - 1).max() < 0.1

    return check


class TestRandint(OpTest):
    op_type, attrs = "randint", {"shape": [N], "low": -2, "high": 5, "seed": 3, "dtype": "int32"}
    outputs = {"Out": each_alike(-2, 5)}

    def test_output(self):
        self.check_output()

    def test_of_one_dtype(self):
        assert run_op("randint", attrs=self.attrs)["Out"].dtype == np.int32


def test_randint_with_a_shape_as_a_variable():
    got = run_op("randint", {"ShapeTensor": np.array([2, 3])}, {"low": 0, "high": 9})["Out"]
    assert got.shape == (2, 3) and got.dtype == np.int64


def test_randint_without_numbers_to_choose_from():
    with pytest.raises(OpValueError, match="low must be less than high"):
        run_op("randint", attrs={"low": 3, "high": 3})


class TestRandperm(OpTest):
    op_type, attrs = "randperm", {"n": 50, "seed": 3}

    def test_output(self):
        orders = []

        def check(x):
            orders.append(x.tolist())
            assert sorted(orders[-1]) == list(range(50))

        for seed in (3, 4):
            self.attrs, self.outputs = {"n": 50, "seed": seed}, {"Out": check}
            self.check_output()
        assert orders[0] != orders[1] and orders[0] != sorted(orders[0])
