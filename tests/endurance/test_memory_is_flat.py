"""Resident memory after thousands of repetitions is what it was after the first ones."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tools.sampling import takes_all

REPEAT = Path(__file__).with_name("repeat.py")
#: Kind of use -> repetitions in a run of all cases, and in a sampled one.
TIMES = {
    "programs": (10_000, 300), "batches": (50_000, 1_500), "lods": (5_000, 400), "cells": (2_000, 100),
    "debugger": (5_000, 150),
}  # fmt: skip


@pytest.mark.timeout(3_000)
@pytest.mark.parametrize("kind", TIMES)
def test_it_grows_by_less_than_five_percent(kind: str) -> None:
    times = TIMES[kind][0 if takes_all() else 1]
    done = subprocess.run([sys.executable, str(REPEAT), kind, str(times)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert len(found) >= 10
    assert found[-1] < 1.05 * found[1], f"kilobytes at each tenth of {times} repetitions: {found}"
