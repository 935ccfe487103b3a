"""Operands of gradient operators are checked by the rule of the forward operator, also of one that a user defines."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from fluidnb.op import Binder, Context, RuleError, default_grad, grad_op, op, remove_op
from fluidnb.testing import run_op

X = np.ones((2, 3))


def _like_either(c: Context) -> None:
    c.require(c.has("Y") or c.has("Z"), "either Y or Z must be given.")
    c.require(c["X"].ndim == 2, "X must be a matrix.")
    c.set("Out", c["X"].shape, c["X"].dtype)


@pytest.fixture(autouse=True)
def own_operator() -> Iterator[None]:
    """An operator whose rule needs what its gradient operator does not have."""

    @op("test_either", inputs={"X": "", "Y?": "", "Z?": ""}, outputs={"Out": ""}, infer=_like_either,
        grad=default_grad("X", "Out@GRAD", wrt=["X"]))  # fmt: skip
    def either(b: Binder) -> None:
        b(np.copyto, b["Out"], b["X"])

    @grad_op("test_either_grad")
    def either_grad(b: Binder) -> None:
        b(np.copyto, b["X@GRAD"], b["Out@GRAD"])

    yield
    remove_op("test_either")
    remove_op("test_either_grad")


def test_a_rule_that_needs_another_input_is_passed_over() -> None:
    assert run_op("test_either_grad", {"X": X, "Out@GRAD": 2 * X}, {}, ["X@GRAD"])["X@GRAD"].sum() == 12


def test_a_rule_that_has_all_inputs_refuses() -> None:
    with pytest.raises(RuleError, match="X must be a matrix"):
        run_op("test_either_grad", {"X": X[0], "Y": X, "Z": X, "Out@GRAD": X[0]}, {}, ["X@GRAD"])


def test_a_gradient_of_another_size_is_refused_where_the_rule_can_run() -> None:
    with pytest.raises(RuleError, match="Out@GRAD"):
        run_op("test_either_grad", {"X": X, "Y": X, "Out@GRAD": X[:1]}, {}, ["X@GRAD"])
