"""No CUDA kernel leaves its memory when an operand has another size, or other integers, than the rest lets expect."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from fluidnb.errors import NotFound
from fluidnb_kernels import emulator
from tests.fuzz import kernel_safety
from tests.tools.sampling import sample

ROOT = Path(__file__).resolve().parents[2]
PARTS = 60

pytestmark = [pytest.mark.skipif(bool(emulator.missing()), reason=emulator.missing()), pytest.mark.timeout(1800)]


@pytest.mark.parametrize("part", sample(range(PARTS), 1))
def test_no_memory_error(part: int) -> None:
    try:
        environment = kernel_safety.environment()
    except NotFound as error:
        pytest.skip(str(error))
    command = [sys.executable, "-m", "tests.cuda.other_operands", str(part), str(PARTS)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=ROOT, timeout=1800)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-3000:]
    tried = done.stdout.split()[-4]
    assert int(tried) > 0
