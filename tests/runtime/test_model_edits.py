"""Parts of an opened model, renamed variables, and named passes: each is another model with the same results."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.errors import NotFound, OpValueError
from fluidnb.passes.diff import diff
from fluidnb.runtime.opened_model import OpenedModel

PIR = Path(__file__).parents[1] / "golden" / "pir" / "3.3"
X = np.random.default_rng(0).random((2, 3, 6, 6), "float32")


@pytest.fixture
def model(tmp_path: Path) -> OpenedModel:
    """Convolutions with batch normalization, and arithmetic on a parameter."""
    x = fluid.layers.data("image", [3, 6, 6])
    h = fluid.layers.batch_norm(fluid.layers.conv2d(x, 4, 3, bias_attr=False), act="relu")
    h = fluid.layers.batch_norm(fluid.layers.conv2d(h, 4, 3))
    weight = fluid.layers.create_parameter([4], "float32")
    scale = fluid.layers.exp(fluid.layers.scale(weight, 2.0, 1.0))
    half = fluid.layers.fill_constant([1], "float32", 0.5)
    y = fluid.layers.elementwise_mul(h, fluid.layers.elementwise_add(scale, half), axis=1)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    for name, v in fluid.global_scope().vars.items():
        value = np.asarray(v.get_tensor())
        if name.startswith("batch_norm"):
            value[...] = np.random.default_rng(len(name)).uniform(0.5, 1.5, value.shape)
    fluid.io.save_inference_model(str(tmp_path), ["image"], [y], exe, None, "__model__", "__params__")
    return fluid.open(str(tmp_path))


def kinds(model: OpenedModel) -> list[str]:
    """Types of the operators."""
    return [op.type for op in model.program.global_block().ops if op.type not in ("feed", "fetch")]


def test_constants_become_parameters(model: OpenedModel, tmp_path: Path) -> None:
    wanted = model.run(X)[0]
    folded = model.apply("fold_constants")
    assert {"exp", "scale", "fill_constant"} <= set(kinds(model))
    assert kinds(folded) == [k for k in kinds(model) if k not in ("exp", "scale", "fill_constant")][:-2] + [
        "elementwise_mul"]  # fmt: skip
    np.testing.assert_array_equal(folded.run(X)[0], wanted)
    np.testing.assert_array_equal(model.run(X)[0], wanted)
    folded.save(str(tmp_path / "folded"), "programdesc")
    again = fluid.open(str(tmp_path / "folded"))
    np.testing.assert_array_equal(again.run(X)[0], wanted)
    assert len(again.parameters) == len(model.parameters), "the result instead of what it came from"


def test_batch_norm_becomes_part_of_convolutions(model: OpenedModel, tmp_path: Path) -> None:
    wanted = model.run(X)[0]
    folded = model.apply("fold_batch_norm")
    assert kinds(model).count("batch_norm") == 2 and "batch_norm" not in kinds(folded)
    np.testing.assert_allclose(folded.run(X)[0], wanted, 1e-4, 1e-5)
    marks = [line for mark, line in diff(model.program, folded.program).rows() if mark == "-"]
    assert sum("batch_norm(" in line for line in marks) == 2
    assert not any("batch_norm" in v.name and "fuse" not in v.name for v in folded.parameters)
    both = model.apply("fold_constants", "fold_batch_norm")
    both.save(str(tmp_path / "both"))
    np.testing.assert_allclose(fluid.open(str(tmp_path / "both")).run(X)[0], wanted, 1e-4, 1e-5)
    with pytest.raises(OpValueError, match="no pass fold_batchnorm") as caught:
        model.apply("fold_batchnorm")
    assert "fold_batch_norm" in str(caught.value.hint)


def test_what_changes_is_not_constant(tmp_path: Path) -> None:
    """A counter that a loop writes, and random numbers."""
    branches = fluid.open(str(PIR / "branches"))
    feed = {"x": np.ones((2, 4), "float32")}
    for a, b in zip(branches.run(feed), branches.apply("fold_constants").run(feed), strict=True):
        np.testing.assert_array_equal(a, b)
    x = fluid.layers.data("x", [3])
    noise = fluid.layers.scale(fluid.layers.gaussian_random([1, 3]), 2.0)
    y = fluid.layers.elementwise_add(x, noise)
    fluid.io.save_inference_model(str(tmp_path), ["x"], [y], fluid.Executor())
    assert "gaussian_random" in kinds(fluid.open(str(tmp_path)).apply("fold_constants"))


@pytest.mark.parametrize("name", ["branches", "detector", "simple_rnn", "tensor_functions", "zero_d"])
def test_passes_leave_the_results_of_exported_models(name: str) -> None:
    model = fluid.open(str(PIR / name))
    with np.load(PIR / name / "feeds.npz") as feeds:
        feed = {v.name: feeds[v.name] for v in model.feeds}
    for a, b in zip(model.run(feed), model.apply("fold_constants", "fold_batch_norm").run(feed), strict=True):
        np.testing.assert_allclose(a, b, 1e-5, 1e-6)


def test_a_part_between_variables(model: OpenedModel, tmp_path: Path) -> None:
    names = model.computed()
    relu = [n for n in names if "batch_norm_0" in n][-1]
    first, rest = model.extract([relu]), model.extract([model.fetches[0].name], [relu])
    middle = first.run(X)[0]
    np.testing.assert_array_equal(rest.run({relu: middle})[0], model.run(X)[0])
    assert len(first.parameters) + len(rest.parameters) == len(model.parameters)
    assert [v.name for v in first.feeds] == ["image"] and [v.name for v in rest.feeds] == [relu]
    rest.save(str(tmp_path / "rest"))
    again = fluid.open(str(tmp_path / "rest"))
    assert [v.name for v in again.feeds] == [relu]
    np.testing.assert_array_equal(again.run(middle)[0], model.run(X)[0])
    both = model.extract([relu, model.fetches[0].name])
    assert [a.shape for a in both.run(X)] == [(2, 4, 4, 4), (2, 4, 2, 2)]
    with pytest.raises(OpValueError, match="cannot be computed from nothing: it also needs image"):
        model.extract([relu], [])
    with pytest.raises(NotFound, match='no variable "relu_9"'):
        model.extract(["relu_9"])


def test_other_names(model: OpenedModel, tmp_path: Path) -> None:
    filter_name = next(v.name for v in model.parameters if "conv2d_0.w" in v.name)
    other = model.rename({"image": "photo", model.fetches[0].name: "logits", filter_name: "stem.weight"})
    np.testing.assert_array_equal(other.run({"photo": X})[0], model.run(X)[0])
    other.save(str(tmp_path / "other"))
    again = fluid.open(str(tmp_path / "other"))
    assert [v.name for v in (*again.feeds, *again.fetches)] == ["photo", "logits"]
    assert "stem.weight" in {v.name for v in again.parameters}
    np.testing.assert_array_equal(again.run(X)[0], model.run(X)[0])
    with pytest.raises(NotFound, match='no variable "imag"'):
        model.rename({"imag": "x"})
    with pytest.raises(OpValueError, match="has a variable"):
        model.rename({"image": filter_name})


def test_training_of_an_edited_model(model: OpenedModel) -> None:
    """Parameters of a derived model are those of the first."""
    part = model.rename({"image": "photo"})
    before = model.run(X)[0]
    for v in part.parameters:
        np.asarray(part.scope.var(v.name).get_tensor())[...] *= 0.5
    assert np.abs(model.run(X)[0] - before).max() > 1e-3
