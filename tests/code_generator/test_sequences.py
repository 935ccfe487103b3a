"""Programs on sequences as C: offsets are arguments, rows behind the last sequence are zero."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.code_generator import CodeGenerator
from fluidnb.errors import OpValueError
from tests.code_generator.batch import SANITIZERS, WARNINGS, CProgram

layers = fluid.layers
LENGTHS = [3, 0, 4, 1]
#: The compiler with all warnings as errors, and with sanitizers, which end the program at the first finding.
STRICT = " ".join(("gcc", *WARNINGS, *SANITIZERS))


def words(lengths: list[int] = LENGTHS) -> Any:
    """Ids of words in sequences."""
    ids = np.random.RandomState(0).randint(0, 20, (sum(lengths), 1))
    return fluid.create_lod_tensor(ids, [lengths], fluid.CPUPlace())


def compare(fetch: Any, rows: int | None = None, lengths: list[int] = LENGTHS) -> None:
    """The executor's result and that of C, with room for more rows than there are."""
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    feed = {"words": words(lengths)}
    [expected] = exe.run(feed=feed, fetch_list=[fetch], return_numpy=False)
    code = CodeGenerator(feeds={"words": [10, 1]}, fetches=[fetch], batch=len(lengths))
    [got] = code.run(feed, STRICT)
    expected = np.asarray(expected)
    np.testing.assert_allclose(got[: len(expected)], expected, rtol=1e-5, atol=1e-6)
    if rows is not None:
        assert got.shape[0] == rows and not got[len(expected) :].any()


def embedded(width: int) -> Any:
    """The words as vectors."""
    return layers.embedding(layers.data("words", [1], dtype="int64", lod_level=1), [20, width])


@pytest.mark.parametrize("kind", ["sum", "average", "sqrt", "max", "last", "first"])
def test_pools(kind: str) -> None:
    compare(layers.fc(layers.sequence_pool(embedded(6), kind), 3, act="softmax"))


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("peepholes", [False, True])
def test_lstm(reverse: bool, peepholes: bool) -> None:
    projected = layers.fc(embedded(5), 4 * 6)
    hidden, _ = layers.dynamic_lstm(projected, 4 * 6, is_reverse=reverse, use_peepholes=peepholes)
    compare(hidden, rows=10)


@pytest.mark.parametrize("reverse", [False, True])
def test_gru_and_a_classifier(reverse: bool) -> None:
    hidden = layers.dynamic_gru(layers.fc(embedded(5), 3 * 6), 6, is_reverse=reverse)
    compare(layers.fc(layers.sequence_pool(hidden, "last"), 3, act="softmax"))


def test_softmax_and_attention() -> None:
    vectors = embedded(5)
    weights = layers.sequence_softmax(layers.fc(vectors, 1))
    compare(layers.sequence_pool(layers.elementwise_mul(vectors, weights, axis=0), "sum"))


def test_a_training_step() -> None:
    pooled = layers.sequence_pool(embedded(6), "average")
    label = layers.data("label", [1], dtype="int64")
    loss = layers.mean(layers.cross_entropy(layers.fc(pooled, 3, act="softmax"), label))
    fluid.optimizer.Adam(0.1).minimize(loss)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    feed = {"words": words(), "label": np.array([[0], [1], [2], [1]])}
    step = CodeGenerator(feeds={"words": [10, 1], "label": [4, 1]}, fetches=[loss], batch=4)
    first, second = step.run(feed, STRICT), exe.run(feed=feed, fetch_list=[loss])
    np.testing.assert_allclose(first, second, rtol=1e-5)
    after_an_update = step.run(feed, STRICT)
    np.testing.assert_allclose(after_an_update, exe.run(feed=feed, fetch_list=[loss]), rtol=1e-5)


def check_training(hidden: Any, folder: Path) -> None:
    """Five steps of training in C and by the executor."""
    label = layers.data("label", [1], dtype="int64")
    scores = layers.fc(layers.sequence_pool(hidden, "average"), 3, act="softmax")
    loss = layers.mean(layers.cross_entropy(scores, label))
    fluid.optimizer.SGD(0.5).minimize(loss)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    feed = {"words": words(), "label": np.array([[0], [1], [2], [1]])}
    program = CProgram(CodeGenerator(feeds={"words": [10, 1], "label": [4, 1]}, fetches=[loss], batch=4), folder)
    losses = []
    for _ in range(5):
        [got] = program.run(feed)
        [want] = exe.run(feed=feed, fetch_list=[loss])
        np.testing.assert_allclose(got, want, rtol=1e-4)
        losses.append(float(want[0]))
    assert losses[-1] < losses[0] - 0.01


@pytest.mark.parametrize(
    ("reverse", "peepholes", "cell"), [(False, True, "tanh"), (True, False, "relu"), (True, True, "identity")]
)
def test_training_of_an_lstm(reverse: bool, peepholes: bool, cell: str, tmp_path: Path) -> None:
    projected = layers.fc(embedded(5), 4 * 6)
    hidden, _ = layers.dynamic_lstm(
        projected, 4 * 6, is_reverse=reverse, use_peepholes=peepholes, cell_activation=cell
    )
    check_training(hidden, tmp_path)


@pytest.mark.parametrize(("reverse", "origin"), [(False, False), (True, True)])
def test_training_of_a_gru(reverse: bool, origin: bool, tmp_path: Path) -> None:
    projected = layers.fc(embedded(5), 3 * 6)
    check_training(layers.dynamic_gru(projected, 6, is_reverse=reverse, origin_mode=origin), tmp_path)


@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_training_from_initial_states(kind: str, tmp_path: Path) -> None:
    first = layers.fc(layers.sequence_pool(embedded(5), "sum"), 6)
    if kind == "lstm":
        hidden, _ = layers.dynamic_lstm(layers.fc(embedded(5), 4 * 6), 4 * 6, h_0=first, c_0=layers.scale(first, 0.5))
    else:
        hidden = layers.dynamic_gru(layers.fc(embedded(5), 3 * 6), 6, h_0=first)
    check_training(hidden, tmp_path)


def test_what_is_refused() -> None:
    vectors = embedded(4)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    with pytest.raises(OpValueError, match="The C code of mean would join the rows of sequences"):
        CodeGenerator(feeds={"words": [10, 1]}, fetches=[layers.mean(vectors)], batch=4)
    code = CodeGenerator(feeds={"words": [10, 1]}, fetches=[layers.sequence_pool(vectors, "sum")], batch=4)
    with pytest.raises(OpValueError, match=r"\[10, 1\], 4 sequences[\s\S]*\[11, 1\], 4 sequences"):
        code.run({"words": words([3, 3, 4, 1])})
    with pytest.raises(OpValueError, match=r"received: \[3, 1\], 1 sequences"):
        code.run({"words": words([3])})
    with pytest.raises(OpValueError, match="needs its most rows"):
        CodeGenerator(feeds=["words"], fetches=[layers.sequence_pool(vectors, "sum")], batch=4)
