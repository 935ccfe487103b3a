"""An encoder and a decoder with attention, trained and searched; run as a program it decodes what another one saved."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

import fluidnb as fluid

L: Any = fluid.layers
#: Words 0 and 1 begin and end what is said; the task is to say a sentence backwards.
WORDS, WIDTH, BEGIN, END, BEAM, LONGEST = 6, 12, 0, 1, 2, 5
SENTENCES = [[2, 3, 4], [5], [4, 2], [3, 5, 2], [2, 2], [4], [5, 3, 4], [3]]
PLACE = fluid.CPUPlace()
Decoded = dict[str, Any]


def _named(name: str) -> Any:
    return fluid.ParamAttr(name=name)


def _encode(source: Any) -> tuple[Any, Any, Any]:
    x = L.embedding(source, [WORDS, WIDTH], param_attr=_named("source_words"))
    gates = L.fc(x, 3 * WIDTH, param_attr=_named("gates"), bias_attr=False)
    meaning = L.dynamic_gru(gates, WIDTH, param_attr=_named("gru"), bias_attr=_named("gru_bias"))
    keys = L.fc(meaning, WIDTH, param_attr=_named("keys"), bias_attr=False)
    return meaning, keys, L.fc(L.sequence_last_step(meaning), WIDTH, param_attr=_named("first"), bias_attr=False)


def _step(word: Any, state: Any, meaning: Any, keys: Any) -> tuple[Any, Any]:
    question = L.sequence_expand(L.fc(state, WIDTH, param_attr=_named("question"), bias_attr=False), keys)
    answer = L.fc(L.tanh(L.elementwise_add(keys, question)), 1, param_attr=_named("answer"), bias_attr=False)
    weight = L.reshape(L.sequence_softmax(answer), [-1])
    context = L.sequence_pool(L.elementwise_mul(meaning, weight, axis=0), "sum")
    into = [_named("context_in"), _named("word_in")]
    gates = L.fc([context, word], 3 * WIDTH, param_attr=into, bias_attr=False)
    state, _, _ = L.gru_unit(gates, state, 3 * WIDTH, param_attr=_named("unit"), bias_attr=_named("unit_bias"))
    return state, L.fc(state, WORDS, act="softmax", param_attr=_named("out"), bias_attr=False)


def training() -> Any:
    """Build the program that trains; its loss."""
    source, before, after = (L.data(n, [1], dtype="int64", lod_level=1) for n in ("source", "before", "after"))
    meaning, keys, first = _encode(source)
    words = L.embedding(before, [WORDS, WIDTH], param_attr=_named("target_words"))
    rnn = L.DynamicRNN()
    with rnn.block():
        word, state = rnn.step_input(words), rnn.memory(init=first, need_reorder=True)
        now, chance = _step(word, state, rnn.static_input(meaning), rnn.static_input(keys))
        rnn.update_memory(state, now)
        rnn.output(chance)
    loss = L.mean(L.cross_entropy(rnn(), after))
    fluid.optimizer.Adam(0.02).minimize(loss)
    return loss


def search() -> tuple[Any, Any]:
    """Build the program that decodes; sentences and scores."""
    source = L.data("source", [1], dtype="int64", lod_level=1)
    i, limit = L.zeros([1], "int64"), L.fill_constant([1], "int64", LONGEST)
    ids = L.array_write(L.data("begin", [1], dtype="int64", lod_level=2), i)
    scores = L.array_write(L.data("score", [1], lod_level=2), i)
    meanings, all_keys, states = (L.array_write(x, i) for x in _encode(source))
    going_on = L.less_than(i, limit)
    with L.While(going_on).block():
        word, score = L.array_read(ids, i), L.array_read(scores, i)
        state, meaning, keys = (L.sequence_expand(L.array_read(a, i), score) for a in (states, meanings, all_keys))
        x = L.embedding(word, [WORDS, WIDTH], param_attr=_named("target_words"))
        now, chance = _step(x, state, meaning, keys)
        best, choice = L.topk(L.lod_reset(chance, score), k=BEAM)
        total = L.elementwise_add(L.log(best), L.reshape(score, [-1]), axis=0)
        chosen, ranks = L.beam_search(word, score, choice, total, BEAM, end_id=END)
        L.increment(i)
        for value, array in ((chosen, ids), (ranks, scores), (now, states), (meaning, meanings), (keys, all_keys)):
            L.array_write(value, i, array=array)
        L.logical_and(L.less_than(i, limit), L.logical_not(L.is_empty(chosen)), out=going_on)
    return L.beam_search_decode(ids, scores, beam_size=BEAM, end_id=END)


def _rows(sentences: list[list[int]]) -> Any:
    flat = np.array([word for sentence in sentences for word in sentence], "int64")[:, None]
    return fluid.create_lod_tensor(flat, [[len(s) for s in sentences]], PLACE)


def lesson() -> dict[str, Any]:
    """Feeds of the training program."""
    backwards = [s[::-1] for s in SENTENCES]
    return {
        "source": _rows(SENTENCES),
        "before": _rows([[BEGIN, *s] for s in backwards]),
        "after": _rows([[*s, END] for s in backwards]),
    }


def question(sentences: list[list[int]]) -> dict[str, Any]:
    """Feeds of the decoding program."""
    one_each = [[1] * len(sentences)] * 2
    return {
        "source": _rows(sentences),
        "begin": fluid.create_lod_tensor(np.full((len(sentences), 1), BEGIN, "int64"), one_each, PLACE),
        "score": fluid.create_lod_tensor(np.zeros((len(sentences), 1), "float32"), one_each, PLACE),
    }


def decoded(program: Any, targets: list[Any], sentences: list[list[int]]) -> Decoded:
    """Words, the bytes of the scores and the LoD of both."""
    words, scores = fluid.Executor(PLACE).run(program, feed=question(sentences), fetch_list=targets, return_numpy=False)
    assert list(words.lod()) == list(scores.lod())
    return {
        "words": np.asarray(words).ravel().tolist(),
        "scores": np.asarray(scores).tobytes().hex(),
        "lod": [list(level) for level in words.lod()],
    }


def best(found: Decoded) -> list[list[int]]:
    """The best sentence of each source, without its first word and its end."""
    sources, ends = found["lod"]
    sentences = [found["words"][a:b] for a, b in zip(ends[:-1], ends[1:], strict=True)]
    return [[w for w in sentences[k] if w not in (BEGIN, END)] for k in sources[:-1]]


def main(folder: Path) -> None:
    """Decode with the model of a folder and print what comes out."""
    program, names, targets = fluid.io.load_inference_model(str(folder), fluid.Executor(PLACE))
    assert names == ["source", "begin", "score"]
    print(json.dumps(decoded(program, targets, SENTENCES)))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
