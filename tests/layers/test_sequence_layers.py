"""Layers over sequences: what they append, what they refuse, and small models that learn."""

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.errors import EnforceNotMet, OpTypeError, OpValueError
from tests.tools.refused import refused

L, N = fluid.layers, fluid.nets
rng = np.random.default_rng(11)


@pytest.fixture(autouse=True)
def fresh():
    with fluid.fresh():
        yield


def types():
    return [op.type for op in fluid.default_main_program().global_block().ops]


def sequences(lengths, *width, dtype="float32", high=None):
    rows = sum(lengths)
    array = rng.integers(0, high, (rows, 1)) if high else rng.normal(size=(rows, *width))
    return fluid.create_lod_tensor(array.astype(dtype), [lengths], fluid.CPUPlace())


def run(fetch, program=None, **feed):
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    return exe.run(program, feed=feed, fetch_list=fetch, return_numpy=False)


def attrs_of(variable, *names):
    op = next(op for op in variable.block.ops if variable.name in op.output_arg_names)
    return {name: op.attr(name) for name in names}


def test_pooling_of_every_kind():
    x = L.data("x", [2], lod_level=1)
    kinds = ("average", "sum", "sqrt", "max", "last", "first")
    ys = [L.sequence_pool(x, kind, pad_value=0.5) for kind in kinds]
    ys += [L.sequence_first_step(x), L.sequence_last_step(x)]
    tensor = sequences([2, 3], 2)
    a = np.asarray(tensor)
    got = [np.asarray(t) for t in run(ys, x=tensor)]
    parts = a[:2], a[2:]
    for kind, y in zip(kinds, got, strict=False):
        want = {
            "average": lambda p: p.mean(0), "sum": lambda p: p.sum(0), "sqrt": lambda p: p.sum(0) / len(p) ** 0.5,
            "max": lambda p: p.max(0), "last": lambda p: p[-1], "first": lambda p: p[0],
        }[kind]  # fmt: skip
        np.testing.assert_allclose(y, [want(p) for p in parts], rtol=1e-5)
    np.testing.assert_array_equal(got[6], got[5])
    np.testing.assert_array_equal(got[7], got[4])
    assert attrs_of(ys[0], "pooltype", "pad_value") == {"pooltype": "AVERAGE", "pad_value": 0.5}


def test_levels_go_up_and_down():
    x = L.data("x", [1], lod_level=2)
    words = L.sequence_pool(x, "sum")
    assert (words.lod_level, L.sequence_pool(words, "sum").lod_level) == (1, 0)
    assert L.sequence_expand(words, x, ref_level=0).lod_level == 1
    assert L.sequence_softmax(words).lod_level == 1


def test_rows_that_belong_to_no_sequence_are_refused_while_running():
    y = L.sequence_pool(L.data("x", [2]), "sum")
    with pytest.raises(EnforceNotMet, match="does not contain LoD information") as e:
        run([y], x=np.zeros((3, 2), "float32"))
    assert "lod_level" in str(e.value)


def test_a_convolution_has_filters_bias_and_activation():
    x = L.data("x", [8], lod_level=1)
    y = L.sequence_conv(x, num_filters=4, filter_size=3, act="tanh", param_attr=fluid.ParamAttr(name="filters"))
    assert types() == ["sequence_conv", "elementwise_add", "tanh"]
    conv = y.block.ops[0]
    assert {n: conv.attr(n) for n in ("contextLength", "contextStart", "contextStride")} == {
        "contextLength": 3, "contextStart": -1, "contextStride": 1,
    }  # fmt: skip
    assert y.block.var("filters").shape == (24, 4)
    assert L.sequence_conv(x, 4, bias_attr=False).block.ops[-1].type == "sequence_conv"
    with pytest.raises(OpValueError, match="rows of a known width"):
        L.sequence_conv(L.data("z", [-1], lod_level=1), 4)
    with pytest.raises(OpValueError, match="enum"):
        L.sequence_conv(x, 4, filter_stride=2)


def test_conv_pool_is_a_convolution_and_a_pooling():
    x = L.data("x", [8], lod_level=1)
    y = N.sequence_conv_pool(x, num_filters=4, filter_size=5, pool_type="sqrt")
    assert types() == ["sequence_conv", "elementwise_add", "sigmoid", "sequence_pool"]
    assert attrs_of(y, "pooltype") == {"pooltype": "SQRT"} and y.shape == (-1, 4)
    assert np.asarray(run([y], x=sequences([2, 7, 1], 8))[0]).shape == (3, 4)


def test_padding_there_and_back():
    x = L.data("x", [2], lod_level=1)
    square, length = L.sequence_pad(x, L.fill_constant([1], "float32", 0.0))
    back = L.sequence_unpad(square, length)
    mask = L.sequence_mask(length, dtype="float32")
    tensor = sequences([2, 4, 1], 2)
    a, b, m, n = run([square, back, mask, length], x=tensor)
    np.testing.assert_array_equal(np.asarray(b), np.asarray(tensor))
    assert b.recursive_sequence_lengths() == [[2, 4, 1]] and np.asarray(n).tolist() == [2, 4, 1]
    assert np.asarray(a).shape == (3, 4, 2) and not np.asarray(a)[np.asarray(m) == 0].any()


def test_a_mask_as_wide_as_a_variable_says():
    n, width = L.data("n", [1], dtype="int64"), L.data("w", [1], dtype="int64", append_batch_size=False)
    mask = L.sequence_mask(n, maxlen=width)
    (m,) = run([mask], n=np.array([[1], [3]]), w=np.array([2]))
    assert np.asarray(m).tolist() == [[[1, 0]], [[1, 1]]] and mask.stop_gradient


@pytest.mark.parametrize("reverse", [False, True])
def test_a_long_short_term_memory(reverse):
    x = L.data("x", [12], lod_level=1)
    hidden, cell = L.dynamic_lstm(x, size=12, is_reverse=reverse, use_peepholes=False, gate_activation="relu")
    assert attrs_of(hidden, "is_reverse", "use_peepholes", "gate_activation", "cell_activation") == {
        "is_reverse": reverse, "use_peepholes": False, "gate_activation": "relu", "cell_activation": "tanh",
    }  # fmt: skip
    assert [p.shape for p in hidden.block.all_parameters()] == [(3, 12), (1, 12)]
    h, c = run([hidden, cell], x=sequences([2, 3], 12))
    assert h.lod() == c.lod() == [[0, 2, 5]] and np.asarray(h).shape == (5, 3)


def test_a_bias_holds_the_weights_of_peepholes():
    hidden, _ = L.dynamic_lstm(L.data("x", [12], lod_level=1), size=12)
    assert [p.shape for p in hidden.block.all_parameters()] == [(3, 12), (1, 21)]


def test_a_projected_lstm_has_two_weights_with_names_of_their_own():
    x, h, c = L.data("x", [12], lod_level=1), L.data("h", [2]), L.data("c", [3])
    projection, _ = L.dynamic_lstmp(
        x, size=12, proj_size=2, param_attr=fluid.ParamAttr(name="w"), bias_attr="b", h_0=h, c_0=c, cell_clip=1.0
    )
    assert {p.name: p.shape for p in projection.block.all_parameters()} == {
        "w": (2, 12), "w_proj": (3, 2), "b": (1, 21),
    }  # fmt: skip
    assert attrs_of(projection, "cell_clip", "proj_clip") == {"cell_clip": 1.0, "proj_clip": 0.0}
    first = {"h": np.ones((2, 2), "float32"), "c": np.ones((2, 3), "float32")}
    (p,) = run([projection], x=sequences([2, 3], 12), **first)
    assert np.asarray(p).shape == (5, 2)


def test_gated_units():
    x, h = L.data("x", [9], lod_level=1), L.data("h", [3])
    hidden = L.dynamic_gru(x, size=3, h_0=h, bias_attr=False, origin_mode=True, candidate_activation="relu")
    assert [p.shape for p in hidden.block.all_parameters()] == [(3, 9)]
    assert attrs_of(hidden, "origin_mode", "activation") == {"origin_mode": True, "activation": "relu"}
    step, reset, gates = L.gru_unit(x, h, size=9, activation="identity", gate_activation="tanh")
    assert attrs_of(step, "activation", "gate_activation") == {"activation": 0, "gate_activation": 2}
    assert (step.shape, reset.shape, gates.shape) == ((-1, 3), (-1, 3), (-1, 9))


def test_an_lstm_step_is_an_fc_and_the_gates():
    x, h, c = (L.data(n, [size]) for n, size in (("x", 5), ("h", 3), ("c", 3)))
    hidden, cell = L.lstm_unit(x, h, c, forget_bias=0.5)
    assert types() == ["concat", "mul", "elementwise_add", "lstm_unit"] and hidden.shape == cell.shape == (-1, 3)


@pytest.mark.parametrize(
    ("wrong", "kind", "message"),
    [
        (lambda x, m: L.dynamic_lstm(x, size=10), OpValueError, "counts the columns of all gates"),
        (lambda x, m: L.dynamic_lstm(x, size=16), OpValueError, "must lead from the state to the four gates"),
        (lambda x, m: L.dynamic_lstm(x, 12, bias_attr=False), OpValueError, "bias_attr should not be False"),
        (lambda x, m: L.dynamic_lstm(x, 12, h_0=m), OpTypeError, "both or not at all"),
        (lambda x, m: L.dynamic_lstm(x, 12, h_0=m, c_0=m), OpValueError, "a row for each sequence"),
        (lambda x, m: L.dynamic_lstm(x, 12, gate_activation="softmax"), OpValueError, "not in enum"),
        (lambda x, m: L.dynamic_lstm("x", 12), OpTypeError, "must be a Variable"),
        (lambda x, m: L.dynamic_gru(x, size=5), OpValueError, r"must be \[width, 3 · width\]"),
        (lambda x, m: L.gru_unit(x, m, size=12, activation="gelu"), OpValueError, "names no activation"),
        (lambda x, m: L.lstm_unit(x, m, L.data("c", [4])), OpValueError, "2nd dimensions of hidden_t_prev"),
        (lambda x, m: L.lstm_unit(L.data("d", [4, 4]), m, m), OpValueError, "Rank of x_t must be 2"),
        (lambda x, m: L.sequence_pool(x, "median"), OpValueError, "not in enum"),
        (lambda x, m: L.sequence_softmax(x), OpValueError, "width of each timestep"),
        (lambda x, m: L.sequence_concat(x), OpTypeError, "input of sequence_concat must be a list"),
        (lambda x, m: L.sequence_mask(m), OpValueError, "must hold integers"),
        (lambda x, m: L.linear_chain_crf(x, m), OpValueError, "must hold integers"),
        (lambda x, m: L.crf_decoding(x, param_attr=None), OpTypeError, "must name the transition"),
        (lambda x, m: L.crf_decoding(x, param_attr="crf"), OpValueError, "no Parameter name crf found"),
        (lambda x, m: L.chunk_eval(m, m, "IOB", 2), OpValueError, "must hold integers"),
    ],
)
def test_what_is_refused_leaves_no_trace(wrong, kind, message):
    x, m = L.data("x", [12], lod_level=1), L.data("m", [7])
    ops, parameters = len(x.block.ops), len(x.block.all_parameters())
    with refused(kind, message):
        wrong(x, m)
    assert (len(x.block.ops), len(x.block.all_parameters())) == (ops, parameters)
    assert not fluid.default_startup_program().global_block().ops


def learn(cost, feeds, rate=0.1, steps=60):
    """Train, and give the costs of the last pass through the feeds."""
    fluid.optimizer.Adam(rate).minimize(cost)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    costs = [exe.run(feed=feeds[i % len(feeds)], fetch_list=[cost])[0].item() for i in range(steps)]
    return exe, costs


def texts(count, words=6):
    """Batches of texts whose label is whether word 0 is in them."""
    feeds = []
    for _ in range(count):
        lengths = rng.integers(1, 7, 12).tolist()
        text = sequences(lengths, dtype="int64", high=words)
        parts = np.split(np.asarray(text)[:, 0], np.cumsum(lengths)[:-1])
        feeds.append({"text": text, "label": np.array([[int(0 in p)] for p in parts])})
    return feeds


@pytest.mark.parametrize("model", ["conv", "lstm", "gru", "lstmp"])
def test_texts_are_told_apart(model):
    fluid.default_startup_program().random_seed = fluid.default_main_program().random_seed = 3
    text = L.data("text", [1], dtype="int64", lod_level=1)
    label = L.data("label", [1], dtype="int64")
    x = L.embedding(text, [6, 8])
    if model == "conv":
        y = N.sequence_conv_pool(x, 8, filter_size=3, act="tanh", pool_type="max")
    elif model == "gru":
        y = L.sequence_last_step(L.dynamic_gru(L.fc(x, 24), 8))
    elif model == "lstm":
        y = L.sequence_pool(L.dynamic_lstm(L.fc(x, 32), 32, is_reverse=True)[0], "max")
    else:
        y = L.sequence_last_step(L.dynamic_lstmp(L.fc(x, 32), 32, proj_size=4)[0])
    chance = L.fc(y, 2, act="softmax")
    cost = L.mean(L.cross_entropy(chance, label))
    _, costs = learn(cost, texts(4), rate=0.05, steps=80)
    assert costs[0] > 0.5 and max(costs[-4:]) < 0.2


def test_tags_are_learned_and_decoded():
    """Each word has its own tag, but word 2 has the tag of the word before it: only the transition can tell."""
    fluid.default_startup_program().random_seed = 5
    word, tag = (L.data(n, [1], dtype="int64", lod_level=1) for n in ("word", "tag"))
    score = L.fc(L.embedding(word, [3, 8]), 2)
    cost = L.mean(L.linear_chain_crf(score, tag, param_attr=fluid.ParamAttr(name="crf")))
    right = L.crf_decoding(score, param_attr="crf", label=tag)
    lengths = [5, 1, 3, 6]
    words = rng.integers(0, 3, sum(lengths))
    starts = {0, *np.cumsum(lengths)[:-1].tolist()}
    words[[s for s in starts if words[s] == 2]] = 0
    tags = words.copy()
    for i in range(len(words)):
        tags[i] = words[i] if words[i] < 2 else tags[i - 1]
    feed = {
        name: fluid.create_lod_tensor(column[:, None], [lengths], fluid.CPUPlace())
        for name, column in (("word", words), ("tag", tags))
    }
    test = fluid.default_main_program().clone(for_test=True)
    exe, costs = learn(cost, [feed], steps=50)
    assert costs[0] > 1 and costs[-1] < 0.1
    assert exe.run(test, feed=feed, fetch_list=[right.name], return_numpy=False)[0].array.all()


def test_what_is_said_in_time_is_learned_and_read_back():
    fluid.default_startup_program().random_seed = 5
    x, label = L.data("x", [6], lod_level=1), L.data("label", [1], dtype="int32", lod_level=1)
    logits = L.fc(x, 4)
    cost = L.mean(L.warpctc(logits, label, blank=3))
    said = L.ctc_greedy_decoder(logits, blank=3)
    distance, count = L.edit_distance(said, L.cast(label, "int64"), normalized=False)
    test = fluid.default_main_program().clone(for_test=True)
    labels = np.array([[0], [1], [1], [2]], "int32")
    feed = {"x": sequences([6, 7], 6), "label": fluid.create_lod_tensor(labels, [[2, 2]], fluid.CPUPlace())}
    exe, costs = learn(cost, [feed], steps=80)
    assert costs[0] > 1 > 0.2 > costs[-1]
    read, wrong, n = exe.run(test, feed=feed, fetch_list=[said, distance, count], return_numpy=False)
    assert read.array.tolist() == labels.tolist() and read.recursive_sequence_lengths() == [[2, 2]]
    assert not wrong.array.any() and n.array.item() == 2


def test_ignored_words_do_not_count():
    x, y = (L.data(n, [1], dtype="int64", lod_level=1) for n in "xy")
    distance, _ = L.edit_distance(x, y, ignored_tokens=[0])
    feed = {n: fluid.create_lod_tensor(np.array(v)[:, None], [[len(v)]], fluid.CPUPlace()) for n, v in
            (("x", [1, 0, 2, 0]), ("y", [1, 2, 3]))}  # fmt: skip
    assert np.asarray(run([distance], **feed)[0]).item() == pytest.approx(1 / 3)


def test_chunks_are_counted():
    found, right = (L.data(n, [1], dtype="int64", lod_level=1) for n in ("found", "right"))
    outs = L.chunk_eval(found, right, "IOB", num_chunk_types=2, excluded_chunk_types=[1])
    feed = {n: fluid.create_lod_tensor(np.array(v)[:, None], [[3, 2]], fluid.CPUPlace()) for n, v in
            (("found", [0, 1, 2, 0, 4]), ("right", [0, 1, 4, 0, 1]))}  # fmt: skip
    got = [np.asarray(v).item() for v in run(list(outs), **feed)]
    assert got == [0.5, 0.5, 0.5, 2, 2, 1]


def test_images_as_sequences():
    y = L.im2sequence(L.data("x", [3, 8, 8]), filter_size=[2, 4], stride=2, padding=1)
    assert attrs_of(y, "kernels", "strides", "paddings") == {
        "kernels": [2, 4], "strides": [2, 2], "paddings": [1, 1, 1, 1],
    }  # fmt: skip
    (got,) = run([y], x=rng.normal(size=(2, 3, 8, 8)).astype("float32"))
    assert got.lod() == [[0, 20, 40]] and np.asarray(got).shape == (40, 24)
    z = L.im2sequence(L.data("y", [1, 4, 4]), input_image_size=L.data("size", [2]), out_stride=2, padding=[0, 1])
    assert attrs_of(z, "paddings", "out_stride") == {"paddings": [0, 1, 0, 1], "out_stride": [2, 2]}


def test_parts_of_sequences():
    x = L.data("x", [2], lod_level=1)
    start, size = (L.data(n, [1], dtype="int64") for n in ("start", "size"))
    part = L.sequence_slice(x, start, size)
    both = L.sequence_concat([x, L.sequence_reverse(part)])
    wide = L.sequence_reshape(both, new_dim=1)
    tensor = sequences([3, 2], 2)
    a = np.asarray(tensor)
    got = run([part, both, wide], x=tensor, start=np.array([[1], [0]]), size=np.array([[2], [1]]))
    np.testing.assert_array_equal(np.asarray(got[0]), a[[1, 2, 3]])
    np.testing.assert_array_equal(np.asarray(got[1]), a[[0, 1, 2, 2, 1, 3, 4, 3]])
    assert got[2].recursive_sequence_lengths() == [[10, 6]]


def test_words_behind_words_and_updates_by_sequence():
    ids = L.data("ids", [1], dtype="int64", lod_level=1)
    windows = L.sequence_enumerate(ids, win_size=2, pad_value=9)
    table = L.sequence_scatter(L.data("x", [4]), ids, L.data("u", [1], lod_level=1))
    tensor = fluid.create_lod_tensor(np.array([[1], [2], [3]]), [[2, 1]], fluid.CPUPlace())
    updates = fluid.create_lod_tensor(np.ones((3, 1), "float32"), [[2, 1]], fluid.CPUPlace())
    w, t = run([windows, table], ids=tensor, x=np.zeros((2, 4), "float32"), u=updates)
    assert np.asarray(w).tolist() == [[1, 2], [2, 9], [3, 9]]
    assert np.asarray(t).tolist() == [[0, 1, 1, 0], [0, 0, 0, 1]]


def test_a_row_looks_ahead():
    y = L.row_conv(L.data("x", [3], lod_level=1), future_context_size=1, act="relu")
    assert types() == ["row_conv", "relu"] and y.block.all_parameters()[0].shape == (2, 3)
