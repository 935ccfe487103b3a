"""Copies, constants, shapes, selections."""

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.errors import EnforceNotMet
from fluidnb.op import RuleError, SlotError
from fluidnb.program import Program
from fluidnb.runtime import Executor, Scope
from fluidnb.testing import OpTest, run_op
from fluidnb.values import LoDTensor, LoDTensorArray
from tests.ops.cases import Differentiable, Forward, distinct, family, values
from tests.tools.refused import refused

X = values(2, 3, 4)
A, B, C = values(2, 3, seed=1), values(2, 1, seed=2), values(2, 4, seed=3)
FP32, FP64, INT32, INT64, BOOL = 5, 6, 2, 3, 0

family(
    globals(),
    Differentiable,
    {
        "assign": {"inputs": {"X": X}, "outputs": {"Out": X}},
        "concat": {"inputs": {"X": [A, B, C]}, "attrs": {"axis": 1}, "outputs": {"Out": np.concatenate([A, B, C], 1)}},
        "concat/last": {"inputs": {"X": [A, B]}, "attrs": {"axis": -1}, "outputs": {"Out": np.concatenate([A, B], 1)}},
        "concat/rows": {"inputs": {"X": [A, A + 1]}, "outputs": {"Out": np.concatenate([A, A + 1])}},
        "concat/one": {"inputs": {"X": [A]}, "outputs": {"Out": A}},
        "reshape": {"inputs": {"X": X}, "attrs": {"shape": [4, 6]}, "outputs": {"Out": X.reshape(4, 6)}},
        "reshape/kept": {"inputs": {"X": X}, "attrs": {"shape": [0, -1]}, "outputs": {"Out": X.reshape(2, 12)}},
        "reshape/grown": {"inputs": {"X": A}, "attrs": {"shape": [-1, 1, 3]}, "outputs": {"Out": A.reshape(2, 1, 3)}},
        "reshape2": {
            "inputs": {"X": X}, "attrs": {"shape": [-1, 4]},
            "outputs": {"Out": X.reshape(6, 4), "XShape": np.zeros((0, 2, 3, 4))}, "loss": ("Out",),
        },
        "transpose": {
            "inputs": {"X": X}, "attrs": {"axis": [2, 0, 1]}, "outputs": {"Out": X.transpose(2, 0, 1).copy()},
        },
        "transpose/matrix": {"inputs": {"X": A}, "attrs": {"axis": [1, 0]}, "outputs": {"Out": A.T.copy()}},
        "transpose2": {
            "inputs": {"X": X}, "attrs": {"axis": [0, 2, 1]},
            "outputs": {"Out": X.transpose(0, 2, 1).copy(), "XShape": np.zeros((0, 2, 3, 4))}, "loss": ("Out",),
        },
        "top_k": {
            "inputs": {"X": distinct(3, 5)}, "attrs": {"k": 2},
            "outputs": {"Out": -np.sort(-distinct(3, 5))[:, :2], "Indices": np.argsort(-distinct(3, 5))[:, :2]},
            "loss": ("Out",),
        },
        "top_k/one": {
            "inputs": {"X": distinct(3, 5)},
            "outputs": {"Out": distinct(3, 5).max(1, keepdims=True), "Indices": distinct(3, 5).argmax(1)[:, None]},
            "loss": ("Out",),
        },
        "gather": {
            "inputs": {"X": A, "Index": np.array([1, 0, 1])}, "outputs": {"Out": A[[1, 0, 1]]}, "grads": ("X",),
        },
        "gather/last": {
            "inputs": {"X": A, "Index": np.array([1, 0, 1])}, "attrs": {"axis": -1},
            "outputs": {"Out": A[..., [1, 0, 1]]}, "grads": ("X",),
        },
        "gather/axis_as_variable": {
            "inputs": {"X": A, "Index": np.array([1, 0, 1]), "Axis": np.array([1], "int32")},
            "outputs": {"Out": A[..., [1, 0, 1]]}, "grads": ("X",),
        },
        "gather/axis_as_number": {
            "inputs": {"X": X, "Index": np.array([1, 0]), "Axis": np.array(-2)}, "attrs": {"axis": 2},
            "outputs": {"Out": X[:, [1, 0]]}, "grads": ("X",),
        },
    },
)  # fmt: skip
family(
    globals(),
    Forward,
    {
        "cast": {
            "inputs": {"X": np.array([1, 0, -3])}, "attrs": {"in_dtype": INT64, "out_dtype": BOOL},
            "outputs": {"Out": np.array([True, False, True])},
        },
        "cast/down": {
            "inputs": {"X": np.array([1.9, -1.9], "float32")}, "attrs": {"in_dtype": FP32, "out_dtype": INT32},
            "outputs": {"Out": np.array([1, -1], "int32")},
        },
        "fill_constant": {
            "attrs": {"shape": [2, 3], "value": 1.5}, "outputs": {"Out": np.full((2, 3), 1.5, "float32")},
        },
        "fill_constant/text": {
            "attrs": {"shape": [1], "dtype": INT64, "str_value": str(2**62 + 1)},
            "outputs": {"Out": np.array([2**62 + 1])},
        },
        "fill_constant/bool": {
            "attrs": {"shape": [1], "dtype": BOOL, "value": 1.0}, "outputs": {"Out": np.array([True])},
        },
        "fill_constant/no_size": {"attrs": {"value": 2.0}, "outputs": {"Out": np.array(2.0, "float32")}},
        "fill_constant_batch_size_like": {
            "inputs": {"Input": A}, "attrs": {"shape": [-1, 5], "value": 2.0},
            "outputs": {"Out": np.full((2, 5), 2.0, "float32")},
        },
        "fill_constant_batch_size_like/other": {
            "inputs": {"Input": A},
            "attrs": {"shape": [7, -1], "input_dim_idx": 1, "output_dim_idx": 1, "dtype": INT64},
            "outputs": {"Out": np.zeros((7, 3), "int64")},
        },
        "fill_constant_batch_size_like/sequences": {
            "inputs": {"Input": (values(5, 2), [[2, 1, 2]])}, "attrs": {"shape": [-1, 2]},
            "outputs": {"Out": np.zeros((3, 2), "float32")},
        },
        "fill_zeros_like": {"inputs": {"X": X}, "outputs": {"Out": np.zeros_like(X)}},
        "fill_zeros_like2": {
            "inputs": {"X": X}, "attrs": {"dtype": INT64}, "outputs": {"Out": np.zeros((2, 3, 4), "int64")},
        },
        "fill": {
            "attrs": {"shape": [2, 2], "value": [1.0, 2.0, 3.0, 4.5]},
            "outputs": {"Out": np.array([[1, 2], [3, 4.5]], "float32")},
        },
        "fill/whole": {
            "attrs": {"shape": [2], "value": [1.0, 2.0], "dtype": INT32}, "outputs": {"Out": np.array([1, 2], "int32")},
        },
        "fill_any_like": {"inputs": {"X": X}, "attrs": {"value": 3.0}, "outputs": {"Out": np.full_like(X, 3)}},
        "fill_any_like/dtype": {
            "inputs": {"X": A}, "attrs": {"value": 3.0, "dtype": INT64}, "outputs": {"Out": np.full((2, 3), 3)},
        },
        "assign_value": {
            "attrs": {"shape": [2, 2], "dtype": FP32, "fp32_values": [1.0, 2.0, 3.0, 4.0]},
            "outputs": {"Out": np.array([[1, 2], [3, 4]], "float32")},
        },
        "assign_value/whole": {
            "attrs": {"shape": [2], "dtype": INT64, "int64_values": [1, 2**40]},
            "outputs": {"Out": np.array([1, 2**40])},
        },
        "assign_value/bool": {
            "attrs": {"shape": [2], "dtype": BOOL, "bool_values": [1, 0]}, "outputs": {"Out": np.array([True, False])},
        },
        "top_k/ties": {
            "inputs": {"X": np.array([[1.0, 2.0, 2.0, 2.0]])}, "attrs": {"k": 3},
            "outputs": {"Out": np.full((1, 3), 2.0), "Indices": np.array([[1, 2, 3]])},
        },
        "concat/sequences": {
            "inputs": {"X": [(np.arange(3), [[1, 2]]), (np.arange(2), [[2]])]},
            "outputs": {"Out": (np.array([0, 1, 2, 0, 1]), [[1, 2, 2]])},
        },
        "concat/sequences_of_sequences": {
            "inputs": {"X": [(np.arange(3), [[1, 1], [1, 2]]), (np.arange(2), [[1], [2]])]},
            "outputs": {"Out": (np.array([0, 1, 2, 0, 1]), [[1, 1, 1], [1, 2, 2]])},
        },
        "concat/whole": {
            "inputs": {"X": [np.arange(2), np.arange(3)]}, "outputs": {"Out": np.array([0, 1, 0, 1, 2])},
        },
        "transpose/whole": {
            "inputs": {"X": np.arange(6).reshape(2, 3)}, "attrs": {"axis": [1, 0]},
            "outputs": {"Out": np.arange(6).reshape(2, 3).T.copy()},
        },
    },
)  # fmt: skip


class TestTheGradientOfCastIsACast(OpTest):
    op_type, attrs = "cast", {"in_dtype": FP64, "out_dtype": FP32}
    inputs = {"X": A}
    outputs = {"Out": A.astype("float32")}

    def test_output(self):
        self.check_output()

    def test_grad(self):
        self.check_grad("X", max_relative_error=1e-3, numeric_grad_delta=1e-2)


class TestAnArrayIsAssigned(OpTest):
    op_type = "assign"
    inputs = {"X": LoDTensorArray([np.ones(2), np.ones(3)])}
    outputs = {"Out": LoDTensorArray([np.ones(2), np.ones(3)])}

    def test_output(self):
        self.check_output()


class TestSequencesKeepTheirLodWhereTheRowsStay(OpTest):
    op_type, attrs = "reshape", {"shape": [0, 2, 1]}
    inputs = {"X": (A[:, :2].copy(), [[1, 1]])}
    outputs = {"Out": (A[:, :2].reshape(2, 2, 1), [[1, 1]])}

    def test_output(self):
        self.check_output()


def test_the_gradient_of_gather_adds_up_rows_taken_twice():
    x = {"X": A, "Index": np.array([1, 1]), "Out@GRAD": np.ones((2, 3))}
    assert run_op("gather_grad", x, outputs=["X@GRAD"])["X@GRAD"].tolist() == [[0, 0, 0], [2, 2, 2]]


def test_a_reshape_of_a_transposed_array_is_not_frozen():
    """Where numpy cannot make a view, the copy must be made in every run, not once while binding."""
    from fluidnb.op import Binder, Clock
    from fluidnb.proto.desc import OpDesc
    from fluidnb.runtime.compile.lowering import LoweredOp
    from fluidnb.testing.eager import Fresh
    from fluidnb.values import LoDTensor

    x = np.arange(6.0).reshape(2, 3).T
    scope = Scope()
    scope.var("x").value = LoDTensor(x)
    desc = OpDesc("reshape", {"X": ["x"]}, {"Out": ["y"]}, {"shape": [6]})
    calls = Binder(LoweredOp(desc, 0, 0), Fresh(Clock()), scope).bind()
    for value in (1.0, 2.0):
        x[...] = value
        for f, args, kw in calls:
            f(*args, **kw)
        assert scope.find_var("y").value.array.tolist() == [value] * 6


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ([-1, -1], "Only one dimension value"),
        ([5, 5], "The size of X must be that of"),
        ([5, -1], "sizes do not divide"),
        ([2, 3, 4, 0], "copies a dimension that X does not have"),
        ([-2, 12], "are -1, 0 or positive"),
    ],
)
def test_shapes_that_do_not_fit(shape, message):
    with refused(RuleError, message):
        run_op("reshape", {"X": X}, {"shape": shape})


def test_bad_permutations():
    with pytest.raises(RuleError, match="should equal the size of Attr"):
        run_op("transpose", {"X": X}, {"axis": [0, 1]})
    with pytest.raises(RuleError, match="should be unique"):
        run_op("transpose", {"X": X}, {"axis": [0, 1, 1]})


def test_tensors_that_cannot_follow_each_other():
    with pytest.raises(RuleError, match="same size in every dimension but 0"):
        run_op("concat", {"X": [A, B]})
    with pytest.raises(RuleError, match="same rank"):
        run_op("concat", {"X": [A, X]})
    with pytest.raises(RuleError, match="must name a dimension"):
        run_op("concat", {"X": [A, A]}, {"axis": 2})
    with pytest.raises(RuleError, match="the same number of LoD levels"):
        run_op("concat", {"X": [LoDTensor(A, [[0, 2]]), LoDTensor(A, [[0, 1], [0, 2]])]})


def test_more_elements_than_there_are():
    with pytest.raises(RuleError, match="must be at least k"):
        run_op("top_k", {"X": A}, {"k": 4})


def test_values_that_do_not_fill_the_shape():
    with pytest.raises(RuleError, match="number of values"):
        run_op("assign_value", attrs={"shape": [3], "dtype": FP32, "fp32_values": [1.0]})


def test_a_size_that_is_not_known():
    with pytest.raises(RuleError, match="must not be negative") as e:
        run_op("fill_constant", attrs={"shape": [-1, 2]})
    assert "fill_constant_batch_size_like" in e.value.hint


def test_a_slot_without_its_argument():
    with pytest.raises(SlotError, match="Input X of assign not found"):
        run_op("assign")


@pytest.mark.parametrize("op", ["reshape", "reshape2"])
def test_a_shape_that_is_a_variable(op):
    """The same program gives another shape when the variable holds another one, and the walkers agree."""
    program = Program()
    block = program.global_block()
    block.create_var(name="x", shape=[-1, 3], dtype="float64")
    block.create_var(name="s", shape=[2], dtype="int32")
    outs = {"Out": block.create_var(name="y", dtype="float64")}
    if op == "reshape2":
        outs["XShape"] = block.create_var(name="xs", dtype="float64")
    block.append_op(type=op, inputs={"X": "x", "Shape": "s"}, outputs=outs, attrs={"shape": [-1, 1]})
    assert outs["Out"].shape == (-1, 1)
    exe, scope = Executor(), Scope()
    for shape in ([3, 2], [6, 1], [3, 2], [-1, 6]):
        for keep in (False, True):
            feed = {"x": A, "s": np.array(shape, "int32")}
            (y,) = exe.run(program, feed=feed, fetch_list=["y"], scope=scope, keep_scopes=keep)
            assert np.array_equal(y, A.reshape(shape))


def test_variables_that_take_the_place_of_attributes():
    filled = run_op("fill_constant", {"ShapeTensor": [2, 1], "ValueTensor": np.array([7.0], "float32")})["Out"]
    assert filled.tolist() == [[7], [7]]
    sizes = [np.array([3]), np.array([2])]
    assert run_op("uniform_random", {"ShapeTensorList": sizes}, {"shape": [-1, 2]})["Out"].shape == (3, 2)
    assert run_op("concat", {"X": [A, B], "AxisTensor": [1]})["Out"].shape == (2, 4)
    assert run_op("top_k", {"X": A, "K": [2]})["Out"].shape == (2, 2)
    assert run_op("reshape", {"X": A, "ShapeTensor": [np.array([3]), np.array([2])]})["Out"].shape == (3, 2)


@pytest.mark.parametrize("axis", [[1, 2], [0, 0], [-3, 0], [0]])
def test_transpose_refuses_what_is_no_permutation(axis: list[int]) -> None:
    with pytest.raises(RuleError, match="transpose"):
        run_op("transpose", {"X": [[1.0, 2.0]]}, {"axis": axis})


def test_the_axis_of_gather_changes_from_run_to_run() -> None:
    numbers = np.arange(6, dtype="float32").reshape(2, 3)
    with fluid.fresh():
        x = fluid.layers.data("x", [2, 3], append_batch_size=False, stop_gradient=False)
        index = fluid.layers.data("index", [2], dtype="int64", append_batch_size=False)
        axis = fluid.layers.data("axis", [1], dtype="int32", append_batch_size=False)
        out = x.block.create_var(name="out", dtype="float32")
        x.block.append_op("gather", inputs={"X": [x], "Index": [index], "Axis": [axis]}, outputs={"Out": [out]})
        assert out.shape == (-1, -1)
        fluid.backward.append_backward(fluid.layers.reduce_sum(out * out))
        exe, feed = fluid.Executor(), {"x": numbers, "index": np.array([1, 1])}
        for n in (0, 1, 0):
            found, slope = exe.run(feed={**feed, "axis": np.array([n], "int32")}, fetch_list=[out, "x@GRAD"])
            wanted = np.zeros((2, 3), "float32")
            wanted[(slice(None),) * n + (1,)] = 4 * numbers.take(1, n)
            assert found.tolist() == numbers.take([1, 1], n).tolist() and slope.tolist() == wanted.tolist()
        with pytest.raises(EnforceNotMet, match=r"Attr\(axis\) of gather must name a dimension"):
            exe.run(feed={**feed, "axis": np.array([2], "int32")}, fetch_list=[out])
