"""Expressions that Python's parser has no room for are refused like any other text that is none."""

from __future__ import annotations

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.debug.expressions import code_of, tree_of
from fluidnb.errors import OpValueError

DEEP = ("[" * 200 + " h 3", "-" * 100_000 + "1", "x." * 20_000 + "y", "1 + " * 50_000 + "1", "a\0b", "'\ud800'", "(")


@pytest.mark.parametrize("text", DEEP, ids=range(len(DEEP)))
def test_it_is_no_expression(text: str) -> None:
    with pytest.raises(SyntaxError):
        code_of(text, "<test>")


def test_what_fits_is_one() -> None:
    assert eval(code_of(" 1 + n ", "<test>"), {"n": 2}) == 3 and tree_of("a").body


@pytest.mark.parametrize("text", DEEP[:2], ids=range(2))
def test_a_debugger_refuses_to_watch_it(text: str) -> None:
    x = fluid.layers.data("x", [2])
    session = fluid.debug(feed={"x": np.ones((1, 2), "float32")}, fetch_list=[fluid.layers.relu(x)])
    try:
        with pytest.raises(OpValueError, match="That cannot be watched"):
            session.watch(text)
    finally:
        session.close()
