"""Files both ways: what fluidnb saves, real Paddle loads; what Paddle saves, fluidnb loads and writes byte for byte."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from tests.paddle import harness
from tests.paddle.harness import Arrays, require_paddle

pytestmark = pytest.mark.paddle


def in_paddle(folder: Path) -> Arrays:
    """Run paddle_files.py over a folder; what it saw."""
    harness.in_paddle("paddle_files", folder)
    with np.load(folder / "paddle.npz") as file:
        return {k.replace("|", "/"): file[k] for k in file.files}


def held() -> Arrays:
    """The values of the global scope."""
    return {n: np.array(v.get_tensor()) for n, v in fluid.global_scope().vars.items()}


def test_paddles_files_here(tmp_path: Path) -> None:
    require_paddle()
    np.save(tmp_path / "x.npy", np.random.default_rng(0).random((5, 3), "float32"))
    seen = in_paddle(tmp_path)
    names = json.loads((tmp_path / "names.json").read_text())
    exe = fluid.Executor(fluid.CPUPlace())
    main = fluid.Program.parse_from_string((tmp_path / "main.pb").read_bytes())
    for folder, filename in (("vars", None), ("one", "all")):
        with fluid.scope_guard(fluid.Scope()):
            fluid.io.load_persistables(exe, str(tmp_path / folder), main, filename)
            assert set(held()) == set(names)
            for name in names:
                assert held()[name].tobytes() == seen[f"value/{name}"].tobytes(), name
            fluid.io.save_persistables(exe, str(tmp_path / "again"), main, filename)
            for file in [filename] if filename else names:
                assert (tmp_path / "again" / file).read_bytes() == (tmp_path / folder / file).read_bytes(), file
    with fluid.scope_guard(fluid.Scope()):
        program, feeds, fetches = fluid.io.load_inference_model(str(tmp_path / "inference"), exe)
        feed: dict[str, Any] = {feeds[0]: np.load(tmp_path / "x.npy")}
        np.testing.assert_allclose(exe.run(program, feed=feed, fetch_list=fetches)[0], seen["out"], 1e-5, 1e-6)


def test_our_files_in_paddle(tmp_path: Path) -> None:
    require_paddle()
    x = np.random.default_rng(0).random((5, 3), "float32")
    np.save(tmp_path / "x.npy", x)
    out = fluid.layers.fc(fluid.layers.fc(fluid.layers.data("x", [3]), 4, act="tanh"), 2)
    fluid.optimizer.Momentum(0.1, 0.9).minimize(fluid.layers.mean(out))
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    exe.run(feed={"x": x})
    main = fluid.default_main_program()
    (tmp_path / "ours.pb").write_bytes(main.desc.serialize_to_string())
    fluid.io.save_persistables(exe, str(tmp_path / "ours_vars"))
    fluid.io.save_persistables(exe, str(tmp_path / "ours_one"), filename="all")
    fluid.io.save_inference_model(str(tmp_path / "ours"), ["x"], [out], exe)
    seen, mine = in_paddle(tmp_path), held()
    for folder in ("ours_vars", "ours_one"):
        theirs = {k.partition("/")[2]: v for k, v in seen.items() if k.startswith(folder + "/")}
        assert theirs.keys() == mine.keys()
        assert all(np.array_equal(theirs[n], mine[n]) for n in mine)
    np.testing.assert_allclose(seen["ours"], exe.run(feed={"x": x}, fetch_list=[out])[0], 1e-5, 1e-6)
