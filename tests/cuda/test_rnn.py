"""Recurrent networks on the emulator beyond the cases of their OpTests: every dtype, and widths beyond one block."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from fluidnb.testing.values import value_of
from fluidnb.values.dtypes import np_dtype
from fluidnb_kernels import emulator
from fluidnb_kernels.cuda import grid
from fluidnb_kernels.emit import FLOATS
from tests.cuda.operands import numbers, twins
from tests.ops.test_cudnn_lstm import operands as lstm_operands

pytestmark = pytest.mark.skipif(bool(emulator.missing()), reason=emulator.missing())

Array = np.ndarray[Any, Any]
LENGTHS = [[3, 0, 5, 1]]


def of(dtype: str, *shape: int, seed: int = 1) -> Array:
    return numbers(*shape, seed=seed).astype(np_dtype(dtype))


def both_ways(
    type: str, inputs: Mapping[str, Any], attrs: Mapping[str, Any], outputs: Sequence[str], gradients: Sequence[str],
    reads: Sequence[str],
) -> None:  # fmt: skip
    """Run an operator and its gradient both ways; ``gradients`` name the outputs that have one."""
    scope = twins(type, inputs, attrs, outputs)
    kept = {slot: scope.find_var(f"{slot}@out").value for slot in reads}
    given = {f"{s}@GRAD": of(v.array.dtype.name, *v.array.shape, seed=9) for s in gradients for v in [kept[s]]}
    twins(f"{type}_grad", {**inputs, **kept, **given}, attrs, [f"{slot}@GRAD" for slot in inputs])


def lstm(dtype: str, width: int, state: int, peepholes: bool) -> dict[str, Any]:
    n, sequences = sum(LENGTHS[0]), len(LENGTHS[0])
    return {
        "Input": value_of((of(dtype, n, 4 * width), LENGTHS)),
        "Weight": of(dtype, state, 4 * width, seed=2),
        "Bias": of(dtype, 1, (7 if peepholes else 4) * width, seed=3),
        "H0": of(dtype, sequences, state, seed=4),
        "C0": of(dtype, sequences, width, seed=5),
    }


KEPT = ["BatchGate", "BatchCellPreAct", "Cell"]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("width", "peepholes", "reverse"), [(3, True, True), (40, False, False)])
def test_lstm(dtype: str, width: int, peepholes: bool, reverse: bool) -> None:
    kept = [*KEPT, "Hidden"]
    attrs = {"use_peepholes": peepholes, "is_reverse": reverse}
    both_ways("lstm", lstm(dtype, width, width, peepholes), attrs, kept, ["Hidden"], kept)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("activation", ["relu", "identity", "sigmoid"])
def test_lstmp(dtype: str, activation: str) -> None:
    kept = [*KEPT, "BatchHidden", "Projection"]
    inputs = {**lstm(dtype, 5, 3, True), "ProjWeight": of(dtype, 5, 3, seed=6)}
    attrs = {"cell_clip": 0.5, "proj_clip": 0.25, "proj_activation": activation, "candidate_activation": activation}
    both_ways("lstmp", inputs, attrs, kept, ["Projection"], kept)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("origin", [False, True])
@pytest.mark.parametrize("width", [2, 37])
def test_gru(dtype: str, origin: bool, width: int) -> None:
    inputs = {
        "Input": value_of((of(dtype, sum(LENGTHS[0]), 3 * width), LENGTHS)),
        "Weight": of(dtype, width, 3 * width, seed=2),
        "Bias": of(dtype, 1, 3 * width, seed=3),
        "H0": of(dtype, len(LENGTHS[0]), width, seed=4),
    }
    kept = ["BatchGate", "BatchResetHiddenPrev", "BatchHidden", "Hidden"]
    both_ways("gru", inputs, {"origin_mode": origin, "is_reverse": origin}, kept, ["Hidden"], kept)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("batch", [1, 0, 30])
def test_units(dtype: str, batch: int) -> None:
    width = 11
    inputs = {
        "Input": of(dtype, batch, 3 * width),
        "HiddenPrev": of(dtype, batch, width, seed=2),
        "Weight": of(dtype, width, 3 * width, seed=3),
        "Bias": of(dtype, 1, 3 * width, seed=4),
    }
    kept = ["Gate", "ResetHiddenPrev", "Hidden"]
    for attrs in {"origin_mode": True, "activation": 3}, {"gate_activation": 0, "activation": 1}:
        both_ways("gru_unit", inputs, attrs, kept, ["Hidden"], kept)
    given = {"X": of(dtype, batch, 4 * width), "C_prev": inputs["HiddenPrev"]}
    both_ways("lstm_unit", given, {"forget_bias": 0.5}, ["C", "H"], ["C", "H"], ["C", "H"])
    both_ways("lstm_unit", given, {}, ["C", "H"], ["C"], ["C"])
    both_ways("lstm_unit", given, {}, ["C", "H"], ["H"], ["C", "H"])


def test_threads_go_round_in_strides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grid, "BLOCKS", 1)
    test_lstm("float64", 40, True, False)
    test_lstmp("float64", "tanh")
    test_gru("float64", False, 37)
    test_units("float64", 300)


def test_sequences_without_rows() -> None:
    x = value_of((np.zeros((0, 8)), [[0, 0]]))
    inputs = {"Input": x, "Weight": of("float64", 2, 8), "Bias": of("float64", 1, 14)}
    kept = [*KEPT, "Hidden"]
    both_ways("lstm", inputs, {}, kept, ["Hidden"], kept)


@pytest.mark.parametrize(("layers", "sides"), [(1, 1), (2, 2)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("dropout", [{}, {"dropout_prob": 0.5, "seed": 3}])
def test_layers_with_all_weights_in_one_vector(layers: int, sides: int, dtype: str, dropout: dict[str, Any]) -> None:
    given = {slot: value.astype(dtype) for slot, value in lstm_operands(layers, sides).items()}
    attrs = {"hidden_size": 3, "num_layers": layers, "is_bidirec": sides == 2, **dropout}
    scope = twins("cudnn_lstm", given, attrs, ["Out", "last_h", "last_c", "Reserve"])
    found = {slot: np.asarray(scope.find_var(f"{slot}@out").value) for slot in ("Out", "last_h", "last_c", "Reserve")}
    given["Reserve"] = found.pop("Reserve")
    slopes = {f"{slot}@GRAD": numbers(*value.shape).astype(dtype) for slot, value in found.items()}
    outputs = [f"{slot}@GRAD" for slot in ("Input", "InitH", "InitC", "W")]
    twins("cudnn_lstm_grad", {**given, **slopes}, attrs, outputs)
    twins("cudnn_lstm_grad", {**given, "last_c@GRAD": slopes["last_c@GRAD"]}, attrs, outputs[1:])
