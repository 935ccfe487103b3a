"""Pooling, softmax and repeating of sequences, against numpy one sequence at a time."""

import numpy as np
import pytest

from fluidnb.op import RuleError
from fluidnb.testing import OpTest, run_op
from tests.ops.cases import Differentiable, distinct, family, values
from tests.ops.sequence_cases import LENGTHS, each, joined, outer, rows, split, starts
from tests.tools.refused import refused

PAD = 0.5
POOLS = {
    "AVERAGE": lambda x: x.mean(0),
    "SUM": lambda x: x.sum(0),
    "SQRT": lambda x: x.sum(0) / np.sqrt(len(x)),
    "MAX": lambda x: x.max(0),
    "LAST": lambda x: x[-1],
    "FIRST": lambda x: x[0],
}


def pooled(x, lengths, kind):
    out = np.stack([POOLS[kind](p) if len(p) else np.full(x.shape[1:], PAD) for p in split(x, lengths)])
    index = np.zeros(out.shape, "int32")
    if kind == "MAX":
        parts = zip(split(x, lengths), starts(lengths), strict=True)
        index = np.stack([p.argmax(0) + s if len(p) else np.full(x.shape[1:], -1) for p, s in parts]).astype("int32")
    return {"Out": outer(out, lengths), "MaxIndex": index}


def pool_cases(*width):
    for kind in POOLS:
        for name, lengths in LENGTHS.items():
            x = distinct(rows(lengths), *width)
            yield f"sequence_pool/{kind}{len(width)}{name}", {
                "inputs": {"X": (x, lengths)}, "attrs": {"pooltype": kind, "pad_value": PAD},
                "outputs": pooled(x, lengths, kind),
            }  # fmt: skip


family(globals(), Differentiable, dict(pool_cases(3)))
family(globals(), Differentiable, dict(pool_cases(2, 2)))

LONG = values(40, 70)
family(
    globals(),
    Differentiable,
    {
        f"sequence_pool/long_{kind}": {
            "inputs": {"X": (LONG, [[25, 15]])}, "attrs": {"pooltype": kind}, "outputs": pooled(LONG, [[25, 15]], kind),
        }
        for kind in ("AVERAGE", "MAX")
    },
)  # fmt: skip


def softmax(x):
    e = np.exp(x - x.max()) if len(x) else x
    return e / e.sum()


family(
    globals(),
    Differentiable,
    {
        f"sequence_softmax{name or '/plain'}": {
            "inputs": {"X": (x, lengths)}, "outputs": {"Out": (each(x, lengths, softmax), lengths)},
        }
        for name, lengths in LENGTHS.items()
        for x in [values(rows(lengths), 1)]
    },
)  # fmt: skip


def repeated(x, counts):
    return np.repeat(x, counts, axis=0)


X, Y = values(3, 2), np.zeros((6, 1))
SEQUENCES, DEEP = values(6, 2), [[2, 1], [2, 3, 1]]
family(
    globals(),
    Differentiable,
    {
        "sequence_expand/rows": {
            "inputs": {"X": X, "Y": (Y, [[2, 3, 1]])}, "outputs": {"Out": repeated(X, [2, 3, 1])}, "grads": ("X",),
        },
        "sequence_expand/none": {
            "inputs": {"X": X, "Y": (Y, [[0, 4, 2]])}, "outputs": {"Out": repeated(X, [0, 4, 2])}, "grads": ("X",),
        },
        "sequence_expand/last_level": {
            "inputs": {"X": X, "Y": (Y, DEEP)}, "outputs": {"Out": repeated(X, [2, 3, 1])}, "grads": ("X",),
        },
        "sequence_expand/first_level": {
            "inputs": {"X": X[:2], "Y": (Y, DEEP)}, "attrs": {"ref_level": 0},
            "outputs": {"Out": repeated(X[:2], [2, 1])}, "grads": ("X",),
        },
        "sequence_expand/sequences": {
            "inputs": {"X": (SEQUENCES, [[4, 2]]), "Y": (Y, DEEP)}, "attrs": {"ref_level": 0},
            "outputs": {"Out": (joined([SEQUENCES[:4], SEQUENCES]), [[4, 4, 2]])}, "grads": ("X",),
        },
        "sequence_expand/sequences_left_out": {
            "inputs": {"X": (SEQUENCES, [[1, 3, 2]]), "Y": (Y, [[2, 0, 4]])},
            "outputs": {"Out": (joined([SEQUENCES[[0, 0]], *[SEQUENCES[4:]] * 4]), [[1, 1, 2, 2, 2, 2]])},
            "grads": ("X",),
        },
        "sequence_expand_as": {
            "inputs": {"X": X, "Y": (Y, [[2, 3, 1]])}, "outputs": {"Out": (repeated(X, [2, 3, 1]), [[2, 3, 1]])},
            "grads": ("X",),
        },
        "sequence_expand_as/empty": {
            "inputs": {"X": X, "Y": (Y, [[0, 6, 0]])}, "outputs": {"Out": (repeated(X, [0, 6, 0]), [[0, 6, 0]])},
            "grads": ("X",),
        },
    },
)  # fmt: skip


class TestTheFirstOfSeveralLargest(OpTest):
    op_type, attrs = "sequence_pool", {"pooltype": "MAX"}
    inputs = {"X": (np.array([[1.0, 2.0], [3.0, 2.0], [3.0, 0.0]]), [[3]])}
    outputs = {"Out": np.array([[3.0, 2.0]]), "MaxIndex": np.array([[1, 0]], "int32")}

    def test_output(self):
        self.check_output()


def test_only_empty_sequences():
    for kind in POOLS:
        got = run_op("sequence_pool", {"X": (np.zeros((0, 3)), [[0, 0]])}, {"pooltype": kind, "pad_value": 2.0})
        assert got["Out"].tolist() == [[2, 2, 2], [2, 2, 2]], kind
    assert run_op("sequence_softmax", {"X": (np.zeros((0, 1)), [[0]])})["Out"].array.shape == (0, 1)


@pytest.mark.parametrize(
    ("op", "inputs", "attrs", "message"),
    [
        ("sequence_pool", {"X": X}, {}, "does not contain LoD information"),
        ("sequence_softmax", {"X": X[:, :1]}, {}, "does not contain LoD information"),
        ("sequence_softmax", {"X": (X, [[3]])}, {}, "The width of each timestep"),
        ("sequence_expand", {"X": X, "Y": Y}, {}, "does not contain LoD information"),
        ("sequence_expand", {"X": X, "Y": (Y, [[6]])}, {}, "one row for each sequence"),
        ("sequence_expand", {"X": (X, [[3]]), "Y": (Y, [[3, 3]])}, {}, "one sequence for each sequence"),
        ("sequence_expand", {"X": (X, [[1], [3]]), "Y": (Y, [[6]])}, {}, "should not be greater than 1"),
        ("sequence_expand", {"X": X, "Y": (Y, [[2, 3, 1]])}, {"ref_level": 1}, "Invalid Attr.ref_level"),
        ("sequence_expand_as", {"X": X, "Y": (Y, DEEP)}, {}, "another depth"),
        ("sequence_expand_as", {"X": X, "Y": (Y, [[6]])}, {}, "one row for each sequence"),
    ],
)
def test_what_does_not_fit(op, inputs, attrs, message):
    with refused(RuleError, message):
        run_op(op, inputs, attrs)
