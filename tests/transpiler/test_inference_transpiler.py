"""InferenceTranspiler: fewer operators, the same predictions, and the training program is left alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.errors import EnforceNotMet, OpTypeError
from fluidnb.passes.lint import lint
from tests.transpiler.models import CPU, L

EXE = fluid.Executor(CPU)
IMAGES = np.random.default_rng(0).standard_normal((4, 3, 8, 8)).astype("float32")


def trained(**options: Any) -> tuple[Any, fluid.Program]:
    """A small network after some steps, so that its running moments are those of data: prediction and test program."""
    x = L.data("x", [3, 8, 8])
    h = L.batch_norm(L.conv2d(x, 4, 3, padding=1, **options), act="relu")
    h = L.batch_norm(L.conv2d(h, 4, 3, groups=2, **options), epsilon=5e-4)
    guess = L.fc(h, 2)
    test = fluid.default_main_program().clone(for_test=True)
    fluid.optimizer.SGD(0.05).minimize(L.mean(L.square(guess)))
    EXE.run(fluid.default_startup_program())
    for _ in range(5):
        EXE.run(feed={"x": IMAGES})
    return guess, test


def predicted(program: fluid.Program, guess: Any) -> np.ndarray:
    """The prediction of a program."""
    return EXE.run(program, feed={"x": IMAGES}, fetch_list=[guess.name])[0]


@pytest.mark.parametrize("options", [{}, {"bias_attr": False}], ids=["bias", "no bias"])
def test_the_same_predictions_with_fewer_operators(options: Any, tmp_path: Path) -> None:
    guess, test = trained(**options)
    before, held = predicted(test, guess), fluid.global_scope().local_var_names()
    values = {n: np.array(fluid.global_scope().find_var(n).get_tensor()).tobytes() for n in held}
    training = fluid.default_main_program().desc.serialize_to_string()
    fluid.transpiler.InferenceTranspiler().transpile(test, CPU)
    types = [op.type for op in test.global_block().ops]
    assert "batch_norm" not in types and types.count("elementwise_add") == 3 and lint(test) == []
    np.testing.assert_allclose(predicted(test, guess), before, rtol=2e-5, atol=2e-6)
    assert {n: np.array(fluid.global_scope().find_var(n).get_tensor()).tobytes() for n in held} == values
    assert fluid.default_main_program().desc.serialize_to_string() == training
    made = set(fluid.global_scope().local_var_names()) - set(held)
    assert len(made) == 4 and all(name.endswith("_fuse_bn") for name in made)
    fluid.io.save_inference_model(str(tmp_path), ["x"], [guess], EXE, test)
    saved = {p.name for p in tmp_path.iterdir()}
    assert made <= saved and not any(name.endswith((".w_1", ".w_2")) for name in saved)  # no running moments
    with fluid.scope_guard(fluid.Scope()):
        program, _, targets = fluid.io.load_inference_model(str(tmp_path), EXE)
        np.testing.assert_allclose(predicted(program, targets[0]), before, rtol=2e-5, atol=2e-6)


def test_a_filter_that_two_convolutions_share_is_folded_twice() -> None:
    x, shared = L.data("x", [3, 8, 8]), fluid.ParamAttr(name="filter")
    a, b = (L.batch_norm(L.conv2d(v, 3, 3, param_attr=shared, bias_attr=False)) for v in (x, L.scale(x, scale=2.0)))
    guess = L.elementwise_add(a, b)
    EXE.run(fluid.default_startup_program())
    EXE.run(feed={"x": IMAGES})
    test = fluid.default_main_program().clone(for_test=True)
    before = predicted(test, guess)
    fluid.transpiler.InferenceTranspiler().transpile(test)
    assert {op.input("Filter")[0] for op in test.global_block().ops if op.type == "conv2d"} == {
        "filter_fuse_bn", "filter_fuse_bn_1"
    }  # fmt: skip
    np.testing.assert_allclose(predicted(test, guess), before, rtol=2e-5, atol=2e-6)


def test_what_cannot_be_folded_stays() -> None:
    x = L.data("x", [3, 8, 8])
    seen = L.conv2d(x, 4, 3, bias_attr=False)
    parts = [
        L.batch_norm(seen), L.relu(seen),  # two read it
        L.batch_norm(L.relu(L.conv2d(x, 4, 3))),
        L.batch_norm(L.conv2d_transpose(seen, 4, filter_size=1)),
        L.batch_norm(L.elementwise_add(L.conv2d(x, 4, 3), L.relu(seen))),
        L.batch_norm(L.conv2d(x, 4, 3, param_attr=fluid.WeightNormParamAttr(dim=0), bias_attr=False)),
    ]  # fmt: skip
    assert len(parts) == 6
    EXE.run(fluid.default_startup_program())
    test = fluid.default_main_program().clone(for_test=True)
    for program in (test, fluid.default_main_program()):
        before = program.desc.serialize_to_string()
        fluid.transpiler.InferenceTranspiler().transpile(program, CPU)
        assert program.desc.serialize_to_string() == before


def test_what_is_refused_changes_nothing() -> None:
    guess, test = trained()
    before = test.desc.serialize_to_string()
    transpile = fluid.transpiler.InferenceTranspiler().transpile
    with pytest.raises(OpTypeError, match="program of InferenceTranspiler.transpile must be a Program"):
        transpile(test.desc, CPU)  # type: ignore[arg-type]
    with pytest.raises(OpTypeError, match="place of InferenceTranspiler.transpile must be a Place"):
        transpile(test, "cpu")  # type: ignore[arg-type]
    with pytest.raises(OpTypeError, match="scope should be as Scope type or None"):
        transpile(test, CPU, "scope")
    empty = fluid.Scope()
    with pytest.raises(EnforceNotMet, match="has no value in the scope"):
        transpile(test, CPU, empty)
    assert test.desc.serialize_to_string() == before and not empty.vars
    assert np.isfinite(predicted(test, guess)).all()
