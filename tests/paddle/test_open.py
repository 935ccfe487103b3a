"""Models that real Paddle 2.6.2 and 3.3.1 export open here and agree; converted, both Paddles run them and agree."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

import fluidnb as fluid
from fluidnb.errors import NotBuiltYet
from tests.paddle.harness import PYTHONS, in_paddle, load, require_paddle

pytestmark = pytest.mark.paddle

EXPORT = Path(__file__).with_name("paddle_export.py")
#: The models of paddle_export.py, which cannot be imported here.
MODELS = [
    node.name
    for node in ast.parse(EXPORT.read_text()).body
    if isinstance(node, ast.FunctionDef) and any(getattr(d, "id", "") == "model" for d in node.decorator_list)
]
#: Paddle 3.3.1's own executors disagree on int8: one leaves both operators out. 2.6.2 gives what the formula gives.
BY_FORMULA = {("3.3.1", "quantized_linear")}

#: Models with operators that ONNX does not have, or that are not written.
WITHOUT_ONNX = {"matrix_detector": "matrix_nms"}
#: Models with operators of later sets.
OPSETS = {"deformable": 19}


def outputs(folder: Path, prefix: Path, version: str) -> list[np.ndarray]:
    """Results of a Paddle for a saved model and the feeds of a folder."""
    in_paddle("paddle_export", folder, "--run", str(prefix), version=version)
    found = load(folder / "again.npz")
    return [found[str(i)] for i in range(len(found))]


def compare(found: list[np.ndarray], wanted: list[np.ndarray], tolerance: float) -> None:
    """Compare results, the largest difference beside the largest number of each."""
    assert len(found) == len(wanted)
    for a, b in zip(found, wanted, strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        np.testing.assert_allclose(a, b, 0, tolerance * max(float(np.abs(b).max(initial=0)), 1e-30))


def check_onnx(model: Any, path: Path, feeds: list[np.ndarray], wanted: list[np.ndarray]) -> None:
    """Write a model as ONNX: the checker accepts it, onnxruntime agrees, and so does the file opened again."""
    if path.parent.name in WITHOUT_ONNX:
        with pytest.raises(NotBuiltYet, match=WITHOUT_ONNX[path.parent.name]):
            model.save(str(path.parent), to="onnx", name=path.stem)
        return
    opset = OPSETS.get(path.parent.name, 17)
    (file,) = model.save(str(path.parent), to="onnx", name=path.stem, opset=opset)
    onnx.checker.check_model(file, full_check=True)
    named = {v.name: feed for v, feed in zip(model.feeds, feeds, strict=True)}
    session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
    compare(session.run(None, named), wanted, 1e-4)
    compare(fluid.open(file).run(named), wanted, 1e-4)


def test_there_are_enough_models() -> None:
    assert len(MODELS) >= 24


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("version", PYTHONS)
def test_an_exported_model(version: str, name: str, tmp_path: Path) -> None:
    require_paddle(*PYTHONS)
    done: dict[str, Any] = json.loads(in_paddle("paddle_export", tmp_path, name, version=version).splitlines()[-1])
    assert done["paddle"] == version and isinstance(done[name], list), done[name]
    folder = tmp_path / name
    feeds, wanted = load(folder / "feeds.npz"), load(folder / "outputs.npz")
    expected = [wanted[str(i)] for i in range(len(wanted))]
    model = fluid.open(str(folder))
    assert not model.unknown and not model.unconverted
    found = model.run({v.name: feeds[v.name] for v in model.feeds})
    if (version, name) not in BY_FORMULA:
        compare(found, expected, 1e-4)
    check_onnx(model, folder / "model.onnx", [feeds[v.name] for v in model.feeds], found)
    saved = tmp_path / "converted" / "inference"
    model.save(str(saved.parent))
    parameters = folder / "inference.pdiparams"
    if parameters.exists():
        assert saved.with_suffix(".pdiparams").read_bytes() == parameters.read_bytes()
    for other in PYTHONS:
        if (other, name) not in BY_FORMULA:
            compare(outputs(folder, saved, other), found if (version, name) in BY_FORMULA else expected, 1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["lenet", "unet"])
@pytest.mark.parametrize("version", PYTHONS)
def test_a_model_that_was_trained_further(version: str, name: str, tmp_path: Path) -> None:
    """All parameters learn, batch_norm in training mode; both Paddles run what is saved."""
    require_paddle(*PYTHONS)
    in_paddle("paddle_export", tmp_path, name, version=version)
    folder = tmp_path / name
    model, feeds, startup = fluid.open(str(folder)), load(folder / "feeds.npz"), fluid.Program()
    before = model.run(feeds)[0]
    with fluid.program_guard(model.training_program(batch_norm=True), startup), fluid.scope_guard(model.scope):
        program = fluid.default_main_program()
        loss = fluid.layers.mean(fluid.layers.square(program.global_block().var(model.fetches[0].name)))
        fluid.optimizer.SGD(0.01).minimize(loss, startup, program.all_parameters())
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(startup)
        losses = [exe.run(program, feed=feeds, fetch_list=[loss])[0].item() for _ in range(4)]
    after = model.run(feeds)
    assert losses[-1] < losses[0] and np.abs(after[0] - before).max() > 1e-3
    model.save(str(tmp_path / "trained"))
    for other in PYTHONS:
        compare(outputs(folder, tmp_path / "trained" / "inference", other), after, 1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("version", PYTHONS)
def test_a_model_that_was_edited(version: str, tmp_path: Path) -> None:
    """Constants and batch_norm folded, a part cut out, variables renamed: both Paddles run it."""
    require_paddle(*PYTHONS)
    in_paddle("paddle_export", tmp_path, "mobilenet_v2", version=version)
    folder = tmp_path / "mobilenet_v2"
    model, feeds = fluid.open(str(folder)), load(folder / "feeds.npz")
    inner = [op for op in model.program.global_block().ops if op.type == "relu6"][-1].output("Out")[0]
    part = model.extract([inner, model.fetches[0].name]).apply("fold_constants", "fold_batch_norm")
    assert "batch_norm" not in {op.type for op in part.program.global_block().ops}
    expected = model.run(feeds, [inner, model.fetches[0]])
    part.rename({inner: "features"}).save(str(tmp_path / "edited"))
    for other in PYTHONS:
        compare(outputs(folder, tmp_path / "edited" / "inference", other), expected, 1e-4)
