"""The parts of each supported ipykernel that fluidnb needs: private names, and widgets in busy cells."""

from __future__ import annotations

import json
from typing import Any

from tests.magics.test_lab_debugger import kernel, pytest_generate_tests
from tests.tools.kernel import LiveKernel

__all__ = ["kernel", "pytest_generate_tests"]

WIDGET = """
import anywidget, json
from fluidnb_magics.widgets.widget import NotebookWidget
class Bell(NotebookWidget):
    _esm = "export default { render() {} }"
    rung = 0
    def do_ring(self):
        self.rung += 1
bell = Bell()
print(json.dumps({"comm": bell.comm.comm_id}))
"""
BUSY = """import time
end = time.monotonic() + 20
while not bell.rung and time.monotonic() < end:
    bell.comm.send({"method": "custom", "content": {}})  # as the run of a session does while it is watched
    time.sleep(0.05)
print("rung", bell.rung)
"""


def test_private_names(kernel: LiveKernel) -> None:
    said = kernel.run(
        "from fluidnb_magics.jupyter.kernel_private import DebugChannel\nk = get_ipython().kernel\n"
        "print([n for n in DebugChannel.NEEDS if not hasattr(k, n)],"
        " [n for n in DebugChannel.DEBUGGER_NEEDS if not hasattr(k.debugger, n)], DebugChannel.of(k) is not None)"
    )
    assert "[] [] True" in said


def test_a_widget_in_a_busy_cell(kernel: LiveKernel) -> None:
    """With subshells (7.0 and newer) a button is heard at once; before, when the cell has ended."""
    info = kernel.client.kernel_info(reply=True, timeout=60)["content"]
    subshells = "kernel subshells" in info.get("supported_features", ())
    assert subshells == (not kernel.run("import ipykernel; print(ipykernel.__version__)").startswith("6."))
    comm = json.loads(kernel.run(WIDGET).splitlines()[-1])["comm"]
    cell = kernel.start(BUSY if subshells else BUSY.replace("+ 20", "+ 1"))
    kernel.until(lambda: any(m["content"].get("code", "").startswith("import time") for m in kernel.heard))
    ring(kernel, comm, kernel.control("create_subshell_request", {})["subshell_id"] if subshells else None)
    assert kernel.finish(cell).strip() == f"rung {int(subshells)}"
    assert kernel.run("print(bell.rung)").strip() == "1"


def ring(kernel: LiveKernel, comm: str, subshell: str | None) -> None:
    """Send what the page of a widget sends when its button is clicked."""
    content: dict[str, Any] = {"comm_id": comm, "data": {"method": "custom", "content": {"do": "ring"}}}
    message = kernel.client.session.msg("comm_msg", content)
    message["header"]["subshell_id"] = subshell
    kernel.client.shell_channel.send(message)
