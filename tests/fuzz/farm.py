"""Cases of a target in processes with limits, and their findings.

A target is a module of this package with ``case(dice)``, ``run(case)`` → `Outcome`, ``smaller(case)`` and
``show(case)``. A case is named by its target and a seed; it is data that JSON can carry.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import random
import re
import resource
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.fuzz.oracle import ROOT, Hang, Outcome, judge

#: Seconds of processor time that a case may take.
CASE_SECONDS = 10.0
#: Seconds of the clock after which a process that says nothing is ended.
SILENT_SECONDS = 120.0
#: Bytes of address space that a process may have.
ADDRESS_SPACE = 4 << 30
#: Bytes that a case may take beside what the process has.
CASE_BYTES = 1 << 30
#: A line of a backtrace of the address sanitizer, and the function in it.
_FRAME = re.compile(r"^\s*#\d+ 0x\w+ in (.+?)(?:\(| /|$)")
#: Cases after which a process makes room for a new one.
BATCH = 2000


@dataclass
class Finding:
    """A defect: its smallest case, and how often it occurred."""

    outcome: Outcome
    case: dict[str, Any] | None
    seed: int
    count: int = 1


@dataclass
class Tally:
    """The results of a run.

    Attributes:
        outcomes: kind -> number of cases.
        findings: signature -> the finding.
    """

    outcomes: Counter[str] = field(default_factory=Counter)
    findings: dict[str, Finding] = field(default_factory=dict)

    def add(self, outcome: Outcome, case: dict[str, Any] | None, seed: int) -> None:
        """Count a case."""
        self.outcomes[outcome.kind] += 1
        if outcome.is_finding:
            known = self.findings.get(outcome.signature)
            if known is None:
                self.findings[outcome.signature] = Finding(outcome, case, seed)
            else:
                known.count += 1

    def report(self, target: str) -> str:
        """The findings with their reproductions, then the counts."""
        module = importlib.import_module(f"tests.fuzz.{target}")
        lines = []
        for signature, found in sorted(self.findings.items(), key=lambda pair: -pair[1].count):
            lines.append(f"== {found.outcome.kind}: {signature}  ({found.count} times; {target} {found.seed})")
            lines.append(found.outcome.text.rstrip())
            if found.case is not None:
                lines += ["-- reproduction", module.show(found.case)]
            lines.append("")
        total = sum(self.outcomes.values())
        counts = ", ".join(f"{n} {kind}" for kind, n in self.outcomes.most_common())
        return "\n".join([*lines, f"{target}: {total} cases: {counts}"])


def _interrupt(signum: int, frame: Any) -> None:
    raise Hang(f"more than {CASE_SECONDS} s of processor time")


def case_of(target: Any, seed: int) -> dict[str, Any]:
    """The case of a seed."""
    return dict(target.case(random.Random(seed)))


def timed(target: Any, case: dict[str, Any]) -> Outcome:
    """Run a case under its time limit and measure its memory."""
    before = _peak(reset=True)
    signal.signal(signal.SIGVTALRM, _interrupt)
    signal.setitimer(signal.ITIMER_VIRTUAL, CASE_SECONDS)
    try:
        outcome: Outcome = target.run(case)
    except BaseException as error:  # noqa: BLE001  of the target itself, or the limit
        outcome = judge(error)
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    taken = _peak() - before
    limit = getattr(target, "CASE_BYTES", CASE_BYTES)
    if taken > limit and not outcome.is_finding:
        return Outcome("memory", f"memory: {outcome.kind} {outcome.signature}", f"{taken >> 20} MB, {outcome.text}")
    return outcome


def _peak(reset: bool = False) -> int:
    """The peak of the process's memory since the last reset, in bytes."""
    if reset:
        with contextlib.suppress(OSError), open("/proc/self/clear_refs", "w") as file:
            file.write("5")
    with open("/proc/self/status") as file:
        for line in file:
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return 0


def shrink(target: Any, case: dict[str, Any], outcome: Outcome, seconds: float = 20.0) -> dict[str, Any]:
    """The smallest case found that ends in the same way."""
    if outcome.kind in ("hang", "memory"):
        return case
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for other in target.smaller(case):
            again = timed(target, other)
            if (again.kind, again.signature) == (outcome.kind, outcome.signature):
                case = other
                break
        else:
            break
    return case


def addressed() -> int:
    """The bytes that this process addresses: gigabytes after tests that loaded other libraries."""
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


def _limited(name: str) -> Any:
    """The module of a target, in a process that has its limits from now on."""
    target = importlib.import_module(f"tests.fuzz.{name}")
    room = getattr(target, "ADDRESS_SPACE", ADDRESS_SPACE)
    resource.setrlimit(resource.RLIMIT_AS, (room, room))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    return target


def started(name: str, *words: str, stderr: Any = subprocess.DEVNULL) -> subprocess.Popen[bytes]:
    """A process of the farm, in the environment that the target needs.

    Args:
        name: the target.
        words: the first seed and the end, or a case in JSON.
        stderr: where its errors go.
    """
    target = importlib.import_module(f"tests.fuzz.{name}")
    environment = target.environment() if hasattr(target, "environment") else None
    command = [sys.executable, "-m", "tests.fuzz.farm", name, *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stderr, cwd=ROOT, env=environment)


def crash(case: dict[str, Any], code: int, log: str) -> Outcome:
    """The outcome of a case that ended its process: a signature for each operator and first frame of the sanitizer.

    Args:
        case: the case.
        code: the status of the process.
        log: what it wrote to stderr.
    """
    frames = (found[1] for line in log.splitlines() if (found := _FRAME.match(line)))
    first = next((frame for frame in frames if not frame.startswith("__")), f"status {code}")
    return Outcome("crash", f"crash {case.get('kind', '')} {first}", f"the process ended with {code}")


def ending(name: str, case: dict[str, Any]) -> tuple[int, str]:
    """Run one case in a process: its exit status, and the report of the sanitizer of kernels."""
    process = started(name, json.dumps(case), stderr=subprocess.PIPE)
    try:
        _, said = process.communicate(timeout=SILENT_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        _, said = process.communicate()
    lines = [line.strip() for line in said.decode(errors="replace").splitlines() if "ERROR" in line or "    #" in line]
    return process.returncode, "\n".join(lines[:6])


def shrink_crash(name: str, found: Finding, seconds: float = 120.0) -> None:
    """Shrink a case that ended its process, with a new process for each attempt."""
    target, end = importlib.import_module(f"tests.fuzz.{name}"), time.monotonic() + seconds
    assert found.case is not None
    code, said = ending(name, found.case)
    smaller = iter(target.smaller(found.case))
    while code and time.monotonic() < end and (other := next(smaller, None)) is not None:
        again, words = ending(name, other)
        if again == code:
            found.case, said, smaller = other, words, iter(target.smaller(other))
    found.outcome = Outcome(found.outcome.kind, found.outcome.signature, f"{found.outcome.text}\n{said}".rstrip())


def work(name: str, first: int, end: int) -> None:
    """Run the cases of some seeds in this process, with a line before and after each."""
    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    target = _limited(name)
    known: set[str] = set()
    for seed in range(first, end):
        print(json.dumps({"begin": seed}), file=out)
        case = case_of(target, seed)
        outcome = timed(target, case)
        shown = None
        if outcome.is_finding and outcome.signature not in known:
            known.add(outcome.signature)
            shown = shrink(target, case, outcome)
        line = {"end": seed, "kind": outcome.kind, "signature": outcome.signature, "case": shown}
        if outcome.is_finding:
            line["text"] = outcome.text[-3000:]
        print(json.dumps(line), file=out)


def run(name: str, seconds: float, first: int = 0, workers: int = 1, count: int | None = None) -> Tally:
    """Run a target.

    Args:
        name: its module in ``tests.fuzz``.
        seconds: how long at most.
        first: the first seed.
        workers: how many processes at a time.
        count: how many cases at most.

    Returns:
        What was found.
    """
    target = importlib.import_module(f"tests.fuzz.{name}")
    tally, until, nexts = Tally(), time.monotonic() + seconds, first
    selector = selectors.DefaultSelector()
    rest: list[tuple[int, int]] = []  # seeds after one that ended its process
    last = first + (count if count is not None else 1 << 60)

    def start() -> None:
        nonlocal nexts
        if rest:
            begin, end = rest.pop()
        else:
            begin, end = nexts, min(nexts + BATCH, last)
            nexts = end
        if begin >= end:
            return
        log = tempfile.TemporaryFile()  # noqa: SIM115
        process = started(name, str(begin), str(end), stderr=log)
        assert process.stdout is not None
        os.set_blocking(process.stdout.fileno(), False)
        state = {"process": process, "buffer": b"", "seed": None, "next": begin, "end": end, "log": log}
        state["heard"] = time.monotonic()
        selector.register(process.stdout, selectors.EVENT_READ, state)

    def finish(state: dict[str, Any], kind: str) -> None:
        process = state["process"]
        selector.unregister(process.stdout)
        process.kill()
        code = process.wait()
        process.stdout.close()
        with state["log"] as file:
            file.seek(0)
            log = file.read().decode(errors="replace")
        if state["seed"] is not None and kind != "over":
            case = case_of(target, state["seed"])
            ended = Outcome(kind, f"{kind} {code}", f"the process ended with {code}")
            tally.add(crash(case, code, log) if kind == "crash" else ended, case, state["seed"])
            rest.append((state["seed"] + 1, state["end"]))
        elif kind != "over" and state["next"] < state["end"]:
            raise RuntimeError(f"{kind} of {name} outside of a case, status {code}:\n{log[-2000:]}")
        if time.monotonic() < until:
            start()

    for _ in range(workers):
        start()
    while selector.get_map() and time.monotonic() < until:
        for key, _ in selector.select(timeout=1.0):
            state = key.data
            data = key.fileobj.read()  # type: ignore[union-attr]
            if data == b"":
                finish(state, "crash")
                continue
            state["heard"] = time.monotonic()
            *lines, state["buffer"] = (state["buffer"] + (data or b"")).split(b"\n")
            for line in lines:
                told = json.loads(line)
                state["seed"] = told.get("begin")
                if "end" in told:
                    state["next"] = told["end"] + 1
                    outcome = Outcome(told["kind"], told["signature"], told.get("text", ""))
                    found = tally.findings.get(outcome.signature)
                    tally.add(outcome, told["case"], told["end"])
                    if found is not None and found.case is None:
                        found.case = told["case"]
        for key in list(selector.get_map().values()):
            if time.monotonic() - key.data["heard"] > SILENT_SECONDS:
                finish(key.data, "hang")
    for key in list(selector.get_map().values()):
        finish(key.data, "over")
    for found in tally.findings.values():
        if found.outcome.kind == "crash":
            shrink_crash(name, found)
    return tally


if __name__ == "__main__":
    if sys.argv[2].startswith("{"):  # one case, which may end the process
        print(timed(_limited(sys.argv[1]), json.loads(sys.argv[2])))
    else:
        work(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
