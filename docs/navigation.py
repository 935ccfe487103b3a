"""Navigation cells of the notebooks: what a page teaches, what it needs, and the pages before and after it.

`pages.toml` lists the pages. `python docs/navigation.py` writes two cells into every notebook, one below its
introduction and one at its foot. Run it after a page was added, moved or renamed; a test compares.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"
TOP, FOOT = "navigation-top", "navigation-foot"  # ids of the cells


@dataclass(frozen=True, slots=True)
class Page:
    """A notebook in the order in which they are read."""

    path: str  # in NOTEBOOKS, without the ending
    goal: str  # what a reader learns: "to …", "how …"
    needs: Sequence[str] = ()  # paths of pages to read first
    knowledge: str = ""  # what a reader has to know beside these


PAGES = [Page(**row) for row in tomllib.loads((Path(__file__).parent / "pages.toml").read_text("utf-8"))["page"]]


def navigated(page: Page, notebook: dict[str, Any]) -> dict[str, Any]:
    """Puts the navigation cells of a page into its notebook.

    Sentences of the introduction about goals and needs are dropped: the cell has them. Its sections are moved below it.

    Args:
        page: the page.
        notebook: the notebook as parsed JSON; it is not changed.

    Returns:
        The notebook with the two cells.
    """
    first, *cells = (cell for cell in notebook["cells"] if cell["id"] not in (TOP, FOOT))
    text, *sections = re.split(r"\n+(?=## )", "".join(first["source"]), maxsplit=1)
    text = re.sub(r"\n+You (?:need|learn): .*", "", text)
    rest = [_markdown(f"{first['id']}-sections", section) for section in sections]
    intro = {**first, "source": text.splitlines(keepends=True)}
    return {**notebook, "cells": [intro, _markdown(TOP, _top(page)), *rest, *cells, _markdown(FOOT, _foot(page))]}


def anchor(heading: str) -> str:
    """The anchor of a heading in JupyterLab and nbconvert, which the site uses, too.

    Args:
        heading: its text without marks of formatting.
    """
    return heading.replace(" ", "-")


def _top(page: Page) -> str:
    links = ", ".join(_link(page, need) for need in page.needs)
    needs = f"{links}; {page.knowledge}" if links and page.knowledge else links or page.knowledge
    return f"**You learn** {page.goal}.\n\n**You need** {needs}."


def _foot(page: Page) -> str:
    i = PAGES.index(page)
    around = [f"**Previous:** {_link(page, PAGES[i - 1].path)}"] if i else []
    around += [f"**Next:** {_link(page, PAGES[i + 1].path)}"] if i + 1 < len(PAGES) else []
    return " · ".join(around)


def _link(page: Page, path: str) -> str:
    """A link from a page to another one; its text is the title of the other."""
    title = "".join(read(path)["cells"][0]["source"]).splitlines()[0].removeprefix("# ")
    return f"[{title}]({os.path.relpath(f'{path}.ipynb', Path(page.path).parent)})"


def _markdown(name: str, text: str) -> dict[str, Any]:
    return {"cell_type": "markdown", "id": name, "metadata": {}, "source": text.splitlines(keepends=True)}


def read(path: str) -> dict[str, Any]:
    """Reads a notebook."""
    notebook: dict[str, Any] = json.loads((NOTEBOOKS / f"{path}.ipynb").read_text("utf-8"))
    return notebook


if __name__ == "__main__":
    for page in PAGES:
        text = json.dumps(navigated(page, read(page.path)), indent=1, ensure_ascii=False)
        (NOTEBOOKS / f"{page.path}.ipynb").write_text(text + "\n", "utf-8")
