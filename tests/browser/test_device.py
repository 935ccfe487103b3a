"""A device in JupyterLab, on the emulator backend: pools and device time in widgets, the debugger's panel."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from fluidnb_kernels import emulator
from tests.browser.lab import Notebook
from tests.browser.panel import PanelPage

pytestmark = [
    pytest.mark.browser, pytest.mark.slow,
    pytest.mark.skipif(bool(emulator.missing()), reason=emulator.missing() or "the emulator is there"),
]  # fmt: skip

Open = Callable[[list[str]], Notebook]
DEVICE = "CUDAPlace(0)"
#: Few operators: in a fresh environment each of their kernels is compiled first.
SETUP = [
    "import os\nos.environ['FLAGS_cuda_backend'] = 'emulator'\n%load_ext fluidnb\nimport numpy as np\n"
    "X = np.linspace(-1, 1, 12, dtype='float32').reshape(3, 4)",
    "%%fluid net --place cuda:0\nx = layers.data('x', shape=[4])\nh = layers.relu(layers.scale(x, scale=2.0))\n"
    "out = layers.mean(h)",
]
RUN = "%fluid run --feed x=X --fetch out"


def opened(notebook: Open, *cells: str) -> Notebook:
    """A notebook with a program for the device, and what these cells show."""
    nb = notebook([*SETUP, *cells])
    for i in range(len(SETUP) + len(cells)):
        nb.run(i)
    return nb


def pictured(nb: Notebook, index: int, shots: Path, name: str) -> None:
    """Pictures of a cell, light and dark."""
    for dark in (False, True):
        nb.use_theme(dark)
        nb.cell(index).scroll_into_view_if_needed()
        nb.cell(index).screenshot(path=shots / f"{name}_{'dark' if dark else 'light'}.png")


def test_pools_of_all_places_and_device_time(notebook: Open, shots: Path) -> None:
    nb = opened(notebook, "%fluid memory --live", RUN, "%fluid profile --live --feed x=X --fetch out --steps 2")
    memory, time = nb.cell(2).locator(".fw-memory"), nb.cell(4).locator(".fw-timeline")

    # the pool of the device, where the program ran, comes first
    places = memory.get_by_label("place", exact=True)
    memory.locator(".fm-device", has_text="emulator, sm_90").wait_for()
    assert places.input_value() == DEVICE
    memory.locator(".fm-pool-words", has_text=re.compile("used, peak .* reserved of at most")).wait_for()
    held = memory.locator("section").last.locator(".fc-table-row")
    held.filter(has_text=re.compile("^x")).first.wait_for()

    # the pool of the host is one choice away, and stays chosen while programs run
    places.select_option("CPUPlace")
    memory.locator(".fm-device").wait_for(state="hidden")
    nb.run(3)
    assert places.input_value() == "CPUPlace"
    places.select_option(DEVICE)
    memory.locator(".fm-device").wait_for()

    time.locator(".ft-clock", has_text=f"device time by CUDA events: {DEVICE}, emulator, sm_90").wait_for()
    time.get_by_label("group by").select_option("place")
    time.locator(".fc-table-row", has_text=DEVICE).wait_for()
    pictured(nb, 2, shots, "device_memory")
    pictured(nb, 4, shots, "device_timeline")
    assert not nb.errors


def test_the_panel_walks_on_a_device_both_ways(notebook: Open, shots: Path) -> None:
    nb = opened(notebook, "%fluid debug --feed x=X --fetch out --panel", "%fluid scope --live")
    panel = PanelPage(nb)
    panel.at(0, reason=f"on {DEVICE}, emulator, sm_90")
    panel.press("step")
    panel.at(1)
    panel.here("relu")
    panel.op("mean").locator(".fp-gutter").click()
    panel.root.locator(".fp-item", has_text="at 0:2").wait_for()
    panel.press("continue")
    panel.at(2, reason="breakpoint at 0:2")
    panel.value("h").click()
    panel.cell_of(0, 0, "0")
    panel.cell_of(2, 3, "2")
    panel.press("continue")
    panel.at(3, state="done")
    panel.press("back")
    panel.at(2)
    panel.press("back")
    panel.at(1)
    panel.here("relu")
    pictured(nb, 2, shots, "device_panel")

    # the scopes of the run say where their tensors are
    held = nb.cell(3).locator(".fw-scope .fs-var", has_text="x")
    held.locator("i", has_text="cuda:0").first.wait_for()
    pictured(nb, 3, shots, "device_scope")
    assert not nb.errors
