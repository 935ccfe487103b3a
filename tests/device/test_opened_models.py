"""Models that Paddle exported run on a device with the results that Paddle had: ten of them, recorded and live."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import fluidnb as fluid
from tests.paddle.harness import in_paddle, load, require_paddle

RECORDED = Path(__file__).parents[1] / "golden" / "pir"
MODELS = sorted(path.parent for path in RECORDED.glob("3.3/*/inference.json")) + [RECORDED / "3.0" / "lstm_recogniser"]


def agrees(folder: Path, place: fluid.CUDAPlace) -> None:
    """Run a model on a device, and compare with the results in its folder."""
    feeds, wanted = load(folder / "feeds.npz"), load(folder / "outputs.npz")
    model = fluid.open(str(folder), place=place)
    found = model.run({v.name: feeds[v.name] for v in model.feeds})
    assert len(found) == len(wanted)
    for i, value in enumerate(found):
        expected = wanted[str(i)]
        assert (value.shape, value.dtype) == (expected.shape, expected.dtype)
        np.testing.assert_allclose(value, expected, 0, 1e-4 * max(float(np.abs(expected).max(initial=0)), 1e-30))


@pytest.mark.parametrize("folder", MODELS, ids=lambda path: path.name)
def test_a_recorded_model(folder: Path, cuda: fluid.CUDAPlace) -> None:
    agrees(folder, cuda)


@pytest.mark.paddle
@pytest.mark.parametrize(("version", "name"), [("3.3.1", "lenet"), ("2.6.2", "unet"), ("3.3.1", "transformer_encoder")])
def test_a_live_model(version: str, name: str, cuda: fluid.CUDAPlace, tmp_path: Path) -> None:
    require_paddle(version)
    in_paddle("paddle_export", tmp_path, name, version=version)
    agrees(tmp_path / name, cuda)


def test_there_are_ten() -> None:
    assert len({path.name for path in MODELS}) + 3 == 10
