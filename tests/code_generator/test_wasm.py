"""Generated programs as WebAssembly: built by zig, run by Node without files but those of one folder."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.code_generator import CodeGenerator
from fluidnb.code_generator.generator import read_fetches, write_feeds
from tests.code_generator.batch import close
from tests.code_generator.test_models import lenet, transformer

#: The command of zig: that of the environment, or of the package.
ZIG = os.environ.get("ZIG") or (f"{sys.executable} -m ziglang" if importlib.util.find_spec("ziglang") else "")
pytestmark = [
    pytest.mark.skipif(not ZIG, reason="no ziglang"),
    pytest.mark.skipif(shutil.which("node") is None, reason="no node"),
]


@pytest.mark.parametrize("model", [lenet, transformer], ids=lambda model: model.__name__)
def test_a_model_in_node(model: Callable[[], Any], tmp_path: Path) -> None:
    y = model()
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    shape = (2, *fluid.default_main_program().global_block().var("x").shape[1:])
    feed = {"x": np.random.RandomState(1).rand(*shape).astype("float32")}
    program = fluid.default_main_program().clone(for_test=True)
    [expected] = exe.run(program, feed=feed, fetch_list=[y.name])
    code = CodeGenerator(program, ["x"], y.name, batch=2)
    code.save(tmp_path / "code")
    for end in ("in", "out"):
        (tmp_path / end).mkdir()
    write_feeds(code._text, feed, str(tmp_path / "in"))
    make = ["make", "-s", f"ZIG={ZIG}", "model.wasm"]
    made = subprocess.run(make, cwd=tmp_path / "code", capture_output=True, text=True, timeout=590, check=False)
    assert made.returncode == 0 and "warning" not in made.stderr, made.stderr
    assert (tmp_path / "code" / "model.wasm").read_bytes()[:4] == b"\0asm"
    run = ["node", "code/model.mjs", "code/weights.bin", "in", "out", "3"]
    done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0 and done.stdout.endswith(" ms\n"), done.stderr
    close(read_fetches(code._text, str(tmp_path / "out"))[0], expected, model.__name__)
    done = subprocess.run([*run[:2], "nothing", *run[3:]], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1 and "parameters do not fit: nothing" in done.stderr
