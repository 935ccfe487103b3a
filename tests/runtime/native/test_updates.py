"""Native code of optimizers' steps that are bound once for feeds of all shapes."""

from __future__ import annotations

import pytest

import fluidnb as fluid
from fluidnb.memory import flags
from fluidnb.runtime import native_calls
from fluidnb.runtime.compile import lowering
from tests.runtime.many_shapes import NETWORKS, dense, results, rows, train


@pytest.mark.parametrize("network", NETWORKS)
def test_the_same_bits(network: str, monkeypatch: pytest.MonkeyPatch) -> None:
    flags.values["native"] = "require"
    apart = results(network, "clipped", fluid.CPUPlace())
    flags.values["native"] = "off"
    monkeypatch.setattr(lowering, "_MANY_SHAPES", 1 << 30)
    assert apart == results(network, "clipped", fluid.CPUPlace())


def test_it_is_used_with_every_shape() -> None:
    flags.values["native"] = "require"
    loss = train(dense(), fluid.optimizer.Adam(0.1))
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    for count in range(1, 7):
        exe.run(feed=rows(count), fetch_list=[loss])
        calls = native_calls(fluid.default_main_program())
        assert any(op.desc.optype == "adam" for call in calls for op in call.ops)
