"""The order of a notebook's cells where no page reports it: the file that the server started the kernel for."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from fluidnb_magics.jupyter.notebook_order import NotebookOrder


def save(file: Path, *ids: str) -> None:
    file.write_text(json.dumps({"cells": [{"id": each, "cell_type": "code"} for each in ids], "length": len(ids)}))


@pytest.fixture
def order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> NotebookOrder:
    monkeypatch.setenv("JPY_SESSION_NAME", str(tmp_path / "a.ipynb"))
    return NotebookOrder(SimpleNamespace(kernel=object()))


def test_the_file_is_read_again_when_it_was_saved(order: NotebookOrder, tmp_path: Path) -> None:
    file = tmp_path / "a.ipynb"
    assert order.update("a") == set(), "there is no file yet"
    save(file, "a", "b", "c")
    assert order.update("a") == set()
    assert order.positions == {"a": 0, "b": 1, "c": 2}
    assert order.update("new") == set(), "a cell that was not saved yet says nothing"
    save(file, "c", "a", "new")
    assert order.update("a") == {"b"}
    assert order.positions == {"c": 0, "a": 1, "new": 2}
    file.write_text("no notebook")
    assert order.update("a") == set()
    assert order.positions == {"c": 0, "a": 1, "new": 2}


def test_a_file_that_was_replaced(order: NotebookOrder, tmp_path: Path) -> None:
    save(tmp_path / "a.ipynb", "a", "b")
    order.update("a")
    save(tmp_path / "a.ipynb", "x", "y", "z")
    assert order.update("x") == {"a", "b"}


def test_what_the_page_reports_counts_more(order: NotebookOrder, tmp_path: Path) -> None:
    save(tmp_path / "a.ipynb", "a", "b")
    order.report(["b", "a", "c"])
    assert order.update("c") == set()
    assert order.positions == {"b": 0, "a": 1, "c": 2}
    order.report(["b", "a"])
    assert order.update("a") == {"c"}
    assert order.is_deleted("c")
    assert order.update("a") == set(), "a deletion is noticed once"
    assert not order.is_deleted(None)


def test_without_a_server_nothing_is_known(order: NotebookOrder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JPY_SESSION_NAME")
    assert order.path == ""
    assert order.update("a") == set()
    assert order.positions == {}
