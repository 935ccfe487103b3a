"""Notebooks exported by nbconvert, opened without a network: pictures fold, search, and need no scripts."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import mistune
import nbformat
import pytest
from nbclient import NotebookClient

pytestmark = [pytest.mark.browser, pytest.mark.slow]

CELLS = (
    "%load_ext fluidnb",
    "%%fluid net\n"
    "x = layers.data('x', shape=[4])\n"
    "h = layers.fc(x, 3, act='relu')\n"
    "i, n = layers.fill_constant([1], 'int64', 0), layers.fill_constant([1], 'int64', 3)\n"
    "cond = layers.less_than(i, n)\n"
    "with layers.While(cond).block():\n"
    "    layers.increment(i, in_place=True)\n"
    "    layers.less_than(i, n, cond=cond)\n"
    "loss = layers.mean(h)",
    "%fluid show",
    "%fluid show --fold blocks",
    "%fluid explore",
)
#: What nbconvert's own page asks for, whatever is in the notebook, and in one with widgets.
TEMPLATE = (
    "https://cdnjs.cloudflare.com/ajax/libs/require.js/", "https://cdnjs.cloudflare.com/ajax/libs/mathjax/",
    "https://unpkg.com/@jupyter-widgets/html-manager@",
)  # fmt: skip

Export = Callable[..., Path]


@pytest.fixture(scope="module")
def export(tmp_path_factory: pytest.TempPathFactory) -> Export:
    """Exports the executed notebook to a format; returns the file."""
    folder = tmp_path_factory.mktemp("exported")
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS])
    NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    nbformat.write(notebook, folder / "net.ipynb")

    def exported(kind: str, suffix: str, *options: str) -> Path:
        command = [sys.executable, "-m", "nbconvert", "--to", kind, *options, str(folder / "net.ipynb")]
        subprocess.run(command, check=True, capture_output=True, timeout=200)
        return folder / f"net.{suffix}"

    return exported


@contextmanager
def offline(browser: Any, file: Path, *, scripts: bool = True, dark: bool = False) -> Iterator[Any]:
    """A file in a browser without a network; only nbconvert's own page may have asked for more."""
    context = browser.new_context(
        viewport={"width": 1200, "height": 900}, java_script_enabled=scripts, offline=True,
        color_scheme="dark" if dark else "light",
    )  # fmt: skip
    page = context.new_page()
    page.set_default_timeout(60_000)
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.goto(file.as_uri())
    yield page
    foreign = [url for url in requests if not url.startswith(("file:", "data:", "blob:", *TEMPLATE))]
    context.close()
    assert foreign == []


def test_the_page_folds_and_searches_offline(export: Export, browser: Any, shots: Path) -> None:
    with offline(browser, export("html", "html")) as page:
        assert page.locator(".fluidnb svg").count() == 1
        page.locator(".fluidnb-op", has_text="increment").wait_for()
        for listing in page.locator(".fluidnb:has(input)").all():
            block = listing.locator("details", has=page.locator("summary", has_text="while"))
            inner = block.locator("div", has_text="increment")
            before = inner.is_visible()
            block.locator("summary", has_text="while").click()
            assert inner.is_visible() is not before
            search = listing.get_by_label("search operators")
            search.fill("increment")
            assert inner.is_visible() and not listing.locator("div > div", has_text="mean").is_visible()
            search.fill("")
            assert listing.locator("div > div", has_text="mean").is_visible()
            rows = [row for row in listing.locator("div > div").all() if row.is_visible()]
            places = [row.locator("span").last for row in rows if "cell net, line" in row.inner_text()]
            assert len({round(place.bounding_box()["x"]) for place in places}) == 1
        assert page.locator(".fluidnb:has(input)").count() == 2
        page.screenshot(path=shots / "exported.png", full_page=True)


def test_without_scripts_the_svg_is_visible_and_blocks_fold(export: Export, browser: Any, shots: Path) -> None:
    with offline(browser, export("html", "html"), scripts=False) as page:
        page.locator(".fluidnb svg .fluidnb-op", has_text="increment").wait_for()
        block = page.locator(".fluidnb:has(input) details").first
        before = block.get_attribute("open")
        block.locator("summary").first.click()
        assert block.get_attribute("open") != before
        page.screenshot(path=shots / "exported_without_scripts.png", full_page=True)


def test_markdown_has_the_svg_as_an_element_or_as_a_file(export: Export, browser: Any, shots: Path) -> None:
    text = export("markdown", "md").read_text("utf-8")
    rendered = Path(export("markdown", "md")).with_suffix(".markdown.html")
    rendered.write_text(f"<meta charset=utf-8>{mistune.html(text)}", "utf-8")
    with offline(browser, rendered, scripts=False) as page:
        page.locator(".fluidnb svg .fluidnb-op", has_text="increment").wait_for()
        assert page.get_by_text("<svg").count() == 0
        page.screenshot(path=shots / "exported_markdown.png", full_page=True)
    order = "--NbConvertBase.display_data_priority=['image/svg+xml', 'text/html', 'text/plain']"
    files = export("markdown", "md", order)
    [picture] = files.with_name("net_files").glob("*.svg")
    assert f"]({picture.parent.name}/{picture.name})" in files.read_text("utf-8")
    with offline(browser, picture, scripts=False, dark=True) as page:
        page.locator(".fluidnb-op", has_text="increment").wait_for()
        page.screenshot(path=shots / "exported_svg_dark.png")
