"""One JupyterLab and one Chromium for all browser tests; screenshots go to FLUIDNB_SHOTS or a temporary folder."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser import lab


@pytest.fixture(scope="package")
def browser() -> Iterator[Any]:
    """A headless Chromium; its event loop runs in this thread, so it goes before tests of other folders."""
    pytest.importorskip("playwright")
    if shutil.which("chromium") is None:
        pytest.skip("no Chromium; on Debian: apt-get install chromium")
    with lab.chromium() as started:
        yield started


@pytest.fixture(scope="package")
def running_lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[lab.Lab]:
    """A JupyterLab in light colours."""
    with lab.jupyterlab(tmp_path_factory.mktemp("lab")) as started:
        yield started


@pytest.fixture(scope="session")
def shots(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the screenshots."""
    folder = Path(os.environ.get("FLUIDNB_SHOTS") or tmp_path_factory.mktemp("shots"))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture(scope="package")
def free_pages(running_lab: lab.Lab) -> list[Any]:
    """Pages of the lab that tests have left as they found them."""
    return []


@pytest.fixture
def notebook(
    running_lab: lab.Lab, browser: Any, free_pages: list[Any], request: pytest.FixtureRequest, shots: Path
) -> Iterator[Callable[[list[str] | Path], lab.Notebook]]:
    """Opens a notebook with the given cells, or a file; each test leaves a picture of its page.

    A page shows one notebook after another until a test in it fails or the page's scripts raise something.
    """
    opened: list[lab.Notebook] = []
    open_named = lab.opener(running_lab, browser, free_pages)
    failed = request.session.testsfailed

    def open_content(content: list[str] | Path) -> lab.Notebook:
        opened.append(open_named(f"{request.path.stem}__{request.node.name}", content))  # a name of its own
        return opened[-1]

    yield open_content
    for nb in opened:
        nb.page.screenshot(path=shots / f"{request.node.name}.png")
        if nb.errors or request.session.testsfailed != failed:
            nb.page.context.close()
        else:
            free_pages.append(nb.leave())
    lab.end_kernels(running_lab)
