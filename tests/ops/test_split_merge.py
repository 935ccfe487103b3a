"""Rows and sequences that go two ways and come together again."""

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.errors import EnforceNotMet
from fluidnb.op import RuleError, get_op, make_grad
from fluidnb.proto.desc import OpDesc
from fluidnb.testing import OpTest, run_op
from fluidnb.values import LoDTensor
from tests.tools.refused import refused

ROWS = np.arange(8.0).reshape(4, 2)
MASK = np.array([[True], [False], [False], [True]])
#: Four sequences of 2, 1, 0 and 3 rows.
LENGTHS = [[2, 1, 0, 3]]
SEQUENCES = np.arange(12.0).reshape(6, 2)
#: Two groups, of 1 and 3 sequences; the second sequence of the second group is empty.
NESTED = [[1, 3], [2, 1, 0, 3]]


class TestSplitLodTensor(OpTest):
    op_type, inputs, attrs = "split_lod_tensor", {"X": ROWS, "Mask": MASK}, {}
    outputs = {"OutTrue": ROWS[[0, 3]], "OutFalse": ROWS[[1, 2]]}

    def test_output(self):
        self.check_output()

    def test_grad(self):
        self.check_grad("X", ["OutTrue", "OutFalse"])


class TestSplitByAVectorOfBools(TestSplitLodTensor):
    inputs = {"X": ROWS, "Mask": MASK.reshape(-1)}


class TestSplitAllOneWay(TestSplitLodTensor):
    inputs, outputs = {"X": ROWS, "Mask": MASK | True}, {"OutTrue": ROWS, "OutFalse": ROWS[:0]}


class TestSplitSequences(TestSplitLodTensor):
    inputs = {"X": (SEQUENCES, LENGTHS), "Mask": MASK}
    outputs = {"OutTrue": (SEQUENCES[[0, 1, 3, 4, 5]], [[2, 3]]), "OutFalse": (SEQUENCES[[2]], [[1, 0]])}


class TestSplitGroups(TestSplitLodTensor):
    inputs = {"X": (SEQUENCES, NESTED), "Mask": MASK[:2]}
    outputs = {"OutTrue": (SEQUENCES[:2], [[1], [2]]), "OutFalse": (SEQUENCES[2:], [[3], [1, 0, 3]])}


class TestSplitTheSequencesOfGroups(TestSplitSequences):
    """The groups are left behind."""

    inputs, attrs = {"X": (SEQUENCES, NESTED), "Mask": MASK}, {"level": 1}


def test_a_side_without_sequences_has_their_level():
    got = run_op("split_lod_tensor", {"X": (SEQUENCES, LENGTHS), "Mask": MASK | True})
    assert got["OutFalse"].array.shape == (0, 2) and got["OutFalse"].lod_ == ((0,),)


class TestMergeLodTensor(OpTest):
    op_type, attrs = "merge_lod_tensor", {}
    inputs = {"X": ROWS, "Mask": MASK, "InTrue": ROWS[:2] + 10, "InFalse": ROWS[:2]}
    outputs = {"Out": np.stack([ROWS[0] + 10, ROWS[0], ROWS[1], ROWS[1] + 10])}

    def test_output(self):
        self.check_output()

    def test_grad(self):
        self.check_grad(["InTrue", "InFalse"])
        self.check_grad("InTrue", no_grad_set=["InFalse"])


class TestMergeLodTensorInfer(TestMergeLodTensor):
    op_type = "merge_lod_tensor_infer"


class TestMergeOneWay(TestMergeLodTensor):
    inputs = {"X": ROWS, "Mask": ~MASK & False, "InTrue": ROWS[:0], "InFalse": ROWS}
    outputs = {"Out": ROWS}

    def test_grad(self):
        self.check_grad("InFalse", no_grad_set=["InTrue"])


class TestMergeSequences(OpTest):
    op_type, attrs = "merge_lod_tensor", {}
    inputs = {
        "X": (SEQUENCES, LENGTHS), "Mask": MASK,
        "InTrue": (SEQUENCES[[0, 1, 3, 4, 5]], [[2, 3]]), "InFalse": (SEQUENCES[[2]], [[1, 0]]),
    }  # fmt: skip
    outputs = {"Out": (SEQUENCES, LENGTHS)}

    def test_output(self):
        self.check_output()


class TestMergeGroups(TestMergeSequences):
    inputs = {
        "X": (SEQUENCES, NESTED), "Mask": ~MASK[:2],
        "InTrue": (SEQUENCES[2:], [[3], [1, 0, 3]]), "InFalse": (SEQUENCES[:2], [[1], [2]]),
    }  # fmt: skip
    outputs = {"Out": (SEQUENCES, NESTED)}


class TestMergeTheSequencesOfGroups(TestMergeSequences):
    """The groups come back from X."""

    attrs, inputs = {"level": 1}, {**TestMergeSequences.inputs, "X": (SEQUENCES, NESTED)}
    outputs = {"Out": (SEQUENCES, NESTED)}


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize(("level", "lengths", "mask"), [(0, LENGTHS, MASK), (0, NESTED, MASK[:2]), (1, NESTED, MASK)])
def test_gradients_of_sequences(level, lengths, mask, keep):
    layers, exe = fluid.layers, fluid.Executor(fluid.CPUPlace())
    x = layers.data("x", [2], dtype="float64", lod_level=len(lengths), stop_gradient=False)
    m = layers.data("m", [1], dtype="bool")
    true, false = layers.split_lod_tensor(x, m, level)
    out = layers.merge_lod_tensor(layers.scale(true, scale=3.0), layers.square(false), x, m, level)
    (dx,) = fluid.gradients(layers.mean(out), x)
    assert out.lod_level == len(lengths) and dx.shape == (-1, 2)
    feed = {"x": fluid.create_lod_tensor(SEQUENCES, lengths, fluid.CPUPlace()), "m": mask}
    for _ in range(2):
        got, grad = exe.run(feed=feed, fetch_list=[out, dx], return_numpy=False, keep_scopes=keep)
        rows = mask.reshape(-1)
        if len(lengths) > 1 and level == 0:
            rows = np.repeat(rows, lengths[0])
        rows = np.repeat(rows, lengths[-1])[:, None]
        assert got.recursive_sequence_lengths() == grad.recursive_sequence_lengths() == lengths
        assert np.allclose(got, np.where(rows, SEQUENCES * 3, SEQUENCES**2))
        assert np.allclose(grad, np.where(rows, 3, SEQUENCES * 2) / 12)


class TestMergeWhatTheSidesMadeOfSequences(TestMergeLodTensor):
    """A side may answer with a row for each sequence."""

    inputs = {**TestMergeLodTensor.inputs, "X": (SEQUENCES, LENGTHS)}


def test_a_side_that_was_never_run_has_no_rows():
    never, there = {"InTrue": LoDTensor()}, {"X": ROWS, "InFalse": ROWS}
    assert run_op("merge_lod_tensor", {**there, **never, "Mask": MASK & False})["Out"].tolist() == ROWS.tolist()
    with pytest.raises(RuleError, match="as many rows as the mask marks for InTrue") as e:
        run_op("merge_lod_tensor", {**there, **never, "Mask": MASK})
    assert (e.value.expected, e.value.received) == (2, "0 in InTrue")
    with pytest.raises(RuleError, match="neither InTrue nor InFalse has a value"):
        run_op("merge_lod_tensor", {"X": ROWS, "Mask": MASK, **never, "InFalse": LoDTensor()})


def test_masks_that_do_not_fit():
    for mask, words in (
        (np.ones((4, 1)), "must be a bool for each row"),
        (np.ones((2, 2), bool), "must be a bool for each row"),
        (np.ones((3, 1), bool), "an element for each row of X"),
    ):
        with refused(RuleError, words):
            run_op("split_lod_tensor", {"X": ROWS, "Mask": mask})
    with pytest.raises(RuleError, match="for each sequence of X") as e:
        run_op("split_lod_tensor", {"X": (SEQUENCES, LENGTHS), "Mask": MASK[:3]})
    assert (e.value.expected, e.value.received) == ("4 elements", "3 elements")
    with pytest.raises(RuleError, match="must name a level of X"):
        run_op("split_lod_tensor", {"X": ROWS, "Mask": MASK}, {"level": 1})


def test_sides_that_do_not_fit():
    rest = {"X": ROWS, "Mask": MASK}
    with pytest.raises(RuleError, match="rows of one shape and dtype"):
        run_op("merge_lod_tensor", {**rest, "InTrue": ROWS[:2], "InFalse": ROWS[:2, :1]})
    with pytest.raises(RuleError, match="as many levels of sequences"):
        run_op("merge_lod_tensor", {**rest, "InTrue": (ROWS[:2], [[1, 1]]), "InFalse": ROWS[:2]})


def test_the_gradients_are_each_other():
    split = OpDesc("split_lod_tensor", {"X": ["x"], "Mask": ["m"]}, {"OutTrue": ["t"], "OutFalse": ["f"]}, {"level": 1})
    (made,) = make_grad(split)
    assert (made.optype, made.outs, made.attr("level")) == ("merge_lod_tensor", {"Out": ["x@GRAD"]}, 1)
    assert made.ins == {"X": ["x"], "Mask": ["m"], "InTrue": ["t@GRAD"], "InFalse": ["f@GRAD"]}
    merge = OpDesc("merge_lod_tensor", {"X": ["x"], "Mask": ["m"], "InTrue": ["t"], "InFalse": ["f"]}, {"Out": ["o"]})
    (made,) = make_grad(merge)
    assert (made.optype, made.outs) == ("split_lod_tensor", {"OutTrue": ["t@GRAD"], "OutFalse": ["f@GRAD"]})
    assert made.ins == {"X": ["o@GRAD"], "Mask": ["m"]}
    assert make_grad(split, {"x"}) == make_grad(merge, {"t", "f"}) == []


@pytest.mark.parametrize("keep", [False, True])
def test_masks_change_from_run_to_run(keep):
    layers, exe = fluid.layers, fluid.Executor(fluid.CPUPlace())
    x = layers.data("x", [2], dtype="float64")
    true, false = layers.split_lod_tensor(x, mask=layers.data("m", [1], dtype="bool"))
    whole = layers.merge_lod_tensor(
        layers.scale(true, scale=10.0), false, x, fluid.default_main_program().global_block().var("m")
    )
    for bits in (0b1001, 0b0110, 0b1111, 0b0000, 0b0001, 0b1001):
        mask = np.array([[bool(bits >> i & 1)] for i in range(4)])
        got = exe.run(feed={"x": ROWS, "m": mask}, fetch_list=[true, false, whole], keep_scopes=keep)
        rows = mask.reshape(-1)
        for have, want in zip(got, (ROWS[rows], ROWS[~rows], np.where(mask, ROWS * 10, ROWS)), strict=True):
            assert np.array_equal(have, want), bits


def test_a_mask_without_a_value_is_reported():
    x = fluid.layers.data("x", [2])
    block = fluid.default_main_program().global_block()
    mask = block.create_var(name="m", shape=[4, 1], dtype="bool")
    true, _ = fluid.layers.split_lod_tensor(x, mask)
    with pytest.raises(EnforceNotMet, match="Input Mask of split_lod_tensor holds no memory"):
        fluid.Executor().run(feed={"x": ROWS.astype("float32")}, fetch_list=[true])


def test_rows_that_are_not_marked_do_not_bind_again():
    """Only how many rows go each way counts, so that training does not bind for every batch."""
    guard = get_op("split_lod_tensor").guard

    class Seen(dict):
        def lod(self, slot):
            return ()

    assert guard(Seen(Mask=MASK)) == guard(Seen(Mask=~MASK)) == 2
