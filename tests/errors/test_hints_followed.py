"""A hint, followed literally, makes the call succeed: each row of the table of ordinary mistakes is tried."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

import fluidnb as fluid
from tests.errors.ordinary_mistakes import CELLS, DEBUG, MORE, NET, ROWS, VALUES
from tests.magics.conftest import Session, session

__all__ = ["session"]


@contextmanager
def nothing() -> Iterator[None]:
    """Empty programs and an empty scope."""
    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.scope_guard(fluid.Scope()):
        yield


@pytest.mark.parametrize("name", ROWS)
def test_a_hint_followed_literally_works(name: str) -> None:
    row = ROWS[name]
    with nothing(), pytest.raises(Exception) as error:
        row.wrong()
    text = str(error.value)
    assert row.headline in text.splitlines()[0] and row.hint in text, text
    with nothing():
        row.right()


@pytest.mark.parametrize("name", CELLS)
def test_a_hint_in_a_notebook_followed_literally_works(name: str, session: Session) -> None:
    cell = CELLS[name]
    for text in (NET, MORE, VALUES, cell.before):
        session.run(text)
    error, _ = session.fail(cell.wrong)
    assert str(error).startswith(cell.headline) and cell.hint in str(error), str(error)
    try:
        for text in [cell.right] if cell.right.startswith("%%") else cell.right.splitlines():
            session.run(text)
    finally:
        session.run("%fluid debug off")


def test_the_table_has_sixty_mistakes() -> None:
    assert len(ROWS) + len(CELLS) >= 60 and DEBUG


def test_a_cell_that_others_need_says_what_to_drop_and_how_to_undo(session: Session) -> None:
    for text in (NET, MORE):
        session.run(text)
    shown = session.run("%fluid drop data")
    assert "removed: data" in shown and "stale: net, x is not defined" in shown
    assert "%fluid drop net removes them too; %fluid undo brings all back" in shown
    assert "restored: data" in session.run("%fluid undo") and "stale" not in session.run("%fluid cells")
    session.run("%fluid drop data")
    session.run("%fluid drop net")
    assert "no cells yet" in session.run("%fluid cells")
