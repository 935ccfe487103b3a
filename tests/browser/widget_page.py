"""Widgets on a plain page, without Jupyter: messages of the page go to the widget, its answers back; in one thread."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import fluidnb as fluid
from fluidnb import layers, ui

_SCRIPT = Path(__file__).with_name("widget_page.js").read_text("utf-8").partition("\n")[2]
_PAGE = (
    "<!doctype html><html lang=en><head><title>Widgets</title></head>"
    "<body><main><h1>Widgets</h1><h2>All</h2></main></body></html>"
)
#: Luminance of the ground and of the text of each widget, from 0 to 1.
LIGHTNESS = """(widgets) => widgets.map((e) => {
    const context = document.createElement("canvas").getContext("2d");
    const of = (colour) => {
        context.fillStyle = colour;
        context.fillRect(0, 0, 1, 1);
        return context.getImageData(0, 0, 1, 1).data[1] / 255;
    };
    return [of(getComputedStyle(e).backgroundColor), of(getComputedStyle(e).color)];
})"""
#: Set on the page by a front end: attributes of <html> and <body>, and custom properties.
THEMES: dict[str, tuple[dict[str, str], dict[str, str], str]] = {
    "light": ({}, {}, ":root { color-scheme: light; }"),
    "dark": ({}, {}, ":root { color-scheme: dark; }"),
    "colab dark": ({"theme": "dark"}, {}, "body { background: #383838; color: #ddd; }"),
    "vscode light": (
        {}, {"class": "vscode-light", "data-vscode-theme-kind": "vscode-light"},
        ":root { --vscode-editor-background: #ffffff; --vscode-editor-foreground: #3b3b3b; }",
    ),
    "vscode dark": (
        {}, {"class": "vscode-dark", "data-vscode-theme-kind": "vscode-dark"},
        ":root { --vscode-editor-background: #1f1f1f; --vscode-editor-foreground: #cccccc; }"
        "body { background: #1f1f1f; color: #cccccc; }",
    ),
}  # fmt: skip


def all_widgets() -> dict[str, Any]:
    """Every widget, with a program that has run, and a session that is paused."""

    @ui.cell
    def net() -> dict[str, Any]:
        x, y = layers.data("x", shape=[4]), layers.data("y", shape=[1])
        h = layers.fc(x, size=8, act="relu")
        loss = layers.mean(layers.square_error_cost(layers.fc(h, size=1), y))
        fluid.optimizer.Adam(0.05).minimize(loss)
        return locals()

    feed = {"x": np.ones((2, 4), "float32"), "y": np.ones((2, 1), "float32")}
    made = {
        "explorer": ui.explorer(), "builder": ui.builder("fc"), "scope": ui.scope(), "memory": ui.memory(),
        "timeline": ui.timeline(), "backward": ui.lesson("backward"), "lod": ui.lesson("lod"),
        "optimizer": ui.lesson("optimizer"),
    }  # fmt: skip
    made["builder"]._loop = None  # Playwright's loop runs in this thread, and the widget would answer later
    executor = fluid.Executor(fluid.CPUPlace())
    for _ in range(3):
        executor.run(feed=feed, fetch_list=[net.loss])
    session = fluid.debug(feed=feed, fetch_list=[net.loss], inline=True)
    panel = made["panel"] = ui.panel(session)
    panel.controls.do_move("step")
    panel.controls.do_break("op adam")
    panel.controls.do_watch("h")
    panel.do_open("x")
    return made


class Kernel:
    """The Python side of the widgets of a page."""

    def __init__(self, widgets: dict[str, Any]) -> None:
        self.widgets = list(widgets.values())
        self.messages: list[Any] = []
        for widget in self.widgets:
            widget.send = lambda content, buffers=None: self.messages.append(content)

    def handle(self, source: Any, index: int, content: dict[str, Any]) -> dict[str, Any]:
        """Give a widget a message of its page; the state that changed, and its messages to the page."""
        widget = self.widgets[index]
        before = state_of(widget)
        self.messages.clear()
        widget._on_message(None, content, [])
        changed = {name: value for name, value in state_of(widget).items() if value != before[name]}
        return {"state": changed, "messages": list(self.messages)}


def state_of(widget: Any) -> dict[str, Any]:
    """The traits of a widget as a page gets them; bytes as base64."""
    of_ipywidgets = ("layout", "tabbable", "tooltip")
    state = {n: getattr(widget, n) for n in widget.keys if not n.startswith("_") and n not in of_ipywidgets}
    return {n: {"base64": base64.b64encode(v).decode()} if isinstance(v, bytes) else v for n, v in state.items()}


@contextmanager
def widget_page(browser: Any, widgets: dict[str, Any], **options: Any) -> Iterator[Any]:
    """A page with the widgets, one section each."""
    context = browser.new_context(viewport={"width": 1200, "height": 900}, **options)
    page = context.new_page()
    page.set_default_timeout(30_000)
    page.set_content(_PAGE)
    page.expose_binding("toKernel", Kernel(widgets).handle)
    data = [
        {"esm": str(w._esm), "css": str(w._css), "state": state_of(w), "title": title} for title, w in widgets.items()
    ]
    page.evaluate(_SCRIPT, {"widgets": data})
    yield page
    context.close()


def use_theme(page: Any, theme: str) -> None:
    """Set a page up as a front end does."""
    html, body, css = THEMES[theme]
    page.evaluate(
        """([html, body, css]) => {
            for (const [element, attributes] of [[document.documentElement, html], [document.body, body]]) {
                for (const name of ["theme", "class", "data-vscode-theme-kind"]) element.removeAttribute(name);
                for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
            }
            document.querySelector("#theme")?.remove();
            const style = Object.assign(document.createElement("style"), { id: "theme", textContent: css });
            document.head.append(style);
        }""",
        [html, body, css],
    )
    page.wait_for_timeout(300)
