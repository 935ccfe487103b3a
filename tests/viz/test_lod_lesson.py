"""The lesson about sequences: what the operators did with batches whose answers are known."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

import fluidnb as fluid
from fluidnb.errors import FluidError, OpValueError
from fluidnb.program import unique_name
from fluidnb.viz import plain
from fluidnb.viz.lessons.lod.model import parse_lengths, read_lod_lesson
from fluidnb.viz.lessons.lod.renderings import lod_lesson_html, lod_lesson_lines, lod_lesson_svg


def test_the_batch_of_the_guide() -> None:
    lesson = read_lod_lesson([[5, 3, 2, 4]])
    assert lesson.offsets == lesson.absolute == ((0, 5, 8, 10, 14),)
    assert lesson.table == ((0, 5), (3, 4), (1, 3), (2, 2))
    assert lesson.longest == 5
    assert [[row for (row,) in step.parts] for step in lesson.steps] == [
        [0, 10, 5, 8], [1, 11, 6, 9], [2, 12, 7], [3, 13], [4],
    ]  # fmt: skip
    assert [step.memory for step in lesson.steps] == [(0, 3, 1, 2), (0, 3, 1, 2), (0, 3, 1), (0, 3), (0,)]
    assert lesson.restored == tuple(range(14))
    assert [lesson.sequence_of(row) for row in (0, 4, 5, 9, 13)] == [0, 0, 1, 2, 3]


@pytest.mark.parametrize(
    ("level", "table", "parts", "memory"),
    [
        (0, ((0, 2), (1, 1)), [((0, 1), (5,)), ((2, 3, 4),)], [(0, 1), (0,)]),
        (1, ((1, 3), (0, 2), (2, 1)), [((2,), (0,), (5,)), ((3,), (1,)), ((4,),)], [(1, 0, 2), (1, 0), (1,)]),
    ],
)
def test_two_levels(level: int, table: object, parts: object, memory: object) -> None:
    lesson = read_lod_lesson([[2, 1], [2, 3, 1]], level)
    assert lesson.lengths == ((2, 1), (2, 3, 1))
    assert lesson.offsets == ((0, 2, 3), (0, 2, 5, 6))
    assert lesson.absolute == ((0, 5, 6), (0, 2, 5, 6))
    assert lesson.table == table
    assert [step.parts for step in lesson.steps] == parts
    assert [step.memory for step in lesson.steps] == memory
    assert lesson.restored == tuple(range(6))


def test_an_empty_sequence_is_in_no_batch() -> None:
    lesson = read_lod_lesson([[0, 2]])
    assert lesson.table == ((1, 2), (0, 0))
    assert [step.memory for step in lesson.steps] == [(1,), (1,)]
    ET.fromstring(lod_lesson_svg(lesson, 0))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("2 2 / 2 3 1", "level 0  [··][·?]  1 sequence is missing: level 1 has 3"),
        ("2 1 / 2 3 1 4", "level 0  [··][·]·  1 sequence is in no sequence"),
        ("2 -1", "a sequence of -1 rows"),
        ("", "it needs 2 or more"),
        ("0 0", "There's no element in the input array"),
        ("2 x", "whole numbers"),
        ("2.5", "whole numbers"),
        ("100 100", "too many"),
    ],
)
def test_lengths_that_do_not_fit(text: str, said: str) -> None:
    with pytest.raises(FluidError) as caught:
        read_lod_lesson(parse_lengths(text))
    assert said in str(caught.value)
    assert "at:" not in str(caught.value)  # no line of the user's made the batch


def test_a_level_that_is_not_there() -> None:
    with pytest.raises(FluidError, match="no such level"):
        read_lod_lesson([[2, 3]], 1)
    with pytest.raises(OpValueError):
        read_lod_lesson([[2, 3]], -1)


def test_lengths_as_they_are_typed() -> None:
    assert parse_lengths(" 5,3 2 ") == parse_lengths("[5, 3, 2]") == parse_lengths("[[5, 3, 2]]") == [[5, 3, 2]]
    assert parse_lengths("2 1/2 3 1") == parse_lengths("[[2, 1], [2, 3, 1]]") == [[2, 1], [2, 3, 1]]


def test_nothing_of_the_user_changes() -> None:
    before, names = fluid.default_main_program().desc.serialize_to_string(), dict(unique_name.generator.ids)
    read_lod_lesson([[2, 3]])
    assert fluid.default_main_program().desc.serialize_to_string() == before
    assert dict(unique_name.generator.ids) == names


def test_text() -> None:
    lesson = read_lod_lesson([[5, 3, 2, 4]])
    text = plain(lod_lesson_lines(lesson))
    assert "[·····][···][··][····]" in text
    assert "offsets           level 0  0 5 8 10 14" in text
    assert "step 2  rows 2  12  7     memory of 0 3 1    3 of 4" in text
    one = plain(lod_lesson_lines(lesson, 3))
    assert "step 3  rows 3  13  memory of 0 3  2 of 4" in one
    assert "step 2" not in one


def test_the_picture_of_each_step() -> None:
    lesson = read_lod_lesson([[5, 3, 2, 4]])
    for t, step in enumerate(lesson.steps):
        svg = lod_lesson_svg(lesson, t)
        ET.fromstring(svg)
        assert svg.count('class="part now"') == svg.count('class="row now"') == len(step.parts)
        assert svg.count('class="memory over"') == 4 - len(step.memory)
    html = lod_lesson_html(lesson, 2)
    assert "the memory shrinks from 4 rows to 3." in html
    assert "<script" not in html
    assert lod_lesson_html(lesson, 99) == lod_lesson_html(lesson, 4)
