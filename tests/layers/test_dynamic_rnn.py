"""DynamicRNN: a step net along sequences of several lengths."""

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.errors import EnforceNotMet, OpAssertionError, OpTypeError, OpValueError
from tests.layers.walkers import both, sequences

L = fluid.layers
RNG = np.random.default_rng(7)
LENGTHS = [5, 3, 2, 4]
STARTS = [0, 5, 8, 10, 14]


@pytest.fixture(autouse=True)
def fresh():
    with fluid.fresh():
        yield


def main():
    return fluid.default_main_program()


def words(name="x", width=1, levels=1):
    return L.data(name, [width], lod_level=levels)


def split(rows, lengths):
    return np.split(np.asarray(rows), np.cumsum(lengths)[:-1])


def array_of(fetched):
    return np.array(fetched)


def test_the_figures_of_the_developer_guide():
    """Lengths 5, 3, 2, 4: the ranks, the sizes of the steps, the rows of the first one; an identity gives x again."""
    x = words()
    rnn = L.DynamicRNN()
    with rnn.block():
        now = rnn.step_input(x)
        rnn.output(now)
    out = rnn()
    table, steps = rnn.lod_rank_table, main().global_block().var("dynamic_rnn_input_array_0")
    feed = sequences(np.arange(14).reshape(14, 1), [LENGTHS])
    exe = fluid.Executor(fluid.CPUPlace())
    ranks, per_step, same, n = exe.run(
        feed={"x": feed}, fetch_list=[table, steps, out, rnn.max_seq_len], return_numpy=False
    )
    assert ranks.items() == [(0, 5), (3, 4), (1, 3), (2, 2)] and array_of(n)[0] == 5
    assert [len(array_of(t)) for t in per_step] == [4, 4, 3, 2, 1]
    assert array_of(per_step[0]).ravel().tolist() == [0, 10, 5, 8]
    assert array_of(same).ravel().tolist() == list(range(14)) and same.lod() == [STARTS]


def test_the_program_is_fluids():
    x = words(width=3)
    rnn = L.DynamicRNN()
    with rnn.block():
        now, before = rnn.step_input(x), rnn.memory(shape=[4])
        hidden = L.fc([now, before], 4, act="tanh")
        rnn.update_memory(before, hidden)
        rnn.output(hidden)
    rnn()
    assert [op.type for op in main().global_block().ops] == [
        "fill_constant", "lod_rank_table", "max_sequence_len", "less_than", "lod_tensor_to_array", "fill_constant",
        "read_from_array", "fill_constant_batch_size_like", "write_to_array", "while", "array_to_lod_tensor",
    ]  # fmt: skip
    assert [op.type for op in main().block(1).ops] == [
        "read_from_array", "read_from_array", "shrink_rnn_memory", "mul", "mul", "sum", "elementwise_add", "tanh",
        "write_to_array", "increment", "write_to_array", "less_than",
    ]  # fmt: skip
    names = list(main().global_block().vars)
    for name in (
        "dynamic_rnn_0.tmp_0", "lod_rank_table_0", "dynamic_rnn_max_seq_len_0", "dynamic_rnn_input_array_0",
        "zero_idx_0", "mem_init_0", "in0_0", "dynamic_rnn_mem_array_0", f"dynamic_rnn_0_output_array_{hidden.name}_0",
    ):  # fmt: skip
        assert name in names, names
    loop = main().global_block().ops[9]
    assert loop.input("Condition") == ["dynamic_rnn_0.tmp_0"] and rnn().shape == (-1, 4) and rnn().lod_level == 1


@pytest.mark.parametrize("start", ["value", "ranked", "batch"])
@pytest.mark.parametrize("lengths", [LENGTHS, [1, 1], [2], [3, 0, 2]], ids=str)
def test_a_memory(start, lengths):
    x = words(width=2)
    init = L.data("init", [2])
    rnn = L.DynamicRNN()
    with rnn.block():
        now = rnn.step_input(x)
        before = (
            rnn.memory(shape=[2], value=0.5) if start == "value" else rnn.memory(init, need_reorder=start == "batch")
        )
        more = L.elementwise_add(now, L.scale(before, 0.5))
        rnn.update_memory(before, more)
        rnn.output(more, before)
    rows = RNG.standard_normal((sum(lengths), 2)).astype("float32")
    starts = RNG.standard_normal((len(lengths), 2)).astype("float32")
    order = sorted(range(len(lengths)), key=lambda k: -lengths[k])
    more, before = [], []
    for k, sequence in enumerate(split(rows, lengths)):
        h = {"value": np.full(2, 0.5), "batch": starts[k], "ranked": starts[order.index(k)]}[start]
        for row in sequence:
            before.append(h)
            more.append(h := row + h * 0.5)
    got, was = both(list(rnn()), return_numpy=False, x=sequences(rows, [lengths]), init=starts)
    np.testing.assert_allclose(array_of(got), more, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(array_of(was), before, rtol=1e-5, atol=1e-6)
    assert got.lod() == [[0, *np.cumsum(lengths).tolist()]]


def test_a_static_input():
    """Rows in the order of the batch, and sequences: each step sees those of the sequences that go on."""
    x, rows, facts = words(), L.data("rows", [1]), words("facts")
    rnn = L.DynamicRNN()
    with rnn.block():
        now = rnn.step_input(x)
        row, fact = rnn.static_input(rows), rnn.static_input(facts)
        rnn.output(L.sums([now, row, L.sequence_pool(fact, "sum")]))
    feed = {
        "x": sequences(np.zeros((14, 1)), [LENGTHS]),
        "rows": np.array([[10], [20], [30], [40]], "float32"),
        "facts": sequences(np.array([[1], [2], [3], [4], [5], [6]]), [[1, 2, 1, 2]]),
    }
    (out,) = both([rnn()], return_numpy=False, **feed)
    want = np.repeat([10 + 1, 20 + 5, 30 + 4, 40 + 11], LENGTHS)
    assert array_of(out).ravel().tolist() == want.tolist()


def test_two_step_inputs_share_their_lengths():
    x, y = words("x"), words("y")
    rnn = L.DynamicRNN()
    with rnn.block():
        rnn.output(L.elementwise_add(rnn.step_input(x), rnn.step_input(y)))
    a, b = sequences(np.ones((5, 1)), [[3, 2]]), sequences(np.arange(5).reshape(5, 1), [[3, 2]])
    (out,) = both([rnn()], return_numpy=False, x=a, y=b)
    assert array_of(out).ravel().tolist() == [1, 2, 3, 4, 5]
    for lengths in ([2, 3], [5], [3, 1]):
        with pytest.raises(EnforceNotMet, match="lod_tensor_to_array|sequences"):
            both([rnn()], return_numpy=False, x=a, y=sequences(np.ones((sum(lengths), 1)), [lengths]))


def test_sequences_of_sequences():
    """Stepping through the outer level, a step sees sequences; the results have both levels."""
    x = words(levels=2)
    rnn = L.DynamicRNN()
    with rnn.block():
        sentence = rnn.step_input(x)
        pooled = L.sequence_pool(sentence, "sum")
        before = rnn.memory(shape=[1])
        total = L.elementwise_add(pooled, before)
        rnn.update_memory(before, total)
        rnn.output(total, sentence)
    rows = np.arange(1, 11).reshape(10, 1)
    feed = sequences(rows, [[2, 3], [1, 2, 3, 1, 3]])  # [1] [2 3] | [4 5 6] [7] [8 9 10]
    totals, same = both(list(rnn()), return_numpy=False, x=feed)
    assert array_of(totals).ravel().tolist() == [1, 6, 15, 22, 49] and totals.lod() == [[0, 2, 5]]
    assert array_of(same).ravel().tolist() == rows.ravel().tolist() and same.lod() == feed.lod()


def test_a_memory_times_itself_and_an_output_that_is_not_last():
    x = words(width=2)
    rnn = L.DynamicRNN()
    with rnn.block():
        now, before = rnn.step_input(x), rnn.memory(shape=[2], value=2.0)
        rnn.output(L.elementwise_mul(before, before))
        rnn.update_memory(before, L.elementwise_mul(before, now))
    assert rnn().shape == (-1, 2)
    rows = np.arange(1, 7, dtype="float32").reshape(3, 2)
    (out,) = both([rnn()], return_numpy=False, x=sequences(rows, [[3]]))
    assert array_of(out).tolist() == [[4, 4], [4, 16], [36, 256]]


def test_batches_of_changing_shape_one_after_another():
    x = words(width=3)
    rnn = L.DynamicRNN()
    with rnn.block():
        now, before = rnn.step_input(x), rnn.memory(shape=[3])
        more = L.elementwise_add(now, before)
        rnn.update_memory(before, more)
        rnn.output(more)
    for lengths in ([4, 1], [2, 2, 2], [1], [4, 1], [6, 0, 3]):
        rows = RNG.integers(0, 9, (sum(lengths), 3)).astype("float32")
        (out,) = both([rnn()], return_numpy=False, x=sequences(rows, [lengths]))
        np.testing.assert_array_equal(array_of(out), np.concatenate([s.cumsum(0) for s in split(rows, lengths)]))


def test_a_network_inside_a_network():
    """Sums within sentences, and of the last sums over sentences."""
    x = words(levels=2)
    outer = L.DynamicRNN()
    with outer.block():
        sentence, above = outer.step_input(x), outer.memory(shape=[1])
        inner = L.DynamicRNN()
        with inner.block():
            word, left = inner.step_input(sentence), inner.memory(shape=[1])
            more = L.elementwise_add(word, left)
            inner.update_memory(left, more)
            inner.output(more)
        total = L.elementwise_add(L.sequence_last_step(inner()), above)
        outer.update_memory(above, total)
        outer.output(total)
    feed = sequences(np.arange(1, 11).reshape(10, 1), [[2, 3], [1, 2, 3, 1, 3]])
    (out,) = both([outer()], return_numpy=False, x=feed)
    assert array_of(out).ravel().tolist() == [1, 6, 15, 22, 49]


def test_a_branch_inside_a_step():
    x = words()
    rnn = L.DynamicRNN()
    with rnn.block():
        now = rnn.step_input(x)
        limit = L.fill_constant_batch_size_like(now, [-1, 1], "float32", 3.0)
        ie = L.IfElse(L.less_than(now, limit))
        with ie.true_block():
            ie.output(L.scale(ie.input(now), -1.0))
        with ie.false_block():
            ie.output(L.scale(ie.input(now), 10.0))
        rnn.output(*ie())
    (out,) = both([rnn()], return_numpy=False, x=sequences(np.arange(6).reshape(6, 1), [[4, 2]]))
    assert array_of(out).ravel().tolist() == [0, -1, -2, 30, 40, 50]


def test_a_body_that_raises_leaves_nothing():
    x, rnn = words(width=3), L.DynamicRNN()
    programs = (main(), fluid.default_startup_program())
    before = [p.desc.serialize_to_string() for p in programs]

    def fill(end):
        with rnn.block():
            now, memory = rnn.step_input(x), rnn.memory(shape=[3])
            rnn.output(L.fc(now, 3, param_attr="w"))
            end(memory, now)

    for end, error in (
        (lambda memory, now: 1 / 0, ZeroDivisionError),
        (lambda memory, now: None, OpAssertionError),
        (lambda memory, now: rnn.update_memory(memory, L.fc(now, 5)), OpValueError),
    ):
        with pytest.raises(error):
            fill(end)
        assert [p.desc.serialize_to_string() for p in programs] == before and main().current_block_idx == 0
    with pytest.raises(OpValueError, match="no step input"), rnn.block():
        L.ones([1], "float32")
    assert [p.desc.serialize_to_string() for p in programs] == before
    fill(rnn.update_memory)
    assert rnn().shape == (-1, 3)


def test_mistakes():
    x, rnn = words(width=2), L.DynamicRNN()
    for name in ("step_input", "static_input", "memory", "output"):
        with pytest.raises(OpValueError, match=f"{name} can only be invoked inside rnn block."):
            getattr(rnn, name)(x)
    with pytest.raises(OpValueError, match="update_memory can only be invoked inside rnn block."):
        rnn.update_memory(x, x)
    with pytest.raises(OpValueError, match="Output of the dynamic RNN can only be visited outside the rnn block."):
        rnn()
    with rnn.block():
        with pytest.raises(OpTypeError, match=r"x of DynamicRNN.step_input must be a Variable"):
            rnn.step_input(3)
        with pytest.raises(OpTypeError, match=r"x of DynamicRNN.static_input must be a Variable"):
            rnn.static_input(3)
        with pytest.raises(EnforceNotMet, match=r"static_input\(\) must be called after step_input\(\)."):
            rnn.static_input(x)
        with pytest.raises(
            OpValueError, match=r"step_input should be invoked before memory\(shape=..., value=...\)"
        ):
            rnn.memory(shape=[2])
        with pytest.raises(OpValueError, match="If set need_reorder to True, make sure step_input be invoked before"):
            rnn.memory(x, need_reorder=True)
        with pytest.raises(OpValueError, match=r"step_input should be invoked before memory\(init=...\)"):
            rnn.memory(x)
        with pytest.raises(OpTypeError, match="init of DynamicRNN.memory must be a Variable"):
            rnn.memory(3)
        with pytest.raises(OpValueError, match="Please invoke step_input before update_memory"):
            rnn.update_memory(x, x)
        with pytest.raises(OpValueError, match=r"step_input\(\) takes sequences"):
            rnn.step_input(L.data("flat", [2]))
        now = rnn.step_input(x)
        with pytest.raises(OpValueError, match="Please invoke memory before update_memory"):
            rnn.update_memory(now, now)
        with pytest.raises(OpTypeError, match="new_mem of DynamicRNN.update_memory must be a Variable"):
            rnn.update_memory(now, None)
        with pytest.raises(OpValueError, match="memory takes what it starts with"):
            rnn.memory()
        with pytest.raises(OpValueError, match="stepped through at one level"):
            rnn.step_input(words("deep", levels=2), level=1)
        with pytest.raises(OpValueError, match="takes what is made outside of the block"):
            rnn.static_input(now)
        with pytest.raises(OpTypeError, match="outputs of DynamicRNN.output must be a Variable"):
            rnn.output(now, 3)
        with pytest.raises(OpValueError, match="can only be visited outside the rnn block"):
            rnn()
    with pytest.raises(OpValueError, match="RNN has no output"):
        rnn()
    with pytest.raises(OpValueError, match=r"rnn.block\(\) can only be invoke once"):
        rnn.block()
