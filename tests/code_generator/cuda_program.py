"""Generated CUDA programs run outside Python: built against an emulated driver, on a GPU against CUDA's own."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

import fluidnb as fluid
from fluidnb.code_generator import CodeGenerator
from fluidnb.code_generator.generator import read_fetches, write_feeds
from fluidnb_kernels.cuda.nvrtc import _headers
from fluidnb_kernels.emulator.compiler import build
from fluidnb_kernels.emulator.translate import translate
from tests.cuda import twins
from tests.cuda.devices import OnCupy

_DRIVER = Path(__file__).with_name("emulated_driver.c")
_ROW = re.compile(r'^    \{(\d+), "(.+)"\},$', re.MULTILINE)


def parts_of(generator: CodeGenerator) -> list[tuple[str, list[str]]]:
    """The text of each part of ``model.cu``, and the names of the kernels that ``model.c`` takes from it."""
    found: dict[int, list[str]] = {}
    for part, name in _ROW.findall(generator.source()):
        found.setdefault(int(part), []).append(name)
    text = generator.source("model.cu")
    return [(f"#define MODEL_PART {part}\n{text}", names) for part, names in sorted(found.items())]


def toolkit(folder: Path) -> Path:
    """A folder like that of CUDA, with CUDA's headers and the emulated driver as its libraries."""
    libraries = folder / "lib64"
    libraries.mkdir(parents=True)
    [headers] = {path for path in _headers() if (Path(path) / "nvrtc.h").exists()}
    (folder / "include").symlink_to(headers)
    words = ["gcc", "-std=gnu11", "-O1", "-w", "-shared", "-fPIC", "-I", headers, str(_DRIVER), "-ldl"]
    subprocess.run([*words, "-o", str(libraries / "libcuda.so")], check=True, timeout=300)
    (libraries / "libnvrtc.so").symlink_to(libraries / "libcuda.so")
    return folder


def on_gpu() -> bool:
    """Whether this is `make test-gpu`."""
    return bool(twins.device is OnCupy)


def same(got: Any, expected: Any, what: str = "", atol: float = 1e-5) -> None:
    """Assert that a program has the executor's bits; on a GPU its numbers, since cuBLAS adds in another order."""
    if on_gpu():
        np.testing.assert_allclose(got, expected, 1e-4, atol, err_msg=what)
    else:
        np.testing.assert_array_equal(got, expected, what)


class CudaProgram:
    """A generated CUDA program, built.

    Args:
        generator: what is built.
        folder: a new folder for it.
    """

    def __init__(self, generator: CodeGenerator, folder: Path) -> None:
        self.generator, self.code = generator, folder / "code"
        folder.mkdir(parents=True, exist_ok=True)
        generator.save(self.code)
        self.toolkit = Path(os.environ.get("CUDA_HOME", "/usr/local/cuda")) if on_gpu() else self._emulated(folder)
        words = ["make", "-s", f"CUDA={self.toolkit}", "CFLAGS=-O1 -Werror -Wshadow"]
        subprocess.run(words, cwd=self.code, check=True, timeout=300)

    def _emulated(self, folder: Path) -> Path:
        """Compile the kernels for the emulated driver, which is in the folder that this gives."""
        for part, (text, names) in enumerate(parts_of(self.generator)):
            library = build(translate(text, "model.cu", names))
            shutil.copy(library, folder / f"part{part}.so")
            (folder / f"part{part}.txt").write_text("\n".join(names) + "\n")
        return toolkit(folder / "cuda")

    def execute(self, feed: Mapping[str, Any], times: int = 1, **environment: str) -> subprocess.CompletedProcess[str]:
        """Runs the program as a process that runs the model so often."""
        folder = self.code.parent
        for name in ("in", "out"):
            (folder / name).mkdir(exist_ok=True)
        write_feeds(self.generator._text, feed, str(folder / "in"))
        return subprocess.run(
            [self.code / "model", self.code / "weights.bin", folder / "in", folder / "out", str(times)],
            capture_output=True, text=True, timeout=300, check=False,
            env={**os.environ, "EMULATED_PARTS": str(folder), **environment},
        )  # fmt: skip

    def run(self, feed: Mapping[str, Any], times: int = 1) -> list[np.ndarray]:
        """The arrays that the last of several runs fetches."""
        done = self.execute(feed, times)
        assert done.returncode == 0, done.stderr
        return read_fetches(self.generator._text, str(self.code.parent / "out"))

    def parameters(self) -> dict[str, np.ndarray]:
        """The parameters that a training step has written."""
        variables = self.generator._text.plan.parameters
        program = fluid.Program()
        with fluid.program_guard(program):
            block = program.global_block()
            rows = [
                block.create_var(name=v.name, shape=list(v.shape), dtype=v.dtype.name, persistable=True)
                for v in variables
            ]
        scope = fluid.Scope()
        with fluid.scope_guard(scope):
            folder = str(self.code.parent / "out")
            fluid.io.load_vars(fluid.Executor(fluid.CPUPlace()), folder, program, rows, filename="weights.bin")
        return {v.name: np.asarray(scope.find_var(v.name).get_tensor()) for v in variables}
