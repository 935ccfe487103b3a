"""Elements chosen by numbers or masks, the different ones, counts, shares."""

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.errors import EnforceNotMet
from fluidnb.op import RuleError
from fluidnb.runtime import Executor, Scope
from fluidnb.testing import run_op
from tests.ops.cases import Differentiable, Forward, distinct, family, values
from tests.tools.refused import refused

A, CUBE = values(3, 4, seed=1), values(3, 4, 2, seed=2)
PAIRS, ROWS = np.array([[2, 1], [0, 3], [2, 1]]), np.array([[2], [0], [2]])
ORDER = distinct(3, 5)
SAMPLES = np.array([[0, 3], [2, 2], [1, 0]])
MASK = A > 0
LIST = np.array([5, 2, 5, 9, 2, 5])
LINES = np.array([[3, 1], [0, 1], [3, 1]])


def added(x, index, rows):
    out = x.copy()
    np.add.at(out, tuple(index.T), rows)
    return out


family(
    globals(),
    Differentiable,
    {
        "gather_nd": {"inputs": {"X": CUBE, "Index": PAIRS}, "outputs": {"Out": CUBE[[2, 0, 2], [1, 3, 1]]}},
        "gather_nd/rows": {"inputs": {"X": A, "Index": ROWS}, "outputs": {"Out": A[[2, 0, 2]]}},
        "gather_nd/grid": {
            "inputs": {"X": A, "Index": PAIRS.reshape(1, 3, 2)}, "outputs": {"Out": A[[2, 0, 2], [1, 3, 1]][None]},
        },
        "gather_nd/one": {"inputs": {"X": A, "Index": np.array([1, 2])}, "outputs": {"Out": A[1, 2:3]}},
        "index_select": {"inputs": {"X": A, "Index": np.array([2, 0, 2])}, "outputs": {"Out": A[[2, 0, 2]]}},
        "index_select/columns": {
            "inputs": {"X": CUBE, "Index": np.array([3, 3], "int32")}, "attrs": {"dim": -2},
            "outputs": {"Out": CUBE[:, [3, 3]]},
        },
        "index_sample": {"inputs": {"X": A, "Index": SAMPLES}, "outputs": {"Out": np.take_along_axis(A, SAMPLES, 1)}},
    },
)  # fmt: skip
for _case in list(globals().values()):
    if isinstance(_case, type) and _case.__name__.startswith(("TestGatherNd", "TestIndex")):
        _case.grads = ("X",)
family(
    globals(),
    Differentiable,
    {
        "scatter_nd_add": {
            "inputs": {"X": CUBE, "Index": PAIRS, "Updates": CUBE[:, 0] * 3}, "grads": ("X", "Updates"),
            "outputs": {"Out": added(CUBE, PAIRS, CUBE[:, 0] * 3)},
        },
        "scatter_nd_add/rows": {
            "inputs": {"X": A, "Index": ROWS, "Updates": A[::-1].copy()}, "grads": ("X", "Updates"),
            "outputs": {"Out": added(A, ROWS, A[::-1])},
        },
        "masked_select": {"inputs": {"X": A, "Mask": MASK}, "grads": ("X",), "outputs": {"Y": A[MASK]}},
        "masked_select/none": {
            "inputs": {"X": A, "Mask": np.zeros_like(MASK)}, "grads": ("X",), "outputs": {"Y": np.zeros(0)},
        },
        "top_k_v2": {
            "inputs": {"X": ORDER}, "attrs": {"k": 2}, "loss": ("Out",),
            "outputs": {"Out": -np.sort(-ORDER)[:, :2], "Indices": np.argsort(-ORDER)[:, :2]},
        },
        "top_k_v2/smallest": {
            "inputs": {"X": ORDER}, "attrs": {"k": 2, "axis": 0, "largest": False}, "loss": ("Out",),
            "outputs": {"Out": np.sort(ORDER, 0)[:2], "Indices": np.argsort(ORDER, 0)[:2]},
        },
    },
)  # fmt: skip
family(
    globals(),
    Forward,
    {
        "unique": {
            "inputs": {"X": LIST}, "outputs": {"Out": np.array([5, 2, 9]), "Index": np.array([0, 1, 0, 2, 1, 0])},
        },
        "unique/real": {
            "inputs": {"X": LIST / 2}, "attrs": {"dtype": "int32"},
            "outputs": {"Out": np.array([2.5, 1.0, 4.5]), "Index": np.array([0, 1, 0, 2, 1, 0], "int32")},
        },
        "unique/sorted": {
            "inputs": {"X": LIST.reshape(2, 3)}, "attrs": {"is_sorted": True},
            "outputs": {"Out": np.array([2, 5, 9]), "Index": np.array([1, 0, 1, 2, 0, 1]),
                        "Indices": np.array([1, 0, 3]), "Counts": np.array([2, 3, 1])},
        },
        "unique/lines": {
            "inputs": {"X": LINES}, "attrs": {"is_sorted": True, "axis": [0]},
            "outputs": {"Out": np.array([[0, 1], [3, 1]]), "Index": np.array([1, 0, 1]), "Counts": np.array([1, 2])},
        },
        "unique/columns": {
            "inputs": {"X": LINES}, "attrs": {"is_sorted": True, "axis": [-1]},
            "outputs": {"Out": LINES[:, ::-1].copy(), "Index": np.array([1, 0])},
        },
        "unique_with_counts": {
            "inputs": {"X": LIST}, "attrs": {"dtype": "int32"},
            "outputs": {"Out": np.array([5, 2, 9]), "Index": np.array([0, 1, 0, 2, 1, 0], "int32"),
                        "Count": np.array([3, 2, 1], "int32")},
        },
        "histogram": {
            "inputs": {"X": np.array([-1.0, -0.6, 0.0, 0.4, 1.0, 1.5])}, "attrs": {"bins": 4, "min": -1, "max": 1},
            "outputs": {"Out": np.array([2, 0, 2, 1])},
        },
        "histogram/own_bounds": {
            "inputs": {"X": LIST}, "attrs": {"bins": 3}, "outputs": {"Out": np.array([2, 3, 1])},
        },
        "histogram/one_value": {
            "inputs": {"X": np.full((2, 2), 7.0)}, "attrs": {"bins": 4}, "outputs": {"Out": np.array([0, 0, 4, 0])},
        },
        "shard_index": {
            "inputs": {"X": np.array([[16], [1], [7], [13]])},
            "attrs": {"index_num": 20, "nshards": 3, "shard_id": 2, "ignore_value": -5},
            "outputs": {"Out": np.array([[2], [-5], [-5], [-5]])},
        },
        "allclose": {
            "inputs": {"Input": A, "Other": A + 1e-3}, "attrs": {"atol": "1e-2"}, "outputs": {"Out": np.array([True])},
        },
        "allclose/not": {"inputs": {"Input": A, "Other": A + 1e-3}, "outputs": {"Out": np.array([False])}},
        "allclose/nothing": {
            "inputs": {"Input": np.array([np.nan]), "Other": np.array([np.nan])}, "attrs": {"equal_nan": True},
            "outputs": {"Out": np.array([True])},
        },
        "equal_all": {"inputs": {"X": LIST, "Y": LIST}, "outputs": {"Out": np.array([True])}},
        "equal_all/not": {"inputs": {"X": A, "Y": A + MASK}, "outputs": {"Out": np.array([False])}},
        "equal_all/shapes": {"inputs": {"X": LIST, "Y": LIST[:2]}, "outputs": {"Out": np.array([False])}},
        "gather_tree": {
            "inputs": {"Ids": np.array([[[2, 2], [6, 1]], [[3, 9], [6, 1]], [[0, 1], [9, 0]]]),
                       "Parents": np.array([[[0, 0], [1, 1]], [[1, 0], [1, 0]], [[0, 0], [0, 1]]])},
            "outputs": {"Out": np.array([[[2, 2], [1, 6]], [[3, 3], [6, 1]], [[0, 1], [9, 0]]])},
        },
        "top_k_v2/whole": {
            "inputs": {"X": LIST}, "attrs": {"k": 3, "largest": False},
            "outputs": {"Out": np.array([2, 2, 5]), "Indices": np.array([1, 4, 0])},
        },
        "index_sample/whole": {
            "inputs": {"X": LINES, "Index": np.array([[1], [0], [1]])}, "outputs": {"Out": np.array([[1], [0], [1]])},
        },
    },
)  # fmt: skip


def test_numbers_that_come_as_variables():
    assert run_op("top_k_v2", {"X": ORDER, "K": np.array([3])})["Out"].shape == (3, 3)
    tolerances = {"Rtol": np.array([0.0]), "Atol": np.array([0.5])}
    assert run_op("allclose", {"Input": [1.0], "Other": [1.4], **tolerances})["Out"].all()
    assert not run_op("allclose", {"Input": [1.0], "Other": [1.6], **tolerances})["Out"].any()


def test_as_many_as_there_are_in_each_run():
    """The mask and the elements decide over shapes, run by run; the gradient goes where the mask is now."""
    program = fluid.Program()
    block = program.global_block()
    x = block.create_var(name="x", shape=[4], dtype="float32", stop_gradient=False)
    mask = block.create_var(name="m", shape=[4], dtype="bool")
    y, u, i = (block.create_var(name=n, dtype=d) for n, d in (("y", "float32"), ("u", "float32"), ("i", "int64")))
    block.append_op(type="masked_select", inputs={"X": [x], "Mask": [mask]}, outputs={"Y": [y]})
    block.append_op(type="unique", inputs={"X": [y]}, outputs={"Out": [u], "Index": [i]})
    with fluid.program_guard(program):
        [g] = fluid.gradients([y], [x])
    exe, scope = Executor(), Scope()
    for m, values_, want, different in (
        ([1, 0, 1, 1], [1, 2, 1, 3], [1, 0, 1, 1], [1, 3]),
        ([0, 1, 1, 1], [1, 2, 1, 3], [0, 1, 1, 1], [2, 1, 3]),
        ([0, 0, 0, 1], [1, 2, 1, 4], [0, 0, 0, 1], [4]),
    ):
        feed = {"x": np.array(values_, "float32"), "m": np.array(m, bool)}
        dx, found = exe.run(program, feed=feed, fetch_list=[g, u], scope=scope)
        assert dx.tolist() == want and found.tolist() == different


@pytest.mark.parametrize(
    ("op", "inputs", "attrs", "message"),
    [
        ("gather_nd", {"X": A, "Index": A}, {}, "must hold integers"),
        ("gather_nd", {"X": A, "Index": np.zeros((1, 3), int)}, {}, "how many numbers name a part"),
        ("scatter_nd_add", {"X": A, "Index": ROWS, "Updates": A[:2]}, {}, "a part for each"),
        ("index_select", {"X": A, "Index": ROWS}, {}, r"must have the shape \[n\]"),
        ("index_select", {"X": A, "Index": ROWS[:, 0]}, {"dim": 2}, "must name a dimension"),
        ("index_sample", {"X": A, "Index": SAMPLES[:2]}, {}, r"must have the shape \[n, k\]"),
        ("masked_select", {"X": A, "Mask": A}, {}, "Mask. of masked_select must fit X"),
        ("masked_select", {"X": A, "Mask": MASK[:2]}, {}, "Mask. of masked_select must fit X"),
        ("top_k_v2", {"X": A}, {"k": 4, "axis": 0}, "must be at least k"),
        ("unique", {"X": A}, {"axis": [0, 1]}, "names one dimension"),
        ("shard_index", {"X": A}, {"index_num": 3, "nshards": 1, "shard_id": 0}, "must hold integers"),
        ("allclose", {"Input": A, "Other": A[:2]}, {}, "same shape"),
        ("gather_tree", {"Ids": LINES, "Parents": LINES}, {}, r"must have the shape \[steps, batch, beams\]"),
    ],
)
def test_what_does_not_fit(op, inputs, attrs, message):
    with refused(RuleError, message):
        run_op(op, inputs, attrs)


@pytest.mark.parametrize(
    ("op", "inputs", "attrs"),
    [
        ("gather_nd", {"X": A, "Index": np.array([[3, 0]])}, {}),
        ("gather_nd", {"X": A, "Index": np.array([[0, -1]])}, {}),
        ("scatter_nd_add", {"X": A, "Index": np.array([[3]]), "Updates": A[:1]}, {}),
        ("index_select", {"X": A, "Index": np.array([4])}, {"dim": 1}),
        ("index_sample", {"X": A[:1], "Index": np.array([[-1]])}, {}),
        ("shard_index", {"X": np.array([[20]])}, {"index_num": 20, "nshards": 2, "shard_id": 0}),
    ],
)
def test_numbers_out_of_range(op, inputs, attrs):
    with pytest.raises(EnforceNotMet, match="does not exist|outside the table"):
        run_op(op, inputs, attrs)


@pytest.mark.parametrize(
    ("op", "inputs", "attrs", "message"),
    [
        ("shard_index", {"X": np.array([[1]])}, {"index_num": 9, "nshards": 2, "shard_id": 2}, "less than nshards"),
        ("histogram", {"X": A}, {"min": 1}, "must not be less than min"),
        ("allclose", {"Input": A, "Other": A}, {"rtol": "small"}, "is not a number"),
    ],
)
def test_attributes_that_make_no_sense(op, inputs, attrs, message):
    with refused(ValueError, message):
        run_op(op, inputs, attrs)
