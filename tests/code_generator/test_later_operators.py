"""Operators of Paddle 2's exports in C: rnn, select_input, quantize_linear and dequantize_linear."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.code_generator import CodeGenerator
from tests.code_generator.batch import SANITIZERS, WARNINGS

#: The compiler with all warnings as errors, and with sanitizers, which end the program at the first finding.
STRICT = " ".join(("gcc", *WARNINGS, *SANITIZERS))
GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


def compare(feed: dict[str, np.ndarray], fetches: list[str]) -> None:
    """The executor's results and those of C."""
    expected = fluid.Executor(fluid.CPUPlace()).run(feed=feed, fetch_list=fetches)
    code = CodeGenerator(feeds={name: a.shape for name, a in feed.items()}, fetches=fetches)
    for got, want in zip(code.run(feed, STRICT), expected, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def fed(arrays: dict[str, np.ndarray]) -> Any:
    """A block with variables for arrays."""
    block = fluid.default_main_program().global_block()
    for name, a in arrays.items():
        block.create_var(name=name, shape=list(a.shape), dtype=a.dtype.name)
    return block


@pytest.mark.parametrize("mode", list(GATES))
@pytest.mark.parametrize("sides", [1, 2])
def test_rnn(mode: str, sides: int) -> None:
    rng, width, layers, features = np.random.RandomState(0), 3, 2, 4
    states = ["h", "c"] if mode == "LSTM" else ["h"]
    feed = {"x": rng.randn(5, 2, features), "lengths": np.array([5, 3], "int32")}
    feed |= {name: rng.randn(layers * sides, 2, width) for name in states}
    below = [features] * sides + [sides * width] * sides
    matrices = [(GATES[mode] * width, n) for size in below for n in (size, width)]
    weights = [*matrices, *[(GATES[mode] * width,)] * (2 * layers * sides)]
    feed |= {f"w{i}": rng.randn(*shape) * 0.5 for i, shape in enumerate(weights)}
    feed = {name: a if a.dtype == np.int32 else a.astype("float32") for name, a in feed.items()}
    block = fed(feed)
    outs = {name: block.create_var(name=name, dtype="float32") for name in ("out", *[f"{s}_last" for s in states])}
    block.append_op(
        "rnn",
        {"Input": ["x"], "PreState": states, "WeightList": [f"w{i}" for i in range(len(weights))],
         "SequenceLength": ["lengths"]},
        {"Out": [outs["out"]], "State": [outs[f"{s}_last"] for s in states]},
        {"mode": mode, "num_layers": layers, "is_bidirec": sides == 2, "hidden_size": width, "input_size": features,
         "is_test": True},
    )  # fmt: skip
    compare(feed, list(outs))


def test_select_input() -> None:
    feed = {"a": np.ones((2, 3), "float32"), "b": np.full((2, 3), 2, "float32"), "which": np.array([1], "int32")}
    block = fed(feed)
    out = block.create_var(name="out", dtype="float32")
    block.append_op("select_input", {"X": ["a", "b"], "Mask": ["which"]}, {"Out": [out]})
    compare(feed, ["out"])


@pytest.mark.parametrize("axis", [-1, 1])
@pytest.mark.parametrize("round_type", [0, 1])
def test_quantized_numbers(axis: int, round_type: int) -> None:
    x = np.random.RandomState(0).randn(2, 3, 4).astype("float32")
    feed = {"x": x, "scale": np.array([1.5, 2.0, 0.5][: 1 if axis == -1 else 3], "float32")}
    block, attrs = fed(feed), {"quant_axis": axis, "round_type": round_type}
    for type, source, target in (("quantize_linear", "x", "whole"), ("dequantize_linear", "whole", "back")):
        out = block.create_var(name=target, dtype="float32")
        block.append_op(type, {"X": [source], "Scale": ["scale"]}, {"Y": [out]}, attrs)
    compare(feed, ["whole", "back"])
