"""Operators of networks that step through sequences: ranks, steps, and what is remembered."""

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.errors import EnforceNotMet
from fluidnb.op import RuleError, make_grad
from fluidnb.proto.desc import OpDesc
from fluidnb.testing import OpTest, run_op
from fluidnb.values import LoDTensor, LoDTensorArray
from fluidnb.values.rank_table import LoDRankTable

#: The developer guide's batch: sequences of 5, 3, 2 and 4 steps.
LENGTHS = [[5, 3, 2, 4]]
X = np.arange(28.0).reshape(14, 2)
TABLE = LoDRankTable(((0, 5, 8, 10, 14),))
#: Rows of X that each step has, the longest sequence first.
STEPS = [[0, 10, 5, 8], [1, 11, 6, 9], [2, 12, 7], [3, 13], [4]]
ARRAY = LoDTensorArray([X[rows] for rows in STEPS])
#: Two groups: of sequences of 2 and 1 rows, and one of 3.
NESTED, NESTED_TABLE = [[2, 1], [2, 1, 3]], LoDRankTable(((0, 2, 3), (0, 2, 3, 6)))
NESTED_X = np.arange(6.0).reshape(6, 1)


def tensor(array, lengths):
    made = LoDTensor(np.array(array))
    made.set_recursive_sequence_lengths(lengths)
    return made


NESTED_ARRAY = LoDTensorArray([tensor(NESTED_X[[0, 1, 3, 4, 5]], [[2, 3]]), tensor(NESTED_X[[2]], [[1]])])


class TestLodRankTable(OpTest):
    op_type, inputs, outputs = "lod_rank_table", {"X": (X, LENGTHS)}, {"Out": TABLE}

    def test_output(self):
        self.check_output()


class TestLodRankTableOfAnInnerLevel(TestLodRankTable):
    inputs, attrs = {"X": (NESTED_X, NESTED)}, {"level": 1}
    outputs = {"Out": LoDRankTable(((0, 2, 3), (0, 2, 3, 6)), 1)}


class TestMaxSequenceLen(OpTest):
    op_type, inputs, outputs = "max_sequence_len", {"RankTable": TABLE}, {"Out": np.array([5])}

    def test_output(self):
        self.check_output()


class TestMaxSequenceLenOfNone(TestMaxSequenceLen):
    inputs, outputs = {"RankTable": LoDRankTable(((0, 0),))}, {"Out": np.array([0])}


class TestLodTensorToArray(OpTest):
    op_type, inputs, outputs = "lod_tensor_to_array", {"X": (X, LENGTHS), "RankTable": TABLE}, {"Out": ARRAY}

    def test_output(self):
        self.check_output()


class TestAnEmptySequenceHasNoSteps(TestLodTensorToArray):
    inputs = {"X": (X[:3], [[0, 2, 0, 1]]), "RankTable": LoDRankTable(((0, 0, 2, 2, 3),))}
    outputs = {"Out": LoDTensorArray([X[[0, 2]], X[[1]]])}


class TestStepsOfSequencesOfSequences(TestLodTensorToArray):
    inputs, outputs = {"X": (NESTED_X, NESTED), "RankTable": NESTED_TABLE}, {"Out": NESTED_ARRAY}


class TestArrayToLodTensor(OpTest):
    op_type, inputs, outputs = "array_to_lod_tensor", {"X": ARRAY, "RankTable": TABLE}, {"Out": (X, LENGTHS)}

    def test_output(self):
        got = run_op(self.op_type, self.inputs)["Out"]
        want_x, want_lengths = self.outputs["Out"]
        assert np.array_equal(got.array, want_x) and got.recursive_sequence_lengths() == want_lengths


class TestEmptySequencesComeBack(TestArrayToLodTensor):
    inputs = {**TestAnEmptySequenceHasNoSteps.inputs, "X": TestAnEmptySequenceHasNoSteps.outputs["Out"]}
    outputs = {"Out": TestAnEmptySequenceHasNoSteps.inputs["X"]}


class TestSequencesOfSequencesComeBack(TestArrayToLodTensor):
    inputs, outputs = {"X": NESTED_ARRAY, "RankTable": NESTED_TABLE}, {"Out": (NESTED_X, NESTED)}


class TestTheLevelsAboveComeBack(TestArrayToLodTensor):
    table = LoDRankTable(((0, 2, 3), (0, 2, 3, 6)), 1)
    inputs = {"X": LoDTensorArray([NESTED_X[[3, 0, 2]], NESTED_X[[4, 1]], NESTED_X[[5]]]), "RankTable": table}
    outputs = {"Out": (NESTED_X, NESTED)}


class TestShrinkRnnMemory(OpTest):
    op_type, inputs = "shrink_rnn_memory", {"X": X[:4], "RankTable": TABLE, "I": np.array([2])}
    outputs = {"Out": X[:3]}

    def test_output(self):
        self.check_output()

    def test_grad(self):
        self.check_grad("X")


class TestShrinkNothing(TestShrinkRnnMemory):
    inputs, outputs = {**TestShrinkRnnMemory.inputs, "I": np.array([1])}, {"Out": X[:4]}


class TestShrinkToNothing(TestShrinkRnnMemory):
    inputs, outputs = {**TestShrinkRnnMemory.inputs, "I": np.array([5])}, {"Out": X[:0]}


class TestShrinkSequences(TestShrinkRnnMemory):
    inputs, outputs = {**TestShrinkRnnMemory.inputs, "X": (X[:6], [[1, 2, 0, 3]])}, {"Out": (X[:3], [[1, 2, 0]])}


class TestRnnMemoryHelper(OpTest):
    op_type, inputs, outputs = "rnn_memory_helper", {"X": X}, {"Out": X}

    def test_output(self):
        self.check_output()

    def test_grad(self):
        self.check_grad("X")


class TestReorderLodTensorByRank(OpTest):
    op_type, inputs = "reorder_lod_tensor_by_rank", {"X": X[:4], "RankTable": TABLE}
    outputs = {"Out": X[[0, 3, 1, 2]]}

    def test_output(self):
        self.check_output()

    def test_grad(self):
        self.check_grad("X")


class TestReorderSequences(TestReorderLodTensorByRank):
    inputs = {"X": (X[:6], [[1, 2, 0, 3]]), "RankTable": TABLE}
    outputs = {"Out": (X[[0, 3, 4, 5, 1, 2]], [[1, 3, 2, 0]])}

    def test_grad(self):
        dout = (X[[0, 3, 4, 5, 1, 2]], [[1, 3, 2, 0]])
        got = run_op("reorder_lod_tensor_by_rank_grad", {"X": dout, "RankTable": TABLE}, outputs=["Out"])["Out"]
        assert np.array_equal(got.array, X[:6]) and got.recursive_sequence_lengths() == [[1, 2, 0, 3]]


def test_the_helper_gives_zero_where_nobody_asked():
    got = run_op("rnn_memory_helper_grad", {"X": X, "Out@GRAD": LoDTensor()}, outputs=["X@GRAD"])["X@GRAD"]
    assert np.array_equal(got, np.zeros_like(X))
    got = run_op("shrink_rnn_memory_grad", {"X": X, "Out@GRAD": LoDTensor()}, outputs=["X@GRAD"])["X@GRAD"]
    assert np.array_equal(got, np.zeros_like(X))


def test_steps_and_sequences_are_each_others_gradients():
    for one, other in (("lod_tensor_to_array", "array_to_lod_tensor"), ("array_to_lod_tensor", "lod_tensor_to_array")):
        desc = OpDesc(one, {"X": ["x"], "RankTable": ["t"]}, {"Out": ["y"]})
        (made,) = make_grad(desc)
        assert (made.optype, made.outs) == (other, {"Out": ["x@GRAD"]})
        like = {"X_W": ["x"]} if one == "lod_tensor_to_array" else {}
        assert made.ins == {"X": ["y@GRAD"], "RankTable": ["t"], **like}
        assert make_grad(desc, {"x"}) == []


def test_a_gradient_that_lost_its_lod_is_cut_like_the_table():
    got = run_op("lod_tensor_to_array", {"X": X, "RankTable": TABLE})["Out"]
    assert [t.array.tolist() for t in got] == [t.array.tolist() for t in ARRAY]


def test_steps_that_were_never_read_have_no_gradient():
    for elements, zero in ((ARRAY[:3], STEPS[3] + STEPS[4]), ([LoDTensor(), *ARRAY[1:]], STEPS[0]), ([], range(14))):
        inputs = {"X": LoDTensorArray(elements), "RankTable": TABLE, "X_W": (X + 1, LENGTHS)}
        got = run_op("array_to_lod_tensor", inputs)["Out"]
        want = X.copy()
        want[list(zero)] = 0
        assert np.array_equal(got.array, want) and got.recursive_sequence_lengths() == LENGTHS
    inputs = {"X": LoDTensorArray(NESTED_ARRAY[:1]), "RankTable": NESTED_TABLE, "X_W": (NESTED_X, NESTED)}
    got = run_op("array_to_lod_tensor", inputs)["Out"]
    assert got.array.ravel().tolist() == [0, 1, 0, 3, 4, 5] and got.recursive_sequence_lengths() == NESTED


def test_what_cannot_be_ranked_or_cut():
    with pytest.raises(RuleError, match="ranks the sequences of level 0, and X has no such level"):
        run_op("lod_rank_table", {"X": X})
    with pytest.raises(RuleError, match="The sequences of X are not those of the table") as e:
        run_op("lod_tensor_to_array", {"X": (X, [[3, 5, 2, 4]]), "RankTable": TABLE})
    assert (e.value.expected, e.value.received) == ("lengths [5, 3, 2, 4]", "lengths [3, 5, 2, 4]")
    with pytest.raises(RuleError, match="X has no sequences at the level of the table"):
        run_op("lod_tensor_to_array", {"X": X[:5], "RankTable": TABLE})
    with pytest.raises(RuleError, match="fewer rows than unfinished sequences"):
        run_op("shrink_rnn_memory", {"X": X[:2], "RankTable": TABLE, "I": [0]})
    with pytest.raises(RuleError, match=r"Input\(I\) of shrink_rnn_memory must have the shape \[1\]"):
        run_op("shrink_rnn_memory", {"X": X[:4], "RankTable": TABLE, "I": [0, 1]})
    with pytest.raises(RuleError, match="takes as many sequences as the table has") as e:
        run_op("reorder_lod_tensor_by_rank", {"X": X[:3], "RankTable": TABLE})
    assert (e.value.expected, e.value.received) == (4, "3 in X")


def test_arrays_that_are_not_a_batch():
    def join(*elements):
        run_op("array_to_lod_tensor", {"X": LoDTensorArray(elements), "RankTable": TABLE})

    with pytest.raises(EnforceNotMet, match="There's no element in the input array."):
        join()
    with pytest.raises(EnforceNotMet, match="differs from previous ones") as e:
        join(*ARRAY[:3], np.ones((2, 3)), ARRAY[4])
    assert "The dimension of the 3'th element in LoDTensorArray differs from previous ones." in str(e.value)
    assert (e.value.expected, e.value.received) == ("float64[-1, 2]", "float64[2, 3]")
    with pytest.raises(EnforceNotMet, match="not as many elements as the longest sequence"):
        join(*ARRAY[:4])
    with pytest.raises(EnforceNotMet, match="Nothing has been written to index 1 of X"):
        join(ARRAY[0], LoDTensor(), *ARRAY[2:])
    with pytest.raises(EnforceNotMet, match="The 2'th element of X has not a row for each unfinished sequence") as e:
        join(*ARRAY[:2], np.ones((4, 2)), *ARRAY[3:])
    assert (e.value.expected, e.value.received) == (3, 4)


@pytest.mark.parametrize("keep", [False, True])
def test_the_four_steps_of_the_guide_with_other_lengths_in_each_run(keep):
    """Rank, step through, come back: the layers, over batches that differ in lengths and size."""
    layers, exe = fluid.layers, fluid.Executor(fluid.CPUPlace())
    x = layers.data("x", [2], dtype="float64", lod_level=1, stop_gradient=False)
    table = layers.lod_rank_table(x)
    array = layers.lod_tensor_to_array(x, table)
    first = layers.array_read(array, layers.zeros([1], "int64"))
    second = layers.shrink_memory(first, layers.ones([1], "int64"), table)
    back = layers.array_to_lod_tensor(array, table)
    ordered = layers.reorder_lod_tensor_by_rank(x, table)
    fetch = [array, layers.max_sequence_len(table), second, back, ordered, table]
    (dx,) = fluid.gradients([layers.mean(layers.square(back)), layers.mean(ordered)], x)
    rng = np.random.default_rng(3)
    for lengths in ([5, 3, 2, 4], [1, 2], [5, 3, 2, 4], [3, 3, 3], [1, 0, 4], [1, 2]):
        rows = rng.normal(size=(sum(lengths), 2))
        feed = {"x": fluid.create_lod_tensor(rows, [lengths], fluid.CPUPlace())}
        got = exe.run(feed=feed, fetch_list=[*fetch, dx], return_numpy=False, keep_scopes=keep)
        order = sorted(range(len(lengths)), key=lambda i: -lengths[i])
        starts = np.cumsum([0, *lengths])
        steps = [rows[[starts[i] + t for i in order if lengths[i] > t]] for t in range(max(lengths))]
        assert [t.array.tolist() for t in got[0]] == [s.tolist() for s in steps]
        assert np.asarray(got[1]).tolist() == [max(lengths)]
        assert np.array_equal(got[2], steps[0][: sum(n > 1 for n in lengths)])
        assert np.array_equal(got[3], rows) and got[3].recursive_sequence_lengths() == [lengths]
        assert np.array_equal(got[4], np.concatenate([rows[starts[i] : starts[i + 1]] for i in order]))
        assert got[4].recursive_sequence_lengths() == [[lengths[i] for i in order]]
        assert got[5].items() == [(i, lengths[i]) for i in order]
        assert np.allclose(got[6], (2 * rows + 1) / rows.size)
        assert got[6].recursive_sequence_lengths() == [lengths]


@pytest.mark.parametrize(
    ("like", "message"),
    [((X[:, :1], LENGTHS), "Element 0 of"), ((X[:4], [[1, 3]]), "sequences of the"), (X, "sequences of the table")],
)
def test_what_a_gradient_looks_like_has_the_sequences_of_the_table_and_rows_of_the_array(like, message):
    inputs = {"X": ARRAY, "RankTable": TABLE, "X_W": like}
    with pytest.raises(RuleError, match=message):
        run_op("array_to_lod_tensor", inputs)
