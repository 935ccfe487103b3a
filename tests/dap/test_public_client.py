"""``fluidnb debug`` driven by @vscode/debugadapter-testsupport, which is not ours; every message fits the schema."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fluidnb.dap.vsix import write_vsix
from tests.dap.extension import ask
from tests.dap.schema import problems

ROOT = Path(__file__).parents[2]
SCENARIOS = Path(__file__).with_name("scenarios.js")

SCRIPT = """
import sys

import numpy as np
import paddle.fluid as fluid
from paddle.fluid import layers

x = layers.data("x", shape=[4])
h = layers.fc(x, 3, act="relu", param_attr=fluid.ParamAttr(initializer=fluid.initializer.Constant(0.5)))
i, n = layers.fill_constant([1], "int64", 0), layers.fill_constant([1], "int64", 3)
total = layers.fill_constant([1], "float32", 0.0)
cond = layers.less_than(i, n)
with layers.While(cond).block():  # body
    more = layers.reduce_sum(h)
    layers.assign(total + more, total)
    layers.increment(i, in_place=True)
    layers.less_than(i, n, cond=cond)
loss = layers.mean(total)

exe = fluid.Executor(fluid.CPUPlace())
exe.run(fluid.default_startup_program())
for step in range(3):
    exe.run(feed={"x": np.full((2, 4), step + 1.0, "float32")}, fetch_list=[loss])
    print("step", step, sys.argv[1:])
"""
BROKEN = """
import numpy as np
import paddle.fluid as fluid

x = fluid.layers.data("x", shape=[2])
bad = fluid.layers.reshape(fluid.layers.relu(x), [-1, 3])
fluid.Executor(fluid.CPUPlace()).run(feed={"x": np.ones((2, 2), "float32")}, fetch_list=[bad])
"""
#: What scenarios.js does with a server, and what it starts by itself.
SERVED = (
    "steps_into_the_loop_and_back", "breakpoints_wait_until_the_program_is_built", "data_breakpoints_and_output",
    "a_second_client", "an_operator_fails", "a_wrong_token",
)  # fmt: skip
LAUNCHED = ("launched_on_pipes", "an_editor_that_dies_ends_what_it_launched")


@pytest.fixture
def node_modules() -> Path:
    """The folder of the client."""
    folder = Path(os.environ.get("FLUIDNB_VENVS", ROOT / ".venvs")) / "node" / "node_modules"
    if shutil.which("node") is None:
        pytest.skip("node is not installed; on Debian: apt-get install nodejs npm")
    if not folder.is_dir():
        pytest.skip("@vscode/debugadapter-testsupport is not installed; make test-more installs it")
    return folder


@pytest.fixture
def started() -> Iterator[list[subprocess.Popen[str]]]:
    """Processes of a test; none is left behind."""
    processes: list[subprocess.Popen[str]] = []
    yield processes
    for process in processes:
        process.kill()
        process.communicate()


def adapter(script: Path, folder: Path) -> Any:
    """The command by which VS Code starts the adapter of a script, from the extension in its ``.vsix``."""
    with zipfile.ZipFile(write_vsix(folder)) as archive:
        archive.extractall(folder)
    launch = {"request": "launch", "program": str(script), "args": ["a", "--b"], "python": sys.executable}
    [described] = ask({"describe": launch}, folder=folder / "extension")
    assert described["kind"] == "executable"
    return described


@pytest.mark.parametrize("name", SERVED + LAUNCHED)
def test_an_editor(name: str, node_modules: Path, started: list[subprocess.Popen[str]], tmp_path: Path) -> None:
    source = BROKEN if name == "an_operator_fails" else SCRIPT
    script = tmp_path / "train.py"
    script.write_text(source)
    rows = source.splitlines()
    names = ("h", "more", "loss", "bad")
    lines = {n: i for i, row in enumerate(rows, 1) for n in names if row.strip().startswith(f"{n} = ")}
    lines["body"] = next((i for i, row in enumerate(rows, 1) if "# body" in row), 0)
    setup: dict[str, Any] = {"script": str(script), "lines": lines, "total": "fill_constant_2.tmp_0"}
    if name in SERVED:
        command = [sys.executable, "-m", "fluidnb", "debug", str(script), "a", "--b"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        started.append(process)
        assert process.stderr is not None
        found = re.fullmatch(r"debug adapter at 127\.0\.0\.1:(\d+), token in (\S+)\n", process.stderr.readline())
        assert found is not None
        setup.update(port=int(found[1]), token=Path(found[2]).read_text())
    else:
        setup["adapter"] = adapter(script, tmp_path)
    done = subprocess.run(
        ["node", str(SCENARIOS), name, json.dumps(setup)], capture_output=True, text=True, timeout=200,
        env={**os.environ, "NODE_PATH": str(node_modules)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr + done.stdout[-3000:]
    messages = [json.loads(line) for line in done.stdout.splitlines()]
    assert {m["type"] for m in messages} == {"request", "response", "event"}
    assert [problem for message in messages for problem in problems(message)] == []
    if name in SERVED:
        expected = {"an_operator_fails": 1, "a_wrong_token": 130}.get(name, 0)
        out, err = started[0].communicate(timeout=60)
        assert started[0].returncode == expected, err
        assert "Traceback (most recent call last):\n  File" not in err or name == "an_operator_fails"
        assert expected or out.splitlines() == [f"step {i} ['a', '--b']" for i in range(3)]
