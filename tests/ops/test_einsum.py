"""einsum beside numpy's, with its gradients, and the equations that it refuses."""

from __future__ import annotations

import numpy as np
import pytest

from fluidnb.op import RuleError
from fluidnb.testing import run_op
from tests.ops.cases import Differentiable, family, values

A, B, CUBE, SQUARE = values(2, 3), values(3, 4, seed=1), values(2, 3, 4, seed=2), values(3, 3, seed=3)

EQUATIONS = {
    "einsum": ("ij,jk->ik", [A, B]),
    "einsum/batch": ("bij,bkj->bik", [CUBE, CUBE[:, ::-1].copy()]),
    "einsum/sum": ("ij->j", [A]),
    "einsum/lacking": ("ij,kl->ik", [A, B]),
    "einsum/diagonal": ("ii->i", [SQUARE]),
    "einsum/trace_times": ("ii,ij->j", [SQUARE, B]),
    "einsum/three": ("ij,jk,k->i", [A, B, values(4)]),
    "einsum/rest": ("...ij,...jk->...ik", [CUBE, CUBE.transpose(0, 2, 1).copy()]),
    "einsum/rest_of_one": ("...ij,jk->...ik", [CUBE, values(CUBE.shape[2], 2)]),
    "einsum/rest_repeated": ("...ij,...j->i...", [CUBE[:1], values(3, CUBE.shape[2])]),
    "einsum/transposed": ("abc->cab", [CUBE]),
}
family(
    globals(),
    Differentiable,
    {
        name: {
            "inputs": {"Operands": operands}, "attrs": {"equation": equation},
            "outputs": {"Out": np.einsum(equation, *operands)},
        }
        for name, (equation, operands) in EQUATIONS.items()
    },
)  # fmt: skip


def test_a_number() -> None:
    assert run_op("einsum", {"Operands": [A, A]}, {"equation": "ij,ij->"})["Out"] == pytest.approx((A * A).sum())


@pytest.mark.parametrize(
    ("equation", "message"),
    [
        ("ij,jk", "must name axes by letters"),
        ("...j,jk->...k...", "must name axes by letters"),
        ("ijk,jk->i", "a letter for each axis"),
        ("ij->i", "a letter for each axis"),
        ("ij,jk->ii", "each once"),
        ("ij,jk->il", "must name axes of operands"),
        ("ij,ik->jk", "must have one size"),
    ],
)
def test_equations_that_are_refused(equation: str, message: str) -> None:
    with pytest.raises(RuleError, match=message):
        run_op("einsum", {"Operands": [A, B]}, {"equation": equation})
