"""The decoder of the Book's chapter on translation: a beam search in a while loop, against all sentences there are."""

from itertools import product

import numpy as np
import pytest

import fluidnb as fluid

L = fluid.layers
WORDS, WIDTH, END = 4, 5, 1


@pytest.fixture(autouse=True)
def fresh():
    with fluid.fresh():
        yield


def decoder(beam_size, steps, candidates):
    """Sentences and their scores."""
    limit, i = L.fill_constant([1], "int64", steps), L.zeros([1], "int64", force_cpu=True)
    states, ids, scores = L.create_array("float32"), L.create_array("int64"), L.create_array("float32")
    L.array_write(L.data("state", [WIDTH]), array=states, i=i)
    L.array_write(L.data("first", [1], dtype="int64", lod_level=2), array=ids, i=i)
    L.array_write(L.data("score", [1], lod_level=2), array=scores, i=i)
    going_on = L.less_than(i, limit)
    loop = L.While(cond=going_on)
    with loop.block():
        word, state, score = (L.array_read(array=a, i=i) for a in (ids, states, scores))
        old = L.sequence_expand(state, score)
        x = L.embedding(word, [WORDS, WIDTH], param_attr=fluid.ParamAttr(name="table"))
        attr = [fluid.ParamAttr(name="from_state"), fluid.ParamAttr(name="from_word")]
        new = L.fc([old, x], WIDTH, act="tanh", param_attr=attr, bias_attr=False)
        chance = L.fc(
            L.lod_reset(new, score), WORDS, act="softmax", param_attr=fluid.ParamAttr(name="to_word"), bias_attr=False
        )
        best, choice = L.topk(chance, k=candidates)
        total = L.elementwise_add(L.log(best), L.reshape(score, shape=[-1]), axis=0)
        chosen, ranks = L.beam_search(word, score, choice, total, beam_size, end_id=END, level=0)
        L.increment(i, value=1, in_place=True)
        L.array_write(new, array=states, i=i)
        L.array_write(chosen, array=ids, i=i)
        L.array_write(ranks, array=scores, i=i)
        L.logical_and(L.less_than(i, limit), L.logical_not(L.is_empty(chosen)), out=going_on)
    return L.beam_search_decode(ids, scores, beam_size=beam_size, end_id=END)


def search(beam_size, steps, first=(0, 2), candidates=WORDS):
    """The sentences of each source with the score of their last word, and the parameters."""
    sentences, ranks = decoder(beam_size, steps, candidates)
    fluid.default_startup_program().random_seed = 9
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    rng = np.random.default_rng(3)
    names = ("table", "from_state", "from_word", "to_word")
    parameters = {}
    for name in names:
        tensor = fluid.global_scope().find_var(name).get_tensor()
        parameters[name] = rng.normal(size=tensor.shape()).astype("float32")
        tensor.set(parameters[name], fluid.CPUPlace())
    state = rng.normal(size=(len(first), WIDTH)).astype("float32")
    one_each = [[1] * len(first)] * 2
    feed = {
        "state": state,
        "first": fluid.create_lod_tensor(np.array(first)[:, None], one_each, fluid.CPUPlace()),
        "score": fluid.create_lod_tensor(np.zeros((len(first), 1), "float32"), one_each, fluid.CPUPlace()),
    }
    runs = [
        exe.run(feed=feed, fetch_list=[sentences, ranks], return_numpy=False, keep_scopes=keep)
        for keep in (False, False, True)
    ]
    for other in runs[1:]:
        for a, b in zip(runs[0], other, strict=True):
            assert a.lod() == b.lod() and np.array_equal(np.asarray(a), np.asarray(b))
    words, numbers = runs[0]
    sources, ends = words.lod()
    found = []
    for a, b in zip(sources[:-1], sources[1:], strict=True):
        rows = [slice(ends[k], ends[k + 1]) for k in range(a, b)]
        found.append([(np.asarray(words)[r].tolist(), float(np.asarray(numbers)[r][-1])) for r in rows])
    return found, state, parameters


def every(first, state, parameters, steps):
    """All sentences, the best first."""
    found = {}
    for way in product(range(WORDS), repeat=steps):
        words, score, h = [first], 0.0, state
        for word in way:
            h = np.tanh(h @ parameters["from_state"] + parameters["table"][words[-1]] @ parameters["from_word"])
            logits = h @ parameters["to_word"]
            score += logits[word] - np.log(np.exp(logits).sum())
            words.append(word)
            if word == END:
                break
        found[tuple(words)] = score
    return sorted(found.items(), key=lambda pair: -pair[1])


def test_a_wide_search_finds_the_best_of_all_sentences():
    found, state, parameters = search(beam_size=40, steps=3)
    for first, h, mine in zip((0, 2), state, found, strict=True):
        want = every(first, h, parameters, 3)
        assert len(mine) == len(want) == 40
        for (words, score), (sentence, best) in zip(mine, want, strict=True):
            assert tuple(words) == sentence and score == pytest.approx(best, abs=1e-4)


def test_a_narrow_search_finds_good_sentences():
    found, state, parameters = search(beam_size=2, steps=5, candidates=3)
    for first, h, mine in zip((0, 2), state, found, strict=True):
        want = dict(every(first, h, parameters, 5))
        assert len(mine) == 2 and mine[0][1] >= mine[1][1]
        for words, score in mine:
            assert words[-1] == END or len(words) == 6
            assert score == pytest.approx(want[tuple(words)], abs=1e-4)


def test_a_sentence_that_has_ended_at_once():
    found, _, _ = search(beam_size=2, steps=3, first=(END, 0))
    assert found[0] == [([END], 0.0)] and len(found[1]) == 2
