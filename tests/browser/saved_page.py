"""A saved page in a browser without a network."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


class SavedPage:
    """A saved page.

    Attributes:
        page: Playwright's Page.
        problems: what the page asked of a network, and the errors of its scripts.
    """

    def __init__(self, page: Any, file: Path) -> None:
        self.page = page
        self.problems: list[str] = []
        page.on("request", lambda request: request.url == file.as_uri() or self.problems.append(request.url))
        page.on("pageerror", lambda error: self.problems.append(str(error)))
        page.on("console", lambda message: message.type in ("error", "warning") and self.problems.append(message.text))
        page.on("dialog", lambda dialog: (self.problems.append("dialog"), dialog.dismiss()))
        page.goto(file.as_uri())
        page.wait_for_selector("body[data-ready]")

    def key(self, *names: str) -> None:
        """Press keys, one after the other."""
        for name in names:
            self.page.keyboard.press(name)

    @property
    def step(self) -> int:
        """The step at which the panel is."""
        return int(re.sub(r"\D", "", self.page.locator(".fp-count").inner_text()))

    @property
    def next_op(self) -> str:
        """The label of the next operator."""
        return str(self.page.locator(".fp-here .fp-text").inner_text())

    def open(self, name: str) -> None:
        """Open a variable by a click in the list of variables."""
        self.page.locator(".fp-values .fp-value", has=self.page.get_by_text(name, exact=True)).click()

    def cells(self) -> list[list[str]]:
        """The elements that the open variable shows."""
        rows = self.page.locator(".fp-opened .fp-grid tr").all()[1:]
        return [row.locator("td").all_inner_texts() for row in rows]


@contextmanager
def opened(browser: Any, file: Path, width: int = 1100, dark: bool = False) -> Iterator[SavedPage]:
    """A page from a file; the browser has no network."""
    colours = "dark" if dark else "light"
    context = browser.new_context(viewport={"width": width, "height": 900}, offline=True, color_scheme=colours)
    try:
        page = context.new_page()
        page.set_default_timeout(15_000)
        yield SavedPage(page, file)
    finally:
        context.close()
