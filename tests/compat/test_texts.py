"""paddle.compat: texts, bytes, and Python 2's numbers."""

from __future__ import annotations

import importlib
from collections.abc import Iterator

import pytest

from fluidnb import compat
from fluidnb.compat import texts
from fluidnb.errors import OpTypeError


@pytest.fixture
def cpt() -> Iterator[object]:
    """The module under Paddle's name."""
    compat.install(force=True)
    yield importlib.import_module("paddle.compat")
    compat.uninstall()


def test_it_is_found_under_paddles_name(cpt: object) -> None:
    assert cpt is texts and importlib.import_module("paddle").compat is texts


def test_texts_and_bytes() -> None:
    assert texts.to_text("ä".encode("latin-1"), encoding="latin-1") == "ä" and texts.to_bytes("ä") == b"\xc3\xa4"
    assert texts.to_text({b"a"}) == {"a"} and texts.to_bytes(["a", 3]) == [b"a", 3]
    held, several = ["a"], {"b"}
    assert texts.to_bytes(held) is not held and held == ["a"]
    assert texts.to_bytes(held, inplace=True) is held and held == [b"a"]
    assert texts.to_bytes(several, inplace=True) is several and several == {b"b"}


@pytest.mark.parametrize(("x", "d", "want"), [(0.5, 0, 1), (1.5, 0, 2), (-0.5, 0, -1), (0.0, 0, 0), (25, -1, 30)])
def test_halves_go_away_from_zero(x: float, d: int, want: float) -> None:
    assert texts.round(x, d) == want


def test_the_rest() -> None:
    assert texts.floor_division(-7, 2) == -4 and texts.long_type is texts.int_type is int
    assert texts.get_exception_message(KeyError("k")) == "'k'"
    with pytest.raises(OpTypeError, match="takes an exception"):
        texts.get_exception_message("no")
