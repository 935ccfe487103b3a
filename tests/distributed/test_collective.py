"""Trainers without servers: programs, the numbers of one process, errors that name the trainer."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb import layers
from fluidnb.distributed import LocalEngine, split_batches
from fluidnb.distributed.group import Group
from fluidnb.errors import EnforceNotMet, FluidError
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

FIT_A_LINE = [
    "mul", "elementwise_add", "elementwise_sub", "square", "mean",
    "fill_constant", "scale", "mean_grad", "square_grad", "elementwise_sub_grad", "elementwise_add_grad", "mul_grad",
    "allreduce", "sgd", "sgd",
]  # fmt: skip


def sgd() -> Any:
    return fluid.optimizer.SGD(0.1)


def adam() -> Any:
    return fluid.optimizer.Adam(0.01, regularization=fluid.regularizer.L2Decay(1e-3))


def schedule() -> Any:
    return fluid.optimizer.Momentum(layers.piecewise_decay([2, 4], [0.1, 0.05, 0.01]), 0.9)


@pytest.fixture(autouse=True)
def no_thread_left() -> Iterator[None]:
    yield
    assert not [t.name for t in threading.enumerate() if t.name.startswith("fluidnb ")]


def trained(parts: Built, feeds: Any, trainers: int = 2) -> tuple[Any, Any, LocalEngine]:
    """Mean losses of all trainers in each step, the parameters, and the engine afterwards."""
    with LocalEngine(collective(parts, trainers)) as engine:
        losses = engine.train(split_batches(feeds, trainers), fetch_list=[parts[2]])
        parameters = engine.parameters()
    return np.mean([[step[0].item() for step in row] for row in losses], axis=0), parameters, engine


# ---- programs


def test_gradients_are_averaged_before_the_updates() -> None:
    parts = built(fit_a_line, sgd)
    program = collective(parts).get_trainer_program()
    assert types(program.global_block()) == FIT_A_LINE
    scale, reduce = program.global_block().ops[6], program.global_block().ops[12]
    assert scale.attr("scale") == 0.5 and scale.input("X") == scale.output("Out") == [f"{parts[2].name}@GRAD"]
    assert reduce.input("X") == reduce.output("Out") == ["fc_0.b_0@GRAD", "fc_0.w_0@GRAD"]
    assert (reduce.attr("reduce_type"), reduce.attr("trainer_id")) == (0, 0)
    assert reduce.attr("endpoints") == ["trainer:0", "trainer:1"]


def test_trainers_begin_with_the_values_of_the_first() -> None:
    parts = built(fit_a_line, lambda: fluid.optimizer.Momentum(0.1, 0.9))
    transpiler = collective(parts, "a:1,b:2")
    last = parts[1].global_block().ops[-1]
    assert last.type == "broadcast" and last.attr("root") == 0 and last.attr("endpoints") == ["a:1", "b:2"]
    written = {name for op in parts[1].global_block().ops[:-1] for name in op.output_arg_names}
    assert set(last.input("X")) == written
    transpiler.transpile(1, parts[0], trainers="a:1,b:2", startup_program=parts[1], current_endpoint="b:2")
    assert types(parts[1].global_block()).count("broadcast") == 1
    assert transpiler.get_trainer_programs(1)[1].global_block().ops[-1].attr("trainer_id") == 1


def test_rows_and_tensors_travel_by_separate_operators() -> None:
    block = collective(built(word2vec, sgd)).get_trainer_program().global_block()
    reduced = [op.input("X") for op in block.ops if op.type == "allreduce"]
    assert [len(row) for row in reduced] == [4, 1] and reduced[1] == ["table@GRAD"]


def test_the_training_program_stays_as_it_is_and_an_edit_is_refused() -> None:
    parts = built(lenet, adam)
    before = parts[0].desc.serialize_to_string()
    transpiler = collective(parts)
    program = transpiler.get_trainer_program()
    assert parts[0].desc.serialize_to_string() == before
    again = fluid.Program.parse_from_string(program.desc.serialize_to_string())
    assert types(again.global_block()) == types(program.global_block())
    with fluid.program_guard(parts[0], parts[1]):
        layers.scale(parts[2], 2.0)
    with pytest.raises(FluidError, match=r"edited after transpile(.|\n)*call transpile again"):
        transpiler.get_trainer_program()
    with pytest.raises(FluidError, match="edited after transpile"):
        trained_again(transpiler)


def trained_again(transpiler: fluid.DistributeTranspiler) -> None:
    """Train with a transpiler whose program may have been edited."""
    with LocalEngine(transpiler) as engine:
        engine.train(lambda trainer: [])


@pytest.mark.parametrize(
    "call, message",
    [
        ({"trainer_id": 2, "trainers": 2}, "There is no trainer 2 among 2."),
        ({"trainer_id": 0, "trainers": "a:1,a:1"}, "trainers must name each trainer once."),
        ({"trainer_id": 0, "trainers": "a:1,b:2", "current_endpoint": "b:2"}, "b:2 is not the endpoint of trainer 0."),
    ],
)
def test_a_call_without_meaning_is_refused(call: dict[str, Any], message: str) -> None:
    main, startup, _ = built(fit_a_line, sgd)
    config = fluid.DistributeTranspilerConfig()
    config.mode = "nccl2"  # Fluid's name of the mode over GPUs
    with pytest.raises(FluidError, match=message):
        fluid.DistributeTranspiler(config).transpile(program=main, startup_program=startup, **call)


def test_servers_belong_to_the_other_mode() -> None:
    parts = built(fit_a_line, sgd)
    with pytest.raises(FluidError, match=r"no parameter server ps:0(.|\n)*need no server"):
        collective(parts).get_pserver_program("ps:0")
    with pytest.raises(FluidError, match="trainers is a number with parameter servers"):
        fluid.DistributeTranspiler().transpile(0, parts[0], trainers="a:1", startup_program=parts[1])


# ---- training


@pytest.mark.parametrize("optimizer", [sgd, adam, schedule])
@pytest.mark.parametrize("network", [fit_a_line, lenet, word2vec, sentiment])
def test_training_equals_one_process(network: Any, optimizer: Any) -> None:
    feeds = sentences(5) if network is sentiment else batches(built(network, optimizer)[0], 5)
    expected_losses, expected = one_process(built(network, optimizer), feeds)
    losses, parameters, _ = trained(built(network, optimizer), feeds)
    np.testing.assert_allclose(losses, expected_losses, rtol=2e-5)
    assert parameters.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_allclose(parameters[name], value, rtol=1e-4, atol=2e-5, err_msg=name)


@pytest.mark.parametrize("trainers", [1, 4])
def test_any_number_of_trainers_gives_the_same(trainers: int) -> None:
    feeds = batches(built(word2vec, adam)[0], 3)
    expected_losses, _ = one_process(built(word2vec, adam), feeds)
    losses, _, _ = trained(built(word2vec, adam), feeds, trainers)
    np.testing.assert_allclose(losses, expected_losses, rtol=2e-5)


def test_a_global_norm_and_two_optimizers_in_one_program() -> None:
    def two_losses() -> Built:
        main, startup = fluid.Program(), fluid.Program()
        main.random_seed = startup.random_seed = 3
        with fluid.program_guard(main, startup), fluid.unique_name.guard():
            x, y = layers.data("x", [5]), layers.data("y", [1])
            clip = fluid.ParamAttr(gradient_clip=fluid.clip.GradientClipByGlobalNorm(0.1))
            first = layers.mean(layers.square_error_cost(layers.fc(x, 1, param_attr=clip), y))
            fluid.optimizer.SGD(0.1).minimize(first)
            second = layers.mean(layers.square_error_cost(layers.fc(x, 1, param_attr=clip), layers.scale(y, 2.0)))
            fluid.optimizer.SGD(0.1).minimize(second)
        return main, startup, second

    feeds = batches(two_losses()[0], 4)
    expected_losses, expected = one_process(two_losses(), feeds)
    parts = two_losses()
    assert types(collective(two_losses()).get_trainer_program().global_block()).count("allreduce") == 2
    losses, parameters, _ = trained(parts, feeds)
    np.testing.assert_allclose(losses, expected_losses, rtol=2e-5)
    for name, value in expected.items():
        np.testing.assert_allclose(parameters[name], value, rtol=1e-4, atol=1e-6, err_msg=name)


def test_all_trainers_have_the_same_bits_in_every_run() -> None:
    def run() -> list[dict[str, Any]]:
        parts = built(word2vec, adam)
        _, _, engine = trained(parts, batches(parts[0], 4))
        names = [p.name for p in parts[0].all_parameters()]
        scopes = [engine.scopes[f"trainer:{n}"] for n in range(2)]
        return [{name: np.array(scope.find_var(name).get_tensor()) for name in names} for scope in scopes]

    (first, second), (again, _) = run(), run()
    assert all((first[name] == second[name]).all() and (first[name] == again[name]).all() for name in first)


def test_other_seeds_begin_with_the_values_of_the_first_trainer() -> None:
    parts = built(fit_a_line, sgd)
    parts[0].random_seed = parts[1].random_seed = 0  # every run of a startup program draws other numbers
    _, _, engine = trained(parts, batches(parts[0], 1))
    first, second = (np.array(engine.scopes[f"trainer:{n}"].find_var("fc_0.w_0").get_tensor()) for n in range(2))
    assert (first == second).all()


def test_training_goes_on_in_a_second_call() -> None:
    feeds = batches(built(fit_a_line, schedule)[0], 6)
    expected_losses, _ = one_process(built(fit_a_line, schedule), feeds)
    parts = built(fit_a_line, schedule)
    losses: list[float] = []
    with LocalEngine(collective(parts)) as engine:
        for part in (feeds[:4], feeds[4:]):
            rows = engine.train(split_batches(part, 2), fetch_list=[parts[2]])
            losses += list(np.mean([[step[0].item() for step in row] for row in rows], axis=0))
    np.testing.assert_allclose(losses, expected_losses, rtol=2e-5)


def test_a_trainer_steps_through_its_program_in_a_debug_run() -> None:
    parts = built(fit_a_line, sgd)
    feeds = batches(parts[0], 1)
    transpiler = collective(parts, trainers=1)
    main, startup = transpiler.get_trainer_programs(0)
    with LocalEngine(transpiler):
        exe, scope = fluid.Executor(), fluid.Scope()
        exe.run(startup, scope=scope)
        run = exe.interpret(main, feed=feeds[0], scope=scope)
        while run.here is not None and run.here.desc.type() != "allreduce":
            run.step()
        before = np.array(run.value("fc_0.w_0@GRAD").array)
        run.step()
        assert np.array_equal(run.value("fc_0.w_0@GRAD").array, before)
        run.back()
        run.run()


# ---- faults


def test_an_error_of_a_trainer_stops_all() -> None:
    parts = built(fit_a_line, sgd)
    feeds = batches(parts[0], 3)

    def reader(trainer: int) -> Iterator[dict[str, Any]]:
        yield feeds[0]
        if trainer == 1:
            raise OSError("the disk is gone")
        yield from feeds[1:]

    with pytest.raises(OSError, match="the disk is gone"), LocalEngine(collective(parts)) as engine:
        engine.train(reader)


def test_a_trainer_that_stops_early_is_named() -> None:
    parts = built(fit_a_line, sgd)
    feeds = batches(parts[0], 3)
    with pytest.raises(FluidError, match="trainer:1 has ended after 2 steps"), LocalEngine(collective(parts)) as engine:
        engine.train(lambda trainer: feeds[: 3 - trainer])


def test_a_trainer_that_hangs_is_named_by_deadline() -> None:
    parts, over = built(fit_a_line, sgd), threading.Event()
    feeds = batches(parts[0], 2)

    def reader(trainer: int) -> Iterator[dict[str, Any]]:
        yield feeds[0]
        if trainer == 1:
            over.wait(20)
        yield feeds[1]

    def train() -> None:
        try:
            with LocalEngine(collective(parts), deadline=0.3) as engine:
                timer = threading.Timer(1.0, over.set)  # the thread itself must end
                timer.start()
                engine.train(reader)
        finally:
            over.set()

    began = time.monotonic()
    with pytest.raises(EnforceNotMet, match=r"trainer:1 did not come to the all-reduce of fc_0.b_0@GRAD within 0.3 s"):
        train()
    assert time.monotonic() - began < 15


def test_batches_are_shared_equally_or_refused() -> None:
    with pytest.raises(FluidError, match=r"A batch of 3 rows cannot be shared equally by 2 trainers"):
        list(split_batches([{"x": np.zeros((3, 1))}], 2)(0))
    words = fluid.create_lod_tensor(np.arange(6)[:, None], [[1, 2, 3]], fluid.CPUPlace())
    with pytest.raises(FluidError, match=r"A batch of 3 sequences cannot be shared equally by 2 trainers"):
        list(split_batches([{"words": words}], 2)(0))


def together(group: Group, calls: list[Any]) -> list[Any]:
    """The result or the error of each trainer's call of a group."""
    found: list[Any] = [None] * len(calls)

    def one(number: int) -> None:
        try:
            found[number] = group.reduce(0, number, *calls[number])
        except EnforceNotMet as e:
            found[number] = e

    threads = [threading.Thread(target=one, args=(number,)) for number in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def test_trainers_that_differ_are_refused_on_all_of_them() -> None:
    one, two = np.ones(2, "float32"), np.ones(2)
    cases = {
        "trainer:1 has g in another form than trainer:0": [(2, "sum", ["g"], [one]), (2, "sum", ["g"], [two])],
        "trainer:1 reduces other variables than trainer:0": [(2, "sum", ["g"], [one]), (2, "sum", ["h"], [one])],
        "trainer 1 of 3, and 2 train": [(2, "sum", ["g"], [one]), (3, "sum", ["g"], [one])],
    }
    for message, calls in cases.items():
        found = together(Group(2, deadline=1), calls)
        assert all(isinstance(error, EnforceNotMet) for error in found)
        assert message in str(found[0]) and message in str(found[1])
    texts = [str(e) for e in together(Group(2, deadline=1), cases["trainer:1 has g in another form than trainer:0"])]
    assert any("expected: float32[2]" in text and "received: float64[2]" in text for text in texts)


def test_a_trainer_that_was_paused_while_it_waited_gets_the_result_of_that_round() -> None:
    group, one = Group(2, deadline=5), np.ones(1)

    def pause() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        group.reduce(0, 0, 2, "sum", ["g"], [one], pause)
    assert group.reduce(0, 1, 2, "sum", ["g"], [2 * one])[0].tolist() == [3.0]
    assert group.reduce(0, 0, 2, "sum", ["g"], [one])[0].tolist() == [3.0]  # it continues
    found = together(group, [(2, "sum", ["h"], [one]), (2, "sum", ["h"], [3 * one])])
    assert [result[0].tolist() for result in found] == [[4.0], [4.0]]


@pytest.mark.parametrize("how, expected", [("sum", [5, 5]), ("max", [4, 3]), ("min", [1, 2]), ("prod", [4, 6])])
def test_reductions(how: str, expected: list[float]) -> None:
    calls = [(2, how, ["g"], [np.array([1.0, 3.0])]), (2, how, ["g"], [np.array([4.0, 2.0])])]
    assert [result[0].tolist() for result in together(Group(2), calls)] == [expected, expected]
