"""A saved page of 20,000 operators and 100 steps in a browser: first picture, scrolling, search, stepping.

Times are the browser's own, up to the frame that shows the result. Beside them are the milliseconds that its main
thread computed, which do not depend on what else the machine does. ``python -m tests.benchmarks.saved_pages`` prints
all of them.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import fluidnb as fluid
from fluidnb import layers
from fluidnb.debug import Session
from tests.benchmarks.widgets import SCROLL, SEARCH, SEARCHES
from tests.browser import lab

OPERATORS, LAYERS, STEPS, FRAMES, OPENS = 20_000, 2500, 100, 400, 5
#: Pixels a frame: a quick turn of the wheel, and the scroll bar dragged from end to end in seven seconds.
PACES = (240, 1100)

#: Milliseconds from the end of the file, which has the data, until rows of a widget are painted.
_OPENED = """(selector) => new Promise((done) => {
    const look = () => {
        if (!document.querySelector(selector)) return requestAnimationFrame(look);
        const [entry] = performance.getEntriesByType('navigation');
        requestAnimationFrame(() => setTimeout(() => done(performance.now() - entry.responseEnd)));
    };
    look();
})"""
#: Milliseconds from a key until the frame that shows the step.
_STEP = """(key) => new Promise((done) => {
    const start = performance.now();
    document.querySelector('.fw-panel').dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }));
    requestAnimationFrame(() => setTimeout(() => done(performance.now() - start)));
})"""


def session() -> Session:
    """A session in a program of 20,000 operators, paused after some steps."""
    x = layers.data("x", shape=[8])
    h = x
    for _ in range(LAYERS):
        h = layers.fc(h, 8, act="relu")
    fluid.optimizer.SGD(0.1).minimize(layers.mean(h))
    program = fluid.default_main_program()
    while len(program.desc.blocks[0].ops) < OPERATORS:
        h = layers.relu(h)
    fluid.Executor(fluid.CPUPlace()).run(fluid.default_startup_program())
    begun = Session(program, {"x": np.ones((4, 8), "float32")})
    begun.step(STEPS)
    return begun


def traced(page: Any, act: Callable[[], Any]) -> tuple[Any, float]:
    """The result of a function, and the milliseconds that the page's main thread computed meanwhile."""
    page.context.browser.start_tracing(page=page, categories=["devtools.timeline", "toplevel"])
    result = act()
    events = json.loads(page.context.browser.stop_tracing())["traceEvents"]
    main = {(e["pid"], e["tid"]) for e in events if e["name"] == "FireAnimationFrame"}
    timed = [e for e in events if e.get("ph") == "X" and (e["pid"], e["tid"]) in main]
    spans = sorted((e["ts"], -e.get("dur", 0), e.get("tdur", 0)) for e in timed)
    computed, end = 0, 0
    for start, length, busy in spans:  # those inside another one are part of it
        if start >= end:
            computed, end = computed + busy, start - length
    return result, computed / 1000


def opening(page: Any, file: Path, selector: str) -> dict[str, list[int]]:
    """Milliseconds until rows are painted, and of them those that the main thread computed, of each opening."""
    times = []
    for _ in range(OPENS):
        page.goto("about:blank")

        def act() -> float:
            page.goto(file.as_uri(), wait_until="commit")
            return float(page.evaluate(_OPENED, selector))

        times.append(traced(page, act))
    return {"ms": [round(ms) for ms, _ in times], "computed": [round(ms) for _, ms in times]}


def scrolling(page: Any, selector: str, pace: int) -> dict[str, float]:
    """Frames a second on average and in the slowest twentieth, and milliseconds of a frame computed."""
    frames, computed = traced(page, lambda: sorted(page.evaluate(SCROLL, [selector, pace, FRAMES])))
    rates = {"frames/s": 1000 / statistics.mean(frames), "slowest of twenty": 1000 / frames[-FRAMES // 20]}
    return {name: round(value, 1) for name, value in (rates | {"computed": computed / FRAMES}).items()}


def numbers(file: Path) -> dict[str, Any]:
    """Everything, of one page in one browser."""
    with lab.chromium() as browser:
        page = browser.new_page(viewport={"width": 1300, "height": 1000})
        found: dict[str, Any] = {
            "first picture": opening(page, file, ".fp-op, .fe-row"),
            "both widgets": opening(page, file, ".fe-row"),
        }
        for name, selector in (("explorer", ".fw-explorer [role=tree]"), ("panel", ".fp-listing")):
            found[f"scrolling the {name}"] = {pace: scrolling(page, selector, pace) for pace in PACES}
        searches = {text: max(page.evaluate(SEARCH, text) for _ in range(3)) for text in SEARCHES}
        steps = [page.evaluate(_STEP, key) for key in ("ArrowLeft",) * 20 + ("ArrowRight",) * 20]
    found["search (ms)"] = {text: round(ms) for text, ms in searches.items()}
    found["step (ms)"] = {"median": round(statistics.median(steps)), "slowest": round(max(steps))}
    return found


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        saved = session().save(Path(folder) / "large.html", max_bytes=10_000_000)
        json.dump({"bytes": saved.stat().st_size, **numbers(saved)}, sys.stdout, indent=1)
