"""rnn beside a plain computation in torch's order of gates, and its gradients beside numeric ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fluidnb.errors import EnforceNotMet, OpValueError
from fluidnb.testing import run_op
from tests.ops.cases import Differentiable, family, values

TIME, BATCH, WIDTH, FEATURES = 3, 2, 2, 3
LENGTHS = np.array([3, 1])


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def cell(mode: str, x: np.ndarray, r: np.ndarray, h: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """One step of one sequence."""
    n = len(h)
    if mode == "LSTM":
        z = x + r
        c = sigmoid(z[n : 2 * n]) * c + sigmoid(z[:n]) * np.tanh(z[2 * n : 3 * n])
        return sigmoid(z[3 * n :]) * np.tanh(c), c
    if mode == "GRU":
        reset, keep = sigmoid(x[:n] + r[:n]), sigmoid(x[n : 2 * n] + r[n : 2 * n])
        return keep * h + (1 - keep) * np.tanh(x[2 * n :] + reset * r[2 * n :]), c
    return np.tanh(x + r) if mode == "RNN_TANH" else np.maximum(x + r, 0), c


def expected(mode: str, inputs: dict[str, Any], sides: int) -> tuple[np.ndarray, list[np.ndarray]]:
    """Out and State, sequence by sequence and number by number."""
    x, states, weights = inputs["Input"], inputs["PreState"], inputs["WeightList"]
    lengths = inputs.get("SequenceLength", [TIME] * BATCH)
    count = len(states[0])
    last = [np.array(s) for s in states]
    for layer in range(count // sides):
        out = np.zeros((TIME, BATCH, sides * WIDTH))
        for side in range(sides):
            at = layer * sides + side
            w, r = weights[2 * at : 2 * at + 2]
            b, b2 = weights[2 * count + 2 * at : 2 * count + 2 * at + 2]
            for i in range(BATCH):
                h, c = states[0][at, i], states[-1][at, i]
                for t in sorted(range(lengths[i]), reverse=side == 1):
                    h, c = cell(mode, w @ x[t, i] + b, r @ h + b2, h, c)
                    out[t, i, side * WIDTH : (side + 1) * WIDTH] = h
                last[0][at, i] = h
                if mode == "LSTM":
                    last[1][at, i] = c
        x = out
    return x, last


def case(mode: str, layers: int = 1, sides: int = 1, lengths: bool = False) -> dict[str, Any]:
    """A test case."""
    gates = {"LSTM": 4, "GRU": 3}.get(mode, 1) * WIDTH
    count = layers * sides
    below = [FEATURES if i < sides else sides * WIDTH for i in range(count)]
    shapes = [s for n in below for s in ((gates, n), (gates, WIDTH))] + [(gates,)] * (2 * count)
    inputs: dict[str, Any] = {
        "Input": values(TIME, BATCH, FEATURES, seed=1),
        "PreState": [values(count, BATCH, WIDTH, seed=2 + i) for i in range(1 + (mode == "LSTM"))],
        "WeightList": [values(*s, seed=5 + i) for i, s in enumerate(shapes)],
    }
    if lengths:
        inputs["SequenceLength"] = LENGTHS
    out, last = expected(mode, inputs, sides)
    attrs = {"mode": mode, "hidden_size": WIDTH, "num_layers": layers, "is_bidirec": sides == 2, "is_test": True}
    outputs = {"Out": out, "State": last if len(last) > 1 else last[0]}
    grads = ("Input", "PreState", "WeightList")
    return {"inputs": inputs, "attrs": attrs, "outputs": outputs, "grads": grads, "loss": ("Out", "State")}


family(
    globals(),
    Differentiable,
    {
        "rnn": case("RNN_TANH"),
        "rnn/relu": case("RNN_RELU"),
        "rnn/lstm": case("LSTM"),
        "rnn/lstm_deep_both_ways": case("LSTM", 2, 2, lengths=True),
        "rnn/gru": case("GRU"),
        "rnn/gru_deep_both_ways": case("GRU", 2, 2, lengths=True),
    },
)


def test_what_does_not_fit_is_named() -> None:
    inputs, attrs = case("LSTM")["inputs"], case("LSTM")["attrs"]
    with pytest.raises(EnforceNotMet, match="takes 2 PreState"):
        run_op("rnn", {**inputs, "PreState": inputs["PreState"][:1]}, attrs, {"Out": 1, "State": 2})
    with pytest.raises(EnforceNotMet, match="Number 1 in WeightList"):
        wrong = [inputs["WeightList"][0], values(8, 3), *inputs["WeightList"][2:]]
        run_op("rnn", {**inputs, "WeightList": wrong}, attrs, {"Out": 1, "State": 2})
    with pytest.raises(EnforceNotMet, match="no dropout between layers"):
        run_op("rnn", inputs, {**attrs, "is_test": False, "dropout_prob": 0.5}, {"Out": 1, "State": 2})
    with pytest.raises(OpValueError, match="mode"):
        run_op("rnn", inputs, {**attrs, "mode": "RNN_SIN"}, {"Out": 1, "State": 2})
