"""Curves of old scripts: kept without matplotlib, drawn into a file with it."""

from __future__ import annotations

import importlib
import sys
import types
from pathlib import Path

import numpy as np
import pytest

from fluidnb import compat
from fluidnb.compat.plot import Ploter
from fluidnb.errors import NotFound


@pytest.fixture
def no_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    """No matplotlib to import."""
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)


@pytest.mark.usefixtures("no_matplotlib")
def test_points_are_kept_without_matplotlib() -> None:
    with pytest.warns(UserWarning, match="matplotlib is not installed"):
        ploter = Ploter("Train cost", "Test cost")
    ploter.append("Train cost", 0, np.array([2.5]).ravel()[0])
    ploter.plot()
    assert ploter.curves["Train cost"].value == [2.5]
    with pytest.raises(NotFound, match='no curve "Train"'):
        ploter.append("Train", 0, 1.0)
    ploter.reset()
    assert ploter.curves["Train cost"].step == []


def test_nothing_is_drawn_when_it_is_turned_off(monkeypatch: pytest.MonkeyPatch, recwarn) -> None:
    monkeypatch.setenv("DISABLE_PLOT", "True")
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    Ploter("cost").plot("never.png")
    assert not recwarn.list and not Path("never.png").exists()


def test_curves_with_points_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple] = []
    figures = types.ModuleType("pyplot")
    figures.plot = lambda *a: calls.append(("plot", *a))
    figures.legend = lambda *a, **k: calls.append(("legend", *a))
    figures.savefig = lambda *a: calls.append(("savefig", *a))
    figures.gcf = lambda: types.SimpleNamespace(clear=lambda: calls.append(("clear",)))
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", figures)
    monkeypatch.delenv("DISABLE_PLOT", raising=False)
    ploter = Ploter("a", "b")
    ploter.append("b", 3, 1.5)
    ploter.plot("curves.png")
    assert calls == [("plot", [3], [1.5]), ("legend", ["b"]), ("savefig", "curves.png"), ("clear",)]


def test_both_names_of_the_module() -> None:
    compat.install(force=True)
    try:
        assert importlib.import_module("paddle.v2.plot") is importlib.import_module("paddle.utils.plot")
        assert importlib.import_module("paddle.v2.plot").Ploter is Ploter
    finally:
        compat.uninstall()
