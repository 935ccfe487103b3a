"""Executors over several places: the numbers of one place, fetches of all places, errors."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb import layers
from fluidnb.errors import FluidError, NotBuiltYet
from tests.distributed.networks import (
    Built,
    batches,
    built,
    collective,
    fit_a_line,
    lenet,
    one_process,
    sentences,
    sentiment,
    types,
    word2vec,
)  # fmt: skip

TWO = [fluid.CPUPlace()] * 2


@pytest.fixture(autouse=True)
def no_thread_left() -> Iterator[None]:
    yield
    gc.collect()  # the frames of an error refer to places, whose threads end with them


def schedule() -> Any:
    return fluid.optimizer.Momentum(layers.piecewise_decay([2, 4], [0.1, 0.05, 0.01]), 0.9)


def sgd() -> Any:
    return fluid.optimizer.SGD(0.1)


def started(parts: Built) -> tuple[fluid.Executor, fluid.Scope]:
    """An executor, and a scope with the initial values."""
    exe, scope = fluid.Executor(), fluid.Scope()
    exe.run(parts[1], scope=scope)
    return exe, scope


def compiled(parts: Built, places: Any = TWO, scale: int = 0) -> fluid.CompiledProgram:
    """The program over places."""
    strategy = fluid.BuildStrategy()
    strategy.gradient_scale_strategy = fluid.BuildStrategy.GradientScaleStrategy(scale)
    return fluid.CompiledProgram(parts[0]).with_data_parallel(parts[2].name, strategy, places=places)


@pytest.mark.parametrize("network", [fit_a_line, lenet, word2vec, sentiment])
def test_two_places_give_the_numbers_of_one(network: Any) -> None:
    feeds = sentences(5) if network is sentiment else batches(built(network, schedule)[0], 5)
    expected_losses, expected = one_process(built(network, schedule), feeds)
    parts = built(network, schedule)
    exe, scope = started(parts)
    program = compiled(parts)
    losses = [exe.run(program, feed=feed, fetch_list=[parts[2]], scope=scope)[0] for feed in feeds]
    assert all(row.shape == (2,) for row in losses)
    np.testing.assert_allclose([row.mean() for row in losses], expected_losses, rtol=2e-5)
    for name, value in expected.items():
        got = np.array(scope.find_var(name).get_tensor())
        np.testing.assert_allclose(got, value, rtol=1e-4, atol=2e-5, err_msg=name)


@pytest.mark.parametrize("count", [1, 2, 4])
def test_parallel_executor_takes_as_many_places_as_the_environment_says(
    monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    monkeypatch.setenv("CPU_NUM", str(count))
    feeds = batches(built(lenet, sgd)[0], 3)
    expected_losses, _ = one_process(built(lenet, sgd), feeds)
    parts = built(lenet, sgd)
    _, scope = started(parts)
    train = fluid.ParallelExecutor(False, parts[2].name, parts[0], scope=scope)
    assert train.device_count == count
    losses = [train.run([parts[2].name], feed)[0] for feed in feeds]
    assert all(row.shape == (count,) for row in losses)
    np.testing.assert_allclose([row.mean() for row in losses], expected_losses, rtol=2e-5)


def test_a_list_of_feeds_has_one_for_each_place() -> None:
    parts = built(fit_a_line, sgd)
    exe, scope = started(parts)
    program, whole = compiled(parts), batches(parts[0], 1)[0]
    halves = [{name: value[:3] for name, value in whole.items()}, {name: value[3:] for name, value in whole.items()}]
    prediction = next(op.output("Out")[0] for op in parts[0].global_block().ops if op.type == "elementwise_add")
    loss, rows = exe.run(program, feed=halves, fetch_list=[parts[2], prediction], scope=scope)
    assert loss.shape == (2,) and rows.shape == (8, 1)
    with pytest.raises(FluidError, match="another length than there are places"):
        exe.run(program, feed=[whole], fetch_list=[parts[2]], scope=scope)


def test_sequences_are_shared_and_joined() -> None:
    words = layers.data("words", [1], dtype="int64", lod_level=1)
    doubled = layers.scale(words, 2.0)
    program = fluid.CompiledProgram(fluid.default_main_program()).with_data_parallel(places=TWO)
    value = fluid.create_lod_tensor(np.arange(10)[:, None], [[1, 2, 3, 4]], fluid.CPUPlace())
    exe = fluid.Executor()
    (out,) = exe.run(program, feed={"words": value}, fetch_list=[doubled], return_numpy=False)
    assert out.recursive_sequence_lengths() == [[1, 2, 3, 4]]
    assert np.array(out).ravel().tolist() == [2 * i for i in range(10)]
    with pytest.raises(FluidError, match="return_numpy=False"):
        exe.run(program, feed={"words": value}, fetch_list=[doubled])
    with pytest.raises(FluidError, match=r"A batch of 3 sequences cannot be shared equally by 2 places"):
        exe.run(program, feed={"words": (np.arange(6)[:, None], [[1, 2, 3]])}, fetch_list=[doubled])


def test_a_batch_that_does_not_divide_is_refused() -> None:
    parts = built(fit_a_line, sgd)
    exe, scope = started(parts)
    feed = batches(parts[0], 1, rows=7)[0]
    with pytest.raises(FluidError, match=r"A batch of 7 rows cannot be shared equally by 2 places(.|\n)*drop_last"):
        exe.run(compiled(parts), feed=feed, fetch_list=[parts[2]], scope=scope)


@pytest.mark.parametrize("scale, factor", [(0, 1.0), (1, 2.0), (2, 3.0)])
def test_the_gradient_of_the_loss_is_scaled_as_the_strategy_says(scale: int, factor: float) -> None:
    def linear() -> fluid.Variable:
        return layers.mean(layers.fc(layers.data("x", [5]), 1, bias_attr=False))

    parts = built(linear, sgd)
    feed = batches(parts[0], 1)[0]
    before = np.array(one_process(built(linear, sgd), [])[1]["fc_0.w_0"])
    step = one_process(built(linear, sgd), [feed])[1]["fc_0.w_0"] - before
    exe, scope = started(parts)
    if scale == 2:  # the mean over places of what the user feeds, 3, would be 1.5 of each
        feed = {**feed, f"{parts[2].name}@GRAD": np.full(2, 1.5, "float32")}
    exe.run(compiled(parts, scale=scale), feed=feed, scope=scope)
    after = np.array(scope.find_var("fc_0.w_0").get_tensor())
    np.testing.assert_allclose(after - before, factor * step, rtol=1e-4)


def test_places_share_the_parameters_of_the_scope() -> None:
    parts = built(fit_a_line, sgd)
    exe, scope = started(parts)
    program, feed = compiled(parts), batches(parts[0], 1)[0]
    first = exe.run(program, feed=feed, fetch_list=[parts[2]], scope=scope)[0]
    exe.run(program, feed=feed, scope=scope)
    exe.run(parts[1], scope=scope)  # initialized again, behind the back of the places
    assert exe.run(program, feed=feed, fetch_list=[parts[2]], scope=scope)[0].tolist() == first.tolist()


def test_running_averages_are_those_of_the_first_place() -> None:
    def normalized() -> fluid.Variable:
        return layers.mean(layers.batch_norm(layers.fc(layers.data("x", [5]), 3), momentum=0.5))

    parts = built(normalized, sgd)
    exe, scope = started(parts)
    feed = batches(parts[0], 1)[0]
    exe.run(compiled(parts), feed=feed, scope=scope)
    alone = built(normalized, sgd)
    _, expected = one_process(alone, [{"x": feed["x"][:4]}])
    for name in (p.name for p in alone[0].all_parameters() if not p.trainable):
        np.testing.assert_allclose(np.array(scope.find_var(name).get_tensor()), expected[name], rtol=1e-5)


def test_a_program_without_optimizer_and_an_edit() -> None:
    x = layers.data("x", [2])
    total = layers.reduce_sum(x)
    program = fluid.CompiledProgram(fluid.default_main_program()).with_data_parallel(places=TWO)
    exe, feed = fluid.Executor(), {"x": np.arange(8, dtype="float32").reshape(4, 2)}
    assert exe.run(program, feed=feed, fetch_list=[total])[0].tolist() == [6.0, 22.0]
    nested = [[0, 1], [2, 3], [4, 5], [6, 7]]  # gets the dtype of the variable
    assert exe.run(program, feed={"x": nested}, fetch_list=[total])[0].tolist() == [6.0, 22.0]
    more = layers.scale(total, 10.0)
    assert exe.run(program, feed=feed, fetch_list=[more])[0].tolist() == [60.0, 220.0]


def test_metrics_and_learning_rates_may_be_fetched() -> None:
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup):
        image, label = layers.data("x", [4]), layers.data("y", [1], dtype="int64")
        probabilities = layers.fc(image, 3, act="softmax")
        loss = layers.mean(layers.cross_entropy(probabilities, label))
        rate = layers.piecewise_decay([2, 4], [0.1, 0.05, 0.01])
        fluid.optimizer.SGD(rate).minimize(loss)
        accuracy = layers.accuracy(probabilities, label)  # behind the optimizer: places compute it all the same
    exe, scope = started((main, startup, loss))
    program = fluid.CompiledProgram(main).with_data_parallel(loss.name, places=TWO)
    draw = np.random.default_rng(0)
    feed = {"x": draw.random((4, 4), dtype=np.float32), "y": draw.integers(0, 3, (4, 1))}
    got = exe.run(program, feed=feed, fetch_list=[accuracy, rate, "fc_0.w_0"], scope=scope)
    assert got[0].shape == (2,) and got[1].tolist() == [np.float32(0.1)] * 2 and got[2].shape[0] == 8


def test_an_error_of_a_place_reaches_the_caller_and_the_next_run_is_whole() -> None:
    parts = built(word2vec, sgd)
    exe, scope = started(parts)
    program, feed = compiled(parts), batches(parts[0], 1)[0]
    wrong = {**feed, "first": np.array([[0]] * 4 + [[99999]] * 4)}
    for _ in range(2):
        with pytest.raises(FluidError, match="outside the table: 99999"):
            exe.run(program, feed=wrong, fetch_list=[parts[2]], scope=scope)
        assert exe.run(program, feed=feed, fetch_list=[parts[2]], scope=scope)[0].shape == (2,)


def test_a_reader_gives_each_place_a_batch_until_it_ends() -> None:
    reader = layers.py_reader(4, [(-1, 2)], ["float32"])
    x = layers.read_file(reader)
    total = layers.reduce_sum(x)
    program = fluid.CompiledProgram(fluid.default_main_program()).with_data_parallel(places=TWO)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    reader.decorate_tensor_provider(lambda: ([np.full((1, 2), i, "float32")] for i in range(4)))
    for _ in range(2):
        reader.start()
        sums: list[float] = []
        with pytest.raises(fluid.core.EOFException):
            while True:
                sums += exe.run(program, fetch_list=[total])[0].tolist()
        reader.reset()
        assert sorted(sums) == [0.0, 2.0, 4.0, 6.0]


def test_what_places_cannot_do_is_said() -> None:
    parts = built(fit_a_line, sgd)
    _, scope = started(parts)
    with pytest.raises(NotBuiltYet, match="Several GPUs at once are not built"):
        several = fluid.CompiledProgram(parts[0]).with_data_parallel(places=fluid.cuda_places([0, 1]))
        fluid.Executor().run(several, scope=scope)
    with fluid.program_guard(parts[0], parts[1]):
        layers.fc(parts[0].global_block().var("x"), 1, param_attr=fluid.ParamAttr(name="fc_0.w_0"))
    with pytest.raises(NotBuiltYet, match="read parameters after their update"):
        fluid.Executor().run(compiled(parts), feed=batches(parts[0], 1)[0], scope=scope)


def test_a_trainer_of_several_has_a_program_made_for_it() -> None:
    parts = built(fit_a_line, sgd)
    with pytest.raises(FluidError, match=r"not made for trainer 0 of 2(.|\n)*a program for one trainer"):
        fluid.ParallelExecutor(False, main_program=parts[0], num_trainers=2)
    program = collective(parts).get_trainer_program()
    assert fluid.ParallelExecutor(False, main_program=program, num_trainers=2).device_count == 1
    with pytest.raises(FluidError, match=r"not made for trainer 1 of 3(.|\n)*a program for trainer 0 of 2"):
        fluid.ParallelExecutor(False, main_program=program, num_trainers=3, trainer_id=1)
    with pytest.raises(NotBuiltYet, match="a program that has an all-reduce"):
        compiled((program, parts[1], parts[2])).on_places()


def test_the_feeder_gives_each_place_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CPU_NUM", "2")
    feeder = fluid.DataFeeder([layers.data("x", [1])], fluid.CPUPlace())

    def reader() -> Iterator[Any]:
        return iter([[(float(i),), (float(i),)] for i in range(5)])

    def shapes(feeds: Any) -> Any:
        return [[np.array(feed["x"])[0].item() for feed in item] for item in feeds()]

    assert shapes(feeder.decorate_reader(reader, multi_devices=True)) == [[0, 1], [2, 3]]
    assert shapes(feeder.decorate_reader(reader, multi_devices=True, num_places=1)) == [[0], [1], [2], [3], [4]]
    with pytest.raises(FluidError, match=r"1 batch is left for 2 places(.|\n)*drop_last=True"):
        shapes(feeder.decorate_reader(reader, multi_devices=True, drop_last=False))
    assert [len(list(feeder.feed_parallel([[(1.0,)], [(2.0,)]], num_places=2)))] == [2]
    with pytest.raises(FluidError, match="takes a batch for each place"):
        list(feeder.feed_parallel([[(1.0,)]], num_places=2))


def test_threads_end_with_their_places() -> None:
    parts = built(fit_a_line, sgd)
    exe, scope = started(parts)
    before = {t.ident for t in threading.enumerate()}
    program = compiled(parts)
    exe.run(program, feed=batches(parts[0], 1)[0], scope=scope)
    mine = [t for t in threading.enumerate() if t.ident not in before]
    assert [t.name.startswith("fluidnb place") for t in mine] == [True]
    del program
    gc.collect()
    mine[0].join(10)
    assert not mine[0].is_alive()


def test_a_closed_executor_runs_nothing() -> None:
    parts = built(fit_a_line, sgd)
    exe, scope = started(parts)
    exe.close()
    with pytest.raises(FluidError, match="closed Executor"):
        exe.run(compiled(parts), feed=batches(parts[0], 1)[0], scope=scope)


def test_dropout_differs_among_places() -> None:
    dropped = layers.dropout(layers.data("x", [100]), 0.5)
    main = fluid.default_main_program()
    main.random_seed = 5
    program = fluid.CompiledProgram(main).with_data_parallel(places=TWO)
    (out,) = fluid.Executor().run(program, feed={"x": np.ones((2, 100), "float32")}, fetch_list=[dropped])
    assert not np.array_equal(out[0], out[1])
    assert types(main.global_block()) == ["dropout"]


def test_values_that_do_not_fit_behind_each_other_are_refused() -> None:
    x = layers.data("x", [1], lod_level=1)
    padded, _ = layers.sequence_pad(x, layers.fill_constant([1], "float32", 0.0))
    program, exe = fluid.default_main_program(), fluid.Executor()
    places = fluid.CompiledProgram(program).with_data_parallel(places=fluid.cpu_places(2))
    rows = [fluid.create_lod_tensor(np.ones((n, 1), "float32"), [[n]], fluid.CPUPlace()) for n in (2, 3)]
    with pytest.raises(FluidError, match="do not fit behind each other"):
        exe.run(places, feed=[{"x": row} for row in rows], fetch_list=[padded])
    doubled = layers.scale(x, 2.0)
    other = fluid.CompiledProgram(program.prune([doubled])).with_data_parallel(places=fluid.cpu_places(2))
    for feeds in (rows[0], np.ones((2, 1), "float32")), (np.ones((2, 1), "float32"), rows[0]):
        with pytest.raises(FluidError, match="with 0|with 1"):
            exe.run(other, feed=[{"x": fed} for fed in feeds], fetch_list=[doubled], return_numpy=False)
    with pytest.raises(FluidError, match="unexpected keyword argument 'fetchlist'"):
        exe.run(other, feed=[{"x": row} for row in rows], fetchlist=[doubled])
    with pytest.raises(FluidError, match="return_numpy of Executor.run must be True or False"):
        exe.run(other, feed=[{"x": row} for row in rows], fetch_list=[doubled], return_numpy="no")


def test_a_run_inside_itself_is_refused() -> None:
    x, exe, places = layers.data("x", [2]), fluid.Executor(), list[Any]()
    out = fluid.default_main_program().current_block().create_var(name="out", dtype="float32", shape=[-1, 2])

    def again(value: Any) -> Any:
        for inside in places:
            exe.run(inside, feed=feed, fetch_list=[out])
        return np.array(value)

    layers.py_func(again, x, out)
    outside = fluid.CompiledProgram(fluid.default_main_program()).with_data_parallel(places=fluid.cpu_places(2))
    feed = {"x": np.ones((2, 2), "float32")}
    places.append(outside)
    with pytest.raises(FluidError, match="cannot run inside its own run"):
        exe.run(outside, feed=feed, fetch_list=[out])
    places.clear()  # py_func keeps its function, which would keep the threads
    assert exe.run(outside, feed=feed, fetch_list=[out])[0].tolist() == [[1, 1], [1, 1]]
