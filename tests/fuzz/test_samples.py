"""A sample of every fuzzer, always the same cases; `make fuzz` runs them for as long as one likes."""

from __future__ import annotations

import importlib
import random
import subprocess
import sys
from typing import Any

import pytest

from fluidnb.errors import FluidError, OpValueError
from tests.fuzz import farm
from tests.fuzz.__main__ import TARGETS
from tests.fuzz.oracle import Hang, judge

#: Cases of each, a few seconds.
COUNTS = {"calls": 300, "programs": 40, "files": 200, "archives": 12, "models": 60, "cells": 25, "messages": 130,
          "memory_safety": 40, "kernel_safety": 12}  # fmt: skip


@pytest.mark.fuzz
@pytest.mark.parametrize("name", TARGETS)
def test_a_result_or_a_sentence(name: str) -> None:
    tally = farm.run(name, 240.0, count=COUNTS[name])
    assert sum(tally.outcomes.values()) == COUNTS[name]
    assert not tally.findings, tally.report(name)


@pytest.mark.fuzz
@pytest.mark.parametrize("name", TARGETS)
def test_a_seed_gives_one_case_which_can_be_shown_and_made_smaller(name: str) -> None:
    target: Any = importlib.import_module(f"tests.fuzz.{name}")
    for seed in range(20):
        case = target.case(random.Random(seed))
        assert case == target.case(random.Random(seed)) and target.show(case)
        assert all(other != case for other in target.smaller(case))


def raised(call: Any) -> str:
    """The kind of the outcome of a call."""
    try:
        call()
    except BaseException as error:  # noqa: BLE001
        return judge(error).kind
    return "result"


def test_the_oracle_tells_sentences_from_inner_exceptions() -> None:
    import fluidnb as fluid
    from fluidnb.utils.escapes import visible

    def failed() -> None:
        raise FluidError("op 0 failed: TypeError: no.")

    def refused() -> None:
        raise OpValueError("That is wrong.")

    def endless() -> None:
        raise Hang("10 s")

    assert raised(lambda: visible(3)) == "bare"  # type: ignore[arg-type]
    assert raised(lambda: fluid.layers.fc(3, 3)) == raised(refused) == "refused"
    assert raised(failed) == "silent" and raised(endless) == "hang" and raised(lambda: {}["x"]) == "python"


def test_a_process_that_dies_and_one_that_hangs_are_findings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(farm, "SILENT_SECONDS", 6.0)
    tally = farm.run("broken_target", 60.0, count=4)
    assert tally.outcomes == {"result": 1, "crash": 1, "hang": 1, "bare": 1}, tally.report("broken_target")
    (bare,) = [f for f in tally.findings.values() if f.outcome.kind == "bare"]
    assert bare.case == {"seed": 3, "parts": [7]}
    (crash,) = [f for f in tally.findings.values() if f.outcome.kind == "crash"]
    assert crash.case == {"seed": 1, "parts": []}


def test_a_process_that_dies_before_its_first_case_is_no_success(monkeypatch: pytest.MonkeyPatch) -> None:
    dead = [sys.executable, "-c", "raise SystemExit('no emulator')"]
    started = lambda *_, stderr: subprocess.Popen(dead, stdout=subprocess.PIPE, stderr=stderr)  # noqa: E731
    monkeypatch.setattr(farm, "started", started)
    with pytest.raises(RuntimeError, match="crash of broken_target outside of a case, status 1:\nno emulator"):
        farm.run("broken_target", 60.0, count=4)


def test_crashes_are_told_apart_by_operator_and_first_frame() -> None:
    log = """==1==ERROR: AddressSanitizer: heap-buffer-overflow on address 0x1
    #0 0x7f1 in __interceptor_memcpy (/lib/libasan.so.8+0x3)
    #1 0x7f2 in void scale<float>(float const*, long) /tmp/scale.cu:12
    #2 0x7f3 in launch /tmp/launch.cpp:40"""
    assert farm.crash({"kind": "scale"}, -6, log).signature == "crash scale void scale<float>"
    assert farm.crash({"kind": "scale"}, -11, "").signature == "crash scale status -11"
