"""Every mistake of the table is told helpfully, in these very words, and changes nothing.

With FLUIDNB_UPDATE_GOLDEN=1 the files beside this one are written anew.
"""

from __future__ import annotations

import os

import pytest

from tests.errors import (
    building_mistakes,
    control_mistakes,
    dense_mistakes,
    operator_mistakes,
    rewriting_mistakes,
    running_mistakes,
    sequence_mistakes,
)
from tests.errors.helpful import TABLE, Mistake, assert_helpful, golden, golden_file, known_programs, state

UPDATE = bool(os.environ.get("FLUIDNB_UPDATE_GOLDEN"))


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.name)
def test_mistake(row: Mistake) -> None:
    steps = row.make()
    next(steps)
    known = known_programs()
    before = state(known)
    with pytest.raises(row.error) as caught:
        next(steps)
    assert state(known) == before
    assert_helpful(caught.value, row)
    text, file = golden(str(caught.value)), golden_file(row)
    if UPDATE:
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
    assert text == file.read_text()


def test_the_table_is_large_and_has_no_file_too_many() -> None:
    tables = (
        building_mistakes, control_mistakes, dense_mistakes, operator_mistakes, rewriting_mistakes, running_mistakes,
        sequence_mistakes,
    )  # fmt: skip
    assert {m.__name__.rpartition(".")[2] for m in tables} == {
        row.make.__module__.rpartition(".")[2] for row in TABLE
    }
    assert len(TABLE) >= 120 and len({row.name for row in TABLE}) == len(TABLE)
    kept = {file.stem for file in golden_file(TABLE[0]).parent.glob("*.txt")}
    assert kept == {row.name for row in TABLE}
