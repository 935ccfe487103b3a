"""No CUDA kernel touches memory that is not its own: operators' cases under the address sanitizer."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from fluidnb.errors import NotFound
from fluidnb_kernels import emulator
from fluidnb_kernels.emulator.compiler import sanitized
from tests.tools.sampling import SEED, sample

ROOT = Path(__file__).resolve().parents[2]
#: Modules of operators' tests; their operands are allocated one by one, with guards around each.
MODULES = sorted((ROOT / "tests" / "ops").glob("test_*.py"))

pytestmark = [pytest.mark.skipif(bool(emulator.missing()), reason=emulator.missing()), pytest.mark.timeout(1800)]


@pytest.mark.parametrize("module", sample(MODULES, 1), ids=lambda path: path.stem)
def test_no_memory_error(module: Path) -> None:
    try:
        environment = sanitized()
    except NotFound as error:
        pytest.skip(str(error))
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "--cases=sampled", str(module)]
    environment |= {"FLUIDNB_SANITIZE": "1", "FLUIDNB_SEED": str(SEED)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=ROOT, timeout=1800)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-6000:]
