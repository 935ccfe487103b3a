"""Optimizers on the emulator beyond the cases of their OpTests: other dtypes, odd sizes, in place, sparse gradients."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from fluidnb.errors import OpTypeError
from fluidnb.program import Program
from fluidnb.runtime import Scope
from fluidnb.values import LoDTensor, SelectedRows
from fluidnb_kernels import emulator
from tests.cuda.operands import in_place, numbers, twins
from tests.cuda.twins import run_twins
from tests.tools.sampling import sample

pytestmark = pytest.mark.skipif(bool(emulator.missing()), reason=emulator.missing())

Array = np.ndarray[Any, Any]
POWERS, POWERS_OUT = {"Beta1Pow": 0.5, "Beta2Pow": 0.25}, {"Beta1PowOut": "Beta1Pow", "Beta2PowOut": "Beta2Pow"}
MOMENTS = {"Moment1Out": "Moment1", "Moment2Out": "Moment2"}

#: operator -> what it keeps (output -> input), its variables of one element, its attributes
STEPS: dict[str, tuple[dict[str, str], dict[str, float], dict[str, Any]]] = {
    "sgd": ({}, {}, {}),
    "momentum": ({"VelocityOut": "Velocity"}, {}, {"mu": 0.5, "use_nesterov": True, "rescale_grad": 0.5}),
    "adam": (MOMENTS | POWERS_OUT, POWERS, {}),
    "adamw": (MOMENTS | POWERS_OUT, POWERS, {"with_decay": True, "coeff": 0.5, "lr_ratio": 0.5}),
    "adamax": ({"MomentOut": "Moment", "InfNormOut": "InfNorm"}, {"Beta1Pow": 0.5}, {}),
    "adagrad": ({"MomentOut": "Moment"}, {}, {}),
    "decayed_adagrad": ({"MomentOut": "Moment"}, {}, {"decay": 0.75}),
    "proximal_gd": ({}, {}, {"l1": 0.5, "l2": 0.25}),
    "proximal_adagrad": ({"MomentOut": "Moment"}, {}, {"l1": 0.5, "l2": 0.25}),
    "adadelta": ({"AvgSquaredGradOut": "AvgSquaredGrad", "AvgSquaredUpdateOut": "AvgSquaredUpdate"}, {}, {}),
    "rmsprop": ({"MeanSquareOut": "MeanSquare", "MomentOut": "Moment"}, {}, {"momentum": 0.5}),
    "ftrl": (
        {"SquaredAccumOut": "SquaredAccumulator", "LinearAccumOut": "LinearAccumulator"}, {}, {"l1": 0.25, "l2": 0.5},
    ),
    "lamb": (MOMENTS | POWERS_OUT, POWERS, {"weight_decay": 0.25}),
    "lars_momentum": ({"VelocityOut": "Velocity"}, {}, {"mu": 0.5, "lars_weight_decay": [0.25], "rescale_grad": 0.5}),
}  # fmt: skip


def operands(name: str, shape: tuple[int, ...], dtype: Any, grad: Any = None) -> dict[str, Any]:
    """Parameter, gradient and state."""
    kept, single, _ = STEPS[name]
    given = {"Param": numbers(*shape).astype(dtype), "LearningRate": np.array([0.1], dtype)}
    given["Grad"] = numbers(*shape, seed=2).astype(dtype) if grad is None else grad
    for i, slot in enumerate(sorted(set(kept.values()) - set(single))):
        given[slot] = numbers(*shape, seed=3 + i, low=0.1).astype(dtype)
    return given | {slot: np.array([x], dtype) for slot, x in single.items()}


def outputs(name: str) -> list[str]:
    return ["ParamOut", *STEPS[name][0]]


@pytest.mark.parametrize("name", STEPS)
def test_single_precision_of_an_odd_size(name: str) -> None:
    twins(name, operands(name, (1031,), np.float32), STEPS[name][2], outputs(name))


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16], ids=["float16", "bfloat16"])
@pytest.mark.parametrize("name", sample(list(STEPS), 3))
def test_half_precision(name: str, dtype: type) -> None:
    twins(name, operands(name, (77,), dtype), STEPS[name][2], outputs(name))


@pytest.mark.parametrize("name", sample(list(STEPS), 4))
def test_in_place(name: str) -> None:
    apart = twins(name, operands(name, (70,), np.float64), STEPS[name][2], outputs(name))
    places = {"ParamOut": "Param", **STEPS[name][0]}
    scope = in_place(name, operands(name, (70,), np.float64), STEPS[name][2], places)
    for out, variable in places.items():
        want, got = (np.asarray(s.find_var(v).value) for s, v in ((apart, f"{out}@out"), (scope, variable)))
        np.testing.assert_allclose(got, want, 1e-11)


@pytest.mark.parametrize("name", ["sgd", "adam", "lamb"])
def test_a_rate_of_another_precision(name: str) -> None:
    given = operands(name, (7,), np.float64) | {"LearningRate": np.array([0.125], np.float32)}
    twins(name, given, STEPS[name][2], outputs(name))


@pytest.mark.parametrize("name", ["momentum", "lamb"])
def test_nothing_to_update(name: str) -> None:
    twins(name, operands(name, (0, 3), np.float32), STEPS[name][2], outputs(name))


@pytest.mark.parametrize("mean", [True, False])
def test_rmsprop_with_a_mean_gradient_that_it_does_not_use(mean: bool) -> None:
    given = operands("rmsprop", (5,), np.float64)
    if mean:
        given["MeanGrad"] = numbers(5, seed=9)
    twins("rmsprop", given, {}, [*outputs("rmsprop"), "MeanGradOut"])


@pytest.mark.parametrize("slot", ["Param", "Grad"])
@pytest.mark.parametrize("name", ["lamb", "lars_momentum"])
def test_a_tensor_of_no_size(name: str, slot: str) -> None:
    given = operands(name, (40,), np.float64)
    twins(name, given | {slot: np.zeros(40)}, STEPS[name][2], outputs(name))


def test_many_blocks() -> None:
    for name in ("lamb", "lars_momentum"):
        twins(name, operands(name, (9, 70), np.float64), STEPS[name][2], outputs(name))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("name", ["sgd", "proximal_gd", "adamax", "ftrl"])
def test_a_gradient_that_is_no_number(name: str, bad: float) -> None:
    given = operands(name, (6,), np.float64)
    given["Grad"][2] = bad
    twins(name, given, STEPS[name][2], outputs(name))


def rows(dtype: Any = np.float64, width: int = 3, ids: tuple[int, ...] = (1, 4, 1, 0)) -> SelectedRows:
    """A sparse gradient in which a row comes twice."""
    return SelectedRows(ids, 6, LoDTensor(numbers(len(ids), width, seed=2).astype(dtype)))


@pytest.mark.parametrize("name", [name for name in STEPS if name != "lars_momentum"])
def test_a_sparse_gradient(name: str) -> None:
    twins(name, operands(name, (6, 3), np.float64, rows()), STEPS[name][2], outputs(name))


@pytest.mark.parametrize("name", ["adam", "adamw"])
def test_a_sparse_gradient_that_leaves_rows_alone(name: str) -> None:
    given = operands(name, (6, 300), np.float32, rows(np.float32, 300))
    scope = twins(name, given, {**STEPS[name][2], "lazy_mode": True}, outputs(name))
    moved = (np.asarray(scope.find_var("Moment1Out@out").value) != given["Moment1"]).any(1)
    assert moved.tolist() == [True, True, False, False, True, False]


def test_a_sparse_gradient_in_a_program_of_paddle_2() -> None:
    """There the powers are advanced before they are read."""
    got = []
    for version in (0, 2_006_002):
        given, program, scope = operands("adam", (6, 3), np.float64, rows()), Program(), Scope()
        program.desc.pb.version.version = version
        for name, value in given.items():
            program.global_block().create_var(name=name, shape=[1], dtype="float64")
            scope.var(name).value = LoDTensor(value) if isinstance(value, np.ndarray) else value
        outs = {out: [name] for out, name in {"ParamOut": "Param", **STEPS["adam"][0]}.items()}
        program.global_block().append_op(type="adam", inputs={name: [name] for name in given}, outputs=outs)
        run_twins(program.global_block().desc.ops[0], scope)
        got.append(np.asarray(scope.find_var("Param").value))
    assert (abs(got[0] - got[1]) > 1e-3).any()


@pytest.mark.parametrize("name", ["sgd", "adagrad"])
def test_a_sparse_gradient_without_rows(name: str) -> None:
    twins(name, operands(name, (6, 3), np.float64, rows(ids=())), STEPS[name][2], outputs(name))


def test_a_sparse_gradient_of_another_precision() -> None:
    with pytest.raises(OpTypeError, match="sparse gradient and state of the parameter's dtype"):
        twins("sgd", operands("sgd", (6, 3), np.float64, rows(np.float32)), {}, ["ParamOut"])


@pytest.mark.parametrize(
    ("counts", "window"),
    [
        ((3, 2, 9), (0.5, 10, 20)),
        ((9, 2, 40), (0.5, 10, 20)),
        ((3, 2, 16383), (0.5, 10, 20)),
        ((9, 0, 12), (0.5, 2, 50)),
    ],
    ids=["on", "full", "part", "share"],
)
@pytest.mark.parametrize("place", [True, False], ids=["in_place", "apart"])
def test_average_accumulates(counts: tuple[int, ...], window: tuple[Any, ...], place: bool) -> None:
    names = "num_accumulates", "old_num_accumulates", "num_updates"
    given = {"param": numbers(5), **{f"in_sum_{i}": numbers(5, seed=1 + i) for i in (1, 2, 3)}}
    given |= {f"in_{name}": np.array([n], np.int64) for name, n in zip(names, counts, strict=True)}
    attrs = dict(zip(("average_window", "min_average_window", "max_average_window"), window, strict=True))
    outs = {slot.replace("in_", "out_"): slot if place else slot + "@out" for slot in given if slot != "param"}
    twins("average_accumulates", given, attrs, outs)
