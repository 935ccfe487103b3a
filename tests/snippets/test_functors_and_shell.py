"""The developer guide's functor (S1.15), and its shell commands (S1.16)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb import cli, op

ROOT = Path(__file__).parents[2]


class CrossEntropyFunctor:
    """A function of several kernels, on any device whose arrays are numpy's or like them.

    Args:
        xp: the module of the device's arrays.
    """

    def __init__(self, xp: Any) -> None:
        self.xp = xp

    def __call__(self, out: Any, prob: Any, labels: Any, soft_label: bool) -> None:
        """Write -log of the probability of each row's label, or of the mean label."""
        log = self.xp.log(prob)
        if soft_label:
            self.xp.negative((labels * log).sum(axis=1, keepdims=True), out=out)
        else:
            self.xp.negative(self.xp.take_along_axis(log, labels, axis=1), out=out)


def test_s1_15_a_functor_serves_two_kernels() -> None:
    functor = CrossEntropyFunctor(np)

    @op.op(
        "s1_15_hard", inputs={"X": "probabilities", "Label": "a class for each row"}, outputs={"Y": "the loss"},
        infer=lambda c: c.set("Y", (c["X"].shape[0], 1), c["X"].dtype),
    )  # fmt: skip
    def hard(b: op.Binder) -> None:
        b(functor, b["Y"], b["X"], b["Label"], False)

    @op.op(
        "s1_15_soft", inputs={"X": "probabilities", "Label": "their targets"}, outputs={"Y": "the loss"},
        infer=lambda c: c.set("Y", (c["X"].shape[0], 1), c["X"].dtype),
    )  # fmt: skip
    def soft(b: op.Binder) -> None:
        b(functor, b["Y"], b["X"], b["Label"], True)

    try:
        x = fluid.layers.data("x", shape=[3])
        label = fluid.layers.data("label", shape=[1], dtype="int64")
        targets = fluid.layers.data("targets", shape=[3])
        block, losses = fluid.default_main_program().global_block(), []
        for kind, given in (("s1_15_hard", label), ("s1_15_soft", targets)):
            losses.append(block.create_var(name=kind, dtype="float32"))
            block.append_op(type=kind, inputs={"X": x, "Label": given}, outputs={"Y": losses[-1]})
        losses += [fluid.layers.cross_entropy(x, label), fluid.layers.cross_entropy(x, targets, soft_label=True)]
        prob = np.array([[0.2, 0.3, 0.5], [0.6, 0.3, 0.1]], "float32")
        feed = {"x": prob, "label": np.array([[2], [0]]), "targets": np.array([[0.5, 0.5, 0], [0, 0, 1]], "float32")}
        mine_hard, mine_soft, *ours = fluid.Executor(fluid.CPUPlace()).run(feed=feed, fetch_list=losses)
    finally:
        op.remove_op("s1_15_hard")
        op.remove_op("s1_15_soft")
    np.testing.assert_allclose(mine_hard, ours[0], rtol=1e-6)
    np.testing.assert_allclose(mine_soft, ours[1], rtol=1e-6)


def test_s1_16_one_operators_tests_by_name(capfd: pytest.CaptureFixture[str]) -> None:
    # one file is named on top, so that only it is collected
    assert cli.main(["test", "-R", "test_mul_op", "-V", "tests/ops/test_mul_op.py"]) == 0
    said = capfd.readouterr().out
    assert "TestMulOp::test_check_output PASSED" in said and "3 passed" in said


def test_s1_16_the_other_commands_have_equivalents() -> None:
    makefile, contributing = (ROOT / "Makefile").read_text(), (ROOT / "CONTRIBUTING.md").read_text()
    assert all(f"\n{target}:" in makefile for target in ("test", "test-full", "lint", "demo"))
    assert "pip install pre-commit && pre-commit install" in contributing
    assert (ROOT / ".pre-commit-config.yaml").exists()
