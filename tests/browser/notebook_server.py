"""Jupyter's notebook servers in environments of their own, each with one notebook."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import nbformat

from tests.browser.lab import answers, end, free_port
from tests.tools.kernel import ROOT, python_of


@contextmanager
def notebook_server(name: str, folder: Path, cells: Sequence[str], *options: str) -> Iterator[str]:
    """Run a server with a notebook; nothing is written outside a folder.

    Args:
        name: the environment, and the module in it: ``notebook`` or ``nbclassic``.
        folder: an empty folder.
        cells: the sources of the notebook's cells.
        options: what the server's command has besides.

    Yields:
        The address of the notebook, with the token.
    """
    python, port, root = python_of(name), free_port(), folder / "notebooks"
    root.mkdir()
    written = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    written.metadata["kernelspec"] = {"name": "python3", "display_name": "python3", "language": "python"}
    nbformat.write(written, root / "net.ipynb")
    paths = os.pathsep.join([str(ROOT), str(ROOT / "kernels"), str(ROOT / "magics")])
    homes = {key: str(folder / key) for key in ("HOME", "IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_RUNTIME_DIR")}
    command = [
        str(python), "-m", name, "--no-browser", "--allow-root", "--ip=127.0.0.1", f"--port={port}",
        "--ServerApp.port_retries=0", "--IdentityProvider.token=t", f"--ServerApp.root_dir={root}", *options,
    ]  # fmt: skip
    with (folder / "log").open("w") as log:
        server = subprocess.Popen(command, env={**os.environ, **homes, "PYTHONPATH": paths}, stdout=log, stderr=log)
        try:
            if not answers(f"http://127.0.0.1:{port}/api/status?token=t", server):
                raise RuntimeError((folder / "log").read_text()[-3000:])
            yield f"http://127.0.0.1:{port}/notebooks/net.ipynb?token=t"
        finally:
            end(server)
