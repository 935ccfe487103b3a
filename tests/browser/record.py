"""Records the README's animation in JupyterLab: ``python -m tests.browser.record`` writes it again.

A cell builds a program, ``%fluid show`` draws it, the debugger steps into a loop and back.
"""

from __future__ import annotations

import io
import sys
import tempfile
from pathlib import Path
from typing import Any

from PIL import Image

from tests.browser.lab import ROOT, Notebook, chromium, jupyterlab, opener
from tests.browser.panel import PanelPage

FILE = ROOT / "notebooks" / "pictures" / "step_back.webp"
CELLS = [
    "%load_ext fluidnb",
    "%%fluid count\nx = layers.data('x', shape=[4])\ni = layers.fill_constant([1], 'int64', 0)\n"
    "n = layers.fill_constant([1], 'int64', 3)\nmore = layers.less_than(i, n)\n"
    "with layers.While(more).block():\n    layers.increment(i)\n    layers.assign(layers.scale(x, 2.0), x)\n"
    "    layers.less_than(i, n, cond=more)\nloss = layers.mean(x)",
    "%fluid show",
    "%fluid debug --feed x=[[1.0,2.0,3.0,4.0]] --fetch loss --panel",
]
#: Size of the page and of the picture, in pixels.
PAGE, WIDTH = (1100, 780), 900


class Recording:
    """Pictures of a page with the time that each is shown."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.frames: list[Image.Image] = []
        self.times: list[int] = []

    def shoot(self, milliseconds: int) -> None:
        """Adds the page as it is now."""
        area = self.page.locator(".jp-NotebookPanel-notebook").bounding_box()
        picture = Image.open(io.BytesIO(self.page.screenshot(clip=area))).convert("RGB")
        height = round(picture.height * WIDTH / picture.width)
        self.frames.append(picture.resize((WIDTH, height), Image.Resampling.LANCZOS))
        self.times.append(milliseconds)

    def save(self, path: Path) -> None:
        """Writes an animated WebP that repeats."""
        self.frames[0].save(
            path, save_all=True, append_images=self.frames[1:], duration=self.times, loop=0, quality=70, method=6
        )


def record(nb: Notebook) -> Recording:
    """Runs the cells and walks the program, with a picture after each action."""
    page = nb.page
    page.evaluate("window.jupyterapp.commands.execute('application:toggle-left-area')")
    recording = Recording(page)
    nb.run(0)
    nb.scroll_to(1)
    recording.shoot(2500)
    nb.run(1)
    recording.shoot(800)
    nb.run(2)
    nb.scroll_to(2)
    recording.shoot(3500)
    nb.run(3)
    panel = PanelPage(nb)
    panel.at(0)
    nb.scroll_to(3)
    recording.shoot(1500)
    for step in range(1, 9):
        panel.press("step")
        panel.at(step)
        if step == 6:
            panel.root.locator(".fp-frame", has_text="block 0").click()
            panel.value("x").click()
        page.wait_for_timeout(300)
        recording.shoot(700)
    recording.shoot(1200)
    for step in range(7, 3, -1):
        panel.press("back")
        panel.at(step)
        page.wait_for_timeout(300)
        recording.shoot(900)
    recording.shoot(1800)
    return recording


def main(path: Path = FILE) -> None:
    """Records into a file."""
    with tempfile.TemporaryDirectory() as folder, jupyterlab(Path(folder)) as lab, chromium() as browser:
        nb = opener(lab, browser)("count", CELLS)
        nb.page.set_viewport_size({"width": PAGE[0], "height": PAGE[1]})
        record(nb).save(path)
        if nb.errors:
            sys.exit("\n".join(nb.errors))


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
