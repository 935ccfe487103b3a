"""Tests of the kernel lab leave the registry as it was."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fluidnb.op import registry
from fluidnb.op.define import OpDef
from fluidnb.op.kernel_type import Kernel
from fluidnb.values import kernel_packages
from fluidnb_kernels.lab import written, written_ops


def registered() -> dict[str, tuple[OpDef, list[Kernel]]]:
    """All operators with their kernels."""
    kernel_packages.load()
    return {type: (d, list(d.kernels)) for type, d in registry.ops.items()}


@pytest.fixture(autouse=True)
def taken_back() -> Iterator[None]:
    """Take back what a test wrote, and see that nothing of it is left."""
    before = registered()
    yield
    for trial in written():
        trial.take_back()
    for made in written_ops():
        made.take_back()
    after = registered()
    assert before.keys() == after.keys()
    assert all(after[t][0] is d and after[t][1] == kernels for t, (d, kernels) in before.items())
