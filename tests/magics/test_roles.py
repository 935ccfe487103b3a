"""%fluid train --trainers and %fluid roles: the numbers of one process, interrupted cells, stops, refusals."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.distributed.training import Shares
from fluidnb.errors import EnforceNotMet, NotFound, OpValueError
from tests.magics.conftest import Session

NET = """%%fluid net
x = layers.data("x", [4])
y = layers.data("y", [1])
loss = layers.mean(layers.square_error_cost(layers.fc(layers.fc(x, 8, act="tanh"), 1), y))
fluid.optimizer.Adam(0.01).minimize(loss)
"""
DATA = """
import numpy as np, threading, time
gate = threading.Event()

def batches(size=8, count=5):
    draws = np.random.default_rng(1)
    for i in range(count):
        rows = draws.normal(size=(size, 4)).astype("float32")
        yield [(row, row.sum(keepdims=True)) for row in rows]

def uneven():
    yield from batches()
    yield from batches(3, 1)

def endless():
    while True:
        yield from batches()
        if gate.is_set():
            time.sleep(0.01)
"""


@pytest.fixture
def net(session: Session) -> Iterator[Session]:
    """A regression and its data; no role is left at the end."""
    session.run("%fluid seed 7")
    session.run(NET)
    session.run(DATA)
    yield session
    if session.bench.distributed is not None:
        session.bench.distributed.training.stop()
        session.bench.distributed.training.wait(30)
    assert not [t.name for t in threading.enumerate() if t.name.startswith("fluidnb ")]


def persistent() -> dict[str, np.ndarray]:
    """The values of all variables that last."""
    scope, block = fluid.global_scope(), fluid.default_main_program().global_block()
    names = [name for name, v in block.desc.vars.items() if v.persistable()]
    return {n: np.array(scope.find_var(n).get_tensor()) for n in names}


def test_parameters_and_moments_are_those_of_one_process(net: Session) -> None:
    net.run("%fluid train batches --passes 2")
    expected = persistent()
    net.run("%fluid reset --params\n%fluid seed 7")
    shown = net.run("%fluid train batches --passes 2 --trainers 2 --pservers 3")
    found = persistent()
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-4, atol=1e-6, err_msg=name)
    for role in ("trainer0", "trainer1", "pserver0", "pserver1", "pserver2"):
        assert f"{role}" in shown
    assert "trainer1  ended  step 10" in shown and "is over after 10 steps, its parameters are in the scope" in shown
    assert [run.ended for run in net.bench.runs] == ["done", "done"]


def test_training_continues_from_the_parameters_of_the_session(net: Session) -> None:
    net.run("%fluid train batches --passes 3")
    expected = persistent()
    net.run("%fluid reset --params\n%fluid seed 7\n%fluid train batches")
    net.run("%fluid train batches --trainers 2 --pservers 1")
    net.run("%fluid train batches --new")
    for name, value in expected.items():
        np.testing.assert_allclose(persistent()[name], value, rtol=1e-3, atol=1e-5, err_msg=name)


def interrupt_soon(session: Session, steps: int = 3) -> None:
    """Interrupt the waiting cell once the training has gone a few steps."""

    def press() -> None:
        end = time.monotonic() + 60
        while time.monotonic() < end:
            run = session.bench.distributed
            if run is not None and run.run.state.step >= steps:  # as the waiting cell has shown
                break
            time.sleep(0.02)
        import signal

        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    threading.Thread(target=press, daemon=True).start()


def test_an_interrupted_cell_leaves_the_training_which_is_joined_and_stopped(net: Session) -> None:
    net.names["gate"].set()
    interrupt_soon(net)
    error, shown = net.fail("%fluid train endless --trainers 2")
    assert isinstance(error, KeyboardInterrupt) and "%fluid train --join" in str(error)
    assert "trainer0  running" in shown
    run = net.bench.distributed
    assert run is not None and not run.training.over
    before = len(run.training.losses())
    assert "trainer1  running" in net.run("%fluid roles"), "a picture with the numbers of the run"
    error, _ = net.fail("%fluid train batches --trainers 2")
    assert isinstance(error, OpValueError) and "still trains" in str(error)
    interrupt_soon(net, before + 3)
    error, _ = net.fail("%fluid train --join")
    assert isinstance(error, KeyboardInterrupt)
    shown = net.run("%fluid train --stop")
    assert "its parameters are in the scope" in shown and run.training.over
    assert len({len(rows) for rows in run.training.steps}) == 1, "all trainers have stopped after the same step"
    assert "trainer0  ended" in net.run("%fluid train --stop"), "once more changes nothing"


def test_trainers_join_and_leave_a_training_that_a_cell_has_left(net: Session) -> None:
    net.names["gate"].set()
    interrupt_soon(net)
    net.fail("%fluid train endless --trainers 2")
    run = net.bench.distributed
    assert run is not None
    for count in (4, 1):
        interrupt_soon(net, len(run.training.losses()) + 4)
        error, shown = net.fail(f"%fluid train --resize {count}")
        assert isinstance(error, KeyboardInterrupt)
        assert f"trainer{count - 1}  running" in shown and f"trainer{count}" not in shown
        assert f"{count} trainer" in net.run("%fluid roles")
    error, _ = net.fail("%fluid train --resize 3")
    assert isinstance(error, OpValueError) and "A batch of 8 cannot be shared equally by 3 trainers" in str(error)
    shown = net.run("%fluid train --stop")
    assert "its parameters are in the scope" in shown
    curve = net.bench.runs[-1].state.curves[0]
    assert len(curve.points) == len(run.training.steps[0]) and np.isfinite([y for _, y in curve.points]).all()
    error, _ = net.fail("%fluid train --resize 2")
    assert isinstance(error, EnforceNotMet) and "The training is over" in str(error)


def test_a_training_that_ends_alone_gives_its_parameters_to_the_next_cell(net: Session) -> None:
    net.names["gate"].set()
    interrupt_soon(net)
    net.fail("%fluid train endless --trainers 2")
    run = net.bench.distributed
    assert run is not None
    run.training.stop()
    assert run.training.wait(30)
    before = persistent()
    assert "its parameters are in the scope" in net.run("1")
    name = fluid.default_main_program().all_parameters()[0].name
    assert not np.array_equal(persistent()[name], before[name])
    assert np.array_equal(persistent()[name], run.training.values[name])


def test_smaller_batches_are_left_out_and_counted(net: Session) -> None:
    assert "3 samples of smaller batches were left out" in net.run("%fluid train uneven --trainers 2")


def test_asynchronous_training_learns(net: Session) -> None:
    net.run("%fluid train batches --trainers 2 --async --passes 40")
    curve = net.bench.runs[-1].state.curves[0]
    assert curve.last < 0.5 * curve.points[0][1]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("", "needs a reader"),
        ("batches --pservers 2", "--pservers needs --trainers"),
        ("batches --engine ray", "--engine needs --trainers"),
        ("batches --trainers 2 --test batches", "--test is for training in one process"),
        ("batches --trainers 2 --gradients", "--gradients is for training in one process"),
        ("batches --trainers 2 --address localhost:1", "Only Ray's engine has an address"),
        ("batches --trainers 3", "A batch of 8 rows cannot be shared equally by 3 trainers"),
        ("batches --trainers 0", "0"),
        ("--join", "No training by several roles was started"),
        ("--stop", "No training by several roles was started"),
        ("--resize 3", "No training by several roles was started"),
    ],
)
def test_what_cannot_be_done_is_refused(net: Session, line: str, words: str) -> None:
    error, shown = net.fail(f"%fluid train {line}")
    assert words in f"{error}{shown}"


def test_a_program_without_an_optimizer_is_refused(session: Session) -> None:
    session.run(NET.rsplit("fluid.optimizer", 1)[0])
    session.run(DATA)
    error, _ = session.fail("%fluid train batches --trainers 2")
    assert isinstance(error, OpValueError) and "has no optimizer" in str(error)
    error, _ = session.fail("%fluid roles")
    assert "has no optimizer" in str(error)


def test_an_error_of_a_reader_ends_the_cell(net: Session) -> None:
    net.run('def broken():\n    yield from batches(8, 1)\n    raise OSError("the disk is gone")')
    error, _ = net.fail("%fluid train broken --trainers 2")
    assert isinstance(error, OSError | EnforceNotMet) and "the disk is gone" in str(error)
    assert net.bench.runs[-1].ended == "failed"


def test_roles_are_drawn_from_the_programs(net: Session) -> None:
    shown = net.run("%fluid roles --trainers 3 --pservers 2")
    assert "3 trainers, 2 parameter servers, synchronous" in shown and "updates by adam" in shown
    assert "trainer2" in shown and "float32[4, 8]" in shown
    with pytest.raises(NotFound):
        raise net.fail("%fluid roles --program none")[0]


def test_batches_that_were_read_are_shared_anew_when_the_number_of_trainers_changes() -> None:
    def taken(reader: Shares, trainers: int, steps: int) -> list[list[int]]:
        sources = [iter(reader(number)) for number in range(trainers)]
        return [sum((next(source)["x"].tolist() for source in sources), []) for _ in range(steps)]

    source = iter(range(0, 1000, 12))
    shared = Shares(({"x": np.arange(first, first + 12)} for first in source), dict, 2)
    assert [row[0] for row in taken(shared, 2, 2)] == [0, 12]
    ahead = iter(shared.among(3, 2)(1))
    next(ahead), next(ahead)  # one trainer is ahead of the others
    assert [row[0] for row in taken(shared, 3, 3)] == [24, 36, 48]
    assert taken(shared.among(4, 3), 4, 1) == [list(range(60, 72))]
    assert next(source) == 72, "no batch was read that no trainer has asked for"


def test_sequences_are_shared_too() -> None:
    words = fluid.create_lod_tensor(np.arange(5)[:, None], [[2, 3]], fluid.CPUPlace())
    shared = Shares([{"words": words, "y": np.arange(2)}], dict, 2)
    assert [np.array(feed["words"]).ravel().tolist() for feed in shared(1)] == [[2, 3, 4]]
    assert shared.left_out == 0
