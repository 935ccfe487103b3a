"""Every case of an operator also runs on the CUDA emulator, where the operator has a kernel for it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fluidnb.testing import op_test
from fluidnb_kernels import emulator
from tests.cuda.twins import check_twins


@pytest.fixture(autouse=True, scope="session")
def _twins() -> Iterator[None]:
    if emulator.missing():  # the emulator's own tests say so
        yield
        return
    op_test.also.append(check_twins)
    yield
    op_test.also.remove(check_twins)
