"""Two models to compare."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import fluidnb as fluid
from tests.compare.networks import built


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a network, the same with a fault, the first as ONNX, and what is fed."""
    monkeypatch.chdir(tmp_path)
    network = built("convolutions")
    faulty = network.copy()
    op = next(op for op in faulty.program.desc.blocks[0].ops if op.optype == "leaky_relu")
    op.set_attr("alpha", 0.3)
    for name, each in (("good", network), ("bad", faulty)):
        with fluid.scope_guard(each.scope):
            block = each.program.global_block()
            targets = [block.var(n) for n in each.fetches]
            exe = fluid.Executor(fluid.CPUPlace())
            fluid.io.save_inference_model(name, list(each.feeds), targets, exe, each.program)
    fluid.open("good").save(".", to="onnx", name="good")
    np.savez("x.npz", **network.feeds)
    return tmp_path
