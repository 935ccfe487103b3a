"""Updates of parameters beyond gradient descent, momentum and Adam."""

import numpy as np
import pytest

from fluidnb.op import RuleError
from fluidnb.program import Program
from fluidnb.runtime import Executor, Scope
from fluidnb.testing import run_op
from tests.ops.cases import Forward, family, values

P, G, M = values(3, 2, seed=1), values(3, 2, seed=2), values(3, 2, seed=3)
S, U = values(3, 2, low=0.1, seed=4), values(3, 2, low=0.1, seed=5)
RATE = np.array([0.1])
LR = 0.1


def f32(x):
    """A float attribute as it is stored: in float32."""
    return float(np.float32(x))


BASE = {"Param": P, "Grad": G, "LearningRate": RATE}
EPS3, EPS6, EPS8, D95, B1, B2 = f32(1e-3), f32(1e-6), f32(1e-8), f32(0.95), f32(0.9), f32(0.999)


def sign_and_shrink(q, l1, l2):
    return np.sign(q) * np.maximum(0, np.abs(q) - LR * l1) / (1 + LR * l2)


def adagrad(moment):
    return {"MomentOut": moment, "ParamOut": P - LR * G / (np.sqrt(moment) + EPS6)}


def adadelta(rate):
    a = D95 * S + (1 - D95) * G * G
    step = -np.sqrt((U + EPS6) / (a + EPS6)) * G
    return {
        "AvgSquaredGradOut": a, "AvgSquaredUpdateOut": D95 * U + (1 - D95) * step * step, "ParamOut": P + rate * step,
    }  # fmt: skip


def adamax():
    m, n = B1 * M + (1 - B1) * G, np.maximum(B2 * S + EPS8, np.abs(G))
    return {"MomentOut": m, "InfNormOut": n, "ParamOut": P - LR / (1 - 0.5) * m / n}


def rmsprop(centered, momentum=0.5):
    s = B1 * S + (1 - B1) * G * G
    a = B1 * U / 4 + (1 - B1) * G
    v = momentum * M + LR * G / np.sqrt(s - (a * a if centered else 0) + EPS3)
    return {"MeanSquareOut": s, "MomentOut": v, "ParamOut": P - v, "MeanGradOut": a if centered else U / 4}


def ftrl(l1, l2, power):
    l1, l2 = l1 + 1e-10, l2 + 1e-10
    total = S + G * G
    root, before = total**-power, S**-power
    z = M + G - (root - before) / LR * P
    p = np.where(np.abs(z) > l1, (np.sign(z) * l1 - z) / (root / LR + 2 * l2), 0)
    return {"SquaredAccumOut": total, "LinearAccumOut": z, "ParamOut": p}


def lamb(decay):
    m, v = B1 * M + (1 - B1) * G, B2 * S + (1 - B2) * G * G
    r = m / (1 - 0.5) / (np.sqrt(v / (1 - 0.25)) + EPS6) + decay * P
    ratio = np.linalg.norm(P) / np.linalg.norm(r)
    powers = {"Beta1PowOut": np.array([0.5 * B1]), "Beta2PowOut": np.array([0.25 * B2])}
    return {"Moment1Out": m, "Moment2Out": v, "ParamOut": P - LR * ratio * r, **powers}


def lars(decay, mu=0.5):
    rate = LR
    if decay:
        rate *= EPS3 * np.linalg.norm(P) / (np.linalg.norm(G) + decay * np.linalg.norm(P))
    v = mu * M + rate * (G + decay * P)
    return {"VelocityOut": v, "ParamOut": P - v}


AVERAGES = {"Param": P, "Grad": G, "AvgSquaredGrad": S, "AvgSquaredUpdate": U}
SQUARES = BASE | {"MeanSquare": S, "Moment": M, "MeanGrad": U / 4}
SUMS = BASE | {"SquaredAccumulator": S, "LinearAccumulator": M}
POWERS = {"Beta1Pow": np.array([0.5]), "Beta2Pow": np.array([0.25])}
family(
    globals(),
    Forward,
    {
        "adagrad": {"inputs": BASE | {"Moment": S}, "outputs": adagrad(S + G * G)},
        "decayed_adagrad": {"inputs": BASE | {"Moment": S}, "outputs": adagrad(D95 * S + (1 - D95) * G * G)},
        "proximal_gd": {
            "inputs": BASE, "attrs": {"l1": 2.0, "l2": 0.5},
            "outputs": {"ParamOut": sign_and_shrink(P - LR * G, 2.0, 0.5)},
        },
        "proximal_adagrad": {
            "inputs": BASE | {"Moment": S}, "attrs": {"l1": 0.5, "l2": 0.5},
            "outputs": {
                "MomentOut": S + G * G, "ParamOut": sign_and_shrink(P - LR * G / np.sqrt(S + G * G), 0.5, 0.5),
            },
        },
        "adadelta": {"inputs": AVERAGES | {"LearningRate": RATE}, "outputs": adadelta(LR)},
        "adadelta/old": {"inputs": AVERAGES, "outputs": adadelta(1.0)},
        "adamax": {
            "inputs": BASE | {"Moment": M, "InfNorm": S, "Beta1Pow": np.array([0.5])}, "outputs": adamax(),
        },
        "rmsprop": {"inputs": SQUARES, "attrs": {"momentum": 0.5, "epsilon": 1e-3}, "outputs": rmsprop(False)},
        "rmsprop/centered": {
            "inputs": SQUARES, "attrs": {"momentum": 0.5, "epsilon": 1e-3, "centered": True}, "outputs": rmsprop(True),
        },
        "ftrl": {"inputs": SUMS, "attrs": {"l1": 0.5, "l2": 0.25}, "outputs": ftrl(0.5, 0.25, -0.5)},
        "ftrl/power": {"inputs": SUMS, "attrs": {"l1": 0.5, "lr_power": -0.75}, "outputs": ftrl(0.5, 0.0, -0.75)},
        "lamb": {
            "inputs": BASE | {"Moment1": M, "Moment2": S} | POWERS, "attrs": {"weight_decay": 0.25},
            "outputs": lamb(0.25),
        },
        "lars_momentum": {
            "inputs": BASE | {"Velocity": M}, "attrs": {"mu": 0.5, "lars_weight_decay": [0.25]},
            "outputs": lars(0.25),
        },
        "lars_momentum/plain": {
            "inputs": BASE | {"Velocity": M}, "attrs": {"mu": 0.5, "lars_weight_decay": [0.0]}, "outputs": lars(0.0),
        },
    },
)  # fmt: skip


def test_lamb_of_a_parameter_at_zero_takes_a_step_of_its_own():
    got = run_op("lamb", BASE | {"Param": 0 * P, "Moment1": M, "Moment2": S} | POWERS, {"weight_decay": 0.0})
    assert np.isfinite(got["ParamOut"]).all() and (got["ParamOut"] != 0).any()


def test_ftrl_leaves_a_parameter_without_gradient_at_zero():
    nothing = {slot: np.zeros(2, "float32") for slot in ("Param", "Grad", "SquaredAccumulator", "LinearAccumulator")}
    got = run_op("ftrl", nothing | {"LearningRate": np.array([0.1], "float32")})
    assert got["ParamOut"].tolist() == [0, 0]


def test_lars_momentum_for_several_parameters():
    both = {"Param": [P, 2 * P], "Grad": [G, G], "Velocity": [M, M], "LearningRate": [RATE, RATE]}
    attrs = {"mu": 0.5, "lars_weight_decay": [0.25, 0.0]}
    got = run_op("lars_momentum", both, attrs, {"ParamOut": 2, "VelocityOut": 2})
    np.testing.assert_allclose(got["ParamOut"][0], lars(0.25)["ParamOut"])
    np.testing.assert_allclose(got["ParamOut"][1], 2 * P - lars(0.0)["VelocityOut"])


@pytest.mark.parametrize("op", ["adagrad", "decayed_adagrad", "lars_momentum"])
def test_a_gradient_of_another_shape(op):
    attrs = {"mu": 0.5} if op[0] == "l" else {}
    state = "Velocity" if op[0] == "l" else "Moment"
    with pytest.raises(RuleError, match="Param and Grad must have the same shape"):
        run_op(op, BASE | {"Grad": G[:2], state: S}, attrs)


def test_a_centered_rmsprop_needs_the_mean_gradient():
    with pytest.raises(RuleError, match=r"needs Input\(MeanGrad\)"):
        run_op("rmsprop", {k: v for k, v in SQUARES.items() if k != "MeanGrad"}, {"centered": True})


@pytest.mark.parametrize(("attrs", "moved"), [
    ({"weight_decay": 0.0}, 0.1), ({"weight_decay": 0.0, "always_adapt": True}, 0.1 * 2 ** -0.5 * 5),
])  # fmt: skip
def test_lamb_in_a_program_of_paddle_2_has_no_ratio_without_weight_decay(attrs, moved):
    one = np.ones(1)
    given = {
        "Param": np.array([3.0, 4.0]), "Grad": np.ones(2), "Moment1": np.zeros(2), "Moment2": np.zeros(2),
        "Beta1Pow": 0.9 * one, "Beta2Pow": 0.999 * one, "LearningRate": 0.1 * one,
    }
    program = Program()
    program.desc.pb.version.version = 2006002
    block = program.global_block()
    for name, value in given.items():
        block.create_var(name=name, shape=value.shape, dtype="float64")
    outs = {out: [name] for out, name in (
        ("ParamOut", "Param"), ("Moment1Out", "Moment1"), ("Moment2Out", "Moment2"),
    )}  # fmt: skip
    block.append_op(type="lamb", inputs={name: [name] for name in given}, outputs=outs, attrs=attrs)
    (got,) = Executor().run(program, feed=given, fetch_list=["Param"], scope=Scope())
    np.testing.assert_allclose(got, given["Param"] - moved, rtol=1e-5)


MOMENTS = {"Param": P, "Grad": G, "LearningRate": RATE, "Moment1": M, "Moment2": S, **POWERS}


@pytest.mark.parametrize(("name", "attrs"), [
    ("adam", {}), ("adamw", {"with_decay": True}), ("lamb", {"weight_decay": 0.1}),
])  # fmt: skip
def test_a_step_that_is_skipped_changes_nothing(name, attrs):
    got = run_op(name, {**MOMENTS, "SkipUpdate": np.array([True])}, attrs)
    for slot in ("Param", "Moment1", "Moment2", "Beta1Pow", "Beta2Pow"):
        np.testing.assert_array_equal(got[slot + "Out"], MOMENTS[slot])
    taken = run_op(name, {**MOMENTS, "SkipUpdate": np.array([False])}, attrs)
    np.testing.assert_array_equal(taken["ParamOut"], run_op(name, MOMENTS, attrs)["ParamOut"])


@pytest.mark.parametrize("name", ["adam", "adamw"])
def test_numbers_of_adam_that_come_as_variables(name):
    numbers = {"beta1": 0.5, "beta2": 0.75, "epsilon": 0.25}
    slots = {f"{attr.title()}Tensor": np.array([n]) for attr, n in numbers.items()}
    got, want = run_op(name, MOMENTS | slots), run_op(name, MOMENTS, numbers)
    for slot in want.keys() & got.keys():
        np.testing.assert_array_equal(got[slot], want[slot])


def test_adam_leaves_powers_that_another_operator_advances():
    got, want = run_op("adam", MOMENTS, {"use_global_beta_pow": True}), run_op("adam", MOMENTS)
    np.testing.assert_array_equal(got["ParamOut"], want["ParamOut"])
    np.testing.assert_array_equal(got["Beta1PowOut"], MOMENTS["Beta1Pow"])
    np.testing.assert_array_equal(got["Beta2PowOut"], MOMENTS["Beta2Pow"])
