"""``python -m tests.benchmarks.inference [resnet18 ...] [--batches 1,8]``: exported models beside Paddle Inference.

The models are those of paddle.vision, with images of 224 x 224 and one thread. Who runs them takes turns, and the least
CPU time of each counts. Paddle Inference computes with oneDNN; fluidnb with numpy, and with FLAGS_use_mkldnn and
FLAGS_constant_filters, as the others keep filters too; onnxruntime runs the model as fluidnb converts it to ONNX.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

import fluidnb as fluid
from fluidnb.runtime import wait_for_native_code
from tests.paddle import harness

MODELS = (
    "resnet18", "resnet50", "resnext50_32x4d", "wide_resnet50_2", "vgg11", "alexnet", "squeezenet1_1", "mobilenet_v1",
    "mobilenet_v2", "mobilenet_v3_small", "mobilenet_v3_large", "densenet121", "googlenet", "inception_v3",
    "shufflenet_v2_x1_0", "shufflenet_v2_x0_5",
)  # fmt: skip
#: Runs in a turn.
TIMES = 3
#: Runs and seconds before the first turn: what is compiled in the background is in use afterwards.
_RUNS, _SECONDS = 17, 0.5


def _fluidnb(folder: Path, name: str, images: Any, onednn: bool) -> Callable[[], Any]:
    """A function that runs a model by our executor."""
    exe, scope = fluid.Executor(fluid.CPUPlace()), fluid.Scope()
    with fluid.scope_guard(scope):
        program, feeds, fetches = fluid.io.load_inference_model(
            str(folder), exe, model_filename=f"{name}.pdmodel", params_filename=f"{name}.pdiparams"
        )

    def once() -> Any:
        fluid.set_flags({"FLAGS_use_mkldnn": onednn, "FLAGS_constant_filters": True})
        return exe.run(program, feed={feeds[0]: images}, fetch_list=fetches, scope=scope)[0]

    start, runs = time.perf_counter(), 0
    while runs < _RUNS or time.perf_counter() - start < _SECONDS:
        once()
        runs += 1
    wait_for_native_code()
    return once


def _onnxruntime(folder: Path, name: str, images: Any) -> Callable[[], Any]:
    """A function that runs a model by onnxruntime, after our conversion."""
    import onnxruntime

    (path,) = fluid.open(str(folder / f"{name}.pdmodel")).save(str(folder), to="onnx", name=name)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 3
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    feed = {session.get_inputs()[0].name: images}
    return lambda: session.run(None, feed)[0]


def _turn(once: Callable[[], Any], expected: Any) -> Callable[[], float]:
    """A function that runs a model some times and gives the least milliseconds, after a check of its results."""
    np.testing.assert_allclose(once(), expected, rtol=1e-3, atol=1e-4 * float(np.abs(expected).max()))

    def turn() -> float:
        least = float("inf")
        for _ in range(TIMES):
            start = time.process_time()
            once()
            least = min(least, time.process_time() - start)
        return least * 1e3

    return turn


def measure(folder: Path, name: str, batch: int, rounds: int) -> dict[str, float]:
    """The milliseconds of a run, by who runs the model."""
    images = np.random.RandomState(0).rand(batch, 3, 224, 224).astype("float32")

    def paddle() -> float:
        return float(harness.in_paddle("paddle_vision_time", folder, name, batch, TIMES))

    best = {"Paddle": paddle()}  # which exports the model
    expected = np.load(folder / f"{name}.{batch}.npy")
    contestants = {"Paddle": paddle} | {
        label: _turn(once, expected)
        for label, once in {
            "numpy": _fluidnb(folder, name, images, False), "oneDNN": _fluidnb(folder, name, images, True),
            "onnxruntime": _onnxruntime(folder, name, images),
        }.items()
    }  # fmt: skip
    for _ in range(rounds):
        for label, turn in contestants.items():
            best[label] = min(best.get(label, float("inf")), turn())
    return best


def _row(ratios: list[float]) -> str:
    return "{:8.2f}{:8.2f}{:13.2f}".format(*ratios)


def main(argv: list[str] | None = None) -> int:
    """Measure models, and print a table with the geometric means."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.inference")
    parser.add_argument("models", nargs="*", metavar="MODEL", default=list(MODELS), help=f"of {', '.join(MODELS)}")
    parser.add_argument("--batches", default="1,8", help="sizes of a batch (%(default)s)")
    parser.add_argument("--rounds", type=int, default=4, help="how many turns each has (%(default)s)")
    options = parser.parse_args(argv)
    fluid.set_flags({"FLAGS_num_threads": 1})
    print(f"{'model':20}{'batch':>6}{'Paddle ms':>11}{'numpy':>8}{'oneDNN':>8}{'onnxruntime':>13}   times Paddle's")
    with tempfile.TemporaryDirectory() as folder:
        for batch in map(int, options.batches.split(",")):
            rows = []
            for name in options.models:
                found = measure(Path(folder), name, batch, options.rounds)
                rows.append([found[label] / found["Paddle"] for label in ("numpy", "oneDNN", "onnxruntime")])
                print(f"{name:20}{batch:6}{found['Paddle']:11.1f}{_row(rows[-1])}", flush=True)
            means = [prod(column) ** (1 / len(rows)) for column in zip(*rows, strict=True)]
            print(f"{'geometric mean':20}{batch:6}{'':11}{_row(means)}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
