"""Programs with py_reader: the same numbers as with feeds, the end of a pass, errors in readers."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb import viz
from fluidnb.debug.debugger import Debugger
from fluidnb.errors import EnforceNotMet, NotBuiltYet, OpTypeError, OpValueError
from fluidnb.passes.lint import lint
from tests.tools.refused import refused

L = fluid.layers
EOF = fluid.core.EOFException
SHAPES, DTYPES = [(-1, 3), (-1, 1)], ["float32", "int64"]
RNG = np.random.default_rng(7)
SAMPLES = [(RNG.random(3).astype("float32"), [i % 4]) for i in range(10)]


def batches() -> Iterator[Any]:
    """Batches of four, four and two samples."""
    return iter(fluid.batch(lambda: iter(SAMPLES), 4)())


def net(x: Any, label: Any) -> Any:
    """A loss with momentum behind it."""
    attr = [fluid.ParamAttr(initializer=fluid.initializer.Constant(v)) for v in (0.3, 0.1)]
    hidden = L.fc(x, 5, act="tanh", param_attr=attr[0])
    weights = fluid.ParamAttr(initializer=fluid.initializer.NumpyArrayInitializer(np.arange(20.0).reshape(5, 4) / 20))
    loss = L.mean(L.cross_entropy(L.fc(hidden, 4, act="softmax", param_attr=weights), label))
    fluid.optimizer.Momentum(0.1, 0.9).minimize(loss)
    return loss


def reading(**kwargs: Any) -> tuple[Any, Any]:
    """A started program that reads, as (reader, loss)."""
    reader = L.py_reader(8, SHAPES, DTYPES, **kwargs)
    reader.decorate_paddle_reader(batches)
    loss = net(*L.read_file(reader))
    fluid.Executor().run(fluid.default_startup_program())
    return reader, loss


def passes(reader: Any, run: Callable[[], Any], count: int = 3) -> list[float]:
    """The losses of some passes."""
    losses = []
    for _ in range(count):
        reader.start()
        with pytest.raises(EOF):
            while True:
                losses.append(float(np.ravel(run())[0]))
        reader.reset()
    return losses


def fed_losses(count: int = 3) -> list[float]:
    """The losses of the same passes with feeds."""
    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.unique_name.guard(), scope():
        x, label = L.data("x", [3]), L.data("label", [1], dtype="int64")
        loss = net(x, label)
        exe = fluid.Executor()
        exe.run(fluid.default_startup_program())
        feeder = fluid.DataFeeder([x, label], fluid.CPUPlace())
        return [float(exe.run(feed=feeder.feed(b), fetch_list=[loss])[0][0]) for _ in range(count) for b in batches()]


def scope() -> Any:
    """A guard with a new scope."""
    return fluid.scope_guard(fluid.Scope())


def reader_threads() -> list[threading.Thread]:
    """The threads that fill readers now."""
    return [t for t in threading.enumerate() if t.name.startswith("fluidnb ") and "reader" in t.name]


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    """Check that no thread of a reader outlives its test."""
    before = set(reader_threads())
    yield
    gc.collect()
    until = time.monotonic() + 5
    while set(reader_threads()) - before and time.monotonic() < until:
        time.sleep(0.01)
    assert not set(reader_threads()) - before


@pytest.mark.parametrize("double", [True, False])
@pytest.mark.parametrize("how", ["executor", "machine", "parallel", "compiled", "list"])
def test_losses_are_those_of_feeds(how: str, double: bool) -> None:
    with scope():
        reader, loss = reading(use_double_buffer=double)
        main, exe = fluid.default_main_program(), fluid.Executor()
        parallel = fluid.ParallelExecutor(use_cuda=False, loss_name=loss.name)
        compiled = fluid.CompiledProgram(main).with_data_parallel(loss_name=loss.name)
        run = {
            "executor": lambda: exe.run(main, fetch_list=[loss])[0],
            "machine": lambda: exe.run(main, fetch_list=[loss], keep_scopes=True)[0],
            "parallel": lambda: parallel.run([loss.name])[0],
            "compiled": lambda: exe.run(compiled, fetch_list=[loss.name])[0],
            "list": lambda: exe.run(main, feed={}, fetch_list=[loss])[0],
        }[how]
        losses = passes(reader, run)
    assert len(losses) == 9
    assert losses == fed_losses()


def test_sequences_keep_their_lod() -> None:
    def samples() -> Iterator[Any]:
        yield [([1, 2, 3], [0]), ([4], [1])]
        yield [([5, 6], [1])]

    reader = L.py_reader(4, [(-1, 1), (-1, 1)], ["int64", "int64"], lod_levels=[1, 0])
    words, label = L.read_file(reader)
    assert (words.lod_level, label.lod_level, words.shape) == (1, 0, (-1, 1))
    total = L.sequence_pool(L.cast(words, "float32"), "sum")
    reader.decorate_paddle_reader(samples)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    reader.start()
    got = [exe.run(fetch_list=[total, label]) for _ in range(2)]
    assert [g[0].ravel().tolist() for g in got] == [[6, 4], [11]] and got[0][1].ravel().tolist() == [0, 1]
    reader.reset()


def test_a_train_and_a_test_program_share_parameters_and_have_a_reader_each() -> None:
    def build(name: str, optimize: bool) -> tuple[Any, Any, Any, Any]:
        main, startup = fluid.Program(), fluid.Program()
        with fluid.program_guard(main, startup), fluid.unique_name.guard():
            reader = L.py_reader(4, SHAPES, DTYPES, name=name)
            x, label = L.read_file(reader)
            loss = L.mean(L.cross_entropy(L.fc(x, 4, act="softmax"), label))
            if optimize:
                fluid.optimizer.SGD(0.5).minimize(loss)
        reader.decorate_paddle_reader(batches)
        return (main if optimize else main.clone(for_test=True)), startup, reader, loss

    train, train_startup, train_reader, loss = build("train", True)
    test, test_startup, test_reader, test_loss = build("test", False)
    exe = fluid.Executor()
    exe.run(train_startup)
    exe.run(test_startup)
    tested = []
    for _ in range(3):
        tested.append(np.mean(passes(test_reader, lambda: exe.run(test, fetch_list=[test_loss])[0], 1)))
        passes(train_reader, lambda: exe.run(train, fetch_list=[loss.name])[0], 4)
    assert tested[0] > tested[1] > tested[2]


def test_data_variables_describe_a_reader() -> None:
    x, label = L.data("x", [3]), L.data("label", [1], dtype="int64", lod_level=1)
    reader = L.create_py_reader_by_data(4, [x, label], name="r")
    assert reader.name == "r_double_buffer" and reader.desc.lod_levels() == [0, 1]
    one, two = L.read_file(reader)
    assert (one.shape, two.shape, two.dtype.name, two.lod_level) == ((-1, 3), (-1, 1), "INT64", 1)
    reader.decorate_batch_generator(lambda: iter([[np.ones((2, 3), "float32"), np.zeros((2, 1), "int64")]]))
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    reader.start()
    assert exe.run(fetch_list=[one])[0].tolist() == [[1, 1, 1], [1, 1, 1]]
    reader.reset()


def test_what_the_python_reader_raises_reaches_the_run_with_its_line() -> None:
    reader, loss = reading()

    def broken() -> Iterator[Any]:
        yield from list(batches())[:1]
        raise OSError("the disk is gone")  # this line

    reader.decorate_paddle_reader(broken)
    reader.start()
    exe = fluid.Executor()
    exe.run(fetch_list=[loss])
    for _ in range(2):
        with pytest.raises(EnforceNotMet, match="The Python reader of create_py_reader_0 raised OSError") as caught:
            exe.run(fetch_list=[loss])
        assert 'raise OSError("the disk is gone")  # this line' in str(caught.value)
        assert "op 1 (read) in block 0" in str(caught.value)
        cause = caught.value.__cause__
        assert isinstance(cause, OSError) and cause.__traceback__ is not None
    reader.reset()
    reader.decorate_paddle_reader(batches)
    assert len(passes(reader, lambda: exe.run(fetch_list=[loss])[0], 1)) == 3


@pytest.mark.parametrize(
    ("batch", "text"),
    [
        ([np.ones((2, 3), "float32")], "takes a list with an array for each tensor"),
        ([np.ones((2, 4), "float32"), np.ones((2, 1), "int64")], r"should have dimensions = 2, shape = \(-1, 3\)"),
        ([np.ones((2, 3)), np.ones((2, 1), "int64")], "should have dtype float32, but received float64"),
        (["abc", np.ones((2, 1), "int64")], "cannot be made an array"),
    ],
)
def test_batches_are_compared_with_what_is_declared(batch: Any, text: str) -> None:
    reader, loss = reading()
    reader.decorate_tensor_provider(lambda: iter([batch]))
    reader.start()
    with refused((OpValueError, OpTypeError), text) as caught:
        fluid.Executor().run(fetch_list=[loss])
    assert "(read) in block 0" in str(caught.value)
    reader.reset()


def test_an_array_that_is_filled_again_and_again_is_copied() -> None:
    reader, _ = reading()
    x = fluid.default_main_program().global_block().ops[1].output("Out")[0]
    full = threading.Event()

    def same() -> Iterator[Any]:
        array = np.zeros((1, 3), "float32")
        for i in range(4):
            array[:] = i
            yield [array, np.zeros((1, 1), "int64")]
        full.set()

    reader.decorate_tensor_provider(same)
    reader.start()
    assert full.wait(10)
    exe = fluid.Executor()
    assert [exe.run(fetch_list=[x])[0][0, 0] for _ in range(4)] == [0, 1, 2, 3]
    reader.reset()


def test_passes_are_started_and_ended() -> None:
    reader = L.py_reader(8, SHAPES, DTYPES)
    loss = net(*L.read_file(reader))
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())

    def run() -> Any:
        return exe.run(fetch_list=[loss])[0]

    with pytest.raises(EnforceNotMet, match="has nothing to read yet"):
        reader.start()
    with pytest.raises(EnforceNotMet, match="has not been started") as caught:
        run()
    assert "reader.start()" in str(caught.value.hint)
    reader.decorate_paddle_reader(batches)
    reader.start()
    with pytest.raises(EnforceNotMet, match="has been started already"):
        reader.start()
    for _ in range(3):
        run()
    for _ in range(2):
        with pytest.raises(EOF, match=r"There is no next data(.|\n)*fluid\.core\.EOFException"):
            run()
    reader.start()  # the pass is over: nothing is lost without reset()
    run()
    reader.reset()
    reader.reset()
    with pytest.raises(EnforceNotMet, match="has not been started"):
        run()
    reader.start()
    assert len(passes_left(run)) == 3, "a new pass begins at the first batch"
    reader.reset()


def passes_left(run: Callable[[], Any]) -> list[Any]:
    """The results of a pass until it ends."""
    got = []
    with pytest.raises(EOF):
        while True:
            got.append(run())
    return got


def test_no_more_batches_are_read_ahead_than_there_is_room_for() -> None:
    reader = L.py_reader(2, [(-1, 1)], ["float32"])
    x = L.read_file(reader)
    taken: list[int] = []

    def counted() -> Iterator[Any]:
        for i in range(50):
            taken.append(i)
            yield [np.full((1, 1), i, "float32")]

    reader.decorate_tensor_provider(counted)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    reader.start()
    for i in range(5):
        assert exe.run(fetch_list=[x])[0].item() == i
        time.sleep(0.02)
        assert reader.queue.size() <= reader.queue.capacity() == 2 and not reader.queue.is_closed()
        assert len(taken) <= i + 1 + 2 + 1  # read, waiting in the queue, and one in the thread's hand
    reader.reset()
    assert reader.queue.size() == 0 and reader.queue.is_closed()


def test_a_reader_that_nobody_has_any_more_ends_its_thread() -> None:
    with fluid.program_guard(fluid.Program(), fluid.Program()), scope():
        reader, loss = reading()
        reader.decorate_paddle_reader(lambda: (b for _ in range(10**6) for b in batches()))
        reader.start()
        fluid.Executor().run(fetch_list=[loss])
        assert len(reader_threads()) == 1
    del reader, loss  # the fixture waits for the thread


def test_programs_that_read_are_cloned_saved_pruned_drawn_and_checked(tmp_path: Any) -> None:
    reader, loss = reading()
    main = fluid.default_main_program()
    again = fluid.Program.parse_from_string(main.desc.serialize_to_string())
    held = again.global_block().var("create_py_reader_0")
    assert held.type == fluid.core.VarDesc.VarType.READER and held.desc.shapes() == [[-1, 3], [-1, 1]]
    assert lint(main) == lint(again) == []
    picture = viz.read_program(main)
    for drawn in ("\n".join(map(str, viz.program_lines(picture))), viz.program_svg(picture), main._to_readable_code()):
        assert "create_double_buffer_reader" in drawn and "read_file_0.tmp_1" in drawn
    exe = fluid.Executor()
    losses = passes(reader, lambda: exe.run(again, fetch_list=[loss.name])[0], 1)
    held = "Reader(create_py_reader_0, BatchQueue(create_py_reader_0: not started))"
    assert held in repr(viz.read_scope(fluid.global_scope()))
    test = main.clone()
    copied = test.global_block().var("double_buffer_0")
    copied.start()  # the clone's reader is the same
    assert len(passes_left(lambda: exe.run(test, fetch_list=[loss.name]))) == 3
    copied.reset()
    assert len(losses) == 3
    x = main.global_block().ops[1].output("Out")[0]
    prediction = next(op for op in main.global_block().ops if op.type == "cross_entropy").input("X")[0]
    fluid.io.save_persistables(exe, str(tmp_path / "all"), main)
    fluid.io.save_inference_model(str(tmp_path / "model"), [x], [main.global_block().var(prediction)], exe)
    program, feeds, fetches = fluid.io.load_inference_model(str(tmp_path / "model"), exe)
    assert "read" not in {op.type for op in program.global_block().ops}
    assert exe.run(program, feed={feeds[0]: np.ones((2, 3), "float32")}, fetch_list=fetches)[0].shape == (2, 4)


def test_memory_optimize_leaves_readers_alone() -> None:
    with scope():
        reader, loss = reading()
        fluid.memory_optimize(fluid.default_main_program())
        exe = fluid.Executor()
        losses = passes(reader, lambda: exe.run(fetch_list=[loss])[0])
    assert losses == fed_losses()


def test_the_debugger_goes_back_over_a_read() -> None:
    reader, loss = reading()
    x = fluid.default_main_program().global_block().ops[1].output("Out")[0]
    reader.start()
    session = fluid.debug(fluid.default_main_program(), {}, [loss])
    session.step(2)
    first = session[x].copy()
    np.testing.assert_array_equal(first, [s[0] for s in SAMPLES[:4]])
    session.back()
    session.step()
    np.testing.assert_array_equal(session[x], first)
    session.continue_()
    one = session.results[0].item()
    session.begin({}, [loss])
    session.step(2)
    second = session[x].copy()
    np.testing.assert_array_equal(second, [s[0] for s in SAMPLES[4:8]])
    session.reverse_continue()  # to the beginning of the first run
    session.go(0)
    session.step(2)
    np.testing.assert_array_equal(session[x], first)
    session.continue_()  # also through the second run, which reads the second batch again
    assert [one, session.results[0].item()] == fed_losses(1)[:2]
    np.testing.assert_array_equal(session[x], second)
    session.close()
    np.testing.assert_array_equal(fluid.Executor().run(fetch_list=[x])[0], [s[0] for s in SAMPLES[8:]])
    reader.reset()


@pytest.mark.parametrize("ends", ["run", "session"])
def test_the_end_of_a_pass_under_the_debugger(ends: str) -> None:
    reader, loss = reading()
    reader.decorate_paddle_reader(lambda: iter([]))
    reader.start()
    if ends == "session":
        session = fluid.debug(fluid.default_main_program(), {}, [loss])
        assert session.continue_().reason == "the operator failed" and isinstance(session.snapshot.error, EOF)
    else:
        session = fluid.debug(fluid.default_main_program())
        with session, pytest.raises(EOF):
            fluid.Executor().run(fetch_list=[loss])
    session.close()
    reader.reset()


def waiting_reader() -> tuple[Any, Any, threading.Event]:
    """A reader whose first batch comes when the event is set."""
    reader, loss = reading()
    ready = threading.Event()

    def late() -> Iterator[Any]:
        ready.wait(30)
        yield from batches()

    reader.decorate_paddle_reader(late)
    reader.start()
    return reader, loss, ready


def test_ctrl_c_while_a_run_waits_for_a_batch_loses_none() -> None:
    reader, loss, ready = waiting_reader()
    exe = fluid.Executor()
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        exe.run(fetch_list=[loss])
    assert time.monotonic() - began < 5
    ready.set()
    assert len(passes_left(lambda: exe.run(fetch_list=[loss]))) == 3
    reader.reset()


def test_a_session_that_waits_for_a_batch_can_be_paused() -> None:
    reader, loss, ready = waiting_reader()
    session = fluid.debug(fluid.default_main_program(), {}, [loss])
    waiting = session.post(Debugger.continue_)
    time.sleep(0.2)
    assert not waiting.done()
    session.pause()
    assert waiting.result(10).reason == "paused"
    ready.set()
    assert session.continue_().state == "done"
    session.close()
    reader.reset()


@pytest.mark.parametrize("source", ["yield batch", "time.sleep(1000)"], ids=["full", "hanging"])
def test_the_end_of_the_interpreter_is_not_held_up(source: str) -> None:
    program = f"""
import time
import numpy as np, fluidnb as fluid
from fluidnb.data.reader import threads
threads.PATIENCE = 0.2
reader = fluid.layers.py_reader(2, [(-1, 1)], ["float32"])
x = fluid.layers.read_file(reader)
batch = [np.ones((1, 1), "float32")]
def source():
    yield batch
    while True:
        {source}
reader.decorate_tensor_provider(source)
exe = fluid.Executor()
exe.run(fluid.default_startup_program())
reader.start()
print(exe.run(fetch_list=[x])[0])
"""
    env = {**os.environ, "PYTHONPATH": ":".join(sys.path)}
    done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "[[1.]]\n", "")


def test_a_startup_program_that_runs_again_keeps_the_pass() -> None:
    reader, loss = reading()
    exe = fluid.Executor()
    reader.start()
    exe.run(fetch_list=[loss])
    exe.run(fluid.default_startup_program())
    assert len(passes_left(lambda: exe.run(fetch_list=[loss]))) == 2
    reader.reset()


def test_a_reader_that_was_built_anew_is_the_one_that_is_read() -> None:
    exe, values = fluid.Executor(), []
    for value in (1.0, 2.0):
        with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.unique_name.guard():
            reader = L.py_reader(2, [(-1, 1)], ["float32"])
            x = L.read_file(reader)
            reader.decorate_tensor_provider(lambda value=value: iter([[np.full((1, 1), value, "float32")]]))
            exe.run(fluid.default_startup_program())
            reader.start()
            values.append(exe.run(fetch_list=[x])[0].item())
            reader.reset()
    assert values == [1, 2]


def test_another_scope_has_no_queue() -> None:
    L.py_reader(2, [(-1, 1)], ["float32"])
    with pytest.raises(EnforceNotMet, match=r"The scope has no queue lod_tensor_blocking_queue_0") as caught:
        fluid.Executor().run(fluid.default_startup_program(), scope=fluid.Scope())
    assert "create_py_reader" in str(caught.value)


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda: L.py_reader(0, SHAPES, DTYPES), OpValueError, "must hold at least one batch"),
        (lambda: L.py_reader(2, SHAPES, ["float32"]), OpValueError, "2, 1 and 2 entries"),
        (lambda: L.py_reader(2, SHAPES, "float32"), OpTypeError, "dtypes of py_reader must be a list"),
        (lambda: L.py_reader(2, 3, DTYPES), OpTypeError, "shapes of py_reader must be a list of lists"),
        (lambda: L.py_reader(2, [(-1, "a")], ["float32"]), OpTypeError, "shapes of py_reader must be a list of lists"),
        (lambda: L.create_py_reader_by_data(2, []), OpTypeError, "feed_list should be a list of Variable"),
        (lambda: L.create_py_reader_by_data(2, ["x"]), OpTypeError, "feed_list of create_py_reader_by_data must be"),
        (lambda: L.read_file(L.data("x", [1])), OpTypeError, "read_file takes a reader variable"),
        (lambda: L.double_buffer(batches), OpTypeError, "reader of double_buffer must be a Variable"),
        (lambda: L.py_reader(2, SHAPES, DTYPES).decorate_tensor_provider(batches()), OpTypeError, "must be a reader"),
        (lambda: L.open_files(["a"], SHAPES, [0, 0], DTYPES), NotBuiltYet, "open data files by themselves"),
    ],
)
def test_what_makes_no_reader_is_refused(call: Callable[[], Any], kind: type[Exception], text: str) -> None:
    with refused(kind, text):
        call()


def test_a_slow_signal_handler_does_not_keep_a_waiting_run_from_being_stopped() -> None:
    reader, loss, ready = waiting_reader()
    exe = fluid.Executor()
    before = signal.signal(signal.SIGALRM, lambda *_: time.sleep(0.1))  # longer than one turn of the wait
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    threading.Timer(0.4, os.kill, (os.getpid(), signal.SIGINT)).start()
    threading.Timer(2.0, ready.set).start()
    began = time.monotonic()
    try:
        with pytest.raises(KeyboardInterrupt):
            exe.run(fetch_list=[loss])
    finally:
        signal.signal(signal.SIGALRM, before)
    assert time.monotonic() - began < 1.5
    reader.reset()


@pytest.mark.parametrize("with_lengths", [False, True])
def test_a_generator_may_fill_one_tensor_again_and_again(with_lengths: bool) -> None:
    reader = L.py_reader(8, [(-1, 2)], ["float32"], lod_levels=[1])
    array = np.zeros((1, 2), "float32")

    def generator() -> Iterator[Any]:
        for i in range(6):
            array[:] = i
            yield [(array, [[1]])] if with_lengths else [fluid.LoDTensor(array, [[0, 1]])]

    reader.decorate_tensor_provider(generator)
    total = L.reduce_sum(L.read_file(reader))
    fluid.Executor().run(fluid.default_startup_program())
    reader.start()
    assert [fluid.Executor().run(fetch_list=[total])[0].item() for _ in range(6)] == [0, 2, 4, 6, 8, 10]
