"""Networks of torch open, and agree with onnxruntime; written again as ONNX, they still do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

import fluidnb as fluid
from tests.onnx.weights import NAMES, feeds, filled


def by_runtime(path: Path, given: dict[str, Any]) -> list[Any]:
    """The results of onnxruntime."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return list(session.run(None, given))


def check(got: list[Any], wanted: list[Any]) -> None:
    """Compares results."""
    for mine, theirs in zip(got, wanted, strict=True):
        assert mine.shape == theirs.shape and mine.dtype == theirs.dtype
        np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-4 * max(1e-3, np.abs(theirs).max(initial=0)))


@pytest.mark.parametrize("name", NAMES)
def test_a_network_of_torch_agrees_with_onnxruntime(name: str, tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(filled(name), path)
    given = feeds(name, onnx.load(path))
    model = fluid.open(str(path))
    assert not model.unconverted
    wanted = by_runtime(path, given)
    check(model.run(given), wanted)
    (again,) = model.save(str(tmp_path), to="onnx", name="again", opset=18)
    check(by_runtime(Path(again), given), wanted)


@pytest.mark.parametrize("name", ["resnet.any", "encoder.any", "lstm.old", "branches.old", "until.old", "yolo.new"])
@pytest.mark.parametrize("opset", [13, 16, 20, onnx.defs.onnx_opset_version() - 1])
def test_every_opset_is_written(name: str, opset: int, tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(filled(name), path)
    given = feeds(name, onnx.load(path))
    (again,) = fluid.open(str(path)).save(str(tmp_path), to="onnx", name="again", opset=opset)
    assert onnx.load(again).opset_import[0].version == opset
    onnx.checker.check_model(again, full_check=True)
    check(by_runtime(Path(again), given), by_runtime(path, given))


def test_names_and_layers_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(filled("resnet.new"), path)
    model = fluid.open(str(path))
    assert [v.name for v in model.feeds] == ["in0"] and "stem.0.weight" in [v.name for v in model.parameters]
    scopes = [op.attr("op_namescope") for op in model.program.global_block().ops if op.type == "conv2d"]
    assert scopes[0].startswith("/stem/")
    (again,) = model.save(str(tmp_path), to="onnx", name="again")
    nodes = [node for node in onnx.load(again).graph.node if node.op_type == "Conv"]
    assert nodes[0].name.startswith(scopes[0]) and nodes[0].input[1] == "stem.0.weight"
    assert {entry.key: entry.value for entry in nodes[0].metadata_props} == {"pkg.fluidnb.scope": scopes[0]}
