"""A saved page of 20,000 operators and 100 steps in a browser: first picture, scrolling, search, stepping.

All times are the browser's own, up to the frame that shows the result. ``python -m tests.benchmarks.saved_pages``
prints every number.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import fluidnb as fluid
from fluidnb import layers
from fluidnb.debug import Session
from tests.browser import lab

OPERATORS, LAYERS, STEPS, FRAMES = 20_000, 2500, 100, 400
SEARCHES = ("mul", "fc_1234", "var:*@GRAD", "attr:axis=1", "nothing at all")

#: Milliseconds from the end of the file, which has the data, until rows of both widgets are painted.
_OPENED = """() => new Promise((done) => {
    const look = () => {
        if (!document.querySelector('.fe-row')) return requestAnimationFrame(look);
        const [entry] = performance.getEntriesByType('navigation');
        requestAnimationFrame(() => setTimeout(() => done(performance.now() - entry.responseEnd)));
    };
    look();
})"""
#: The milliseconds of each frame while a listing is scrolled from its beginning to its end.
_SCROLL = """([selector, frames]) => new Promise((done) => {
    const rows = document.querySelector(selector), times = [];
    const by = (rows.scrollHeight - rows.clientHeight) / frames;
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
#: Milliseconds from a text in the search box until the frame that shows what it finds.
_SEARCH = """(text) => new Promise((done) => {
    const box = document.querySelector('.fe-search'), start = performance.now();
    box.value = text;
    box.dispatchEvent(new Event('input'));
    requestAnimationFrame(() => setTimeout(() => done(performance.now() - start)));
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


def numbers(file: Path) -> dict[str, Any]:
    """Everything, of one page in one browser."""
    with lab.chromium() as browser:
        page = browser.new_page(viewport={"width": 1300, "height": 1000})
        opens = []
        for _ in range(5):
            page.goto(file.as_uri(), wait_until="commit")
            opens.append(page.evaluate(_OPENED))
        frames = {
            name: sorted(page.evaluate(_SCROLL, [selector, FRAMES]))
            for name, selector in (("explorer", ".fw-explorer [role=tree]"), ("panel", ".fp-listing"))
        }
        searches = {text: max(page.evaluate(_SEARCH, text) for _ in range(3)) for text in SEARCHES}
        steps = [page.evaluate(_STEP, key) for key in ("ArrowLeft",) * 20 + ("ArrowRight",) * 20]
    return {
        "first picture (ms)": [round(ms) for ms in opens],
        "frames a second": {
            name: {"mean": round(1000 / statistics.mean(all_), 1), "slowest of twenty": round(1000 / all_[-FRAMES // 20], 1)}
            for name, all_ in frames.items()
        },
        "search (ms)": {text: round(ms) for text, ms in searches.items()},
        "step (ms)": {"median": round(statistics.median(steps)), "slowest": round(max(steps))},
    }


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        saved = session().save(Path(folder) / "large.html", max_bytes=10_000_000)
        json.dump({"bytes": saved.stat().st_size, **numbers(saved)}, sys.stdout, indent=1)
