"""Recurrent operators in native code have numpy's bits; their steps are compiled after some runs only."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb import layers
from fluidnb.runtime import native_calls, native_text, wait_for_native_code
from fluidnb.runtime.native import segment_code
from fluidnb.runtime.native.segment_code import OFTEN
from fluidnb.values.dtypes import dtype_name

LENGTHS = (3, 1, 4, 4)
WIDTH = 5


def lstm(x: fluid.Variable, **more: Any) -> fluid.Variable:
    hidden, _ = layers.dynamic_lstm(layers.fc(x, 4 * WIDTH), 4 * WIDTH, dtype=dtype_name(x.dtype), **more)
    return hidden


def lstmp(x: fluid.Variable, **more: Any) -> fluid.Variable:
    projection, _ = layers.dynamic_lstmp(layers.fc(x, 4 * WIDTH), 4 * WIDTH, 3, dtype=dtype_name(x.dtype), **more)
    return projection


def gru(x: fluid.Variable, **more: Any) -> fluid.Variable:
    return layers.dynamic_gru(layers.fc(x, 3 * WIDTH), WIDTH, **more)


def gru_unit(x: fluid.Variable, **more: Any) -> fluid.Variable:
    hidden, _, _ = layers.gru_unit(layers.fc(x, 3 * WIDTH), layers.fc(x, WIDTH), 3 * WIDTH, **more)
    return hidden


NETS = {
    "lstm": (lstm, {}),
    "lstm without peepholes": (lstm, {"use_peepholes": False, "is_reverse": True}),
    "lstm with other activations": (lstm, {"gate_activation": "relu", "candidate_activation": "sigmoid"}),
    "lstmp": (lstmp, {"cell_clip": 0.1, "proj_clip": 0.1}),
    "lstmp with relu": (lstmp, {"proj_activation": "relu", "cell_activation": "identity"}),
    "gru": (gru, {}),
    "gru with its origin": (gru, {"origin_mode": True, "is_reverse": True, "candidate_activation": "relu"}),
    "gru_unit": (gru_unit, {}),
}


def trained(
    net: Any, more: dict[str, Any], dtype: str, mode: str, runs: int, at_end: Any = lambda exe: None
) -> list[np.ndarray]:
    """The losses and the last state and gradients of a few steps of training."""
    fluid.set_flags({"FLAGS_native": mode})
    with fluid.fresh():
        fluid.default_startup_program().random_seed = 3
        x = layers.data("x", [4], dtype=dtype, lod_level=1)
        state = net(x, **more)
        loss = layers.mean(layers.square(state))
        gradients = [gradient for _, gradient in fluid.backward.append_backward(loss)]
        exe = fluid.Executor()
        exe.run(fluid.default_startup_program())
        numbers = np.random.default_rng(1).normal(size=(sum(LENGTHS), 4)).astype(dtype)
        feed = {"x": fluid.create_lod_tensor(numbers, [list(LENGTHS)], fluid.CPUPlace())}
        for k in range(runs):
            found = exe.run(feed=feed, fetch_list=[loss, state, *gradients], return_numpy=False)
            if k == OFTEN:
                assert wait_for_native_code()
        at_end(exe)
    return [np.array(value) for value in found]


@pytest.mark.parametrize(("name", "dtype"), [(n, "float32") for n in NETS] + [("lstm", "float64"), ("gru", "float64")])
def test_the_bits_are_those_of_numpy(name: str, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segment_code, "LONG", 0.0)
    net, more = NETS[name]
    operator = name.split(" ")[0]

    def look(exe: fluid.Executor) -> None:
        own = {op.desc.optype for call in native_calls(fluid.default_main_program()) for op in call.ops}
        assert {operator, f"{operator}_grad"} <= own

    wanted = trained(net, more, dtype, "off", 1)
    for got, value in zip(trained(net, more, dtype, "auto", OFTEN + 3, look), wanted, strict=True):
        assert got.tobytes() == value.tobytes()


def test_steps_are_compiled_after_some_runs_and_reported_in_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segment_code, "LONG", 0.0)
    counts: list[int] = []

    def look(exe: fluid.Executor) -> None:
        counts.append(sum(call.times for call in native_calls(fluid.default_main_program())))

    trained(lstm, {}, "float32", "require", 1, look)
    trained(lstm, {}, "float32", "require", OFTEN + 3, look)
    assert counts[1] > counts[0] > 0

    def read(exe: fluid.Executor) -> None:
        lines = [line for line in native_text(fluid.default_main_program()).splitlines() if " lstm:" in line]
        assert any("calls in 3," in line for line in lines)  # all steps but the first

    trained(lstm, {}, "float32", "auto", OFTEN + 3, read)
