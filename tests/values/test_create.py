"""create_lod_tensor, create_random_int_lodtensor, and the host's seed."""

from __future__ import annotations

import numpy as np
import pytest

from fluidnb.errors import OpAssertionError, OpTypeError, OpValueError
from fluidnb.values import CPUPlace, LoDTensor, create_lod_tensor, create_random_int_lodtensor, seeding
from tests.tools.refused import refused


def test_from_an_array_a_tensor_and_lists() -> None:
    rows = np.arange(10, dtype="float32").reshape(5, 2)
    t = create_lod_tensor(rows, [[1, 1], [2, 3]], CPUPlace())
    assert t.lod() == [[0, 1, 2], [0, 2, 5]] and (np.array(t) == rows).all()
    again = create_lod_tensor(t, [[5]], CPUPlace())
    assert again.lod() == [[0, 5]] and t.lod() == [[0, 1, 2], [0, 2, 5]]
    words = create_lod_tensor([[7, 8], [9]], [[2, 1]], CPUPlace())
    assert np.array(words).tolist() == [[7], [8], [9]] and words.array.dtype == "int64"
    arrays = create_lod_tensor([np.array([7, 8], "int32"), np.array([9])], [[2, 1]], CPUPlace())
    assert np.array_equal(arrays, words) and arrays.array.dtype == "int64"
    mapped = create_lod_tensor(map(list, ((7, 8), (9,))), [[2, 1]], CPUPlace())
    assert np.array_equal(mapped, words) and mapped.lod() == words.lod()


@pytest.mark.parametrize(
    ("data", "lengths", "words"),
    [
        ([[1, 2], [3]], [[2, 2]], "data and recursive_seq_lens do not match"),
        ([[1, 2], [3]], [], "data and recursive_seq_lens do not match"),
        (np.zeros((5, 1)), [[2, 2]], "lod info is invalid"),
        (np.zeros((5, 1)), [[3], [2, 3]], "lod info is invalid"),
    ],
)
def test_lengths_must_match(data: object, lengths: list[list[int]], words: str) -> None:
    with refused(OpAssertionError, words):
        create_lod_tensor(data, lengths, CPUPlace())


@pytest.mark.parametrize("wrong", [5, "abc", [1, 2, 3], None])
def test_other_data_is_refused(wrong: object) -> None:
    with pytest.raises(OpTypeError, match="data should be"):
        create_lod_tensor(wrong, [[1]], CPUPlace())


def test_random_integers_cover_the_range_and_obey_the_seed() -> None:
    def draw() -> LoDTensor:
        return create_random_int_lodtensor([[1, 2], [100, 60, 40]], [3], CPUPlace(), 2, 5)

    seeding.seed(3)
    a, b = draw(), draw()
    seeding.seed(3)
    c = draw()
    assert a.shape() == [200, 3] and a.array.dtype == "int64" and a.lod() == [[0, 1, 3], [0, 100, 160, 200]]
    assert set(np.unique(np.array(a))) == {2, 3, 4, 5}
    assert (np.array(a) == np.array(c)).all() and not (np.array(a) == np.array(b)).all()
    seeding.seed(None)
    with pytest.raises(OpValueError, match="no integer to draw"):
        create_random_int_lodtensor([[2]], [3], CPUPlace(), 5, 4)
    with pytest.raises(OpTypeError, match="base_shape of create_random_int_lodtensor must be a list of ints"):
        create_random_int_lodtensor([[2]], 3, CPUPlace(), 0, 1)  # type: ignore[arg-type]


@pytest.mark.parametrize("data", [[[1.7, 2.2]], [["a", "b"]], [[None, 1]], [[2**70, 1]], [[1, [2, 3]]], [[np.inf, 1]]])
def test_words_are_integers(data: object) -> None:
    with refused(OpTypeError, "list of sequences of integers"):
        create_lod_tensor(data, [[2]], CPUPlace())
    assert np.array(create_lod_tensor([[1.0, True]], [[2]], CPUPlace())).tolist() == [[1], [1]]


@pytest.mark.parametrize(
    ("rows", "shape", "high"), [(1, [-1], 9), (1, [2**62], 9), (1, [1] * 65, 9), (1, [1], 2**63), (2**50, [1], 9)]
)
def test_integers_that_cannot_be_drawn(rows: int, shape: list[int], high: int) -> None:
    with refused(OpValueError, "Cannot draw integers"):
        create_random_int_lodtensor([[rows]], shape, CPUPlace(), 0, high)
