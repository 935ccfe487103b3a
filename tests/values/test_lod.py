"""LoD arithmetic: the seeds' examples, the rules, and conversions that undo each other."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fluidnb.errors import OpTypeError, OpValueError
from fluidnb.values import LoD, lod
from tests.tools.refused import refused

ABSOLUTE = [[0, 5, 8, 10, 14], [0, 2, 3, 5, 7, 8, 10, 13, 14]]
RELATIVE = [[0, 3, 5, 6, 8], [0, 2, 3, 5, 7, 8, 10, 13, 14]]


@st.composite
def lods(draw: st.DrawFn, empty: bool = True) -> lod.Offsets:
    """A LoD of 1 to 3 levels."""
    count = draw(st.integers(1, 4))
    levels = []
    for _ in range(draw(st.integers(1, 3))):
        lengths = draw(st.lists(st.integers(0 if empty else 1, 4), min_size=count, max_size=count))
        levels.append(lengths)
        count = sum(lengths)
        if count == 0:
            break
    return lod.from_lengths(levels)


def test_a_flat_list_is_one_level() -> None:
    assert LoD([0, 5, 8, 10, 14]) == [[0, 5, 8, 10, 14]]


def test_absolute_offsets_are_recognised_and_the_relative_ones_named() -> None:
    with pytest.raises(OpValueError) as e:
        LoD(ABSOLUTE)
    assert str(RELATIVE) in str(e.value) and "absolute" in str(e.value)
    assert LoD.from_absolute(ABSOLUTE) == RELATIVE
    assert LoD(RELATIVE).to_absolute() == ABSOLUTE
    assert LoD(RELATIVE).to_lengths() == [[3, 2, 1, 2], [2, 1, 2, 2, 1, 2, 3, 1]]
    assert LoD.from_lengths(LoD(RELATIVE).to_lengths()) == RELATIVE


def test_what_is_wrong_both_ways_gets_no_such_hint() -> None:
    with pytest.raises(OpValueError) as e:
        LoD([[0, 4, 14], [0, 2, 3, 5, 14]])  # 4 is no cut of the second level
    assert "absolute" not in str(e.value)


@pytest.mark.parametrize(
    ("levels", "height", "words"),
    [
        ([[0]], None, "level 0 has 1 offsets"),
        ([[]], None, "level 0 has 0 offsets"),
        ([[1, 2]], None, "level 0 starts at 1"),
        ([[0, 3, 2]], None, "level 0 falls from 3 to 2"),
        ([[0, 3], [0, 1, 2]], None, "level 0 ends at 3, but level 1 has 2 sequences"),
        ([[0, 1, 2], [0, 1]], None, "level 0 ends at 2, but level 1 has 1 sequences"),
        ([[0, 5]], 6, "ends at 5, but the tensor has 6 rows"),
    ],
)
def test_rules(levels: list[list[int]], height: int | None, words: str) -> None:
    with refused(OpValueError, words):
        lod.check(lod.convert(levels), height, "words")
    with pytest.raises(OpValueError, match="of words is invalid"):
        lod.check(lod.convert(levels), height, "words")


def test_empty_sequences_are_fine() -> None:
    assert lod.problem(((0, 0, 2, 2),), 2) is None
    assert lod.problem(((0, 0),), 0) is None
    assert lod.problem((), 5) is None


@given(lods())
def test_lengths_and_offsets_undo_each_other(offsets: lod.Offsets) -> None:
    assert lod.problem(offsets, offsets[-1][-1]) is None
    assert lod.from_lengths(lod.to_lengths(offsets)) == offsets


@given(lods(empty=False))
def test_absolute_and_relative_undo_each_other(offsets: lod.Offsets) -> None:
    assert lod.from_absolute(lod.to_absolute(offsets)) == offsets


@given(lods())
def test_with_empty_sequences_the_absolute_offsets_stay(offsets: lod.Offsets) -> None:
    absolute = lod.to_absolute(offsets)
    relative = lod.from_absolute(absolute)
    assert lod.problem(relative, offsets[-1][-1]) is None
    assert lod.to_absolute(relative) == absolute


def test_absolute_levels_must_agree() -> None:
    for wrong in ([[0, 3], [0, 4]], [[0, 2, 4], [0, 3, 4]], [[1, 4]], [[0, 3, 1, 4]]):
        with pytest.raises(OpValueError, match="not absolute LoD offsets"):
            LoD.from_absolute(wrong)


@pytest.mark.parametrize("wrong", [5, [[0, 1.5]], [["a"]], None, [0, [1]], [[True, 2]]])
def test_only_integers(wrong: object) -> None:
    with pytest.raises(OpTypeError, match="list of lists of integers"):
        lod.convert(wrong)


def test_arrays_and_tuples_come_in_as_ints() -> None:
    offsets = lod.convert((np.array([0, 2]), [0, np.int32(3)]))
    assert offsets == ((0, 2), (0, 3)) and all(type(x) is int for level in offsets for x in level)
