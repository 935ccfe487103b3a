"""A real kernel in its process, driven as by a front end: cells, debug requests, comm messages."""

from __future__ import annotations

import json
import os
import queue
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import KernelManager

ROOT = Path(__file__).resolve().parents[2]
VENVS = Path(os.environ.get("FLUIDNB_VENVS") or ROOT / ".venvs")
#: Seconds that anything may take on a busy machine.
PATIENCE = 90


def python_of(environment: str) -> Path:
    """The interpreter of one of the environments beside ours; the test is skipped where it is missing.

    Args:
        environment: its folder's name.

    Returns:
        The interpreter.
    """
    python = VENVS / environment / "bin" / "python"
    if not python.exists():
        pytest.skip(f"{environment} is not installed (`make test-full` puts it into {VENVS})")
    return python


class LiveKernel:
    """A running kernel.

    Args:
        client: speaks with it.
        manager: owns its process.

    Attributes:
        heard: all that it published, in order.
    """

    def __init__(self, client: BlockingKernelClient, manager: KernelManager) -> None:
        self.client, self.manager = client, manager
        self.heard: list[dict[str, Any]] = []
        self._seq = 0

    # ---- cells

    def start(self, code: str, cell_id: str | None = None) -> str:
        """Run a cell without waiting for it.

        Args:
            code: its text.
            cell_id: its id in the notebook.

        Returns:
            The id of the message.
        """
        session = self.client.session
        content = {"code": code, "silent": False, "store_history": True, "user_expressions": {},
                   "allow_stdin": False, "stop_on_error": True}  # fmt: skip
        message = session.msg("execute_request", content, metadata={"cellId": cell_id} if cell_id else None)
        self.client.shell_channel.send(message)
        return str(message["header"]["msg_id"])

    def finish(self, request: str) -> str:
        """Wait for a cell.

        Args:
            request: what `start` gave.

        Returns:
            All that it showed as text.
        """
        self.until(lambda: self._is_idle(request))
        return self.text(request)

    def run(self, code: str, cell_id: str | None = None) -> str:
        """Run a cell and wait for it.

        Args:
            code: its text.
            cell_id: its id in the notebook.

        Returns:
            All that it showed as text.
        """
        return self.finish(self.start(code, cell_id))

    def text(self, request: str) -> str:
        """The outputs of a cell so far, as text."""
        shown = []
        for message in self.heard:
            if message["parent_header"].get("msg_id") == request:
                content = message["content"]
                shown.append(content.get("text", "") + content.get("data", {}).get("text/plain", ""))
                shown += content.get("traceback", [])
        return "\n".join(part for part in shown if part)

    def _is_idle(self, request: str) -> bool:
        return any(
            m["parent_header"].get("msg_id") == request and m["content"].get("execution_state") == "idle"
            for m in self.heard
        )

    # ---- debugging

    def debug(self, command: str, **arguments: Any) -> dict[str, Any]:
        """Ask the debugger, as JupyterLab does.

        Args:
            command: the request.
            arguments: its arguments.

        Returns:
            The response.
        """
        self._seq += 1
        content = {"type": "request", "seq": self._seq, "command": command, "arguments": arguments}
        return self.control("debug_request", content)

    def control(self, kind: str, content: dict[str, Any]) -> dict[str, Any]:
        """Send a message on the control channel and wait for the answer.

        Args:
            kind: its type.
            content: its content.

        Returns:
            The content of the answer.
        """
        message = self.client.session.msg(kind, content)
        self.client.control_channel.send(message)
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            reply = self.client.control_channel.get_msg(timeout=PATIENCE)
            if reply["parent_header"].get("msg_id") == message["header"]["msg_id"]:
                return dict(reply["content"])
        raise AssertionError(f"no answer to {kind} {json.dumps(content)[:200]}")

    def events(self, name: str) -> list[dict[str, Any]]:
        """The debugger's events of one kind so far."""
        self._hear()
        found = [m["content"] for m in self.heard if m["header"]["msg_type"] == "debug_event"]
        return [event for event in found if event["event"] == name]

    def after(self, name: str, act: Callable[[], Any]) -> dict[str, Any]:
        """Call a function and wait for the next event of a kind.

        Args:
            name: the event.
            act: what brings it about.

        Returns:
            The event.
        """
        before = len(self.events(name))
        act()
        self.until(lambda: len(self.events(name)) > before)
        return self.events(name)[-1]

    # ---- waiting

    def until(self, over: Callable[[], bool]) -> None:
        """Read messages until a condition holds.

        Args:
            over: whether it is.
        """
        end = time.monotonic() + PATIENCE
        while not over():
            assert time.monotonic() < end, [(m["header"]["msg_type"], m["content"]) for m in self.heard[-8:]]
            self._hear(0.2)

    def _hear(self, timeout: float = 0) -> None:
        while True:
            try:
                self.heard.append(self.client.iopub_channel.get_msg(timeout=timeout))
            except queue.Empty:
                return
            timeout = 0


@contextmanager
def live_kernel(python: Path | str, folder: Path) -> Iterator[LiveKernel]:
    """Run a kernel; nothing is read or written outside a folder.

    Args:
        python: the interpreter whose ipykernel it is.
        folder: an empty folder.

    Yields:
        The kernel.
    """
    spec = folder / "kernels" / "under_test"
    spec.mkdir(parents=True)
    argv = [str(python), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    (spec / "kernel.json").write_text(json.dumps({"argv": argv, "display_name": "test", "language": "python"}))
    paths = [str(ROOT), str(ROOT / "kernels"), str(ROOT / "magics")]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "IPYTHONDIR": str(folder / "ipython"),
           "JUPYTER_RUNTIME_DIR": str(folder / "run"), "HOME": str(folder)}  # fmt: skip
    specs = KernelSpecManager(kernel_dirs=[str(folder / "kernels")])
    manager = KernelManager(kernel_name="under_test", kernel_spec_manager=specs)
    manager.connection_file = str(folder / "connection.json")
    manager.start_kernel(env=env)
    client = manager.blocking_client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=PATIENCE)
        yield LiveKernel(client, manager)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
