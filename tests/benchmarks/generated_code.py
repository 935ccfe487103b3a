"""``python -m tests.benchmarks.generated_code [mlp lenet ...] [--rounds N]``: generated C beside executors, one thread.

Contestants run in turns, and the least time of each counts, so that a machine that becomes slower meanwhile changes
little. A binary's size is that of its file without symbols; memory is the most that its process had.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import fluidnb as fluid
from fluidnb.code_generator import CodeGenerator
from fluidnb.code_generator.generator import write_feeds
from fluidnb.code_generator.project import FAST
from tests.code_generator import blas
from tests.paddle import harness

layers, nets = fluid.layers, fluid.nets


@dataclass
class Figures:
    """Least milliseconds of a run, bytes of the program, most kilobytes of its process; 0 where there is none."""

    ms: float
    size: int = 0
    memory: int = 0


def mlp() -> tuple[Any, Any]:
    """Two hidden layers of 200."""
    x = layers.data("x", [784])
    return x, layers.fc(layers.fc(layers.fc(x, 200, act="relu"), 200, act="relu"), 10, act="softmax")


def lenet() -> tuple[Any, Any]:
    """The Book's network for digits."""
    x = layers.data("x", [1, 28, 28])
    h = nets.simple_img_conv_pool(nets.simple_img_conv_pool(x, 20, 5, 2, 2, act="relu"), 50, 5, 2, 2, act="relu")
    return x, layers.fc(h, 10, act="softmax")


MODELS: dict[str, Callable[[], tuple[Any, Any]]] = {"mlp": mlp, "lenet": lenet}


def contestants(name: str, batch: int, folder: Path, times: int) -> dict[str, Callable[[], Figures]]:
    """Functions that measure a model once, by who runs it."""
    x, y = MODELS[name]()
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    program = fluid.default_main_program().clone(for_test=True)
    feed = {"x": np.random.RandomState(0).rand(batch, *x.shape[1:]).astype("float32")}
    files = {"model_filename": f"{name}.model", "params_filename": f"{name}.params"}
    fluid.io.save_inference_model(str(folder), ["x"], [y], exe, program, **files)
    np.save(folder / f"{name}.npy", feed["x"])
    for _ in range(30):
        exe.run(program, feed=feed, fetch_list=[y])

    def executor() -> Figures:
        start = time.process_time()
        for _ in range(times):
            exe.run(program, feed=feed, fetch_list=[y])
        return Figures((time.process_time() - start) / times * 1e3)

    def paddle() -> Figures:
        ms, memory = harness.in_paddle("paddle_inference_time", folder, name, times).split()
        return Figures(float(ms), 0, int(memory))

    found = {"executor": executor}
    code = CodeGenerator(program, ["x"], [y.name], batch=batch)
    for label, cc in (("C", "gcc"), ("C, CBLAS", "" if blas.missing() else blas.compiler_with_blas(folder))):
        if cc:
            found[label] = _built(code, cc, folder / label.replace(", ", "_"), feed, times)
    if harness.PYTHONS["2.6.2"].exists():
        found["Paddle Inference"] = paddle
    return found


def _built(code: CodeGenerator, cc: str, folder: Path, feed: dict[str, Any], times: int) -> Callable[[], Figures]:
    """A function that measures a generated program."""
    program = code.build(cc, folder / "code", [*FAST, "-s"])
    for end in ("in", "out"):
        (folder / end).mkdir()
    write_feeds(code._text, feed, str(folder / "in"))

    def run() -> Figures:
        words = [program, folder / "code" / "weights.bin", folder / "in", folder / "out", str(times)]
        memory = 0
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
            while process.poll() is None:  # what the kernel reports at the end would count this process too
                status = Path(f"/proc/{process.pid}/status").read_text()
                memory = max([memory, *map(int, re.findall(r"VmHWM:\s+(\d+)", status))])
                time.sleep(0.002)
            said = process.communicate()[0]
        assert process.returncode == 0
        return Figures(float(said.split()[0]), os.path.getsize(program), memory)

    return run


def measure(name: str, batch: int, rounds: int) -> dict[str, Figures]:
    """The figures of all contestants, measured in turns."""
    best: dict[str, Figures] = {}
    with (
        tempfile.TemporaryDirectory() as folder,
        fluid.program_guard(fluid.Program(), fluid.Program()),
        fluid.scope_guard(fluid.Scope()),
    ):
        running = contestants(name, batch, Path(folder), max(10, 2000 // batch))
        for _ in range(rounds):
            for label, run in running.items():
                figures = run()
                if label not in best or figures.ms < best[label].ms:
                    best[label] = figures
    return best


def main(argv: list[str] | None = None) -> int:
    """Measure models, and print a table."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.generated_code")
    parser.add_argument("models", nargs="*", metavar="MODEL", default=list(MODELS), help=f"of {', '.join(MODELS)}")
    parser.add_argument("--rounds", type=int, default=5, help="how often each contestant runs (%(default)s)")
    parser.add_argument("--batches", default="1,32", help="sizes of a batch (%(default)s)")
    options = parser.parse_args(argv)
    print(f"{'model':8}{'batch':>6}  {'who':18}{'ms':>9}{'x executor':>12}{'binary kB':>11}{'memory MB':>11}")
    for name in options.models:
        for batch in map(int, options.batches.split(",")):
            found = measure(name, batch, options.rounds)
            for label, f in found.items():
                ratio = f.ms / found["executor"].ms
                size = f"{f.size / 1000:.0f}" if f.size else ""
                memory = f"{f.memory / 1000:.1f}" if f.memory else ""
                print(f"{name:8}{batch:6}  {label:18}{f.ms:9.3f}{ratio:12.2f}{size:>11}{memory:>11}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
