"""The table of the design documents: every section has a row, and what a row links to exists."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tests.house.test_navigation import navigation

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "notebooks" / "guide" / "31_design_documents.ipynb"
#: Document -> the number of its sections.
SECTIONS = {
    "Design Doc: Block and Scope": 10,
    "Design Doc: Python API": 12,
    "Network Design": 7,
    "Paddle Fluid 开发者指南 (developer guide)": 85,
}


def markdown(path: Path) -> str:
    """The text of a notebook, or of a file of markdown."""
    if path.suffix != ".ipynb":
        return path.read_text("utf-8")
    cells = json.loads(path.read_text("utf-8"))["cells"]
    return "\n\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")


def headings(path: Path) -> list[str]:
    """The headings of a page, without marks of formatting."""
    return [heading.replace("`", "") for heading in re.findall(r"^#+ (.+)$", markdown(path), re.MULTILINE)]


def rows() -> dict[str, list[list[str]]]:
    """Document -> the cells of each row of its table."""
    parts = re.split(r"^## ", markdown(PAGE), flags=re.MULTILINE)[1:]
    return {
        part.splitlines()[0]: [line.strip("| ").split(" | ") for line in part.splitlines() if line.startswith("| ")][1:]
        for part in parts
    }


def missing(taught: str) -> list[str]:
    """Names in a cell that do not exist; a cell has links, headings of CONTRIBUTING.md, or a reason for neither."""
    links = re.findall(r"\]\(([^)#]+)#?([^)]*)\)", taught)
    texts = re.findall(r"`CONTRIBUTING\.md`, ([^;]+)", taught)
    if not links and not texts:
        return [] if taught.startswith("not here: ") else [taught]
    lost = []
    for target, anchor in links:
        path = PAGE.parent / target
        if not path.is_file() or anchor and anchor not in map(navigation.anchor, headings(path)):
            lost.append(f"{target}#{anchor}")
    known = headings(ROOT / "CONTRIBUTING.md")
    return lost + [text for text in texts if text.strip().replace("`", "") not in known]


def test_every_section_has_a_row() -> None:
    tables = rows()
    assert {title: len(table) for title, table in tables.items()} == SECTIONS
    for table in tables.values():
        names = [row[0] for row in table]
        assert len(set(names)) == len(names)


def test_what_a_row_names_exists() -> None:
    assert {row[0]: lost for table in rows().values() for row in table if (lost := missing(row[-1]))} == {}


def test_the_check_sees_what_does_not_exist() -> None:
    assert missing("[a](25_symbol_table_net.ipynb#Net:-operators-without-variables); `CONTRIBUTING.md`, Layout") == []
    assert missing("not here: distributed training") == []
    wrong = "[a](25_symbol_table.ipynb); [b](25_symbol_table_net.ipynb#Nets); `CONTRIBUTING.md`, Layouts"
    assert missing(wrong) == ["25_symbol_table.ipynb#", "25_symbol_table_net.ipynb#Nets", "Layouts"]
    assert missing("somewhere") == ["somewhere"]
