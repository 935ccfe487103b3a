"""PyReader: batches by three roads, read ahead, errors where they belong."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.data.py_reader import PyReader
from fluidnb.errors import EnforceNotMet, OpTypeError, OpValueError


def variables():
    return fluid.layers.data("x", shape=[2]), fluid.layers.data("y", shape=[1], dtype="int64")


def samples(n=5):
    return lambda: iter([([i, i + 0.5], i) for i in range(n)])


def test_samples_become_batches_that_a_program_takes():
    x, y = variables()
    total = fluid.layers.reduce_sum(x)
    reader = fluid.io.PyReader([x, y], capacity=2)
    reader.decorate_sample_generator(samples(), batch_size=2, drop_last=False)
    exe = fluid.Executor(fluid.CPUPlace())
    for _ in range(2):  # every pass starts over
        got = [exe.run(feed=feed, fetch_list=[total, y]) for feed in reader()]
        assert [g[0].item() for g in got] == [3, 11, 8.5] and [len(g[1]) for g in got] == [2, 2, 1]


def test_lists_of_samples_and_whole_batches():
    x, y = variables()
    reader = PyReader([x, y], capacity=1, return_list=True)
    reader.decorate_sample_list_generator(fluid.batch(samples(), 2))
    assert [[t.shape() for t in feed] for feed in reader] == [[[2, 2], [2, 1]]] * 2 + [[[1, 2], [1, 1]]]
    reader.decorate_batch_generator(lambda: iter([(np.ones((3, 2), "float32"), np.zeros((3, 1), "int64"))]))
    ((one, two),) = list(reader())
    assert one.shape() == [3, 2] and two._dtype() == 3


def test_it_reads_ahead_but_not_further_than_its_capacity():
    x, _ = variables()
    read, go = [], threading.Event()

    def batches():
        for i in range(10):
            read.append(i)
            if len(read) == 3:
                go.set()
            yield (np.full((1, 2), i, "float32"),)

    reader = PyReader([x], capacity=2)
    reader.decorate_batch_generator(batches)
    feeds = reader()
    assert np.asarray(next(feeds)["x"])[0, 0] == 0
    assert go.wait(60) and len(read) <= 5
    feeds.close()


def test_an_error_comes_where_its_batch_would_have_been():
    x, _ = variables()

    def batches():
        yield (np.ones((1, 2), "float32"),)
        raise RuntimeError("the disk is gone")

    reader = PyReader([x], capacity=4)
    reader.decorate_batch_generator(batches)
    feeds = reader()
    next(feeds)
    with pytest.raises(RuntimeError, match="the disk is gone"):
        next(feeds)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda x: PyReader([], 2), OpValueError, "needs the variables"),
        (lambda x: PyReader([x]), OpValueError, "has no capacity"),
        (lambda x: PyReader([x], 2).start(), OpValueError, "iterable=False"),
        (lambda x: PyReader([x], 2, iterable=False)(), OpValueError, "cannot be iterated"),
        (lambda x: PyReader([x], 2, iterable=False).start(), EnforceNotMet, "nothing to read"),
        (lambda x: PyReader([x], 2)(), OpValueError, "nothing to read yet"),
        (lambda x: PyReader([x], 2).start(), OpValueError, "iterable=False"),
        (lambda x: PyReader([x], 2).decorate_batch_generator(list, "gpu"), OpTypeError, "feeds one place"),
    ],
)
def test_mistakes(call, error, text):
    with pytest.raises(error) as caught:
        call(variables()[0])
    assert text in caught.value.text(without=["at"])  # the line of the call has the text too


def test_a_batch_with_another_number_of_fields():
    reader = PyReader(variables(), capacity=1)
    reader.decorate_batch_generator(lambda: iter([(np.ones((1, 2), "float32"),)]))
    with pytest.raises(OpValueError, match=r"fields in data \(1\) does not match len\(feed_list\) \(2\)"):
        list(reader())


def test_an_inference_program_leaves_out_readers() -> None:
    reader = fluid.layers.py_reader(4, [[-1, 3]], ["float32"], use_double_buffer=True)
    y = fluid.layers.scale(fluid.layers.read_file(reader), scale=2.0)
    main = fluid.default_main_program()
    kept, without = main._inference_optimize(prune_read_op=False), main._inference_optimize()
    assert [op.type for op in kept.global_block().ops] == ["create_double_buffer_reader", "read", "scale"]
    assert [op.type for op in without.global_block().ops] == ["scale"]
    assert not any(v.type == fluid.core.VarDesc.VarType.READER for v in without.global_block().vars.values())
    [x] = without.global_block().ops[0].input("X")
    got = fluid.Executor(fluid.CPUPlace()).run(without, feed={x: np.ones((2, 3), "float32")}, fetch_list=[y.name])
    assert got[0].tolist() == [[2.0] * 3] * 2


@pytest.mark.parametrize("kind", ["samples", "lists", "batches"])
@pytest.mark.parametrize("buffered", [True, False])
def test_a_program_that_reads_its_variables_by_itself(kind, buffered):
    """As PyReader(iterable=False) of version 1.4: start, run without feed until the pass is over, reset."""
    with fluid.fresh(), fluid.scope_guard(fluid.Scope()):
        x, y = fluid.layers.data("x", [2]), fluid.layers.data("y", [1], dtype="int64")
        reader = fluid.io.PyReader(feed_list=[x, y], capacity=2, use_double_buffer=buffered, iterable=False)
        assert not reader.iterable and PyReader([x], 2).iterable
        total = fluid.layers.reduce_sum(x)
        samples = [([i, 1.0], [i]) for i in range(5)]
        if kind == "samples":
            reader.decorate_sample_generator(lambda: iter(samples), batch_size=2, drop_last=False)
        elif kind == "lists":
            reader.decorate_sample_list_generator(fluid.batch(lambda: iter(samples), 2))
        else:
            parts = [samples[:2], samples[2:4], samples[4:]]
            whole = [(np.array([x for x, _ in p], "f4"), np.array([y for _, y in p], "i8")) for p in parts]
            reader.decorate_batch_generator(lambda: iter(whole))
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(fluid.default_startup_program())
        for _ in range(2):
            reader.start()
            found = []
            with pytest.raises(fluid.core.EOFException):
                while True:
                    found.append([v.ravel().tolist() for v in exe.run(fetch_list=[total, y])])
            reader.reset()
            assert found == [[[3.0], [0, 1]], [[7.0], [2, 3]], [[5.0], [4]]]


def reused_tensor():
    """A generator that fills one tensor again and again."""
    tensor = fluid.LoDTensor()
    for i in range(6):
        tensor.set(np.full((1, 2), i, "float32"))
        tensor.set_lod([[0, 1]])
        yield [tensor]


def test_a_generator_may_fill_one_tensor_again_and_again():
    x, _ = variables()
    reader = PyReader([x], capacity=4)
    reader.decorate_batch_generator(reused_tensor)
    feeds = [feed["x"] for feed in reader()]
    assert [np.asarray(t)[0, 0] for t in feeds] == [0, 1, 2, 3, 4, 5] and feeds[0].lod() == [[0, 1]]


def test_names_of_variables_serve_whole_batches_too():
    variables()
    reader = PyReader(["x"], capacity=4)
    reader.decorate_batch_generator(lambda: iter([[np.ones((1, 2), "float32")]]))
    assert [list(feed) for feed in reader()] == [["x"]]


def test_batches_that_are_no_arrays():
    x, _ = variables()
    reader = PyReader([x], capacity=2)
    reader.decorate_batch_generator(lambda: iter([[[[1, 2], [3]]]]))
    with pytest.raises(OpTypeError, match="not an array of numbers"):
        next(reader())
    reader.decorate_batch_generator(lambda: 5)
    with pytest.raises(OpTypeError, match="must return the samples of one pass"):
        next(reader())


@pytest.mark.parametrize("iterable", [True, False])
def test_variables_that_are_none(iterable):
    with pytest.raises(OpTypeError, match="list of variables"):
        PyReader([None], 2, iterable=iterable)
