"""Recorded training runs of real Paddle: the same losses and parameters, and both walkers give the same bits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluidnb as fluid

FOLDER = Path(__file__).parents[1] / "golden" / "models"
MODELS = sorted(path.parent.name for path in FOLDER.glob("*/meta.json"))

Arrays = dict[str, Any]


def arrays(path: Path) -> Arrays:
    """The arrays of a file, by name."""
    with np.load(path) as file:
        return dict(file)


def train(name: str, keep_scopes: bool, place: Any = None) -> tuple[list[list[bytes]], Arrays, list[list[float]]]:
    """Make the recorded steps, by default on the host.

    Returns:
        The bytes fetched in each, the parameters in the end, the first numbers fetched.
    """
    folder = FOLDER / name
    meta, feeds = json.loads((folder / "meta.json").read_text()), arrays(folder / "feeds.npz")
    program = fluid.Program.parse_from_string((folder / "main.pb").read_bytes())
    place = place or fluid.CPUPlace()
    scope, exe = fluid.Scope(), fluid.Executor(place)
    start = arrays(folder / "init_params.npz")
    for key, array in start.items():
        scope.var(key).get_tensor().set(array, place)
    seen, firsts = [], []
    for step in range(meta["steps"]):
        feed = {}
        for key in meta["feeds"]:
            feed[key] = fluid.LoDTensor()
            feed[key].set(feeds[f"{step}/{key}"], place)
            feed[key].set_lod(meta["feed_lod"][step].get(key, []))
        got = exe.run(program, feed, meta["fetches"], scope=scope, return_numpy=False, keep_scopes=keep_scopes)
        seen.append([np.array(v).tobytes() for v in got])
        firsts.append([float(np.array(v).ravel()[0]) for v in got])
    return seen, {key: np.array(scope.find_var(key).get_tensor()) for key in start}, firsts


def compare(name: str, place: Any) -> None:
    """Train a model by both walkers on a place, and assert that it is like the recorded one."""
    replayed, after, firsts = train(name, False, place)
    walked, walked_after, _ = train(name, True, place)
    assert replayed == walked
    assert {k: a.tobytes() for k, a in after.items()} == {k: a.tobytes() for k, a in walked_after.items()}
    np.testing.assert_allclose(firsts, json.loads((FOLDER / name / "meta.json").read_text())["values"], 2e-3, 2e-3)
    for key, want in arrays(FOLDER / name / "final_params.npz").items():
        np.testing.assert_allclose(after[key].ravel(), want.ravel(), 2e-2, 2e-3, err_msg=key)


@pytest.mark.parametrize("name", MODELS)
def test_like_paddle_and_the_same_bits_by_both_walkers(name: str) -> None:
    compare(name, fluid.CPUPlace())


def test_there_are_enough() -> None:
    assert len(MODELS) >= 15
