"""Evaluators of chunks and of distances add up batches as the metrics of the same names do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.errors import OpTypeError, OpValueError

L = fluid.layers
EXE = fluid.Executor(fluid.CPUPlace())


def words() -> tuple[Any, Any]:
    """Feeds: the chunks that were found, and the right ones."""
    found, right = (L.data(n, [1], dtype="int64", lod_level=1) for n in ("found", "right"))
    return found, right


def batches(most: int, fit: bool) -> list[dict[str, Any]]:
    """Three batches of sequences; with ``fit``, those found are as long as the right ones, else these have no 0."""
    draw = np.random.default_rng(1)
    made = []
    for lengths in ([3, 5], [4], [2, 2, 6]):
        others = lengths if fit else [n + 1 for n in lengths]
        feed = {}
        for name, sizes in (("found", others), ("right", lengths)):
            least = int(name == "right" and not fit)
            data = draw.integers(least, most, (sum(sizes), 1))
            feed[name] = fluid.create_lod_tensor(data, [sizes], fluid.CPUPlace())
        made.append(feed)
    return made


def test_chunks_of_a_pass() -> None:
    found, right = words()
    counts = L.chunk_eval(found, right, "IOB", 2)[3:]
    chunks = fluid.evaluator.ChunkEvaluator(found, right, "IOB", num_chunk_types=2)
    plain = fluid.metrics.ChunkEvaluator()
    for _ in range(2):  # a pass after another
        chunks.reset(EXE)
        plain.reset()
        assert [v.tolist() for v in chunks.eval(EXE)] == [[0], [0], [0]]
        for feed in batches(5, True):
            *batch, f1 = EXE.run(feed=feed, fetch_list=[*counts, chunks.metrics[2]])
            plain.update(*batch)
            assert 0 <= f1[0] <= 1
        got = chunks.eval(EXE)
        assert [v.shape for v in got] == [(1,)] * 3 and got[2].dtype == np.float32
        np.testing.assert_allclose(np.concatenate(got), plain.eval(), rtol=1e-6)
        assert got[0][0] > 0


def test_distances_of_a_pass() -> None:
    found, right = words()
    each, count = L.edit_distance(found, right, ignored_tokens=[0])
    distance = fluid.evaluator.EditDistance(found, right, ignored_tokens=[0])
    plain = fluid.metrics.EditDistance("plain")
    distance.reset(EXE)
    with pytest.raises(OpValueError, match="distance of no sequences is unknown"):
        distance.eval(EXE)
    for feed in batches(3, False):
        values, number, total, wrong = EXE.run(feed=feed, fetch_list=[each, count, *distance.metrics])
        plain.update(values, number)
        np.testing.assert_allclose(total, values.sum(), rtol=1e-6)
        assert wrong[0] == (values != 0).sum()
    np.testing.assert_allclose(np.concatenate(distance.eval(EXE)), np.ravel(plain.eval()), rtol=1e-6)


@pytest.mark.parametrize("kind", ["ChunkEvaluator", "EditDistance"])
def test_a_refused_one_leaves_nothing(kind: str) -> None:
    found, _ = words()
    before = [p.desc.serialize_to_string() for p in (fluid.default_main_program(), fluid.default_startup_program())]
    more = {"chunk_scheme": "IOB", "num_chunk_types": 2} if kind == "ChunkEvaluator" else {}
    with pytest.raises(OpTypeError):
        getattr(fluid.evaluator, kind)(found, "right", **more)
    after = [p.desc.serialize_to_string() for p in (fluid.default_main_program(), fluid.default_startup_program())]
    assert after == before
