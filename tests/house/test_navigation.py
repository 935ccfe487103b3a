"""Every notebook says in one form what it teaches and needs, and links to the pages before and after it."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
NOTEBOOKS = {
    str(path.relative_to(ROOT / "notebooks").with_suffix("")): path
    for path in sorted((ROOT / "notebooks").rglob("*.ipynb"))
    if ".ipynb_checkpoints" not in path.parts
}


def load() -> ModuleType:
    """The script that writes the cells."""
    spec = importlib.util.spec_from_file_location("navigation", ROOT / "docs" / "navigation.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["navigation"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


navigation = load()


def page(path: str) -> Any:
    """A page of the list."""
    return next(each for each in navigation.PAGES if each.path == path)


def sources(notebook: dict[str, Any]) -> dict[str, str]:
    """The cells of a notebook: id -> source."""
    return {cell["id"]: "".join(cell["source"]) for cell in notebook["cells"]}


def test_every_notebook_is_in_the_order_once() -> None:
    assert sorted(each.path for each in navigation.PAGES) == sorted(NOTEBOOKS)


@pytest.mark.parametrize("path", NOTEBOOKS)
def test_its_cells_are_those_of_the_list(path: str) -> None:
    stored = json.loads(NOTEBOOKS[path].read_text("utf-8"))
    assert stored == navigation.navigated(page(path), stored), "python docs/navigation.py writes the cells"


@pytest.mark.parametrize("path", NOTEBOOKS)
def test_its_links_lead_to_notebooks(path: str) -> None:
    cells = sources(json.loads(NOTEBOOKS[path].read_text("utf-8")))
    links = [re.findall(r"\]\(([^)]+)\)", cells[name]) for name in (navigation.TOP, navigation.FOOT)]
    assert len(links[0]) == len(page(path).needs) and len(links[1]) in (1, 2)
    assert [link for link in links[0] + links[1] if not (NOTEBOOKS[path].parent / link).is_file()] == []


def test_a_page_needs_pages_before_it() -> None:
    order = [each.path for each in navigation.PAGES]
    late = {each.path: set(each.needs) - set(order[: order.index(each.path)]) for each in navigation.PAGES}
    assert {path: needs for path, needs in late.items() if needs} == {}
    assert [each.path for each in navigation.PAGES if not (each.needs or each.knowledge)] == []
    assert [each.goal for each in navigation.PAGES if not re.match("(to|how|what|which|where) ", each.goal)] == []


def test_pages_of_a_folder_follow_their_numbers() -> None:
    for folder in ("guide", "book"):
        paths = [each.path for each in navigation.PAGES if each.path.startswith(f"{folder}/")]
        assert paths == sorted(paths)


def test_the_introduction_leaves_goals_to_the_cell_and_its_sections_below_it() -> None:
    text = "# Title\n\nAbout it.\n\nYou need: [x](x.ipynb).\n\nYou learn: a lot.\n\n## Part\n\nYou need: a hammer."
    code = {"cell_type": "code", "id": "b", "source": ["1"], "outputs": [], "metadata": {}, "execution_count": 1}
    first = {"cell_type": "markdown", "id": "a", "source": text.splitlines(keepends=True), "metadata": {}}
    made = navigation.navigated(page("guide/01_program"), {"cells": [first, code], "nbformat": 4})
    assert made["nbformat"] == 4 and made["cells"][3] is code
    cells = sources(made)
    assert list(cells) == ["a", navigation.TOP, "a-sections", "b", navigation.FOOT]
    assert cells["a"] == "# Title\n\nAbout it."
    assert cells["a-sections"] == "## Part\n\nYou need: a hammer."
    assert cells[navigation.TOP].endswith("\n\n**You need** [A tour of fluidnb](../00_tour.ipynb).")
    assert cells[navigation.FOOT].startswith("**Previous:** [A tour of fluidnb](../00_tour.ipynb) · **Next:** [")
    assert navigation.navigated(page("guide/01_program"), made) == made


def test_the_ends_have_one_neighbour() -> None:
    ends = navigation.PAGES[0], navigation.PAGES[-1]
    feet = [sources(navigation.read(each.path))[navigation.FOOT] for each in ends]
    assert [re.findall(r"\*\*(\w+):", foot) for foot in feet] == [["Next"], ["Previous"]]
