"""The extension of the debugger in VS Code: F5, breakpoints, steps forwards and backwards, values, and the console."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fluidnb.dap.vsix import write_vsix
from tests.browser.lab import answers, end, free_port
from tests.tools.kernel import ROOT, VENVS

pytestmark = [pytest.mark.browser, pytest.mark.full]  # make test-full installs VS Code

SERVER = VENVS / "vscode" / "node_modules" / "code-server" / "lib" / "vscode" / "out" / "server-main.js"
SCRIPT = """import numpy as np

import fluidnb as fluid
from fluidnb import layers

x = layers.data("x", [2])
hidden = layers.fc(x, 3, act="relu", param_attr=fluid.initializer.Constant(0.5))
loss = layers.mean(hidden)
exe = fluid.Executor()
exe.run(fluid.default_startup_program())
print("mean", exe.run(feed={"x": np.ones((4, 2), "float32")}, fetch_list=[loss])[0].item())
"""
BROKEN = SCRIPT.replace("layers.mean(hidden)", "layers.reshape(hidden, [-1, 5])")

Open = Callable[[str], Any]


@pytest.fixture
def editor(tmp_path: Path, browser: Any, shots: Path, request: pytest.FixtureRequest) -> Iterator[Open]:
    """Opens a script in VS Code, with the extension from its ``.vsix`` and a configuration for this Python."""
    if shutil.which("node") is None or not SERVER.exists():
        pytest.skip(f"VS Code is not installed (`make test-full` puts it into {VENVS / 'vscode'})")
    data, folder, port = tmp_path / "data", tmp_path / "scripts", free_port()
    (folder / ".vscode").mkdir(parents=True)
    paths = os.pathsep.join([str(ROOT), str(ROOT / "kernels"), str(ROOT / "magics")])
    launch = {"type": "fluidnb", "request": "launch", "name": "Fluid: this script", "program": "${file}",
              "python": sys.executable, "env": {"PYTHONPATH": paths}}  # fmt: skip
    (folder / ".vscode" / "launch.json").write_text(json.dumps({"version": "0.2.0", "configurations": [launch]}))
    command = ["node", str(SERVER), f"--server-data-dir={data}", f"--extensions-dir={tmp_path / 'extensions'}"]
    subprocess.run(
        [*command, "--install-extension", str(write_vsix(tmp_path))], check=True, timeout=120, capture_output=True
    )
    command += ["--host=127.0.0.1", f"--port={port}", "--without-connection-token", "--accept-server-license-terms"]
    context = browser.new_context(viewport={"width": 1300, "height": 900})
    with (tmp_path / "log").open("w") as log:
        server = subprocess.Popen([*command, "--telemetry-level=off"], stdout=log, stderr=log)
        try:
            if not answers(f"http://127.0.0.1:{port}/version", server):
                raise RuntimeError((tmp_path / "log").read_text()[-3000:])

            def open_script(source: str) -> Any:
                (folder / "fit.py").write_text(source)
                page = context.new_page()
                page.set_default_timeout(60_000)
                file = f"vscode-remote://127.0.0.1:{port}{folder}/fit.py"
                page.goto(f"http://127.0.0.1:{port}/?folder={folder}&payload=" + json.dumps([["openFile", file]]))
                page.get_by_text("Yes, I trust the authors").click()
                page.locator(".view-line").first.click()
                return page

            yield open_script
        finally:
            for page in context.pages:
                page.screenshot(path=shots / f"{request.node.name}.png")
            context.close()
            end(server)


def start(page: Any) -> None:
    """Press the button that starts; VS Code forgets it while it still looks for extensions."""
    page.keyboard.press("Control+Shift+D")
    toolbar = page.locator(".debug-toolbar")
    for _ in range(8):
        page.locator(".start-debug-action-item .codicon-debug-start").click()
        try:
            toolbar.wait_for(timeout=15_000)
            return
        except Exception as error:
            last = error
    raise last


def breakpoint_at(page: Any, line: int) -> None:
    """Set a breakpoint as F9 does; VS Code forgets the key while it does not know yet who debugs Python."""
    page.locator(".view-line").first.click()
    page.keyboard.press("Control+Home")
    for _ in range(line - 1):
        page.keyboard.press("ArrowDown")
    marks = page.locator(".codicon-debug-breakpoint, .codicon-debug-breakpoint-unverified")
    for _ in range(8):
        page.keyboard.press("F9")
        try:
            marks.first.wait_for(timeout=15_000)
            return
        except Exception as error:
            last = error
    raise last


def press(page: Any, button: str) -> None:
    """Press a button of the debugger."""
    page.locator(f".debug-toolbar .codicon-debug-{button}").click()


def until_frame(page: Any, text: str) -> None:
    """Wait until the innermost frame is an operator."""
    page.locator(".debug-call-stack .stack-frame", has_text=text).first.wait_for()


def ask(page: Any, text: str) -> None:
    """Type into the debug console."""
    page.locator(".repl-input-wrapper .view-lines").click()
    page.keyboard.type(text)
    page.keyboard.press("Enter")


def test_steps_forwards_and_backwards(editor: Open) -> None:
    page = editor(SCRIPT)
    breakpoint_at(page, 8)
    start(page)
    until_frame(page, "block 0: 0 mul")  # launch.json does not say stopOnEntry: the extension does
    press(page, "step-over")
    until_frame(page, "1 elementwise_add")
    press(page, "step-over")
    until_frame(page, "2 relu")
    assert page.locator(".debug-top-stack-frame-line").count() == 1
    page.locator(".debug-variables .monaco-list-row", has_text="float32[4, 3]").first.wait_for()
    press(page, "step-back")
    until_frame(page, "1 elementwise_add")
    press(page, "continue")
    until_frame(page, "3 mean")
    ask(page, "hidden.sum()")
    page.locator(".repl .monaco-list-row", has_text="12.0").first.wait_for()
    press(page, "reverse-continue")
    until_frame(page, "block 0: 0 mul")
    press(page, "continue")
    until_frame(page, "3 mean")
    press(page, "continue")
    page.locator(".repl .monaco-list-row", has_text="mean 1.0").first.wait_for()
    page.locator(".debug-toolbar").wait_for(state="hidden")


def test_an_operator_that_fails_shows_its_error(editor: Open) -> None:
    page = editor(BROKEN)
    start(page)
    until_frame(page, "block 0: 0 mul")
    press(page, "continue")
    page.locator(".exception-widget", has_text="sizes do not divide").wait_for()
