"""``python -m tests.gpu.bench [PART ...]`` (make bench-gpu): how fast programs are on CUDAPlace(0), as Markdown.

The parts are ``bandwidth`` (of kernels that memory bounds), ``models`` (training steps beside torch) and ``launches``;
all of them by default. The exit status is 1 when a goal is missed, or when two sides do not compute the same.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

import fluidnb as fluid
from fluidnb.memory import flags
from fluidnb_kernels.cuda import backend
from tests.gpu import bandwidth, launches, models, torch_side
from tests.gpu.turns import Effort

#: What is measured, in this order.
PARTS = ("bandwidth", "models", "launches")
#: The share of a device that fluidnb's pool takes: torch wants some, too.
_SHARE = 0.3


def main(argv: list[str] | None = None) -> int:
    """Measure what the command line names.

    Args:
        argv: the arguments; None takes those of the process.

    Returns:
        The exit status.
    """
    parser = argparse.ArgumentParser(prog="python -m tests.gpu.bench", description="fluidnb on a GPU, beside torch")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; all by default")
    parser.add_argument("--megabytes", type=int, default=256, help="size of the tensors whose bandwidth is measured")
    parser.add_argument("--rounds", type=int, default=21, help="turns of each side (default: %(default)s)")
    parser.add_argument("--smoke", action="store_true", help="tiny sizes and one turn: only to see that all of it runs")
    parser.add_argument("--json", type=Path, help="a file for all numbers")
    options = parser.parse_args(argv)
    unknown = set(options.parts) - set(PARTS)
    if unknown:
        parser.error(f"no such part: {', '.join(sorted(unknown))}")
    missing = backend.missing()
    if missing:
        sys.exit(f"make bench-gpu: {missing}")
    if "FLAGS_fraction_of_gpu_memory_to_use" not in os.environ:
        fluid.set_flags({"FLAGS_fraction_of_gpu_memory_to_use": _SHARE})
    on_gpu = flags.values["cuda_backend"] == "cupy"
    effort = Effort(on_gpu, True, 1, 0.0) if options.smoke else Effort(on_gpu, rounds=options.rounds)
    record: dict[str, Any] = {**facts(), "judged": effort.judged}
    print(heading(record), flush=True)
    wrong = False
    for part in [part for part in PARTS if part in (options.parts or PARTS)]:
        record[part], made = _measure(part, effort, options.megabytes)
        wrong = wrong or any("MISSED" in line or "NOT THE SAME" in line for line in made)
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(record, indent=1) + "\n")
    return 1 if wrong else 0


def facts() -> dict[str, Any]:
    """The facts about a machine that its times depend on.

    Returns:
        The device, and versions of what is involved.
    """
    versions = {"fluidnb": fluid.__version__, "cupy": backend.named()}
    if flags.values["cuda_backend"] == "cupy":
        runtime = backend.cupy().cuda.runtime
        versions["driver"] = f"CUDA driver {_cuda(runtime.driverGetVersion())}"
        versions["runtime"] = f"CUDA runtime {_cuda(runtime.runtimeGetVersion())}"
    return {"device": backend.device_name(), "versions": {**versions, "torch": torch_side.version()}}


def _cuda(number: int) -> str:
    return f"{number // 1000}.{number % 1000 // 10}"


def heading(record: dict[str, Any]) -> str:
    """The text above the tables.

    Args:
        record: what is known of the machine, and whether its times are judged.
    """
    how = "float32 without TF32, batches on the device, every loss fetched."
    said = f"# {record['device']}\n\nfluidnb {', '.join(record['versions'].values())}; {how}"
    return said if record["judged"] else f"{said}\nThese times mean nothing (an emulator's, or of tiny sizes)."


def _measure(part: str, effort: Effort, megabytes: int) -> tuple[list[Any], list[str]]:
    """Measure a part and print its table: rows, lines."""
    place = fluid.CUDAPlace(0)
    rows: list[Any] = []
    if part == "models":
        for model in models.MODELS:  # a line as each is done: torch.compile takes its time
            rows.append(models.measured(model, place, effort))
            made = models.lines(rows, effort.judged)
            print("\n".join(["", *made] if len(rows) == 1 else made[-1:]), flush=True)
        return rows, made
    if part == "launches":
        rows += launches.measured(place, effort)
        made = launches.lines(rows, effort.judged)
    else:
        rows += bandwidth.table(0 if effort.small else megabytes, 1 if effort.small else 20)
        made = bandwidth.lines(rows, effort.judged)
    print("\n".join(["", *made]), flush=True)
    return rows, made


if __name__ == "__main__":
    sys.exit(main())
