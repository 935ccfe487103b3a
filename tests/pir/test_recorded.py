"""Models that Paddle 3.0, 3.2 and 3.3 exported open without Paddle, and give what Paddle computed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import fluidnb as fluid

GOLDEN = Path(__file__).parents[1] / "golden" / "pir"
MODELS = sorted(path.parent.relative_to(GOLDEN).as_posix() for path in GOLDEN.rglob("inference.json"))


def test_all_versions_are_there() -> None:
    assert {name.partition("/")[0] for name in MODELS} == {"3.0", "3.2", "3.3"}


@pytest.mark.parametrize("name", MODELS)
def test_a_recorded_model(name: str, tmp_path: Path) -> None:
    folder = GOLDEN / name
    model = fluid.open(str(folder))
    assert not model.unknown and not model.unconverted
    with np.load(folder / "feeds.npz") as feeds, np.load(folder / "outputs.npz") as outputs:
        feed, wanted = dict(feeds), [outputs[str(i)] for i in range(len(outputs.files))]
    found = model.run(feed)
    compare(found, wanted)
    assert [list(v.shape) for v in model.fetches] == [
        [d if d == n else -1 for d, n in zip(v.shape, a.shape, strict=True)]
        for v, a in zip(model.fetches, wanted, strict=True)
    ]
    program, parameters = model.save(str(tmp_path))
    again = fluid.open(program)
    compare(again.run(feed), found)
    if (folder / "inference.pdiparams").exists():
        assert Path(parameters).read_bytes() == (folder / "inference.pdiparams").read_bytes()


def compare(found: list[np.ndarray], wanted: list[np.ndarray]) -> None:
    """Compare results: shapes without axes count, too."""
    assert len(found) == len(wanted)
    for a, b in zip(found, wanted, strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        np.testing.assert_allclose(a, b, 1e-4, 1e-6)
