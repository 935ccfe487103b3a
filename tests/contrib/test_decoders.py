"""Decoders of fluid.contrib: one cell trains on true words and then finds them by beam search."""

from __future__ import annotations

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.contrib.decoder.beam_search_decoder import BeamSearchDecoder, InitState, StateCell, TrainingDecoder
from fluidnb.errors import NotFound, OpTypeError, OpValueError

layers = fluid.layers
START, END, WORDS, SIZE = 0, 1, 6, 12

#: Source -> the words that it is translated into.
SENTENCES = {0: [2, 3, 4], 1: [5, 2], 2: [4, 4, 3, 2]}


def cell(names: tuple[str, ...] = ("x",)) -> tuple[fluid.Variable, StateCell]:
    """The source, and a cell that begins with its embedding."""
    source = layers.data("source", [1], dtype="int64", lod_level=1)
    context = layers.sequence_pool(layers.embedding(source, size=[3, SIZE]), "sum")
    made = StateCell(dict.fromkeys(names), {"h": InitState(context, need_reorder=True)}, "h")

    @made.state_updater
    def step(cell: StateCell) -> None:
        inputs = [cell.get_state("h"), *(cell.get_input(name) for name in names)]
        cell.set_state("h", layers.fc(inputs, SIZE, act="tanh"))

    return source, made


def trained() -> tuple[fluid.Executor, list[float]]:
    """Parameters in the global scope, and the losses on the way."""
    _, made = cell()
    words = layers.data("words", [1], dtype="int64", lod_level=1)
    vectors = layers.embedding(words, size=[WORDS, SIZE])
    decoder = TrainingDecoder(made)
    with decoder.block():
        word = decoder.step_input(vectors)
        decoder.state_cell.compute_state(inputs={"x": word})
        score = layers.fc(made.out_state(), WORDS, act="softmax")
        decoder.state_cell.update_states()
        decoder.output(score)
    target = layers.data("target", [1], dtype="int64", lod_level=1)
    loss = layers.mean(layers.cross_entropy(decoder(), target))
    fluid.optimizer.Adam(0.02).minimize(loss)
    fluid.default_startup_program().random_seed = 4
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    feeder = fluid.DataFeeder(["source", "words", "target"], fluid.CPUPlace())
    feed = feeder.feed([([s], [START, *t], [*t, END]) for s, t in SENTENCES.items()])
    return exe, [float(exe.run(feed=feed, fetch_list=[loss])[0][0]) for _ in range(120)]


def found(exe: fluid.Executor, beam_size: int) -> list[list[list[int]]]:
    """The sentences that a search finds for each source, with the parameters of the global scope."""
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()), fluid.unique_name.guard():
        _, made = cell()
        ids = layers.data("ids", [1], dtype="int64", lod_level=2)
        scores = layers.data("scores", [1], lod_level=2)
        decoder = BeamSearchDecoder(
            made, ids, scores, WORDS, SIZE, topk_size=WORDS, max_len=8, beam_size=beam_size, end_id=END
        )
        decoder.decode()
        out = decoder()[0]
    place, count = fluid.CPUPlace(), len(SENTENCES)
    lod = [[1] * count, [1] * count]
    feed = {
        "source": fluid.create_lod_tensor(np.array([[s] for s in SENTENCES]), [[1] * count], place),
        "ids": fluid.create_lod_tensor(np.full((count, 1), START), lod, place),
        "scores": fluid.create_lod_tensor(np.ones((count, 1), "float32"), lod, place),
    }
    [result] = exe.run(main, feed=feed, fetch_list=[out], return_numpy=False)
    words, (sources, sentences) = np.array(result).ravel().tolist(), result.lod()
    spans = [words[a:b] for a, b in zip(sentences, sentences[1:], strict=False)]
    return [spans[a:b] for a, b in zip(sources, sources[1:], strict=False)]


def test_what_is_trained_is_found() -> None:
    with fluid.unique_name.guard():
        exe, losses = trained()
    assert losses[-1] < 0.1 < losses[0]
    for beam_size in (1, 3):
        best = [sentences[0] for sentences in found(exe, beam_size)]
        assert best == [[START, *target, END] for target in SENTENCES.values()]
    assert all(len(sentences) == 3 for sentences in found(exe, 3))


def test_inputs_of_each_source_follow_its_sentences() -> None:
    source, made = cell(("x", "context"))
    ids, scores = (layers.data(n, [1], dtype=d, lod_level=2) for n, d in (("ids", "int64"), ("scores", "float32")))
    context = layers.sequence_pool(layers.embedding(source, size=[3, SIZE]), "sum")
    decoder = BeamSearchDecoder(made, ids, scores, WORDS, SIZE, {"context": context}, WORDS, max_len=3, beam_size=2)
    decoder.decode()
    assert [v.lod_level for v in decoder()] == [2, 2]
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    lod = [[1, 1], [1, 1]]
    feed = {
        "source": fluid.create_lod_tensor(np.array([[1], [2]]), [[1, 1]], fluid.CPUPlace()),
        "ids": fluid.create_lod_tensor(np.zeros((2, 1), "int64"), lod, fluid.CPUPlace()),
        "scores": fluid.create_lod_tensor(np.ones((2, 1), "float32"), lod, fluid.CPUPlace()),
    }
    [out] = exe.run(feed=feed, fetch_list=[decoder()[0]], return_numpy=False)
    assert out.lod()[0] == [0, 2, 4]


def test_what_is_wrong_is_named() -> None:
    with pytest.raises(OpValueError, match="InitState needs init"):
        InitState()
    with pytest.raises(OpTypeError, match="should be an InitState"):
        StateCell({}, {"h": layers.data("y", [3])}, "h")
    _, made = cell()
    with pytest.raises(NotFound, match='no state "hh"'):
        made.get_state("hh")
    with pytest.raises(OpValueError, match="inside the block of a decoder"):
        made.get_state("h")
    with pytest.raises(NotFound, match='The input "x" has no value'):
        made.get_input("x")
    with pytest.raises(NotFound, match='no input "y"'):
        made.compute_state({"y": layers.data("z", [3])})
    with pytest.raises(NotFound, match='The cell has no input "y"'):
        BeamSearchDecoder(made, layers.data("i", [1]), layers.data("s", [1]), 3, 3, {"y": layers.data("w", [3])})


def test_memory_usage_of_what_is_no_program() -> None:
    with pytest.raises(OpTypeError, match="must be a Program"):
        fluid.contrib.memory_usage("program", 3)
    with pytest.raises(OpValueError, match="should be positive"):
        fluid.contrib.memory_usage(fluid.Program(), 0)
