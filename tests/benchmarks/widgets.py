"""The program explorer in a real JupyterLab: opening, scrolling, searching, following a step.

All times are the browser's own, up to the frame that shows the result. ``python -m tests.benchmarks.widgets 20000``
prints every number for a program of so many operators, by default 5,000, and those of the panel; the goals are works
of ``python -m tests.benchmarks``.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.benchmarks.widgets_panel import panel_times
from tests.browser import lab

OPERATORS = 5000
OPENS, STEPS, FRAMES = 5, 30, 400

#: What the page's clock shows: when the kernel's first message of a widget came, and when its rows were painted.
_WATCH = """() => {
    const kernel = window.jupyterapp.shell.currentWidget.sessionContext.session.kernel;
    window.seen = { old: new Set(document.querySelectorAll('.fw-explorer')) };
    const seen = window.seen;
    const note = (name) => { seen[name] ??= performance.now(); };
    kernel.anyMessage.connect((_, { msg, direction }) => {
        if (direction === 'send' && msg.header.msg_type === 'execute_request') note('asked');
        if (direction === 'recv' && msg.header.msg_type === 'comm_open') note('message');
    });
    const look = () => {
        const mine = [...document.querySelectorAll('.fw-explorer')].find((e) => !seen.old.has(e));
        const painted = (name) => requestAnimationFrame(() => setTimeout(() => note(name)));
        if (mine?.querySelector('.fe-row')) painted('painted');
        if (mine?.querySelector('.fe-row') && !mine.querySelector('.fe-title').textContent.includes('reading'))
            painted('whole');
        if (!seen.whole) requestAnimationFrame(look);
    };
    look();
}"""

#: Milliseconds from a text in the search box until the frame that shows what it finds.
SEARCH = """(text) => new Promise((done) => {
    const box = document.querySelector('.fe-search'), start = performance.now();
    box.value = text;
    box.dispatchEvent(new Event('input'));
    requestAnimationFrame(() => setTimeout(() => done(performance.now() - start)));
})"""
SEARCHES = ("mul", "fc_123", "var:*@GRAD", "attr:axis=1", "nothing at all")

#: Scrolls from the top by so many pixels a frame, to the end where that is null; the milliseconds of each frame.
SCROLL = """([selector, step, frames]) => new Promise((done) => {
    const rows = document.querySelector(selector), times = [];
    const by = step ?? (rows.scrollHeight - rows.clientHeight) / frames;
    rows.scrollTop = 0;
    let last = performance.now();
    const frame = (now) => {
        times.push(now - last);
        last = now;
        rows.scrollTop += by;
        times.length > frames ? done(times.slice(1)) : requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
})"""

#: Sends a command to the kernel and gives the milliseconds until another operator is lit, and painted.
_STEP = """([code]) => new Promise((done) => {
    const kernel = window.jupyterapp.shell.currentWidget.sessionContext.session.kernel;
    const now = () => document.querySelector('.fw-explorer .fe-now .fe-name')?.textContent;
    const before = now();
    const start = performance.now();
    kernel.requestExecute({ code });
    const look = () => {
        if (now() && now() !== before) setTimeout(() => done(performance.now() - start));
        else requestAnimationFrame(look);
    };
    look();
})"""


def cells(operators: int) -> list[str]:
    """The cells that build and train a program of exactly so many operators, and show its explorer."""
    layers, none = divmod(operators - 8, 8)
    assert not none, "a multiple of 8"
    return [
        "%load_ext fluidnb\nimport numpy as np",
        f"%%fluid net\nx = layers.data('x', shape=[8])\nh = x\nfor _ in range({layers}):\n"
        "    h = layers.fc(h, 8, act='relu')\nloss = layers.mean(h)\nfluid.optimizer.SGD(0.1).minimize(loss)\n"
        "for _ in range(5):\n    h = layers.relu(h)",
        "%fluid explore",
    ]


@contextmanager
def opened(operators: int = OPERATORS) -> Iterator[lab.Notebook]:
    """Open a notebook with the program in a separate JupyterLab.

    Args:
        operators: of the program, a multiple of 8.

    Yields:
        The notebook.
    """
    os.sched_setaffinity(0, range(os.cpu_count() or 1))  # a server, a kernel and a browser, as a user has them
    with tempfile.TemporaryDirectory() as folder, lab.chromium() as browser, lab.jupyterlab(Path(folder)) as running:
        nb = lab.opener(running, browser)("widgets", cells(operators))
        for index in range(2):
            nb.run(index)
        yield nb


def opening(nb: lab.Notebook, operators: int = OPERATORS) -> list[dict[str, float]]:
    """Open the explorer several times.

    Args:
        nb: the notebook.
        operators: of its program.

    Returns:
        Of each time, seconds from asking and from the first message to painted, and to the whole program.
    """
    found = []
    for _ in range(OPENS):
        nb.page.evaluate(_WATCH)
        nb.run(2)
        nb.page.wait_for_function("() => window.seen.whole")
        seen = nb.page.evaluate("() => ({ ...window.seen, old: 0 })")
        title = nb.page.locator(".fe-title").inner_text()
        assert f"{operators:,} ops" in title, title
        found.append({
            "painted": (seen["painted"] - seen["message"]) / 1e3,
            "asked to painted": (seen["painted"] - seen["asked"]) / 1e3,
            "asked to whole": (seen["whole"] - seen["asked"]) / 1e3,
        })  # fmt: skip
    return found


def scrolling(nb: lab.Notebook, pixels: int | None = None) -> list[float]:
    """Scroll through the listing.

    Args:
        nb: a notebook with an explorer.
        pixels: of each frame; None for the whole listing in all frames.

    Returns:
        The seconds of each frame, the shortest first.
    """
    return sorted(ms / 1e3 for ms in nb.page.evaluate(SCROLL, [".fw-explorer [role=tree]", pixels, FRAMES]))


def stepping(nb: lab.Notebook) -> list[float]:
    """Step in a debug session, by commands sent to the kernel.

    Args:
        nb: a notebook with an explorer.

    Returns:
        Of each step, the seconds from sending the command until the operator that comes next is lit.
    """
    feed = "%fluid debug --feed x=np.ones((2,8),'float32')"
    nb.page.evaluate(_STEP, [feed])
    return [nb.page.evaluate(_STEP, ["%fluid step"]) / 1e3 for _ in range(STEPS)]


def explorer_open() -> dict[str, float]:
    """The slowest opening."""
    with opened() as nb:
        return {"value": max(each["painted"] for each in opening(nb))}


def explorer_scroll() -> dict[str, float]:
    """The frame than which one in twenty is longer."""
    with opened() as nb:
        opening(nb)
        return {"value": scrolling(nb)[-FRAMES // 20]}


def explorer_step() -> dict[str, float]:
    """The step than which one in two is longer."""
    with opened() as nb:
        opening(nb)
        return {"value": statistics.median(stepping(nb))}


def numbers(operators: int) -> dict[str, Any]:
    """Everything, in one run."""
    with opened(operators) as nb:
        opens = opening(nb, operators)
        # Wheels and fingers reach 100 pixels a frame; with None each frame shows other rows.
        frames = {pixels: scrolling(nb, pixels) for pixels in (100, 300, None)}
        searches = {text: max(nb.page.evaluate(SEARCH, text) for _ in range(3)) for text in SEARCHES}
        nb.page.evaluate(SEARCH, "")
        steps = sorted(stepping(nb))
    with tempfile.TemporaryDirectory() as folder, lab.chromium() as browser, lab.jupyterlab(Path(folder)) as running:
        open_notebook = lab.opener(running, browser)
        panel = panel_times(lambda content: open_notebook("panel", content), operators)
    return {
        "opens (s)": opens,
        "frames a second": {
            f"{pixels or 'all'} pixels a frame": {
                "mean": 1 / statistics.mean(each),
                "slowest of twenty": 1 / each[-FRAMES // 20],
            }
            for pixels, each in frames.items()
        },
        "search (ms)": {text: round(ms) for text, ms in searches.items()},
        "steps (s)": {"median": statistics.median(steps), "slowest": steps[-1]},
        "panel": panel,
    }


if __name__ == "__main__":
    json.dump(numbers(int(sys.argv[1]) if len(sys.argv) > 1 else OPERATORS), sys.stdout, indent=1)
