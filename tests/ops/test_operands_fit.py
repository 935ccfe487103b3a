"""Operands that a CUDA kernel would read or write outside of are refused while it binds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fluidnb.errors import FluidError
from fluidnb.op import Binder, Clock, OpDesc
from fluidnb.runtime import Scope
from fluidnb.runtime.compile.lowering import LoweredOp
from fluidnb.values import LoDTensor
from fluidnb_kernels.tensor.strided_copy import layout_of, move
from tests.cuda.devices import OnDevice

ROWS = np.ones((6, 2), "float32")


def tensor(array: Any, *lod: tuple[int, ...]) -> LoDTensor:
    """A tensor whose LoD nobody has checked."""
    made = LoDTensor(np.asarray(array))
    made.lod_ = lod
    return made


def bind(type: str, inputs: dict[str, Any], output: str, attrs: dict[str, Any]) -> Binder:
    """Bind an operator on a CUDA device."""
    scope = Scope()
    for slot, value in inputs.items():
        scope.var(slot).value = value if isinstance(value, LoDTensor) else tensor(value)
    desc = OpDesc(type, {s: [s] for s in inputs}, {output: ["out"]}, attrs)
    binder = Binder(LoweredOp(desc, 0, 0), OnDevice(Clock(1)), scope)
    binder.bind()
    return binder


INDICES = np.zeros((3, 2), "int64")
REFUSED: dict[str, tuple[str, dict[str, Any], str, dict[str, Any]]] = {
    "fewer gradients than indices": (
        "top_k_grad", {"X": np.ones((3, 4), "f4"), "Indices": INDICES, "Out@GRAD": np.ones((3, 1), "f4")}, "X@GRAD",
        {"k": 2},
    ),
    "a narrower gradient": (
        "unpool_grad",
        {
            "X": np.ones((1, 1, 1, 1)), "Indices": np.zeros((1, 1, 1, 1), "int32"), "Out": np.ones((1, 1, 2, 2)),
            "Out@GRAD": np.ones((1, 1, 2, 2), "uint8"),
        },
        "X@GRAD", {"ksize": [2, 2], "unpooling_type": "max"},
    ),
    "fewer gradients than rows": (
        "scatter_grad", {"X": ROWS, "Ids": np.array([1, 2]), "Updates": ROWS[:2], "Out@GRAD": ROWS[:3]},
        "Updates@GRAD", {"overwrite": True},
    ),
    "sequences that end behind the rows": ("sequence_pool", {"X": tensor(ROWS, (0, 3, 9))}, "Out", {"pooltype": "SUM"}),
    "sequences that go back": ("sequence_pool", {"X": tensor(ROWS, (0, 9, 6))}, "Out", {"pooltype": "SUM"}),
    "sequences that end early": ("sequence_pool", {"X": tensor(ROWS, (0, 3))}, "Out", {"pooltype": "SUM"}),
    "sequences of sequences that are not there": (
        "sequence_pool", {"X": tensor(ROWS, (0, 4), (0, 3, 6))}, "Out", {"pooltype": "SUM"},
    ),
    "a state of another shape": (
        "momentum",
        {"Param": ROWS, "Grad": ROWS, "Velocity": np.ones((1, 2), "f4"), "LearningRate": np.ones(1, "f4")},
        "ParamOut", {"mu": 0.9},
    ),
    "no places of the largest elements": (
        "sequence_pool_grad", {"X": tensor(ROWS, (0, 3, 6)), "Out@GRAD": np.ones((2, 2), "f4")}, "X@GRAD",
        {"pooltype": "MAX"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    with pytest.raises(FluidError):
        bind(*REFUSED[name])


def test_what_fits_binds() -> None:
    given = {"X": np.ones((3, 4), "f4"), "Indices": INDICES, "Out@GRAD": np.ones((3, 2), "f4")}
    assert bind("top_k_grad", given, "X@GRAD", {"k": 2}).calls
    assert bind("sequence_pool", {"X": tensor(ROWS, (0, 3, 6))}, "Out", {"pooltype": "SUM"}).calls


def test_a_move_stays_in_its_tensors() -> None:
    calls: list[Any] = []

    def emit(*call: Any) -> None:
        calls.append(call)

    x, out = np.ones(6, "float32"), np.ones(6, "float32")
    move(emit, out, x)  # type: ignore[arg-type]
    outside = layout_of(np.ones(7))[:6]
    for wrong in (lambda: move(emit, out, x, of=outside), lambda: move(emit, out, x.astype("float64"))):  # type: ignore[arg-type]
        with pytest.raises(FluidError):
            wrong()
    assert len(calls) == 1
