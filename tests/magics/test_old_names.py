"""`%fluid compat`: Paddle's names in a session, and out of it again."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

import fluidnb as fluid
from fluidnb import compat
from tests.magics.conftest import Session

OLD = """
import paddle.fluid as old
x = old.layers.data("x", shape=[2])
h = old.layers.fc(x, size=3)
"""


@pytest.fixture(autouse=True)
def no_names_left() -> Iterator[None]:
    """Whatever a test turned on is off again."""
    yield
    compat.uninstall()


def test_an_old_cell_runs_where_they_are_on(session: Session) -> None:
    session.fail("import paddle.fluid")
    assert "compat off" in session.run("%fluid compat")
    assert "compat on" in session.run("%fluid compat on --force") and "compat on" in session.run("%fluid compat")
    session.run(f"%%fluid net\n{OLD}")
    assert session.names["old"] is fluid and session.ops() == ["mul", "elementwise_add"]
    assert "h = mul" not in session.run("%fluid show") and "h = elementwise_add" in session.run("%fluid show")
    assert "compat off" in session.run("%fluid compat off") and "paddle" not in sys.modules
    session.fail("import paddle.fluid")


def test_other_words_are_refused(session: Session) -> None:
    error, shown = session.fail("%fluid compat maybe")
    assert "on" in str(error) + shown and not compat.is_installed()


def test_unloading_takes_back_what_the_magic_did(session: Session) -> None:
    session.run("%fluid compat on --force")
    session.run("%unload_ext fluidnb")
    assert not compat.is_installed()


def test_unloading_leaves_what_a_cell_did(session: Session) -> None:
    session.run("from fluidnb import compat\ncompat.install(force=True)\n%fluid compat on\n%unload_ext fluidnb")
    assert compat.is_installed()
