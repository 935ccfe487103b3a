"""One of several ways, by a number."""

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.errors import EnforceNotMet
from fluidnb.op import RuleError, make_grad
from fluidnb.proto.desc import OpDesc
from fluidnb.testing import OpTest, run_op
from fluidnb.values import LoDTensor
from tests.tools.refused import refused

X, Y = np.arange(6.0).reshape(3, 2), np.ones((1, 2))


class TestSelectInput(OpTest):
    op_type, inputs = "select_input", {"X": [X, Y], "Mask": np.array([1], "int32")}
    outputs = {"Out": Y}

    def test_output(self):
        self.check_output()


class TestSelectInputWithSequences(TestSelectInput):
    inputs = {"X": [(X, [[1, 2]]), (Y, [[1]])], "Mask": np.array([0], "int32")}
    outputs = {"Out": (X, [[1, 2]])}


class TestSelectOutput(OpTest):
    op_type, inputs, outputs = "select_output", {"X": (X, [[1, 2]]), "Mask": np.array([0], "int32")}, {"Out": None}

    def test_output(self):
        first, second = run_op(self.op_type, self.inputs, outputs={"Out": 2})["Out"]
        assert np.array_equal(first.array, X) and first.lod_ == ((0, 1, 3),) and second is None

    def test_grad(self):
        self.check_grad("X", "Out")


def test_the_gradients_are_each_other():
    take = OpDesc("select_input", {"X": ["a", "b"], "Mask": ["m"]}, {"Out": ["o"]})
    (made,) = make_grad(take, {"b"})
    assert (made.optype, made.outs) == ("select_output", {"Out": ["a@GRAD", "@EMPTY@"]})
    assert made.ins == {"X": ["o@GRAD"], "Mask": ["m"]}
    give = OpDesc("select_output", {"X": ["a"], "Mask": ["m"]}, {"Out": ["o", "p"]})
    (made,) = make_grad(give)
    assert (made.optype, made.outs) == ("select_input", {"Out": ["a@GRAD"]})
    assert made.ins == {"X": ["o@GRAD", "p@GRAD"], "Mask": ["m"]}
    assert make_grad(take, {"a", "b"}) == make_grad(give, {"a"}) == []


def test_masks_that_name_nothing():
    for mask, words in (
        (np.array([2]), "The mask of select_input names no X"),
        (np.array([0, 1]), "should be one number"),
        (np.array([0.0]), "should be one number"),
    ):
        with refused(RuleError, words):
            run_op("select_input", {"X": [X, Y], "Mask": mask})
    with pytest.raises(EnforceNotMet, match="X_1, which select_input chooses, has no value"):
        run_op("select_input", {"X": [LoDTensor(X), LoDTensor()], "Mask": [1]})


@pytest.mark.parametrize("keep", [False, True])
def test_the_way_changes_from_run_to_run(keep):
    layers, exe = fluid.layers, fluid.Executor(fluid.CPUPlace())
    x, y = (layers.data(n, [2], dtype="float64", stop_gradient=False) for n in "xy")
    layers.data("m", [1], dtype="int32", append_batch_size=False)
    block = fluid.default_main_program().global_block()
    out = block.create_var(name="out", dtype="float64")
    block.append_op(type="select_input", inputs={"X": [x, y], "Mask": ["m"]}, outputs={"Out": [out]})
    assert out.shape == (-1, 2)
    grads = fluid.gradients(layers.square(out), [x, y])
    for i in (0, 1, 0, 1):
        feed, chosen = {"x": X, "y": Y, "m": np.array([i], "int32")}, (X, Y)[i]
        got = exe.run(feed=feed, fetch_list=[out, grads[i]], keep_scopes=keep)
        assert np.array_equal(got[0], chosen) and np.array_equal(got[1], 2 * chosen)
        with pytest.raises(EnforceNotMet, match="was fetched but has no value"):
            exe.run(feed=feed, fetch_list=[grads[1 - i]])
