"""Every case of an operator also runs on the CUDA emulator, or on a GPU, where it has a kernel for it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fluidnb.testing import op_test
from fluidnb_kernels import emulator
from tests.cuda import twins
from tests.cuda.devices import OnDevice


# For each module: tests of other folders in the same process use OpTest too, without the emulator.
@pytest.fixture(autouse=True, scope="module")
def _twins() -> Iterator[None]:
    if twins.device is OnDevice and emulator.missing():  # the emulator's own tests say so
        yield
        return
    op_test.also.append(twins.check_twins)
    yield
    op_test.also.remove(twins.check_twins)
