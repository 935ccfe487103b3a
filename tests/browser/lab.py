"""JupyterLab on a free port with a home folder of the test, and notebooks in it driven through a headless Chromium."""

from __future__ import annotations

import http.client
import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat

ROOT = Path(__file__).resolve().parents[2]
CHROMIUM = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
)  # fmt: skip
_TOKEN = "t"
#: No news; and completions are not dropped after a second, for a kernel takes longer where tests share the cores.
_SETTINGS = {
    "apputils-extension/notification.jupyterlab-settings": '{"fetchNews": "false", "checkForUpdates": false}',
    "completer-extension/manager.jupyterlab-settings": '{"providerTimeout": 30000}',
}
#: Whether a notebook is shown and its kernel waits.
_IDLE = """file => { const shown = window.jupyterapp?.shell.currentWidget;
    return shown?.context?.path === file && shown.sessionContext?.session?.kernel?.status === 'idle'; }"""
#: Closes what is not there when JupyterLab starts, and ends the kernels: what waits for their answers is canceled now.
_CLOSE = """async () => { const { shell, commands, serviceManager } = window.jupyterapp;
    for (const area of ['main', 'down']) for (const widget of [...shell.widgets(area)]) widget.dispose();
    shell.collapseRight();
    await commands.execute('filebrowser:activate');
    await serviceManager.sessions.shutdownAll();
    await serviceManager.kernels.refreshRunning(); }"""
#: Opens a notebook, and closes the launcher, which stands where nothing else does.
_OPEN = """async path => { const { shell, commands } = window.jupyterapp;
    const shown = await commands.execute('docmanager:open', {path});
    for (const widget of [...shell.widgets('main')]) if (widget !== shown) widget.dispose(); }"""
_SIZE = {"width": 1300, "height": 1000}
WIDGET = "window.jupyterapp.shell.currentWidget"


@dataclass(frozen=True)
class Lab:
    """A JupyterLab that runs.

    Args:
        url: where.
        root: the folder with the notebooks.
    """

    url: str
    root: Path


@contextmanager
def jupyterlab(folder: Path) -> Iterator[Lab]:
    """Run JupyterLab; nothing is read or written outside a folder.

    Args:
        folder: an empty folder.

    Yields:
        The lab.
    """
    home, root = folder / "home", folder / "notebooks"
    root.mkdir(parents=True)
    for file, text in _SETTINGS.items():
        (home / "settings" / "@jupyterlab" / file).parent.mkdir(parents=True)
        (home / "settings" / "@jupyterlab" / file).write_text(text)
    paths = [str(ROOT), str(ROOT / "kernels"), str(ROOT / "magics")]
    places = {"JUPYTER_CONFIG_DIR": "config", "JUPYTER_DATA_DIR": "data", "JUPYTER_RUNTIME_DIR": "run",
              "IPYTHONDIR": "ipython", "JUPYTERLAB_SETTINGS_DIR": "settings",
              "JUPYTERLAB_WORKSPACES_DIR": "workspaces"}  # fmt: skip
    env = {
        **os.environ, **{name: str(home / place) for name, place in places.items()}, "HOME": str(home),
        "PYTHONPATH": os.pathsep.join(paths), "JUPYTER_PREFER_ENV_PATH": "1",
    }  # fmt: skip
    command = [
        sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--ip=127.0.0.1",
        "--ServerApp.port_retries=0", f"--IdentityProvider.token={_TOKEN}", f"--ServerApp.root_dir={root}",
        "--LabApp.expose_app_in_browser=True", "--LabApp.news_url=", "--ServerApp.terminals_enabled=False",
    ]  # fmt: skip
    with (folder / "lab.log").open("w") as log:
        for _ in range(5):
            port = free_port()
            server = subprocess.Popen([*command, f"--port={port}"], env=env, stdout=log, stderr=log)
            try:
                if answers(f"http://127.0.0.1:{port}/api/status?token={_TOKEN}", server):
                    yield Lab(f"http://127.0.0.1:{port}", root)
                    return
            finally:
                end(server)
    raise RuntimeError((folder / "lab.log").read_text()[-3000:])


def end(server: subprocess.Popen[bytes]) -> None:
    """End a server: it may take its time on a busy machine."""
    server.terminate()
    try:
        server.wait(120)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()


def free_port() -> int:
    """A port that nothing listens on."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port: int = s.getsockname()[1]
        return port


def answers(url: str, server: subprocess.Popen[bytes]) -> bool:
    """Wait until a server answers; False when it ends, since something else took its port in the meantime."""
    for _ in range(900):
        if server.poll() is not None:
            return False
        try:
            urllib.request.urlopen(url, timeout=1).close()
            return True
        except (OSError, http.client.HTTPException):
            time.sleep(0.1)
    return False


def end_kernels(lab: Lab) -> None:
    """End all kernels, busy ones too: each test begins with a machine that is its own.

    Args:
        lab: the lab.
    """
    address = f"{lab.url}/api/sessions"
    with urllib.request.urlopen(f"{address}?token={_TOKEN}", timeout=60) as answer:
        sessions = json.load(answer)
    for session in sessions:
        request = urllib.request.Request(f"{address}/{session['id']}?token={_TOKEN}", method="DELETE")
        urllib.request.urlopen(request, timeout=60).close()


@contextmanager
def chromium() -> Iterator[Any]:
    """A headless Chromium: the system's own, or the one that Playwright installed.

    Yields:
        Playwright's Browser.
    """
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), headless=True, args=CHROMIUM)
        yield browser
        browser.close()


class Notebook:
    """A notebook open in JupyterLab.

    Args:
        page: Playwright's Page.

    Attributes:
        page: the page.
        errors: what the page's scripts raised.
    """

    def __init__(self, page: Any) -> None:
        self.page = page
        self.errors: list[str] = []
        page.on("pageerror", self._keep)

    def leave(self) -> Any:
        """The page, for another notebook."""
        self.page.evaluate(_CLOSE)
        self.page.remove_listener("pageerror", self._keep)
        return self.page

    def _keep(self, error: Any) -> None:
        self.errors.append(str(error))

    def run(self, index: int) -> str:
        """Run a cell as Shift-Enter does, and wait for it.

        Args:
            index: the cell's place, from 0.

        Returns:
            The text of its outputs.
        """
        self.page.evaluate(
            f"""async i => {{ const nb = {WIDGET}; await nb.context.ready; nb.content.activeCellIndex = i;
                await window.jupyterapp.commands.execute('notebook:run-cell'); }}""",
            index,
        )
        return self.text(index)

    def set(self, index: int, source: str) -> None:
        """Replace a cell's source."""
        self.page.evaluate(f"([i, s]) => {WIDGET}.content.widgets[i].model.sharedModel.setSource(s)", [index, source])

    def delete(self, index: int) -> None:
        """Delete a cell as the user does."""
        self.page.evaluate(
            f"""async i => {{ {WIDGET}.content.activeCellIndex = i;
                await window.jupyterapp.commands.execute('notebook:delete-cell'); }}""",
            index,
        )

    def outputs(self, index: int) -> list[dict[str, Any]]:
        """A cell's outputs as the notebook stores them."""
        found: list[dict[str, Any]] = self.page.evaluate(
            f"i => {WIDGET}.content.widgets[i].model.toJSON().outputs", index
        )
        return found

    def text(self, index: int) -> str:
        """The text of a cell's outputs: streams, plain texts, tracebacks."""
        parts = []
        for output in self.outputs(index):
            parts.append(_joined(output.get("text", "")) + "\n".join(output.get("traceback", [])))
            parts.append(_joined(output.get("data", {}).get("text/plain", "")))
        return "\n".join(part for part in parts if part)

    def use_theme(self, dark: bool) -> None:
        """Switch JupyterLab to its light or dark theme."""
        name = "JupyterLab Dark" if dark else "JupyterLab Light"
        self.page.evaluate("t => window.jupyterapp.commands.execute('apputils:change-theme', {theme: t})", name)
        self.page.wait_for_selector(f'body[data-jp-theme-light="{"false" if dark else "true"}"]', state="attached")

    def scroll_to(self, index: int) -> None:
        """Bring a cell into view."""
        self.page.evaluate(f"async i => {{ await {WIDGET}.content.scrollToItem(i, 'start'); }}", index)
        self.page.wait_for_timeout(500)

    def cell(self, index: int) -> Any:
        """A cell's element."""
        return self.page.locator(".jp-Notebook .jp-Cell").nth(index)

    def edit(self, index: int, text: str) -> None:
        """Put the cursor at the end of a cell and type."""
        editor = self.cell(index).locator(".cm-content")
        editor.click()
        self.page.keyboard.press("Control+End")
        self.page.keyboard.type(text)


def _joined(text: str | list[str]) -> str:
    return text if isinstance(text, str) else "".join(text)


def opener(lab: Lab, browser: Any, pages: list[Any] | None = None) -> Callable[[str, list[str] | Path], Notebook]:
    """A function that opens notebooks.

    Args:
        lab: the lab.
        browser: Playwright's Browser.
        pages: pages of this lab that are free: one of them is taken before a new one. JupyterLab's start takes 9 of the
            12 s of CPU until a notebook is open.

    Returns:
        ``open_notebook(name, cells or file)``.
    """

    def open_notebook(name: str, content: list[str] | Path) -> Notebook:
        file = f"{name}.ipynb"
        if isinstance(content, Path):
            shutil.copy(content, lab.root / file)
        else:
            nb = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in content])
            nb.metadata["kernelspec"] = {"name": "python3", "display_name": "python3", "language": "python"}
            nbformat.write(nb, lab.root / file)
        if pages:
            opened = Notebook(pages.pop())
            opened.page.set_viewport_size(_SIZE)
            opened.page.evaluate(_OPEN, file)
        else:
            opened = Notebook(browser.new_context(viewport=_SIZE).new_page())
            opened.page.set_default_timeout(60_000)  # two tests at a time share the cores
            opened.page.goto(f"{lab.url}/lab/tree/{file}?token={_TOKEN}&reset")
        opened.page.wait_for_function(_IDLE, arg=file, timeout=90_000)
        return opened

    return open_notebook
