"""Measures: one process for each peer, taking turns so that the machine's moods hit all alike."""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.benchmarks.works import Work

ROOT = Path(__file__).parents[2]
WORKER = Path(__file__).with_name("worker.py")
BLOCK = 0.06  # seconds of work in one turn
PATIENCE = 20.0  # seconds: a fresh process that takes longer is measured once only


@dataclass
class Result:
    """The measured times of one peer for one work.

    Args:
        peer: its name.
        cpu: CPU time of each measurement, in the work's unit.
        wall: the same by the clock.
        memory: peak resident memory in MB.
        error: why there is nothing else.
        threads: of each process.
    """

    peer: str
    cpu: list[float] = field(default_factory=list)
    wall: list[float] = field(default_factory=list)
    memory: float | None = None
    error: str | None = None
    threads: int = 1

    @property
    def value(self) -> float | None:
        """The median CPU time of one thread, or time by the clock of several; or None."""
        times = self.cpu if self.threads == 1 else self.wall
        return statistics.median(times) if times else None


def python(peer: str) -> Path:
    """The interpreter of a peer: our own for fluidnb, else that of its environment."""
    if peer in ("fluidnb", "native"):
        return Path(sys.executable)
    return Path(os.environ.get("FLUIDNB_VENVS") or ROOT / ".venvs") / peer / "bin" / "python"


def environment(threads: int = 1) -> dict[str, str]:
    """So many threads for every library, no chatter, numpy's own choice of BLAS kernels, and where fluidnb is."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("OPENBLAS_") and k != "PYTHONPATH"}
    counts = (
        "OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "FLAGS_paddle_num_threads",
    )  # fmt: skip
    quiet = {"GLOG_minloglevel": "3", "TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONWARNINGS": "ignore"}
    jax = {"JAX_PLATFORMS": "cpu"} | ({"XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false"} if threads == 1 else {})
    ours = {"FLUIDNB_PYTHON": sys.executable}  # for a peer that runs a program of ours
    return env | dict.fromkeys(counts, str(threads)) | quiet | jax | ours | {"PYTHONHASHSEED": "0"}


def command(mode: str, peer: str, work: Work, threads: int = 1) -> list[str]:
    """The command line of a peer's process, held to as many cores as it has threads."""
    cores = sorted(os.sched_getaffinity(0))[:threads]
    pinned = f"import os, runpy, sys; os.sched_setaffinity(0, {cores}); sys.argv.pop(0); "
    run = f"sys.path.insert(0, ''); runpy.run_path({str(WORKER)!r}, run_name='__main__')"
    return [str(python(peer)), "-c", pinned + run, str(WORKER), mode, peer, work.name]


class Worker:
    """A peer's process that stays, for works that are measured in a loop.

    Args:
        peer: whose.
        work: what it prepares.
        threads: how many it may use.
    """

    def __init__(self, peer: str, work: Work, threads: int = 1) -> None:
        self.result = Result(peer, threads=threads)
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(
            command("loop", peer, work, threads), stdin=pipe, stdout=pipe, stderr=pipe, text=True,
            env=environment(threads),
        )  # fmt: skip
        self.read()
        self.steps = self.calibrate()

    def read(self) -> Any:
        """Its next answer."""
        assert self.process.stdout is not None and self.process.stderr is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(self.process.stderr.read().strip()[-500:] or "ended without a word")
        return json.loads(line)

    def ask(self, steps: int) -> Any:
        """Let it make some steps."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{steps}\n")
        self.process.stdin.flush()
        return self.read()

    def calibrate(self) -> int:
        """The number of steps that fill a turn."""
        steps = 1
        while True:
            wall = self.ask(steps)[0]
            if wall > BLOCK / 4 or steps > 10**6:
                return max(1, int(steps * BLOCK / wall))
            steps = max(steps * 2, int(steps * min(50, BLOCK / 3 / max(wall, 1e-7))))

    def turn(self, work: Work) -> None:
        """Measure once."""
        wall, cpu = self.ask(self.steps)
        scale = (1e6 if work.unit == "us" else 1.0) / self.steps / work.per
        self.result.wall.append(wall * scale)
        self.result.cpu.append(cpu * scale)

    def close(self) -> None:
        """Let it report its memory and end."""
        self.result.memory = self.ask(0)
        self.process.wait(60)
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()


def measure_loop(work: Work, peers: Sequence[str], threads: int) -> list[Result]:
    """Measure a work in processes that stay and take turns, back and forth."""
    workers: list[Worker] = []
    failed: list[Result] = []
    for peer in peers:
        try:
            workers.append(Worker(peer, work, threads))
        except RuntimeError as error:
            failed.append(Result(peer, error=str(error), threads=threads))
    for round in range(work.rounds):
        for worker in workers if round % 2 == 0 else workers[::-1]:
            worker.turn(work)
    for worker in workers:
        worker.close()
    return [worker.result for worker in workers] + failed


def run_fresh(work: Work, result: Result) -> None:
    """Measure a work once in a new process: all of it, or the ``value`` that it measured itself."""
    before, clock = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    line, env = command("fresh", result.peer, work, result.threads), environment(result.threads)
    done = subprocess.run(line, capture_output=True, text=True, env=env)
    wall, after = time.perf_counter() - clock, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        result.error = done.stderr.strip()[-500:]
        return
    said = json.loads(done.stdout.strip().splitlines()[-1])
    whole = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    result.cpu.append(said["value"] if isinstance(said, dict) else whole)
    result.wall.append(wall)


def measure_fresh(work: Work, peers: Sequence[str], threads: int) -> list[Result]:
    """Measure a work in new processes, peer after peer, several rounds."""
    results = [Result(peer, threads=threads) for peer in peers]
    for _ in range(work.rounds):
        for result in results:
            if result.error is None and not any(wall > PATIENCE for wall in result.wall):
                run_fresh(work, result)
    return results


def measure(work: Work, peers: Sequence[str], threads: int = 1) -> list[Result]:
    """Measure a work for all peers in one interleaved run.

    Args:
        work: what to do.
        peers: who does it; an interpreter that is not there gives an error row.
        threads: how many each process may use.

    Returns:
        A result for each peer, in the order given.
    """
    peers = [peer for peer in peers if peer == "fluidnb" or not work.alone]
    peers = [peer for peer in peers if peer != "native" or work.native]
    here = [peer for peer in peers if python(peer).exists()]
    results = {r.peer: r for r in (measure_fresh if work.fresh else measure_loop)(work, here, threads)}
    return [results.get(peer, Result(peer, error=f"not installed: {python(peer)}")) for peer in peers]
