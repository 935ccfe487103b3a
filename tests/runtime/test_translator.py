"""A decoder with attention trains, searches, is saved, and says the same in another process."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import fluidnb as fluid
from tests.runtime import translator

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, translator.Decoded, list[float]]:
    """The folder of a trained model, what it decoded before it was saved, and the losses."""
    folder = tmp_path_factory.mktemp("translator")
    exe, losses = fluid.Executor(fluid.CPUPlace()), []
    with fluid.fresh(), fluid.scope_guard(fluid.Scope()):
        loss = translator.training()
        fluid.default_startup_program().random_seed = 5
        exe.run(fluid.default_startup_program())
        lesson = translator.lesson()
        for _ in range(90):
            losses.append(exe.run(feed=lesson, fetch_list=[loss])[0].item())
        program = fluid.Program()
        with fluid.program_guard(program, fluid.Program()):
            targets = list(translator.search())
        before = translator.decoded(program, targets, translator.SENTENCES)
        fluid.io.save_inference_model(str(folder), ["source", "begin", "score"], targets, exe, program)
    return folder, before, losses


def test_it_learns_to_say_sentences_backwards(saved: tuple[Path, translator.Decoded, list[float]]) -> None:
    _, found, losses = saved
    assert losses[0] > 1.5 and losses[-1] < 0.1
    assert translator.best(found) == [s[::-1] for s in translator.SENTENCES]
    scores = np.frombuffer(bytes.fromhex(found["scores"]), "float32")
    sources, ends = found["lod"]
    totals = [scores[end - 1] for end in ends[1:]]
    assert sources == list(range(0, 2 * len(translator.SENTENCES) + 1, 2))
    assert all(first > second for first, second in zip(totals[::2], totals[1::2], strict=True))


def test_another_process_decodes_the_same(saved: tuple[Path, translator.Decoded, list[float]]) -> None:
    folder, before, _ = saved
    command = [sys.executable, "-W", "error", "-m", "tests.runtime.translator", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == before


def test_other_sentences_one_by_one_and_together(saved: tuple[Path, translator.Decoded, list[float]]) -> None:
    folder, before, _ = saved
    with fluid.scope_guard(fluid.Scope()):
        program, _, targets = fluid.io.load_inference_model(str(folder), fluid.Executor(fluid.CPUPlace()))
        together = translator.decoded(program, targets, translator.SENTENCES[::-1])
        alone = [translator.decoded(program, targets, [s]) for s in translator.SENTENCES]
    assert [s for one in alone for s in translator.best(one)] == translator.best(before)
    assert translator.best(together) == translator.best(before)[::-1]
