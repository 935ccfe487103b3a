"""target_assign: which target each prior gets."""

import numpy as np
import pytest

from fluidnb.errors import EnforceNotMet
from fluidnb.op import RuleError
from fluidnb.testing import run_op
from tests.ops.cases import Forward, family, values
from tests.tools.refused import refused

#: Three objects in the first image, none in the second, two in the third.
LENGTHS, MATCH = [[3, 0, 2]], np.array([[2, -1, 0, 1], [-1, -1, -1, -1], [0, 1, -1, 1]], "int32")
FIRST = [0, 3, 3]
CODES, KINDS = values(5, 4, 4), np.array([4, 2, 3, 1, 5], "int32").reshape(5, 1, 1)
NEGATIVES = (np.array([[1], [0], [3], [2]], "int32"), [[1, 2, 1]])


def assigned(x, mismatch=0, negatives=()):
    """Prior by prior."""
    out, weight = np.full((*MATCH.shape, x.shape[2]), mismatch, x.dtype), np.zeros((*MATCH.shape, 1), "float32")
    for i, j in np.ndindex(*MATCH.shape):
        if MATCH[i, j] > -1:
            out[i, j], weight[i, j] = x[FIRST[i] + MATCH[i, j], j % x.shape[1]], 1
    for i, j in negatives:
        out[i, j], weight[i, j] = mismatch, 1
    return {"Out": out, "OutWeight": weight}


family(
    globals(),
    Forward,
    {
        "target_assign": {
            "inputs": {"X": (CODES, LENGTHS), "MatchIndices": MATCH}, "outputs": assigned(CODES),
        },
        "target_assign/cycled": {  # a prior takes the column of its number modulo the columns
            "inputs": {"X": (CODES[:, :3].copy(), LENGTHS), "MatchIndices": MATCH}, "attrs": {"mismatch_value": -2},
            "outputs": assigned(CODES[:, :3], -2),
        },
        "target_assign/negatives": {
            "inputs": {"X": (KINDS, LENGTHS), "MatchIndices": MATCH, "NegIndices": NEGATIVES},
            "attrs": {"mismatch_value": 7}, "outputs": assigned(KINDS, 7, [(0, 1), (1, 0), (1, 3), (2, 2)]),
        },
        "target_assign/over_matches": {  # a negative loses its object
            "inputs": {"X": (KINDS, LENGTHS), "MatchIndices": MATCH,
                       "NegIndices": (np.array([[0]], "int32"), [[0, 0, 1]])},
            "outputs": assigned(KINDS, 0, [(2, 0)]),
        },
    },
)  # fmt: skip


@pytest.mark.parametrize(
    ("slot", "value", "message"),
    [
        ("X", KINDS, "does not contain LoD"),
        ("X", (KINDS, [[5]]), "must have a sequence for each image"),
        ("X", (KINDS[:, 0], LENGTHS), "must have the shape"),
        ("MatchIndices", MATCH[0], "must have the shape"),
        ("MatchIndices", MATCH.astype("float32"), "must hold integers"),
        ("NegIndices", (NEGATIVES[0], [[4]]), "must have a sequence for each image"),
        ("NegIndices", (NEGATIVES[0].T.copy(), [[1, 0, 0]]), "must have the shape"),
    ],
)
def test_what_does_not_fit(slot, value, message):
    inputs = {"X": (KINDS, LENGTHS), "MatchIndices": MATCH, "NegIndices": NEGATIVES, slot: value}
    with refused(RuleError, message):
        run_op("target_assign", inputs)


def test_an_index_of_another_image_is_refused():
    match = MATCH.copy()
    match[2, 1] = 2
    with pytest.raises(EnforceNotMet, match="no object of its image") as caught:
        run_op("target_assign", {"X": (KINDS, LENGTHS), "MatchIndices": match})
    assert "2 for prior 1" in str(caught.value)


@pytest.mark.parametrize("prior", [-1, 4])
def test_a_negative_that_is_no_prior_is_refused(prior):
    negatives = (np.array([[prior]], "int32"), [[1, 0, 0]])
    with pytest.raises(EnforceNotMet, match="is no prior"):
        run_op("target_assign", {"X": (KINDS, LENGTHS), "MatchIndices": MATCH, "NegIndices": negatives})
