"""beam_search and beam_search_decode: small searches by hand, and random ones against a slow reference."""

import numpy as np
import pytest

from fluidnb.op import RuleError
from fluidnb.testing import OpTest, run_op
from fluidnb.testing.values import value_of
from fluidnb.values import LoDTensorArray
from tests.tools.refused import refused

LOD = [[2, 2], [1, 1, 1, 1]]
SCORES = np.array([[0.5, 0.3, 0.2], [0.6, 0.3, 0.1], [0.9, 0.5, 0.1], [0.7, 0.5, 0.1]], "float32")
IDS = np.array([[4, 2, 5], [2, 1, 3], [3, 5, 2], [8, 2, 1]])
PRE = np.array([[0.1], [0.2], [0.3], [0.4]], "float32")


def column(*numbers):
    return np.array(numbers, "int64")[:, None]


def step(pre_ids, **attrs):
    inputs = {"pre_ids": (pre_ids, LOD), "pre_scores": (PRE, LOD), "ids": (IDS, LOD), "scores": (SCORES, LOD)}
    return inputs, {"level": 0, "beam_size": 2, "end_id": 0, **attrs}


class TestBeamSearch(OpTest):
    op_type = "beam_search"
    inputs, attrs = step(column(1, 2, 3, 4))
    outputs = {
        "selected_ids": (column(4, 2, 3, 8), LOD),
        "selected_scores": (np.array([[0.5], [0.6], [0.9], [0.7]], "float32"), LOD),
        "parent_idx": np.array([0, 1, 2, 3], "int32"),
    }

    def test_output(self):
        self.check_output()


class TestScoresOfWords(TestBeamSearch):
    inputs, attrs = step(column(1, 2, 3, 4), is_accumulated=False)
    outputs = {
        "selected_ids": (column(4, 2, 3, 8), LOD),
        "selected_scores": (PRE + np.log(SCORES[:, :1]), LOD),
        "parent_idx": np.array([0, 1, 2, 3], "int32"),
    }


class TestASentenceThatHasEndedStays(TestBeamSearch):
    """In the first source one sentence has ended and is not among the best; in the second both have: it is done."""

    inputs, attrs = step(column(1, 0, 0, 0))
    outputs = {
        "selected_ids": (column(4, 2), [[2, 2], [2, 0, 0, 0]]),
        "selected_scores": (np.array([[0.5], [0.3]], "float32"), [[2, 2], [2, 0, 0, 0]]),
        "parent_idx": np.array([0, 0], "int32"),
    }


class TestASentenceThatHasEndedWins(TestBeamSearch):
    """Row 2 has ended and stays among the best three of its source; of equal scores that of the later row wins."""

    inputs, attrs = step(column(1, 2, 0, 4), beam_size=3)
    inputs = inputs | {"pre_scores": (np.array([[0.1], [0.2], [0.6], [0.4]], "float32"), LOD)}
    outputs = {
        "selected_ids": (column(4, 2, 1, 0, 8, 2), [[2, 2], [1, 2, 1, 2]]),
        "selected_scores": (np.array([[0.5], [0.6], [0.3], [0.6], [0.7], [0.5]], "float32"), [[2, 2], [1, 2, 1, 2]]),
        "parent_idx": np.array([0, 1, 1, 2, 3, 3], "int32"),
    }


def slowly(pre_ids, pre_scores, ids, scores, sources, beam_size, end_id):
    """One source after the other, every candidate in a list."""
    kept, first = [], 0
    for count in sources:
        found = []
        for row in range(first, first + count):
            if pre_ids[row] == end_id:
                found.append((-pre_scores[row], -row, 0, end_id))
            else:
                found += [(-s, -row, k, w) for k, (s, w) in enumerate(zip(scores[row], ids[row], strict=True))]
        best = sorted(found)[:beam_size]
        if not all(pre_ids[-row] == end_id and word == end_id for _, row, _, word in best):
            kept += sorted((-row, score, k, word) for score, row, k, word in best)
        first += count
    return kept


@pytest.mark.parametrize("seed", range(30))
def test_random_steps(seed):
    rng = np.random.default_rng(seed)
    sources = rng.integers(1, 4, rng.integers(1, 4)).tolist()
    n, width, beam_size = sum(sources), int(rng.integers(1, 5)), int(rng.integers(1, 4))
    lod = [sources, [1] * n]
    pre_ids, pre_scores = rng.integers(0, 3, (n, 1)), np.round(rng.random((n, 1)), 1)
    ids, scores = rng.integers(0, 5, (n, width)), np.round(rng.random((n, width)), 1)
    inputs = {"pre_ids": pre_ids, "pre_scores": pre_scores, "ids": ids, "scores": (scores, lod)}
    got = run_op("beam_search", inputs, {"level": 0, "beam_size": beam_size, "end_id": 0})
    want = slowly(pre_ids[:, 0], pre_scores[:, 0], ids, scores, sources, beam_size, 0)
    assert got["selected_ids"].array.ravel().tolist() == [word for *_, word in want]
    assert got["selected_scores"].array.ravel().tolist() == [-score for _, score, _, _ in want]
    assert got["parent_idx"].tolist() == [row for row, *_ in want]


def test_words_without_ids_are_counted():
    inputs = {"pre_ids": column(1), "pre_scores": PRE[:1], "scores": ([[0.1, 0.9, 0.5]], [[1], [1]])}
    got = run_op("beam_search", inputs, {"level": 0, "beam_size": 2, "end_id": 0})
    assert got["selected_ids"].array.ravel().tolist() == [1, 2]


@pytest.mark.parametrize(
    ("change", "attrs", "message"),
    [
        ({"scores": SCORES}, {}, "Level of LodTensor should be 2"),
        ({"ids": IDS[:, :2]}, {}, "candidates = 2 as in Input|candidates = 3 as in Input"),
        ({"pre_ids": column(1, 2)}, {}, "one number for each sentence"),
        ({"scores": (SCORES[:, 0], LOD)}, {}, r"must have the shape \[sentences, candidates\]"),
        ({}, {"level": 2}, "do not fit"),
    ],
)
def test_what_does_not_fit(change, attrs, message):
    inputs, settings = step(column(1, 2, 3, 4))
    with refused(RuleError, message):
        run_op("beam_search", inputs | change, settings | attrs)


def steps(*rows):
    dtype = "int64" if isinstance(rows[0][0][0], int) else "float32"
    return LoDTensorArray([value_of((np.array(numbers, dtype)[:, None], lengths)) for numbers, lengths in rows])


FIRST, SECOND = [[1, 1], [1, 1]], [[1, 1], [2, 2]]
THIRD, FOURTH = [[2, 2], [1, 1, 1, 1]], [[2, 2], [2, 0, 1, 1]]
WORDS = steps(([1, 1], FIRST), ([2, 3, 4, 5], SECOND), ([6, 7, 8, 9], THIRD), ([0, 3, 0, 0], FOURTH))
RANKS = steps(
    ([0.0, 0.0], FIRST),
    ([0.5, 0.75, 0.25, 0.625], SECOND),
    ([0.25, 0.875, 0.125, 0.3125], THIRD),
    ([0.375, 0.6875, 0.25, 0.75], FOURTH),
)


class TestBeamSearchDecode(OpTest):
    op_type, inputs, attrs = "beam_search_decode", {"Ids": WORDS, "Scores": RANKS}, {"beam_size": 2, "end_id": 0}
    outputs = {
        "SentenceIds": (np.array([1, 2, 6, 3, 1, 2, 6, 0, 1, 5, 9, 0, 1, 4, 8, 0]), [[2, 2], [4, 4, 4, 4]]),
        "SentenceScores": (
            np.float32([0, 0.5, 0.25, 0.6875, 0, 0.5, 0.25, 0.375, 0, 0.625, 0.3125, 0.75, 0, 0.25, 0.125, 0.25]),
            [[2, 2], [4, 4, 4, 4]],
        ),
    }

    def test_output(self):
        self.check_output()


def test_a_source_that_was_done_early_and_an_end_that_was_carried_along():
    """Source 0 ends at step 1 and keeps nothing at step 2; in source 1 an ended sentence goes on beside another."""
    ids = steps(([1, 1], FIRST), ([0, 0, 7], [[1, 1], [1, 2]]), ([0, 8], [[1, 2], [0, 1, 1]]))
    ranks = steps(([0.0, 0.0], FIRST), ([0.5, 0.75, 0.25], [[1, 1], [1, 2]]), ([0.75, 1.0], [[1, 2], [0, 1, 1]]))
    got = run_op("beam_search_decode", {"Ids": ids, "Scores": ranks}, {"beam_size": 2, "end_id": 0})
    assert got["SentenceIds"].recursive_sequence_lengths() == [[1, 2], [2, 3, 2]]
    assert got["SentenceIds"].array.tolist() == [1, 0, 1, 7, 8, 1, 0]
    assert got["SentenceScores"].array.tolist() == [0, 0.5, 0, 0.25, 1.0, 0, 0.75]


@pytest.mark.parametrize(
    ("ids", "ranks", "message"),
    [
        (LoDTensorArray(), LoDTensorArray(), "beam search steps should be larger than 0"),
        (WORDS, RANKS[:2], "as many steps"),
        (LoDTensorArray([np.zeros((2, 1))]), LoDTensorArray([np.zeros((2, 1))]), "Level of LodTensor should be 2"),
    ],
)
def test_what_cannot_be_decoded(ids, ranks, message):
    ranks = ranks if isinstance(ranks, LoDTensorArray) else LoDTensorArray(ranks)
    with refused(RuleError, message):
        run_op("beam_search_decode", {"Ids": ids, "Scores": ranks}, {"beam_size": 2, "end_id": 0})


def test_without_the_scores_so_far() -> None:
    """Versions 0.11 to 0.13: words of a row by number; a sentence that has ended takes its place and goes."""
    operands = {
        "pre_ids": [[1], [2], [0], [4]],
        "ids": [[4, 2, 5], [2, 1, 3], [3, 5, 2], [8, 2, 1]],
        "scores": ([[0.5, 0.3, 0.2], [0.6, 0.3, 0.1], [0.9, 0.5, 0.1], [0.7, 0.5, 0.1]], [[1, 3], [1, 1, 1, 1]]),
    }
    for end_id, words, counts in ((9, [2, 4, 3, 8], [2, 0, 1, 1]), (0, [2, 4, 8], [2, 0, 0, 1])):
        out = run_op("beam_search", operands, {"level": 0, "beam_size": 2, "end_id": end_id})
        assert np.asarray(out["selected_ids"]).ravel().tolist() == words
        assert out["selected_ids"].recursive_sequence_lengths() == [[1, 3], counts]
    with pytest.raises(RuleError, match="pre_scores"):
        run_op("beam_search", operands, {"level": 0, "beam_size": 2, "end_id": 0, "is_accumulated": False})
