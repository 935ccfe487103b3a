"""Every recorded program of real Paddle: rewritten, it gives the same bits by both walkers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.passes.lint import lint
from fluidnb.testing.compare import assert_same
from tests.ops.goldens import cases
from tests.runtime.test_models import FOLDER, MODELS, arrays
from tests.tools.sampling import sample

CASES = {case.id: case for case in cases()}
HOW: dict[str, Any] = {
    "level 0": lambda program, keep: fluid.memory_optimize(program, keep, skip_grads=False),
    "level 1": lambda program, keep: fluid.memory_optimize(program, keep, level=1, skip_grads=False),
    "release": fluid.release_memory,
}
PLACE = fluid.CPUPlace()


@pytest.mark.parametrize("id", sample(list(CASES), 60))
def test_one_operator(id: str) -> None:
    case, names = CASES[id], [f["var"] for f in CASES[id].fetches]
    program = fluid.Program.parse_from_string(case.program)
    program.random_seed = 3
    wanted = run(program, case.feed(), names)
    for how, rewrite in HOW.items():
        other = program.clone()
        rewrite(other, names)
        for keep in (False, True):
            assert_same(wanted, run(other, case.feed(), names, keep), how)


def run(program: fluid.Program, feed: Any, names: list[str], keep: bool = False) -> dict[str, Any]:
    """The fetched values, by name."""
    exe = fluid.Executor(PLACE)
    got = exe.run(program, feed, names, scope=fluid.Scope(), return_numpy=False, keep_scopes=keep)
    return dict(zip(names, got, strict=True))


@pytest.mark.parametrize("name", MODELS)
def test_a_training_run(name: str) -> None:
    program = fluid.Program.parse_from_string((FOLDER / name / "main.pb").read_bytes())
    wanted = train(program, FOLDER / name)
    for rewrite in HOW.values():
        other = program.clone()
        rewrite(other, json.loads((FOLDER / name / "meta.json").read_text())["fetches"])
        assert any(op.type == "delete_var" for op in other.global_block().ops)
        assert lint(other) == lint(program)
        assert train(other, FOLDER / name) == train(other, FOLDER / name, True) == wanted


def train(program: fluid.Program, folder: Path, keep: bool = False) -> list[bytes]:
    """All that is fetched in three recorded steps, and all that the scope holds afterwards."""
    meta, feeds, scope = json.loads((folder / "meta.json").read_text()), arrays(folder / "feeds.npz"), fluid.Scope()
    for key, array in arrays(folder / "init_params.npz").items():
        scope.var(key).get_tensor().set(array, PLACE)
    exe, out = fluid.Executor(PLACE), []
    for step in range(3):
        feed = {}
        for key in meta["feeds"]:
            feed[key] = fluid.LoDTensor()
            feed[key].set(feeds[f"{step}/{key}"], PLACE)
            feed[key].set_lod(meta["feed_lod"][step].get(key, []))
        got = exe.run(program, feed, meta["fetches"], scope=scope, return_numpy=False, keep_scopes=keep)
        out += [np.array(v).tobytes() for v in got]
    return out + [np.array(scope.find_var(n).get_tensor()).tobytes() for n in sorted(scope.vars)]
