"""Generated code for small devices: no files, no heap, sizes of flash and RAM."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.code_generator import CodeGenerator
from tests.code_generator.test_models import lenet

pytestmark = pytest.mark.skipif(shutil.which("size") is None or shutil.which("awk") is None, reason="no binutils")
#: What a program for a small device may need from outside: the math library, and memory functions of the compiler.
ALLOWED = re.compile(r"(exp|log|sqrt|tanh|pow|erf|fmax|fmin|floor)f?|mem(cpy|set|move)|__stack_chk_fail|_GLOBAL_\w+")
DRIVER = """#include <stdio.h>
#include "model.h"
int main(void) {
    float x[800], out[8];
    for (int i = 0; i < 800; ++i) x[i] = (float)(i % 7) / 7;
    model_run(x, out);
    for (int i = 0; i < 8; ++i) printf("%.9g\\n", (double)out[i]);
}
"""


def test_sizes_and_numbers(tmp_path: Path) -> None:
    y = lenet()
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    program = fluid.default_main_program().clone(for_test=True)
    folder = tmp_path / "code"
    CodeGenerator(program, ["x"], y.name, batch=2, embed_weights=True).save(folder)
    make = ["make", "-s", "small", "CC=gcc -Werror"]
    said = subprocess.run(make, cwd=folder, capture_output=True, text=True, timeout=120, check=True).stdout
    found = re.fullmatch(r"flash  (\d+) bytes\nRAM    (\d+) bytes\nstack  (\d+) bytes in a function at most\n", said)
    assert found is not None, said
    flash, ram, stack = map(int, found.groups())
    weights = sum(v.size for v in CodeGenerator(program, ["x"], y.name, batch=2)._text.plan.parameters)
    assert weights < flash < weights + 20_000 and 1_000 < ram < 100_000 and stack < 4_000
    symbols = subprocess.run(["nm", "-u", "small.o"], cwd=folder, capture_output=True, text=True, check=True).stdout
    assert [name for name in symbols.split() if name != "U" and not ALLOWED.fullmatch(name)] == []
    (folder / "driver.c").write_text(DRIVER)
    subprocess.run(["gcc", "driver.c", "small.o", "-o", "driver", "-lm"], cwd=folder, check=True, timeout=60)
    out = subprocess.run([folder / "driver"], capture_output=True, text=True, check=True, timeout=60).stdout
    x = (np.arange(800, dtype="float32") % 7 / np.float32(7)).reshape(2, 1, 20, 20)
    [expected] = exe.run(program, feed={"x": x}, fetch_list=[y.name])
    np.testing.assert_allclose(np.array(out.split(), "float32"), expected.reshape(-1), rtol=1e-5)


def test_parameters_in_a_file_are_refused(tmp_path: Path) -> None:
    y = lenet()
    fluid.Executor(fluid.CPUPlace()).run(fluid.default_startup_program())
    CodeGenerator(feeds=["x"], fetches=[y]).save(tmp_path / "code")
    done = subprocess.run(["make", "small"], cwd=tmp_path / "code", capture_output=True, text=True, check=False)
    assert done.returncode != 0 and "generate it with --embed-weights" in done.stderr
