"""Filters over sequences and what rearranges them, against numpy one sequence at a time."""

import numpy as np
import pytest

from fluidnb.errors import EnforceNotMet, OpValueError
from fluidnb.op import RuleError
from fluidnb.testing import run_op
from tests.ops.cases import Differentiable, Forward, family, values
from tests.ops.sequence_cases import LENGTHS, each, joined, rows, split
from tests.tools.refused import refused

FLAT = {name: lengths for name, lengths in LENGTHS.items() if len(lengths) == 1}


def with_context(x, start, count, padding=None):
    """Each row's neighbours side by side; padding holds the rows before the sequence, then those after it."""
    above = max(-start, 0)
    blank = np.zeros((above + max(start + count - 1, 0), x.shape[1])) if padding is None else padding
    whole = joined([blank[:above], x, blank[above:]])
    places = [[above + t + start + k for k in range(count)] for t in range(len(x))]
    return whole[np.array(places, int).reshape(len(x), count)].reshape(len(x), count * x.shape[1])


def conv_cases():
    for name, lengths in FLAT.items():
        for start, count in ((-1, 3), (0, 2), (-3, 2), (1, 2), (-2, 5)):
            x, weight = values(rows(lengths), 2, seed=1), values(count * 2, 3, seed=2)
            attrs = {"contextStart": start, "contextLength": count}
            out = each(x, lengths, lambda part, s=start, c=count: with_context(part, s, c)) @ weight
            yield f"sequence_conv/{start + 5}_{count}{name}", {
                "inputs": {"X": (x, lengths), "Filter": weight}, "attrs": attrs, "outputs": {"Out": (out, lengths)},
            }  # fmt: skip
            padding = values(max(-start, 0) + max(start + count - 1, 0), 2, seed=3)
            if len(padding) and start <= 0:
                out = each(x, lengths, lambda p, s=start, c=count, pad=padding: with_context(p, s, c, pad)) @ weight
                yield f"sequence_conv/trained_{start + 5}_{count}{name}", {
                    "inputs": {"X": (x, lengths), "PaddingData": padding, "Filter": weight},
                    "attrs": attrs | {"paddingTrainable": True}, "outputs": {"Out": (out, lengths)},
                }  # fmt: skip


family(globals(), Differentiable, dict(conv_cases()))
family(
    globals(),
    Differentiable,
    {
        f"row_conv/{count}{name}": {
            "inputs": {"X": (x, lengths), "Filter": weight}, "outputs": {"Out": (out, lengths)},
        }
        for name, lengths in LENGTHS.items()
        for count in (1, 3)
        for x, weight in [(values(rows(lengths), 2, seed=1), values(count, 2, seed=2))]
        for out in [
            each(x, lengths, lambda p, w=weight: (with_context(p, 0, len(w)).reshape(-1, *w.shape) * w).sum(1))
        ]
    },
)  # fmt: skip

family(
    globals(),
    Differentiable,
    {
        f"row_conv/batch_{steps}_{count}": {"inputs": {"X": x, "Filter": weight}, "outputs": {"Out": np.stack(out)}}
        for steps, count in ((4, 3), (2, 3), (1, 1), (3, 1))
        for x, weight in [(values(2, steps, 3, seed=1), values(count, 3, seed=2))]
        for out in [[(with_context(part, 0, count).reshape(-1, *weight.shape) * weight).sum(1) for part in x]]
    },
)

A, B = values(6, 2, seed=1), values(4, 2, seed=2)
PARTS = zip(split(A, [[2, 3, 1]]), split(B, [[1, 0, 3]]), strict=True)
X, PAD = values(6, 2), np.array([0.25, 0.75])
LENGTH = [[2, 0, 4]]


def padded(x, lengths, steps, fill):
    out = np.zeros((len(lengths[0]), steps, *x.shape[1:])) + fill
    for row, part in zip(out, split(x, lengths), strict=True):
        row[: len(part)] = part
    return {"Out": out, "Length": np.array(lengths[0])}


family(
    globals(),
    Differentiable,
    {
        "sequence_concat": {
            "inputs": {"X": [(A, [[2, 3, 1]]), (B, [[1, 0, 3]])]},
            "outputs": {"Out": (joined([p for pair in PARTS for p in pair]), [[3, 3, 4]])},
        },
        "sequence_concat/one": {"inputs": {"X": [(A, [[2, 4]])]}, "outputs": {"Out": (A, [[2, 4]])}},
        "sequence_reshape/narrow": {
            "inputs": {"X": (X, LENGTH)}, "attrs": {"new_dim": 1},
            "outputs": {"Out": (X.reshape(12, 1), [[4, 0, 8]])},
        },
        "sequence_reshape/wide": {
            "inputs": {"X": (X, LENGTH)}, "attrs": {"new_dim": 4}, "outputs": {"Out": (X.reshape(3, 4), [[1, 0, 2]])},
        },
        **{
            f"sequence_reverse{name or '/plain'}": {
                "inputs": {"X": (x, lengths)}, "outputs": {"Y": (each(x, lengths, lambda part: part[::-1]), lengths)},
            }
            for name, lengths in LENGTHS.items()
            for x in [values(rows(lengths), 2, 2)]
        },
        "sequence_pad": {
            "inputs": {"X": (X, LENGTH), "PadValue": np.array([0.5])}, "outputs": padded(X, LENGTH, 4, 0.5),
            "grads": ("X",), "loss": ("Out",),
        },
        "sequence_pad/row": {
            "inputs": {"X": (X, LENGTH), "PadValue": PAD}, "attrs": {"padded_length": 5},
            "outputs": padded(X, LENGTH, 5, PAD), "grads": ("X",), "loss": ("Out",),
        },
        "sequence_unpad": {
            "inputs": {"X": values(3, 4, 2), "Length": np.array([2, 0, 4])},
            "outputs": {"Out": (joined([values(3, 4, 2)[0, :2], values(3, 4, 2)[2]]), LENGTH)}, "grads": ("X",),
        },
        "sequence_unpad/columns": {
            "inputs": {"X": values(2, 3), "Length": np.array([[1], [3]])},
            "outputs": {"Out": (np.append(values(2, 3)[0, :1], values(2, 3)[1])[:, None], [[1, 3]])}, "grads": ("X",),
        },
        "sequence_slice": {
            "inputs": {"X": (A, [[2, 3, 1]]), "Offset": np.array([[1], [0], [0]]), "Length": np.array([[1], [2], [0]])},
            "outputs": {"Out": (A[[1, 2, 3]], [[1, 2, 0]])}, "grads": ("X",),
        },
        "sequence_scatter": {
            "inputs": {
                "X": values(3, 4), "Ids": (np.array([[0], [2], [1], [1], [3], [0]]), [[2, 0, 4]]),
                "Updates": (values(6, 1), [[2, 0, 4]]),
            },
            "outputs": {"Out": values(3, 4) + np.array([
                [values(6, 1)[0, 0], 0, values(6, 1)[1, 0], 0], [0] * 4,
                [values(6, 1)[5, 0], values(6, 1)[2:4].sum(), 0, values(6, 1)[4, 0]],
            ])},
            "grads": ("X", "Updates"),
        },
    },
)  # fmt: skip

WORDS = np.array([[3], [1], [4], [1], [5], [9]])
family(
    globals(),
    Forward,
    {
        "sequence_enumerate": {
            "inputs": {"X": (WORDS, [[4, 0, 2]])}, "attrs": {"win_size": 3, "pad_value": 7},
            "outputs": {"Out": (
                np.array([[3, 1, 4], [1, 4, 1], [4, 1, 7], [1, 7, 7], [5, 9, 7], [9, 7, 7]]), [[4, 0, 2]],
            )},
        },
        "sequence_erase": {
            "inputs": {"X": (WORDS, [[4, 0, 2]])}, "attrs": {"tokens": [1, 5, 8]},
            "outputs": {"Out": (np.array([[3], [4], [9]]), [[2, 0, 1]])},
        },
        "sequence_erase/deep": {
            "inputs": {"X": (WORDS.astype("int32"), [[1, 1], [4, 2]])}, "attrs": {"tokens": [3, 1, 4]},
            "outputs": {"Out": (np.array([[5], [9]], "int32"), [[1, 1], [0, 2]])},
        },
        "sequence_mask": {
            "inputs": {"X": np.array([1, 0, 3])}, "outputs": {"Y": np.array([[1, 0, 0], [0, 0, 0], [1, 1, 1]])},
        },
        "sequence_mask/maxlen": {
            "inputs": {"X": np.array([[1], [3]])}, "attrs": {"maxlen": 2, "out_dtype": "float32"},
            "outputs": {"Y": np.array([[[1, 0]], [[1, 1]]], "float32")},
        },
        "sequence_mask/variable": {
            "inputs": {"X": np.array([1, 3]), "MaxLenTensor": np.array([2], "int32")},
            "attrs": {"out_dtype": "bool"}, "outputs": {"Y": np.array([[True, False], [True, True]])},
        },
    },
)  # fmt: skip


def windows(x, kernels, strides, paddings):
    up, left, down, right = paddings
    x = np.pad(x, ((0, 0), (0, 0), (up, down), (left, right)))
    out = np.lib.stride_tricks.sliding_window_view(x, kernels, (2, 3))[:, :, :: strides[0], :: strides[1]]
    n, c, h, w = out.shape[:4]
    return out.transpose(0, 2, 3, 1, 4, 5).reshape(n * h * w, -1), [[h * w] * n]


IMAGES = values(2, 3, 5, 6)
family(
    globals(),
    Differentiable,
    {
        f"im2sequence/{i}": {
            "inputs": {"X": IMAGES}, "attrs": {"kernels": k, "strides": s, "paddings": p},
            "outputs": {"Out": windows(IMAGES, k, s, p)},
        }
        for i, (k, s, p) in enumerate((
            ([2, 2], [1, 1], [0, 0, 0, 0]), ([3, 2], [2, 1], [1, 0, 2, 1]), ([2, 3], [1, 2], [0, 1, 1, 0]),
        ))
    },
)  # fmt: skip
REAL = joined([windows(image, [2, 2], [1, 1], [0] * 4)[0] for image in (IMAGES[:1, :, :4, :5], IMAGES[1:])])
#: Windows of 4 x 8 elements of the first image, which has 5 x 6, and of 7 x 6 of the second; what lacks is 0.
BEYOND = joined([
    windows(IMAGES[:1, :, :4], [2, 2], [1, 1], [0, 0, 0, 2])[0],
    windows(IMAGES[1:], [2, 2], [1, 1], [0, 0, 2, 0])[0],
])  # fmt: skip
family(
    globals(),
    Differentiable,
    {
        "im2sequence/real_sizes": {
            "inputs": {"X": IMAGES, "Y": np.array([[7.0, 10.0], [10.0, 12.0]])},
            "attrs": {"kernels": [2, 2], "out_stride": [2, 2]},
            "outputs": {"Out": (REAL, [[12, 20]])}, "grads": ("X",),
        },
        "im2sequence/real_sizes_beyond_the_image": {
            "inputs": {"X": IMAGES, "Y": np.array([[4.0, 8.0], [7.0, 6.0]])}, "attrs": {"kernels": [2, 2]},
            "outputs": {"Out": (BEYOND, [[21, 30]])}, "grads": ("X",),
        },
        "im2sequence/real_size_of_one_image": {
            "inputs": {"X": IMAGES[:1].copy(), "Y": np.array([[2.0, 2.0], [3.0, 3.0]])}, "attrs": {"kernels": [2, 2]},
            "outputs": {"Out": windows(IMAGES[:1], [2, 2], [1, 1], [0] * 4)}, "grads": ("X",),
        },
    },
)  # fmt: skip


@pytest.mark.parametrize(
    ("op", "inputs", "attrs", "message"),
    [
        ("sequence_conv", {"X": (X, LENGTH), "Filter": values(5, 3)}, {"contextLength": 3}, "Filter's height"),
        ("sequence_conv", {"X": X, "Filter": values(6, 3)}, {"contextLength": 3}, "does not contain LoD information"),
        ("sequence_conv", {"X": (X, [[1, 2], [2, 3, 1]]), "Filter": values(2, 3)}, {"contextLength": 1}, "depth"),
        (
            "sequence_conv", {"X": (X, LENGTH), "Filter": values(2, 3)},
            {"contextLength": 1, "paddingTrainable": True}, "PaddingData.* is missing",
        ),
        (
            "sequence_conv", {"X": (X, LENGTH), "Filter": values(4, 3), "PaddingData": values(2, 2)},
            {"contextLength": 2, "paddingTrainable": True}, "PaddingData has a row for each neighbour",
        ),
        ("row_conv", {"X": (X, LENGTH), "Filter": values(3, 3)}, {}, "width = 2 as in Input"),
        ("row_conv", {"X": X, "Filter": values(3, 2)}, {}, "does not contain LoD information"),
        ("row_conv", {"X": (values(2, 3, 2), [[1, 1]]), "Filter": values(3, 2)}, {}, "a batch of sequences, and a LoD"),
        ("sequence_concat", {"X": [(A, [[6]]), (B, [[1, 3]])]}, {}, "as many sequences"),
        ("sequence_concat", {"X": [(A, [[6]]), (values(2, 3), [[2]])]}, {}, "rows of one shape"),
        ("sequence_reshape", {"X": (X, [[3, 3]])}, {"new_dim": 4}, "no remainder for each sequence"),
        ("sequence_pad", {"X": (X, LENGTH), "PadValue": values(3)}, {}, "must be one number"),
        ("sequence_pad", {"X": (X, LENGTH), "PadValue": [0.0]}, {"padded_length": 3}, "less than its original"),
        ("sequence_unpad", {"X": values(2, 3), "Length": np.array([1, 4])}, {}, "must fit the steps"),
        ("sequence_unpad", {"X": values(2, 3), "Length": np.array([1])}, {}, "one length for each sequence"),
        ("sequence_unpad", {"X": values(2, 3), "Length": np.array([1.0, 2.0])}, {}, "must hold integers"),
        (
            "sequence_slice", {"X": (X, [[3, 3]]), "Offset": np.array([0, 2]), "Length": np.array([1, 2])}, {},
            "length overflow",
        ),
        (
            "sequence_slice", {"X": (X, [[3, 3]]), "Offset": np.array([0]), "Length": np.array([1])}, {},
            "should be the same",
        ),
        ("sequence_erase", {"X": (X, LENGTH)}, {"tokens": [1]}, "must hold integers"),
        ("sequence_enumerate", {"X": (WORDS.reshape(3, 2), [[3]])}, {"win_size": 2}, "2nd dimension 1"),
        ("sequence_scatter", {"X": X, "Ids": (WORDS, [[6]]), "Updates": (A[:, :1], [[6]])}, {}, "one sequence for"),
        ("sequence_scatter", {"X": X[:1], "Ids": (WORDS, [[6]]), "Updates": (A, [[6]])}, {}, "one number in each row"),
        ("im2sequence", {"X": X}, {"kernels": [1, 1]}, "4 dimensions"),
        ("im2sequence", {"X": IMAGES}, {"kernels": [7, 1]}, "at least one window"),
    ],
)  # fmt: skip
def test_what_does_not_fit(op, inputs, attrs, message):
    with refused(RuleError, message):
        run_op(op, inputs, attrs)


def test_updates_outside_the_matrix():
    inputs = {"X": X[:1], "Ids": (WORDS, [[6]]), "Updates": (A[:, :1], [[6]])}
    with pytest.raises(EnforceNotMet, match="must name columns"):
        run_op("sequence_scatter", inputs)


def test_attributes_out_of_range():
    with pytest.raises(OpValueError, match="less than 0 or larger than 1"):
        run_op("sequence_mask", {"X": np.array([1])}, {"maxlen": 0})
    with pytest.raises(OpValueError, match="enum"):
        run_op("sequence_conv", {"X": (X, LENGTH), "Filter": A}, {"contextLength": 3, "contextStride": 2})
