"""``%fluid cost``: multiply-adds and bytes of the session's programs."""

from __future__ import annotations

import pytest

from fluidnb.errors import FluidError


def test_a_notebook(session):
    session.run("%%fluid net\nx = layers.data('x', shape=[4])\nh = layers.fc(x, 3)")
    shown = session.run("%fluid cost --by cell --feed 'x=(7, 4)'")
    assert "105 multiply-adds" in shown and "net" in shown
    assert "30 multiply-adds" in session.run("%fluid cost --batch 2")
    session.run("other = fluid.default_main_program().clone()")
    assert "15 multiply-adds" in session.run("%fluid cost other")
    error, _ = session.fail("%fluid cost 5")
    assert "5 is not a program" in str(error)


@pytest.mark.parametrize("shape", ["3", "None", "(3,'a')", "(float('inf'),4)"])
def test_a_shape_that_is_none(session, shape):
    session.run("%%fluid net\nx = layers.data('x', shape=[4])\nh = layers.fc(x, 3)")
    error, _ = session.fail(f"%fluid cost --feed \"x={shape}\"")
    assert isinstance(error, FluidError) and "The shape of x is not a list of sizes" in str(error)
