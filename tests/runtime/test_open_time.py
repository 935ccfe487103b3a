"""The work until the first picture of a model of 400 operators, as counts that do not depend on the machine."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import fluidnb as fluid

#: Counts calls of Python functions from `fluid.open` to the picture, and the bytes of all sources that are imported.
OPENS = """
import sys
from pathlib import Path
import fluidnb as fluid
fluid.layers, fluid.Executor
calls = 0
def count(frame, event, arg):
    global calls
    calls += event == "call"
sys.setprofile(count)
html = fluid.open(sys.argv[1]).program._repr_html_()
sys.setprofile(None)
files = [module.__file__ or "" for name, module in sys.modules.items() if name.startswith("fluidnb")]
print(calls, sum(Path(file).stat().st_size for file in files if file.endswith(".py")), html.count("conv2d"))
"""


@pytest.mark.slow
def test_the_first_picture_of_a_model_of_400_operators_takes_no_more_work(tmp_path: Path) -> None:
    """About a second of CPU time: 480,000 calls, and 2.0 MB of sources that a first start has to compile."""
    x = fluid.layers.data("x", [8, 16, 16])
    for _ in range(100):
        y = fluid.layers.batch_norm(fluid.layers.conv2d(x, 8, 3, padding=1, bias_attr=False), act="relu")
        x = fluid.layers.elementwise_add(x, y)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    fluid.io.save_inference_model(str(tmp_path), ["x"], [x], exe, None, "m.pdmodel", "m.pdiparams")
    assert len(fluid.open(str(tmp_path)).program.global_block().ops) >= 400
    words = [sys.executable, "-c", OPENS, str(tmp_path)]
    calls, size, operators = subprocess.run(words, check=True, capture_output=True, text=True).stdout.split()
    assert int(operators) >= 100
    assert int(calls) < 520_000 and int(size) < 2_100_000, (calls, size)
