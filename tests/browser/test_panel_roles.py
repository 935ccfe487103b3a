"""The debugger panel in JupyterLab goes from role to role of a training in the background."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.browser.lab import Notebook
from tests.browser.panel import PanelPage

pytestmark = [pytest.mark.browser, pytest.mark.slow]

Open = Callable[[list[str]], Notebook]
CELLS = [
    "%load_ext fluidnb\nimport itertools, threading\nimport numpy as np\nimport fluidnb as fluid",
    "%%fluid net\nx = layers.data('x', [4])\nloss = layers.mean(layers.fc(x, 3))\n"
    "fluid.optimizer.SGD(0.1).minimize(loss)",
    "batch = {'x': np.ones((4, 4), 'float32')}\n"
    "t = fluid.DistributeTranspiler()\n"
    "t.transpile(0, pservers='ps:0,ps:1', trainers=2, startup_program=fluid.default_startup_program().clone())\n"
    "from fluidnb.distributed.training import Shares, Training\n"
    "training = Training(t, Shares(itertools.repeat(batch), dict, 2), [loss.name])\n"
    "training.start()",
    "%fluid attach trainer0 --panel",
    "training.stop(); print(training.wait(60), training.error)",
]


def test_a_role_is_chosen_in_the_panel(notebook: Open, shots: Path) -> None:
    nb = notebook(CELLS)
    for i in range(4):
        nb.run(i)
    panel = PanelPage(nb)
    panel.here("mul(X=x")
    role = panel.root.locator("select.fp-role")
    assert role.input_value() == "trainer0"
    assert role.locator("option").all_text_contents() == ["trainer0", "trainer1", "pserver0", "pserver1"]
    role.select_option("pserver1")
    panel.here("listen_and_serv")
    panel.press("step")
    panel.root.locator(".fp-frame", has_text="block 1, iteration 0").wait_for()
    panel.here("sum(")
    panel.root.screenshot(path=str(shots / "panel_roles.png"))
    role.select_option("trainer1")
    panel.here("mul(X=x")
    nb.run(4)
    assert nb.text(4).strip() == "True None"
