"""Builds the documentation site: `python docs/build.py [FOLDER]`, or `make docs`.

The sources are put together in FOLDER/source (pages of this folder, notebooks, generated reference); the site is
FOLDER/html.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from sphinx.cmd.build import main as sphinx

DOCS = Path(__file__).parent
ROOT = DOCS.parent
sys.path[:0] = [str(ROOT), str(ROOT / "kernels"), str(ROOT / "magics"), str(DOCS)]


def build(folder: Path) -> int:
    """Builds the site.

    Args:
        folder: where sources and pages are written; sources of an earlier build are replaced.

    Returns:
        Sphinx's exit status; warnings are errors.
    """
    import reference

    source = folder / "source"
    shutil.rmtree(source, ignore_errors=True)
    shutil.copytree(DOCS, source, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "notebooks", source / "notebooks", ignore=shutil.ignore_patterns(".ipynb_checkpoints"))
    reference.write(source)
    return sphinx(["-W", "--keep-going", "-q", "-j", "2", "-b", "html", str(source), str(folder / "html")])


if __name__ == "__main__":
    sys.exit(build(Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build" / "docs").resolve()))
