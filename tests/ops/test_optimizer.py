"""Updates of parameters."""

import numpy as np
import pytest

from fluidnb.op import RuleError
from fluidnb.testing import run_op
from tests.ops.cases import Forward, family, values

P, G, V, S = values(3, 2, seed=1), values(3, 2, seed=2), values(3, 2, seed=3), values(3, 2, low=0.1, seed=4)
RATE = np.array([0.1])
B1, B2, EPS, MU = (float(np.float32(x)) for x in (0.9, 0.999, 1e-8, 0.9))
MOVING = {"Param": P, "Grad": G, "Velocity": V, "LearningRate": RATE}
V1 = MU * V + G
DECAYED = G + float(np.float32(0.01)) * P
V2 = MU * V + DECAYED


def adam(step=3):
    p1, p2 = np.array([B1**step]), np.array([B2**step])
    m, v = B1 * V + (1 - B1) * G, B2 * S + (1 - B2) * G * G
    root = np.sqrt(1 - p2)
    p = P - 0.1 * root / (1 - p1) * m / (np.sqrt(v) + EPS * root)
    inputs = {
        "Param": P, "Grad": G, "LearningRate": RATE, "Moment1": V, "Moment2": S, "Beta1Pow": p1, "Beta2Pow": p2,
    }  # fmt: skip
    return inputs, {"ParamOut": p, "Moment1Out": m, "Moment2Out": v}, {"Beta1PowOut": p1 * B1, "Beta2PowOut": p2 * B2}


INPUTS, UPDATED, POWERS = adam()
family(
    globals(),
    Forward,
    {
        "sgd": {
            "inputs": {"Param": P, "Grad": G, "LearningRate": RATE}, "outputs": {"ParamOut": P - 0.1 * G},
        },
        "momentum": {
            "inputs": MOVING, "attrs": {"mu": 0.9}, "outputs": {"VelocityOut": V1, "ParamOut": P - 0.1 * V1},
        },
        "momentum/nesterov": {
            "inputs": MOVING, "attrs": {"mu": 0.9, "use_nesterov": True},
            "outputs": {"VelocityOut": V1, "ParamOut": P - 0.1 * (G + MU * V1)},
        },
        "momentum/decay": {
            "inputs": MOVING,
            "attrs": {"mu": 0.9, "regularization_method": "l2_decay", "regularization_coeff": 0.01},
            "outputs": {"VelocityOut": V2, "ParamOut": P - 0.1 * V2},
        },
        "momentum/rescaled": {
            "inputs": MOVING | {"Grad": 2 * G}, "attrs": {"mu": 0.9, "rescale_grad": 0.5},
            "outputs": {"VelocityOut": V1, "ParamOut": P - 0.1 * V1},
        },
        "adam": {"inputs": INPUTS, "outputs": UPDATED | POWERS},
        "adam/old": {"inputs": INPUTS, "outputs": UPDATED},
    },
)  # fmt: skip


def test_a_gradient_of_another_shape():
    for op, more in (("sgd", {}), ("momentum", {"Velocity": P})):
        attrs = {"mu": 0.9} if op == "momentum" else {}
        with pytest.raises(RuleError, match="Param and Grad must have the same shape"):
            run_op(op, {"Param": P, "Grad": G[:2], "LearningRate": RATE, **more}, attrs)
        with pytest.raises(RuleError, match=r"must have the shape \[1\]"):
            run_op(op, {"Param": P, "Grad": G, "LearningRate": np.ones(2), **more}, attrs)
