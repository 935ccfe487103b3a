"""The last section of CONTRIBUTING.md: every file by the first line of its docstring.

`python docs/file_index.py` writes it. Run it after a file was added, moved or renamed; a test compares. Left out is
what a rule finds: operators (a file of their family), data sets, words of `fluidnb` and of `%fluid`.
"""

from __future__ import annotations

import ast
from itertools import groupby
from pathlib import Path

ROOT = Path(__file__).parents[1]
HEADING = "## Every file in one line"
_INTRO = """\
Written by `python docs/file_index.py`. Left out: operators (a file in the folder of their family), data sets,
words of the `fluidnb` command and of `%fluid`.
"""
_BY_RULE = ("fluidnb/cli/", "fluidnb/data/dataset/", "magics/fluidnb_magics/commands/")
#: Folders of kernels that are no families of operators.
_KERNELS = ("cuda", "cuda_emulator_backend", "device", "emulator", "lab", "rows")


def section() -> str:
    """The section as Markdown."""
    lines = [HEADING, "", _INTRO]
    for folder, files in groupby(_files(), key=lambda file: file.parent):
        lines += [f"`{folder.as_posix()}/`", ""]
        lines += [f"- `{file.name}`: {_first_line(file)}" for file in files]
        lines += [""]
    return "\n".join(lines).rstrip() + "\n"


def indexed(text: str) -> str:
    """The text of CONTRIBUTING.md with today's section."""
    return text.partition(HEADING)[0] + section()


def _files() -> list[Path]:
    """The files of the index, folder by folder, relative to the checkout."""
    found = []
    for package in ("fluidnb", "kernels/fluidnb_kernels", "magics/fluidnb_magics"):
        for path in (ROOT / package).rglob("*.py"):
            file = path.relative_to(ROOT)
            family = file.parts[2:-1][:1] if package.startswith("kernels") else ()
            by_rule = file.as_posix().startswith(_BY_RULE) and not file.name.startswith("_")
            by_rule = by_rule or bool(family) and family[0] not in _KERNELS
            if file.name not in ("__init__.py", "__main__.py") and not by_rule:
                found.append(file)
    return sorted(found, key=lambda file: (file.parent.as_posix(), file.name))


def _first_line(file: Path) -> str:
    """The first sentence of a file's docstring."""
    text = ast.get_docstring(ast.parse((ROOT / file).read_text("utf-8"))) or ""
    return text.partition("\n\n")[0].replace("\n", " ").partition(". ")[0].removesuffix(".").replace("``", "`")


if __name__ == "__main__":
    path = ROOT / "CONTRIBUTING.md"
    path.write_text(indexed(path.read_text("utf-8")), "utf-8")
