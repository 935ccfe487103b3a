"""The same rows, cut into other sequences."""

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.errors import OpValueError
from fluidnb.op import RuleError
from fluidnb.testing import OpTest, run_op
from tests.tools.refused import refused

X = np.arange(12.0).reshape(6, 2)


class TestLodReset(OpTest):
    op_type, inputs, attrs = "lod_reset", {"X": (X, [[2, 3, 1]])}, {"target_lod": [0, 4, 6]}
    outputs = {"Out": (X, [[4, 2]])}

    def test_output(self):
        self.check_output()

    def test_grad(self):
        self.check_grad("X")


class TestLodResetOfRows(TestLodReset):
    inputs = {"X": X}


class TestLodResetLikeY(TestLodReset):
    inputs, attrs = {"X": X, "Y": (np.zeros((6, 1)), [[2, 1], [1, 2, 3]])}, {}
    outputs = {"Out": (X, [[2, 1], [1, 2, 3]])}


class TestLodResetByTheValuesOfY(TestLodReset):
    inputs, attrs = {"X": X, "Y": np.array([0, 4, 6], "int32")}, {"target_lod": [0, 1, 6]}


class TestLodResetAppends(TestLodReset):
    inputs, attrs = {"X": (X[:3], [[2, 1]]), "Y": np.array([0, 0, 2, 3])}, {"append": True}
    outputs = {"Out": (X[:3], [[2, 1], [0, 2, 1]])}


def test_the_gradient_has_the_lod_of_x():
    got = run_op("lod_reset_grad", {"X": (X, [[2, 3, 1]]), "Out@GRAD": X + 1}, {"append": False}, ["X@GRAD"])["X@GRAD"]
    assert got.lod_ == ((0, 2, 5, 6),) and np.array_equal(got.array, X + 1)


def test_targets_that_do_not_fit():
    for attrs, words in (
        ({"target_lod": [0, 4]}, "ends at 4, but the tensor has 6 rows"),
        ({"target_lod": [4, 2]}, "starts at 4, not at 0"),
        ({"target_lod": [0, 5, 4, 6]}, "falls from 5 to 4"),
        ({"target_lod": [0, 2, 6], "append": True}, "level 0 ends at 6, but level 1 has 2 sequences"),
    ):
        with refused(RuleError, words):
            run_op("lod_reset", {"X": (X, [[2, 3, 1]])}, attrs)
    with pytest.raises(RuleError, match="neither LoD nor offsets"):
        run_op("lod_reset", {"X": X, "Y": X})
    with pytest.raises(OpValueError, match=r"If Input\(Y\) not provided, the target lod should be specified"):
        fluid.layers.lod_reset(fluid.layers.data("x", [2]))
    assert fluid.default_main_program().global_block().ops == []


@pytest.mark.parametrize("keep", [False, True])
def test_offsets_change_from_run_to_run(keep):
    layers, exe = fluid.layers, fluid.Executor(fluid.CPUPlace())
    x, y = layers.data("x", [2], dtype="float64"), layers.data("y", [3], dtype="int32", append_batch_size=False)
    out = layers.lod_reset(x, y)
    for offsets in ([0, 4, 6], [0, 1, 6], [0, 4, 6]):
        feed = {"x": X, "y": np.array(offsets, "int32")}
        (got,) = exe.run(feed=feed, fetch_list=[out], return_numpy=False, keep_scopes=keep)
        assert got.lod() == [offsets] and np.array_equal(got, X)


def test_levels_while_building():
    layers = fluid.layers
    x, y = layers.data("x", [2], lod_level=1), layers.data("y", [2], lod_level=2)
    assert layers.lod_reset(x, y).lod_level == 2
    assert layers.lod_reset(y, target_lod=[0, 2]).lod_level == 1
