"""Products, sums, scaling, clipping."""

import numpy as np
import pytest

from fluidnb.errors import OpValueError
from fluidnb.op import RuleError
from fluidnb.testing import OpTest, run_op
from fluidnb.values import LoDTensorArray
from tests.ops.cases import Differentiable, Forward, distinct, family, values

A, B = values(2, 3, 4, seed=1), values(4, 3, 2, seed=2)
M, N = values(3, 4, seed=3), values(4, 5, seed=4)
family(
    globals(),
    Differentiable,
    {
        "mul": {"inputs": {"X": M, "Y": N}, "outputs": {"Out": M @ N}},
        "mul/x_2": {
            "inputs": {"X": A, "Y": N}, "attrs": {"x_num_col_dims": 2}, "outputs": {"Out": A @ N},
        },
        "mul/y_2": {
            "inputs": {"X": values(2, 12), "Y": B}, "attrs": {"y_num_col_dims": 2},
            "outputs": {"Out": values(2, 12) @ B.reshape(12, 2)},
        },
        "mul/both": {
            "inputs": {"X": A, "Y": B}, "attrs": {"x_num_col_dims": 1, "y_num_col_dims": 2},
            "outputs": {"Out": A.reshape(2, 12) @ B.reshape(12, 2)},
        },
        "mul/sequences": {
            "inputs": {"X": (M, [[1, 2]]), "Y": N}, "outputs": {"Out": (M @ N, [[1, 2]])},
        },
        "matmul": {"inputs": {"X": M, "Y": N}, "outputs": {"Out": M @ N}},
        "matmul/alpha": {"inputs": {"X": M, "Y": N}, "attrs": {"alpha": 0.5}, "outputs": {"Out": 0.5 * (M @ N)}},
        "matmul/turned": {
            "inputs": {"X": M.T.copy(), "Y": N.T.copy()}, "attrs": {"transpose_X": True, "transpose_Y": True},
            "outputs": {"Out": M @ N},
        },
        "matmul/batch": {
            "inputs": {"X": A, "Y": A}, "attrs": {"transpose_Y": True}, "outputs": {"Out": A @ A.swapaxes(1, 2)},
        },
        "matmul/batch_x_turned": {
            "inputs": {"X": A, "Y": A}, "attrs": {"transpose_X": True}, "outputs": {"Out": A.swapaxes(1, 2) @ A},
        },
        "matmul/batch_of_x": {"inputs": {"X": A, "Y": N}, "outputs": {"Out": A @ N}},
        "matmul/batch_of_x_turned": {
            "inputs": {"X": A, "Y": N.T.copy()}, "attrs": {"transpose_Y": True}, "outputs": {"Out": A @ N},
        },
        "matmul/batch_of_y": {"inputs": {"X": values(5, 3), "Y": A}, "outputs": {"Out": values(5, 3) @ A}},
        "matmul/batches": {
            "inputs": {"X": values(2, 1, 3, 4), "Y": values(1, 3, 4, 2)},
            "outputs": {"Out": values(2, 1, 3, 4) @ values(1, 3, 4, 2)},
        },
        "matmul/vectors": {"inputs": {"X": M[0], "Y": M[1]}, "outputs": {"Out": np.array([M[0] @ M[1]])}},
        "matmul/matrix_and_vector": {"inputs": {"X": M, "Y": N[:, 0].copy()}, "outputs": {"Out": M @ N[:, 0]}},
        "matmul/vector_and_matrix": {"inputs": {"X": M[0], "Y": N}, "outputs": {"Out": M[0] @ N}},
        "matmul/vectors_turned": {
            "inputs": {"X": M[:, 0].copy(), "Y": M[0]},
            "attrs": {"transpose_X": True, "transpose_Y": True, "alpha": 0.5},
            "outputs": {"Out": 0.5 * np.outer(M[:, 0], M[0])},
        },
        "matmul/column_and_matrix": {
            "inputs": {"X": M[0], "Y": N[:1].copy()}, "attrs": {"transpose_X": True},
            "outputs": {"Out": np.outer(M[0], N[0])},
        },
        "matmul/matrix_and_row": {
            "inputs": {"X": N[:, :1].copy(), "Y": M[0]}, "attrs": {"transpose_Y": True},
            "outputs": {"Out": np.outer(N[:, 0], M[0])},
        },
        "matmul/batch_and_row": {
            "inputs": {"X": A[..., :1].copy(), "Y": M[0]}, "attrs": {"transpose_Y": True},
            "outputs": {"Out": A[..., :1] @ M[:1]},
        },
        "scale": {"inputs": {"X": M}, "attrs": {"scale": 2.0, "bias": 0.5}, "outputs": {"Out": 2 * M + 0.5}},
        "scale/bias_first": {
            "inputs": {"X": M}, "attrs": {"scale": 2.0, "bias": 0.5, "bias_after_scale": False},
            "outputs": {"Out": 2 * (M + 0.5)},
        },
        "scale/nothing": {"inputs": {"X": M}, "outputs": {"Out": M}},
        "sum": {"inputs": {"X": [M, M + 1, M + 2]}, "outputs": {"Out": 3 * M + 3}},
        "sum/one": {"inputs": {"X": [M]}, "outputs": {"Out": M}},
        "scale/by_a_variable": {
            "inputs": {"X": M, "ScaleTensor": np.array([3.0])}, "attrs": {"scale": 0.5, "bias": 1.0},
            "outputs": {"Out": 3 * M + 1}, "grads": ("X",),
        },
        "clip/one_number": {
            "inputs": {"X": M}, "attrs": {"min": 2.5, "max": 2.5}, "outputs": {"Out": np.full_like(M, 2.5)},
        },
        "clip": {
            "inputs": {"X": distinct(4, 5)}, "attrs": {"min": -0.5, "max": 0.5},
            "outputs": {"Out": np.clip(distinct(4, 5), -0.5, 0.5)},
        },
    },
)  # fmt: skip
family(
    globals(),
    Forward,
    {
        "scale/whole": {
            "inputs": {"X": np.array([1, 2])}, "attrs": {"scale": 3.0, "bias": 1.0},
            "outputs": {"Out": np.array([4, 7])},
        },
        "scale/whole_by_a_variable": {
            "inputs": {"X": np.array([1, 2]), "ScaleTensor": np.array([3.5])}, "attrs": {"bias": 1.5},
            "outputs": {"Out": np.array([4, 7])},
        },
        "pow/whole_by_a_variable": {
            "inputs": {"X": np.array([1, 2, 4]), "FactorTensor": np.array([2.0], "float32")},
            "outputs": {"Out": np.array([1, 4, 16])},
        },
        "sum/nothing_and_something": {
            "inputs": {"X": [np.zeros(0), M, np.zeros((2, 0)), M]}, "outputs": {"Out": 2 * M},
        },
        "increment": {"inputs": {"X": np.array([2.0])}, "outputs": {"Out": np.array([3.0])}},
        "increment/whole": {
            "inputs": {"X": np.array([2])}, "attrs": {"step": -2.0}, "outputs": {"Out": np.array([0])},
        },
    },
)  # fmt: skip


class TestTheSumOfArrays(OpTest):
    op_type = "sum"
    inputs = {"X": [LoDTensorArray([np.ones(2), np.ones(3)]), LoDTensorArray([np.ones(2)])]}
    outputs = {"Out": LoDTensorArray([np.full(2, 2.0), np.ones(3)])}

    def test_output(self):
        self.check_output()


def test_a_scale_factor_that_is_a_variable():
    assert run_op("scale", {"X": [1.0, 2.0], "ScaleTensor": [3.0]}, {"bias": 1.0})["Out"].tolist() == [4, 7]


def test_bounds_that_are_variables():
    x = {"X": [-1.0, 0.5, 9.0], "Min": [0.0], "Max": [1.0]}
    assert run_op("clip", x, {"min": -5.0, "max": 5.0})["Out"].tolist() == [0, 0.5, 1]


@pytest.mark.parametrize("terms", [("a", "b"), ("b", "a"), ("a", "a"), ("a", "b", "a"), ("b", "b", "a")])
def test_a_sum_into_one_of_its_terms(terms):
    from fluidnb.program import Program
    from fluidnb.runtime import Executor, Scope

    program = Program()
    block = program.global_block()
    for name in ("a", "b"):
        block.create_var(name=name, shape=[2], dtype="float64")
    block.append_op(type="sum", inputs={"X": list(terms)}, outputs={"Out": "a"})
    feed = {"a": np.array([1.0, 2.0]), "b": np.array([10.0, 20.0])}
    for keep in (False, True):
        got = Executor().run(program, feed=feed, fetch_list=["a"], scope=Scope(), keep_scopes=keep)[0]
        assert got.tolist() == np.sum([feed[t] for t in terms], axis=0).tolist()


def test_a_matrix_product_that_does_not_fit():
    with pytest.raises(RuleError, match="First matrix's width must be equal with second matrix's height.") as e:
        run_op("mul", {"X": np.ones((2, 3)), "Y": np.ones((4, 5))})
    assert "4" in str(e.value.expected) and "3" in str(e.value.received)
    with pytest.raises(RuleError, match="must be larger than x_num_col_dims"):
        run_op("mul", {"X": np.ones((2, 3)), "Y": np.ones((3, 2))}, {"x_num_col_dims": 2})
    with pytest.raises(RuleError, match="First matrix's width"):
        run_op("matmul", {"X": np.ones((2, 3)), "Y": np.ones((2, 3))})
    with pytest.raises(RuleError, match="batches of X and Y of matmul do not fit"):
        run_op("matmul", {"X": np.ones((2, 3, 3)), "Y": np.ones((4, 3, 3))})


def test_terms_that_do_not_fit():
    with pytest.raises(RuleError, match="Inputs of sum must have the same shape") as e:
        run_op("sum", {"X": [np.ones(2), np.ones(3)]})
    assert "X_1" in str(e.value.received)
    with pytest.raises(RuleError, match=r"Get \(float64\) != \(int64\)"):
        run_op("sum", {"X": [np.ones(2), np.ones(2, int)]})


def test_bad_bounds():
    with pytest.raises(OpValueError, match="max should be greater than min."):
        run_op("clip", {"X": [1.0]}, {"min": 1.0, "max": 0.0})
    with pytest.raises(OpValueError, match="Attribute 'max' is required!"):
        run_op("clip", {"X": [1.0]}, {"min": 1.0})


def test_a_counter_of_several_elements():
    with pytest.raises(RuleError, match=r"must have the shape \[1\]"):
        run_op("increment", {"X": np.ones(2)})


@pytest.mark.parametrize("rows", [3, 4, 32, 64, 65])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_products_of_few_rows_by_a_transposed_matrix(rows: int, dtype: str) -> None:
    x, y = values(rows, 200, seed=1).astype(dtype), values(390, 200, seed=2).astype(dtype)
    wanted, tolerance = x.astype("float64") @ y.T.astype("float64"), 1e-5 if dtype == "float32" else 1e-12
    out = run_op("matmul", {"X": x, "Y": y}, {"transpose_Y": True})["Out"]
    np.testing.assert_allclose(out, wanted, tolerance, tolerance)
    deep = run_op("matmul_v2", {"X": x.reshape(1, rows, 200), "Y": y}, {"trans_y": True})["Out"]
    np.testing.assert_allclose(deep[0], wanted, tolerance, tolerance)
    grads = run_op("mul_grad", {"X": np.zeros((rows, 390), dtype), "Y": y, "Out@GRAD": x}, {}, ["X@GRAD"])
    np.testing.assert_allclose(grads["X@GRAD"], wanted, tolerance, tolerance)
