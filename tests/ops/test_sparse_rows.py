"""Tables, their sparse gradients, and what takes SelectedRows."""

import numpy as np
import pytest

from fluidnb.errors import EnforceNotMet
from fluidnb.op import RuleError
from fluidnb.testing import OpTest, run_op
from fluidnb.values import LoDTensor, SelectedRows
from tests.ops.cases import Differentiable, family, values
from tests.tools.refused import refused

W = values(6, 3, seed=1)
IDS = np.array([[1], [4], [1], [0]])
G = values(4, 3, seed=2)
DENSE = np.zeros((6, 3))
np.add.at(DENSE, IDS[:, 0], G)


def rows(ids=(1, 4, 1, 0), value=G):
    """A fresh sparse gradient; operators may not change it."""
    return SelectedRows(ids, 6, LoDTensor(np.array(value)))


def blanked(x, ids, padding):
    return np.where(ids == padding, 0, x)


family(
    globals(),
    Differentiable,
    {
        "lookup_table": {"inputs": {"W": W, "Ids": IDS}, "outputs": {"Out": W[IDS[:, 0]]}, "grads": ("W",)},
        "lookup_table/padding": {
            "inputs": {"W": W, "Ids": IDS}, "attrs": {"padding_idx": 1},
            "outputs": {"Out": blanked(W[IDS[:, 0]], IDS, 1)},
            "grads": ("W",),
        },
        "lookup_table/sequences": {
            "inputs": {"W": W, "Ids": (IDS, [[1, 3]])}, "outputs": {"Out": (W[IDS[:, 0]], [[1, 3]])}, "grads": ("W",),
        },
        "lookup_table/deep": {
            "inputs": {"W": W, "Ids": IDS.reshape(2, 2, 1)}, "outputs": {"Out": W[IDS.reshape(2, 2)]}, "grads": ("W",),
        },
        "lookup_table_v2": {
            "inputs": {"W": W, "Ids": IDS.reshape(2, 2)}, "outputs": {"Out": W[IDS.reshape(2, 2)]}, "grads": ("W",),
        },
    },
)  # fmt: skip


@pytest.mark.parametrize("padding", [-1, 1])
def test_a_sparse_gradient_is_the_dense_one(padding):
    inputs = {"W": W, "Ids": IDS, "Out@GRAD": G}
    sparse, dense = (
        run_op("lookup_table_grad", inputs, {"is_sparse": kind, "padding_idx": padding}, ["W@GRAD"])["W@GRAD"]
        for kind in (True, False)
    )
    assert sparse.rows() == IDS[:, 0].tolist() and sparse.height() == 6
    np.testing.assert_allclose(sparse.to_dense(), dense)
    np.testing.assert_allclose(dense, DENSE if padding < 0 else np.where(np.arange(6)[:, None] == 1, 0, DENSE))


@pytest.mark.parametrize(("bad", "shown"), [(6, "6 at place 2"), (-1, "-1 at place 2")])
def test_an_id_outside_the_table(bad, shown):
    ids = IDS.copy()
    ids[2] = bad
    with pytest.raises(EnforceNotMet, match=f"outside the table: {shown}"):
        run_op("lookup_table", {"W": W, "Ids": ids})


@pytest.mark.parametrize(
    ("inputs", "attrs", "message"),
    [
        ({"W": W, "Ids": IDS[:, 0]}, {}, "last dimension of Input"),
        ({"W": W, "Ids": IDS.astype("float64")}, {}, "must hold integers"),
        ({"W": W[0], "Ids": IDS}, {}, r"must have the shape \[height, width\]"),
        ({"W": W, "Ids": IDS}, {"padding_idx": 6}, "must be a row of the table"),
    ],
)
def test_what_does_not_fit(inputs, attrs, message):
    with refused(RuleError, message):
        run_op("lookup_table", inputs, attrs)


class TestMergeSelectedRows(OpTest):
    op_type = "merge_selected_rows"

    def test_merge(self):
        source = rows()
        got = run_op(self.op_type, {"X": source})["Out"]
        assert got.rows() == [0, 1, 4] and source.rows() == [1, 4, 1, 0]
        np.testing.assert_allclose(got.to_dense(), DENSE)

    def test_nothing_to_merge(self):
        assert run_op(self.op_type, {"X": rows((), G[:0])})["Out"].rows() == []

    def test_a_tensor_is_refused(self):
        with pytest.raises(RuleError, match="must be SelectedRows"):
            run_op(self.op_type, {"X": G})


class TestGetTensorFromSelectedRows(OpTest):
    op_type = "get_tensor_from_selected_rows"

    def test_values(self):
        np.testing.assert_array_equal(run_op(self.op_type, {"X": rows()})["Out"], G)


def test_a_sum_of_sparse_gradients_is_sparse():
    got = run_op("sum", {"X": [rows(), rows((5,), G[:1])]})["Out"]
    want = DENSE.copy()
    want[5] += G[0]
    assert isinstance(got, SelectedRows) and got.rows() == [0, 1, 4, 5]
    np.testing.assert_allclose(got.to_dense(), want)


def test_a_sum_of_sparse_gradients_without_rows_is_empty():
    got = run_op("sum", {"X": [rows((), G[:0]), rows((), G[:0])]})["Out"]
    assert got.rows() == [] and got.height() == 6


def test_a_sum_of_sparse_and_dense_gradients_is_dense():
    np.testing.assert_allclose(run_op("sum", {"X": [W, rows(), W]})["Out"], 2 * W + DENSE)
    np.testing.assert_allclose(run_op("sum", {"X": [rows(), W]})["Out"], W + DENSE)


@pytest.mark.parametrize(
    ("op", "inputs", "attrs", "want"),
    [
        ("scale", {}, {"scale": 2.0}, 2 * DENSE),
        ("clip", {}, {"min": -0.5, "max": 0.5}, np.clip(DENSE, -0.5, 0.5)),
        ("clip_by_norm", {}, {"max_norm": 0.5}, DENSE * 0.5 / np.linalg.norm(DENSE)),
        ("elementwise_mul", {"Y": np.array([3.0])}, {}, 3 * DENSE),
    ],
)
def test_clips_and_factors_of_sparse_gradients(op, inputs, attrs, want):
    source = rows()
    got = run_op(op, {"X": source, **inputs}, attrs)["Out"]
    np.testing.assert_allclose(got.to_dense(), want, rtol=1e-6)
    np.testing.assert_array_equal(source.get_tensor(), G)


def test_what_sparse_gradients_cannot_do():
    with pytest.raises(RuleError, match="cannot add to SelectedRows"):
        run_op("scale", {"X": rows()}, {"bias": 1.0})
    with pytest.raises(RuleError, match="is SelectedRows"):
        run_op("elementwise_add", {"X": rows(), "Y": np.array([3.0])})


STATE = {
    "sgd": {},
    "momentum": {"Velocity": values(6, 3, seed=3)},
    "adam": {
        "Moment1": values(6, 3, seed=3), "Moment2": values(6, 3, low=0.1, seed=4), "Beta1Pow": np.array([0.5]),
        "Beta2Pow": np.array([0.25]),
    },
    "adagrad": {"Moment": values(6, 3, low=0.1, seed=4)},
    "rmsprop": {"MeanSquare": values(6, 3, low=0.1, seed=4), "Moment": values(6, 3, seed=3)},
}  # fmt: skip


@pytest.mark.parametrize("op", STATE)
def test_optimizers_take_sparse_gradients(op):
    attrs = {"mu": 0.5} if op == "momentum" else {}
    inputs = {"Param": W, "LearningRate": np.array([0.1]), **STATE[op]}
    outputs = ["ParamOut", *(slot + "Out" for slot in STATE[op])]
    sparse = run_op(op, inputs | {"Grad": rows()}, attrs, outputs)
    dense = run_op(op, inputs | {"Grad": DENSE}, attrs, outputs)
    for slot, value in dense.items():
        np.testing.assert_allclose(sparse[slot], value, rtol=1e-6, err_msg=slot)


@pytest.mark.parametrize("power", [-0.5, -0.75])
def test_ftrl_leaves_rows_without_gradient_alone(power):
    """A dense step with a gradient of zero changes rows too: it computes the parameter from the accumulators."""
    state = {"SquaredAccumulator": values(6, 3, low=0.1, seed=4), "LinearAccumulator": values(6, 3, seed=3)}
    inputs = {"Param": W, "LearningRate": np.array([0.1]), **state}
    outputs, attrs = ["ParamOut", "SquaredAccumOut", "LinearAccumOut"], {"l1": 0.25, "l2": 0.5, "lr_power": power}
    sparse = run_op("ftrl", inputs | {"Grad": rows()}, attrs, outputs)
    dense = run_op("ftrl", inputs | {"Grad": DENSE}, attrs, outputs)
    touched = np.isin(np.arange(6), IDS)
    for slot, before in zip(outputs, (W, *state.values()), strict=True):
        np.testing.assert_allclose(sparse[slot][touched], dense[slot][touched], rtol=1e-6)
        np.testing.assert_array_equal(sparse[slot][~touched], before[~touched])


def test_a_lazy_adam_leaves_other_rows_alone():
    inputs = {"Param": W, "LearningRate": np.array([0.1]), **STATE["adam"]}
    outputs = ["ParamOut", "Moment1Out", "Moment2Out"]
    lazy = run_op("adam", inputs | {"Grad": rows()}, {"lazy_mode": True}, outputs)
    whole = run_op("adam", inputs | {"Grad": rows()}, {}, outputs)
    touched = np.isin(np.arange(6), IDS)
    for slot, before in zip(outputs, (W, STATE["adam"]["Moment1"], STATE["adam"]["Moment2"]), strict=True):
        np.testing.assert_allclose(lazy[slot][touched], whole[slot][touched], rtol=1e-6)
        np.testing.assert_array_equal(lazy[slot][~touched], before[~touched])
