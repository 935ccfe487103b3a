"""``%fluid memory``, ``%fluid profile`` and ``%fluid train --gradients``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from IPython.core.completer import provisionalcompleter
from IPython.core.error import UsageError

import fluidnb as fluid
from fluidnb.errors import NotFound
from fluidnb.viz import read_memory
from tests.magics.conftest import Session

NET = """%%fluid net
x, y = layers.data("x", shape=[13]), layers.data("y", shape=[1])
loss = layers.mean(layers.square_error_cost(layers.fc(x, 1), y))
fluid.optimizer.SGD(0.01).minimize(loss)
"""
DATA = "import numpy as np; a = np.ones((8, 13), 'float32'); b = np.ones((8, 1), 'float32')"
FEED = "--feed x=a y=b"


@pytest.fixture
def typed(session: Session) -> Session:
    """A session with a regression."""
    session.run(DATA)
    session.run(NET)
    return session


def test_memory_runs_nothing_and_says_how(typed: Session) -> None:
    error, _ = typed.fail("%fluid memory")
    assert isinstance(error, NotFound)
    assert "has not run yet" in str(error) and "%fluid run --feed" in str(error)
    typed.run(f"%fluid run {FEED} --fetch loss")
    shown = typed.run("%fluid memory")
    assert "block 0  arena" in shown and "live at the peak" in shown and "cell net, line 4" in shown
    assert "memory by holder" in shown  # the list is of the whole process; ours may not be among its largest
    held = {holder.name: holder.kind for holder in read_memory(fluid.default_main_program()).holders}
    assert held["net.fc_0.w_0"] == "persistable"
    error, _ = typed.fail(f"%fluid memory {FEED}")
    assert isinstance(error, UsageError) and "--growth" in str(error)


def test_memory_of_a_named_program_and_of_a_changed_one(typed: Session) -> None:
    typed.run(f"%fluid run {FEED} --fetch loss")
    typed.run("%%fluid more\nextra = layers.relu(loss)")
    assert "the program was changed since it ran" in typed.run("%fluid memory")
    typed.run(f"%fluid run {FEED} --fetch extra")
    assert "before the program was changed" in typed.run("%fluid memory")
    typed.run("%%fluid --program other\nz = layers.relu(layers.data('x', shape=[13]))")
    typed.fail("%fluid memory --program other")


def test_growth(typed: Session) -> None:
    shown = typed.run(f"%fluid memory --growth 6 {FEED} --fetch loss")
    assert "6 steps  steady since step" in shown and "pool" in shown and "scopes" in shown
    assert isinstance(typed.fail("%fluid memory --growth 0")[0], UsageError)


def test_profile(typed: Session, tmp_path: Path) -> None:
    shown = typed.run(f"%fluid profile {FEED} --fetch loss --steps 3")
    assert "timeline" in shown and "3 runs" in shown and "3 times" in shown
    assert "mul_grad" in shown and "cell net, line 3" in shown
    path = tmp_path / "trace.json"
    assert "Perfetto" in typed.run(f"%fluid profile {FEED} --trace {path}")
    names = {e["name"] for e in json.loads(path.read_text())["traceEvents"]}
    assert {"mul", "mul_grad", "sgd"} <= names


def test_gradients_over_training(typed: Session) -> None:
    typed.run("samples = [[(a[0], b[0])] * 4] * 5")
    shown = typed.run("%fluid train samples --watch loss --gradients")
    assert "gradients  5 steps" in shown and "w_0" in shown and "% of it" in shown
    rows = [line for line in shown.splitlines() if ".w_0" in line]
    assert len(rows) == 1
    first = rows[0].split()[1]
    assert len(first) == 5 and first[0] == "█"  # the gradient shrinks; the parameters had a value before the first step
    typed.run("%fluid train samples")
    typed.run("%%fluid --program other\nz = layers.relu(layers.data('x', shape=[13]))")
    assert isinstance(typed.fail("%fluid train samples --gradients --program other")[0], NotFound)


def test_html_faces(typed: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    from fluidnb_magics import display as showing

    shown: list[Any] = []
    monkeypatch.setattr(showing, "display", shown.append)
    typed.run(f"%fluid run {FEED} --fetch loss")
    for line in ("memory", f"memory --growth 3 {FEED}", f"profile {FEED}"):
        typed.run(f"%fluid {line}")
    pages = [picture._repr_html_() for picture in shown if hasattr(picture, "_repr_html_")]
    assert len(pages) >= 3
    assert all("<svg" in page and "<script" not in page for page in pages[-3:])


def test_completion(typed: Session) -> None:
    with provisionalcompleter():
        for line, word in (
            ("%fluid mem", "memory"), ("%fluid memory --g", "--growth"), ("%fluid profile --t", "--trace"),
            ("%fluid train r --g", "--gradients"),
        ):  # fmt: skip
            found = {c.text for c in typed.shell.Completer.completions(line, len(line))}
            assert word in found
