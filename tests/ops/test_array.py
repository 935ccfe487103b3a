"""Arrays of tensors."""

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.errors import EnforceNotMet
from fluidnb.op import RuleError, make_grad
from fluidnb.proto.desc import OpDesc
from fluidnb.testing import OpTest, run_op
from fluidnb.values import LoDTensor, LoDTensorArray
from tests.tools.refused import refused

TWO = LoDTensorArray([np.ones(2), np.full((1, 3), 2.0)])


class TestWriteToArray(OpTest):
    op_type, inputs = "write_to_array", {"X": np.ones(2), "I": np.array([0])}
    outputs = {"Out": LoDTensorArray([np.ones(2)])}

    def test_output(self):
        self.check_output()


class TestReadFromArray(OpTest):
    op_type, inputs, outputs = "read_from_array", {"X": TWO, "I": np.array([1])}, {"Out": np.full((1, 3), 2.0)}

    def test_output(self):
        got = run_op(self.op_type, self.inputs)["Out"]
        assert np.array_equal(got, self.outputs["Out"])


class TestLodArrayLength(OpTest):
    op_type, inputs, outputs = "lod_array_length", {"X": TWO}, {"Out": np.array([2])}

    def test_output(self):
        self.check_output()


def test_a_gap_is_filled_with_empty_tensors():
    got = run_op("write_to_array", {"X": [5.0], "I": [2]})["Out"]
    assert len(got) == 3 and got[0].array is None and got[2].array.tolist() == [5]


def test_what_is_written_is_a_copy_with_its_lod():
    x = np.ones((3, 1))
    got = run_op("write_to_array", {"X": (x, [[1, 2]]), "I": [0]})["Out"]
    x[...] = 7
    assert got[0].array.tolist() == [[1], [1], [1]] and got[0].lod_ == ((0, 1, 3),)


def test_reading_what_was_never_written():
    with pytest.raises(EnforceNotMet, match="Cannot read index 5 of X: nothing has been written there") as e:
        run_op("read_from_array", {"X": TWO, "I": [5]})
    assert e.value.expected == "0 to 1"
    got = run_op("read_from_array", {"X": TWO, "I": [5], "X_W": np.ones((2, 2))})["Out"]
    assert got.tolist() == [[0, 0], [0, 0]]


def test_an_index_of_several_elements():
    for op, x in (("write_to_array", np.ones(2)), ("read_from_array", TWO)):
        with pytest.raises(RuleError, match=r"must have the shape \[1\]"):
            run_op(op, {"X": x, "I": [0, 1]})


def test_gradients_are_reads_and_writes():
    write = OpDesc("write_to_array", {"X": ["x"], "I": ["i"]}, {"Out": ["a"]})
    (made,) = make_grad(write)
    assert (made.optype, made.ins, made.outs) == (
        "read_from_array", {"X": ["a@GRAD"], "I": ["i"], "X_W": ["x"]}, {"Out": ["x@GRAD"]},
    )  # fmt: skip
    read = OpDesc("read_from_array", {"X": ["a"], "I": ["i"]}, {"Out": ["x"]})
    (made,) = make_grad(read)
    assert (made.optype, made.ins, made.outs) == (
        "write_to_array", {"X": ["x@GRAD"], "I": ["i"]}, {"Out": ["a@GRAD"]},
    )  # fmt: skip
    assert make_grad(write, {"x"}) == make_grad(read, {"a"}) == []


class TestTensorArrayToTensor(OpTest):
    op_type, attrs = "tensor_array_to_tensor", {"axis": 0}
    inputs = {"X": LoDTensorArray([np.ones((1, 2)), np.full((3, 2), 2.0)])}
    outputs = {"Out": np.array([[1.0] * 2] + [[2.0] * 2] * 3), "OutIndex": np.array([1, 3], "int32")}

    def test_output(self):
        got = run_op(self.op_type, self.inputs, self.attrs)
        assert got.keys() == self.outputs.keys()
        for slot, want in self.outputs.items():
            assert np.array_equal(got[slot], want) and got[slot].dtype == want.dtype


class TestTensorArrayToTensorOfColumns(TestTensorArrayToTensor):
    attrs, inputs = {"axis": -1}, {"X": LoDTensorArray([np.ones((2, 1)), np.full((2, 3), 2.0)])}
    outputs = {"Out": np.array([[1.0, 2.0, 2.0, 2.0]] * 2), "OutIndex": np.array([1, 3], "int32")}


class TestTensorArrayToTensorStacked(TestTensorArrayToTensor):
    attrs, inputs = {"axis": 1, "use_stack": True}, {"X": LoDTensorArray([np.ones(2), np.zeros(2), np.ones(2)])}
    outputs = {"Out": np.array([[1.0, 0.0, 1.0]] * 2), "OutIndex": np.array([1, 1, 1], "int32")}


def test_elements_that_cannot_be_joined():
    for elements, words in (
        ([], "There's no element in the input array."),
        ([np.ones(2), LoDTensor()], "Nothing has been written to index 1 of X"),
        ([np.ones((1, 2)), np.ones((1, 3))], "The dimension of the 1'th element in LoDTensorArray differs"),
        ([np.ones(2), np.ones(2, int)], "The dimension of the 1'th element in LoDTensorArray differs"),
    ):
        with refused(EnforceNotMet, words):
            run_op("tensor_array_to_tensor", {"X": LoDTensorArray(elements)})


def test_an_array_without_a_declared_shape_is_joined():
    """Fluid checks its elements when the program runs."""
    program, scope = fluid.Program(), fluid.Scope()
    block = program.global_block()
    array = block.create_var(name="array", type=fluid.core.VarDesc.VarType.LOD_TENSOR_ARRAY, dtype="float32")
    whole, sizes = (block.create_var(name=name) for name in ("whole", "sizes"))
    scope.var("array").value = LoDTensorArray([np.ones((1, 2), "float32"), np.zeros((2, 2), "float32")])
    array.persistable = True
    block.append_op("tensor_array_to_tensor", {"X": [array]}, {"Out": [whole], "OutIndex": [sizes]}, {"axis": 0})
    got = fluid.Executor(fluid.CPUPlace()).run(program, fetch_list=[whole, sizes], scope=scope)
    assert got[0][:, 0].tolist() == [1, 0, 0] and got[1].tolist() == [1, 2]


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("axis", [0, 1])
def test_a_joined_array_and_its_gradients(axis, keep):
    layers, exe = fluid.layers, fluid.Executor(fluid.CPUPlace())
    shape = [2, -1] if axis else [-1, 2]
    xs = [layers.data(n, shape, dtype="float64", append_batch_size=False, stop_gradient=False) for n in "abc"]
    array = layers.create_array("float64")
    for i, x in enumerate(xs):
        layers.array_write(x, layers.fill_constant([1], "int64", i), array)
    whole, sizes = layers.tensor_array_to_tensor(array, axis=axis)
    grads = fluid.gradients(layers.reduce_sum(layers.square(whole)), xs)
    rng = np.random.default_rng(1)
    for lengths in ((1, 2, 3), (3, 1, 1), (1, 2, 3)):
        values = [rng.normal(size=(2, n) if axis else (n, 2)) for n in lengths]
        got = exe.run(feed=dict(zip("abc", values, strict=True)), fetch_list=[whole, sizes, *grads], keep_scopes=keep)
        assert np.array_equal(got[0], np.concatenate(values, axis)) and got[1].tolist() == list(lengths)
        for have, x in zip(got[2:], values, strict=True):
            assert np.array_equal(have, 2 * x)


@pytest.mark.parametrize("keep", [False, True])
def test_reads_of_one_element_add_up_and_a_rewritten_one_starts_anew(keep):
    layers, exe = fluid.layers, fluid.Executor(fluid.CPUPlace())
    x = layers.data("x", [2], dtype="float64", append_batch_size=False, stop_gradient=False)
    at = layers.fill_constant([1], "int64", 2)
    array = layers.array_write(layers.scale(x, 3.0), at)
    before = layers.elementwise_mul(layers.array_read(array, at), layers.square(layers.array_read(array, at)))
    layers.array_write(layers.scale(before, 5.0), at, array)
    after = layers.square(layers.array_read(array, at))
    grads = fluid.gradients([layers.reduce_sum(before), layers.reduce_sum(after)], x)
    given = np.array([0.5, -2.0])
    (got,) = exe.run(feed={"x": given}, fetch_list=grads, keep_scopes=keep)
    assert np.allclose(got, 81 * given**2 + 2 * 135 * given**3 * 405 * given**2)  # 27 x³ and (135 x³)²
