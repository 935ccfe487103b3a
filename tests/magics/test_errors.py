"""Errors in cells: a few lines about the cell, without internal frames."""

from __future__ import annotations

import pytest

from tests.magics.conftest import Session

CELLS = {
    "an operator that refuses": "z = layers.elementwise_add(x, layers.data('y', shape=[3]))",
    "a wrong keyword": "z = layers.fc(x, 3, akt='relu')",
    "a name that is none": "z = layers.fc(nope, 3)",
    "an error inside a function": "def f():\n    return 1 / 0\nz = f()",
    "an if on a variable": "if x: pass",
    "an interrupt": "raise KeyboardInterrupt",
    "an undefined magic name": "z = x.nope",
}


@pytest.mark.parametrize("body", CELLS.values(), ids=CELLS)
def test_no_frames_of_ours(session: Session, body: str) -> None:
    session.run("%%fluid data\nx = layers.data('x', shape=[4])")
    _, shown = session.fail(f"%%fluid bad\n{body}")
    assert "run_cell_magic" not in shown
    assert "fluidnb/" not in shown
    assert "fluidnb_magics" not in shown
    assert len(shown.splitlines()) < 25


def test_it_points_to_the_line_of_the_cell(session: Session) -> None:
    session.run("%%fluid data\nx = layers.data('x', shape=[4])")
    _, shown = session.fail("%%fluid bad\n\ndef f(v):\n    return v.nope\n\nz = f(x)")
    assert "z = f(x)" in shown
    assert "return v.nope" in shown
    assert "line 6" in shown
    assert "line 4" in shown


def test_a_syntax_error(session: Session) -> None:
    _, shown = session.fail("%%fluid bad\nx = 1\ny = 2 +")
    assert "line 3" in shown
    assert "y = 2 +" in shown
    assert "SyntaxError" in shown
    assert len(shown.splitlines()) < 8


def test_errors_while_running_point_to_the_cell(session: Session) -> None:
    session.run("%%fluid a\nx = layers.data('x', shape=[4])\nh = layers.fc(x, 3)")
    _, shown = session.fail("%fluid run --feed x=np.ones((2,5),'float32') --fetch h")
    assert "float32" in shown
    assert "fluidnb/" not in shown
    assert "get_ipython" not in shown
