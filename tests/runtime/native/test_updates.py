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
    exe, main = fluid.Executor(), fluid.default_main_program()
    trained = sum(op.type == "adam" for op in main.global_block().ops)
    for _ in range(2):  # updates of another scope are no part of the last run
        with fluid.scope_guard(fluid.Scope()):
            exe.run(fluid.default_startup_program())
            for count in range(1, 7):
                exe.run(feed=rows(count), fetch_list=[loss])
                ops = [op for call in native_calls(main) for op in call.ops]
                assert sum(op.desc.optype == "adam" for op in ops) == trained
