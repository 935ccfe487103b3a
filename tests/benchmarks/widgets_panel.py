"""Measure the debugger panel in a browser: steps, jumps, scrolling."""

from __future__ import annotations

from statistics import median
from typing import Any

from tests.browser.panel import PanelPage

#: From a click until the page has drawn what the kernel told: the row that is lit, and the values.
_CLICK = """word => new Promise(done => {
    const panel = document.querySelector('.fw-panel'), count = panel.querySelector('.fp-count');
    const before = count.textContent, start = performance.now();
    const seen = new MutationObserver(() => {
        if (count.textContent === before) return;
        seen.disconnect();
        requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now() - start)));
    });
    seen.observe(count, {childList: true, characterData: true, subtree: true});
    panel.querySelector(`.fp-${word}.fp-move`).click();
})"""
#: Frames a second while the listing scrolls from its beginning to its end.
_SCROLL = """() => new Promise(done => {
    const list = document.querySelector('.fp-listing');
    const start = performance.now();
    let frames = 0;
    const tick = now => {
        frames++;
        list.scrollTop = (now - start) / 2000 * list.scrollHeight;
        if (now - start < 2000) requestAnimationFrame(tick); else done(frames / (now - start) * 1000);
    };
    requestAnimationFrame(tick);
})"""


def cells(operators: int) -> list[str]:
    """The cells that build a program and open a debug session in a panel."""
    return [
        "%load_ext fluidnb\nimport numpy as np\nX = np.ones((16, 32), 'float32')",
        "%%fluid\nx = layers.data('x', shape=[32])\nh = x\n"
        f"for k in range({operators // 2}):\n    h = layers.relu(layers.scale(h, scale=0.999))",
        "%fluid debug --feed x=X --panel",
    ]


def panel_times(open_notebook: Any, operators: int = 5000) -> dict[str, float]:
    """Measure the panel.

    Args:
        open_notebook: opens a notebook with given cells, as the tests' fixture does.
        operators: of the program.

    Returns:
        Milliseconds of a step, of one back and of a jump, medians; frames a second while the listing scrolls.
    """
    content, middle = cells(operators), operators // 2
    nb = open_notebook(content)
    for i in range(len(content)):
        nb.run(i)
    panel = PanelPage(nb)
    panel.at(0)
    panel.fill("add a breakpoint", f"at 0:{middle}")
    panel.press("continue")
    panel.at(middle)
    page = panel.page

    def clicks(word: str, count: int) -> float:
        return median(page.evaluate(_CLICK, word) for _ in range(count))

    return {
        "step (ms)": clicks("step", 15),
        "back (ms)": clicks("back", 15),
        "reverse to the beginning (ms)": clicks("rcontinue", 1),
        f"continue over {middle:,} ops (ms)": clicks("continue", 1),
        "scrolling (frames/s)": page.evaluate(_SCROLL),
    }
