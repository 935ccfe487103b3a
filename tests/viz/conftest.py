"""A small program with all three roles and a nested block, and golden files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import fluidnb as fluid
from fluidnb.program import Program

GOLDEN = Path(__file__).with_name("golden")


def same_as_golden(name: str, text: str) -> None:
    """Compare a text with its golden file; with FLUIDNB_GOLDEN=write, the text becomes the golden file.

    Args:
        name: the file's name.
        text: what it should hold.
    """
    path = GOLDEN / name
    if os.environ.get("FLUIDNB_GOLDEN") == "write":
        path.parent.mkdir(exist_ok=True)
        path.write_text(text + "\n")
    assert path.read_text() == text + "\n", f"FLUIDNB_GOLDEN=write makes {path} what it is now"


@pytest.fixture
def trained() -> Program:
    """A regression with its gradients and its optimizer."""
    layers = fluid.layers
    words = layers.data("words", shape=[1], dtype="int64", lod_level=1)
    x, y = layers.data("x", shape=[13]), layers.data("y", shape=[1])
    loss = layers.mean(layers.square_error_cost(layers.fc(x, 1), y))
    fluid.optimizer.SGD(0.01).minimize(loss)
    assert words.lod_level == 1
    return fluid.default_main_program()


@pytest.fixture
def looped() -> Program:
    """A loop around an operator of its own."""
    layers = fluid.layers
    i, n = layers.fill_constant([1], "int64", 0), layers.fill_constant([1], "int64", 3)
    more = layers.less_than(i, n)
    with layers.While(more).block():
        layers.increment(i, 1)
        layers.less_than(i, n, cond=more)
    return fluid.default_main_program()
