"""Loops, branches and recurrent networks as text, to the letter: forward, and with backward.

FLUIDNB_UPDATE_GOLDEN=1 writes the files in tests/golden/programs anew.
"""

import os
from pathlib import Path

import numpy as np
import pytest

import fluidnb as fluid
from tests.layers.walkers import sequences

FOLDER = Path(__file__).parents[1] / "golden" / "programs"
L = fluid.layers


def while_over_an_array():
    x = L.data("x", [3])
    i, n = L.zeros([1], "int64"), L.fill_constant([1], "int64", 4)
    array = L.array_write(x, i)
    below = L.less_than(i, n)
    with L.While(below).block():
        more = L.fc(L.array_read(array, i), 3, act="tanh")
        i = L.increment(i)
        L.array_write(more, i, array=array)
        L.less_than(i, n, cond=below)
    return L.array_read(array, i)


def switch():
    x = L.data("x", [3], append_batch_size=False)
    total, out = L.reduce_sum(x), L.scale(x, 0.5)
    with L.Switch() as cases:
        with cases.case(L.less_than(total, L.zeros([1], "float32"))):
            L.assign(L.tanh(x), output=out)
        with cases.default():
            L.assign(L.fc(L.reshape(x, [1, 3]), 3), output=out)
    return out


def if_else():
    """With the condition first."""
    x, cond = L.data("x", [3]), L.data("cond", [1], dtype="bool")
    ie = L.IfElse(cond)
    with ie.true_block():
        ie.output(L.fc(ie.input(x), 2))
    with ie.false_block():
        ie.output(L.fc(ie.input(x), 2, act="tanh"))
    return ie()[0]


def if_else_deferred():
    """With the condition last; one number beside what has rows."""
    x, y, cond = L.data("x", [3]), L.fill_constant([1], "float32", 2.0), L.data("cond", [1], dtype="bool")
    ie = L.IfElse()
    with ie.true_block():
        ie.output(L.fc(L.elementwise_mul(x, y), 2))
    with ie.false_block():
        ie.output(L.fc(x, 2))
    return ie(cond)[0]


def if_else_of_one_bool():
    x, cond = L.data("x", [3]), L.data("cond", [1], dtype="bool", append_batch_size=False)
    ie = L.IfElse(cond)
    with ie.true_block():
        ie.output(L.fc(x, 2))
    with ie.false_block():
        ie.output(L.fc(ie.input(x), 2))
    return ie()[0]


def static_rnn():
    x = L.data("x", [3, 2, 4], append_batch_size=False)
    rnn = L.StaticRNN()
    with rnn.step():
        now, before = rnn.step_input(x), rnn.memory(shape=[-1, 5], batch_ref=x)
        hidden = L.fc([now, before], 5, act="tanh")
        rnn.update_memory(before, hidden)
        rnn.output(hidden)
    return rnn()


def dynamic_rnn():
    x, facts = L.data("x", [4], lod_level=1), L.data("facts", [5])
    rnn = L.DynamicRNN()
    with rnn.block():
        now, before = rnn.step_input(x), rnn.memory(shape=[5])
        hidden = L.fc([now, before, rnn.static_input(facts)], 5, act="tanh")
        rnn.update_memory(before, hidden)
        rnn.output(hidden)
    return rnn()


PROGRAMS = [
    while_over_an_array, switch, if_else, if_else_deferred, if_else_of_one_bool, static_rnn, dynamic_rnn
]  # fmt: skip


@pytest.mark.parametrize("build", PROGRAMS, ids=lambda build: build.__name__)
def test_program_as_text(build):
    with fluid.fresh():
        loss = L.mean(build())
        main = fluid.default_main_program()
        text = f"forward\n{main._to_readable_code()}"
        fluid.backward.append_backward(loss)
        text += f"with backward\n{main._to_readable_code()}"
    path = FOLDER / f"control_{build.__name__}.txt"
    if os.environ.get("FLUIDNB_UPDATE_GOLDEN"):
        path.write_text(text)
    assert text == path.read_text()


#: What the programs are fed, where it is not three rows.
FEEDS = {
    "x": {
        "switch": np.array([0.5, 2.0, 1.0], "float32"),
        "static_rnn": np.arange(24, dtype="float32").reshape(3, 2, 4) / 10,
        "dynamic_rnn": sequences(np.arange(24).reshape(6, 4) / 10, [[2, 1, 3]]),
    },
    "cond": {"if_else_of_one_bool": np.array([True])},
}


def feeds(build):
    given = {
        "x": np.arange(9, dtype="float32").reshape(3, 3) / 10, "cond": np.array([[True], [False], [True]]),
        "facts": np.ones((3, 5), "float32"),
    }  # fmt: skip
    known = fluid.default_main_program().global_block().vars
    return {n: FEEDS.get(n, {}).get(build.__name__, v) for n, v in given.items() if n in known}


@pytest.mark.parametrize("build", PROGRAMS, ids=lambda build: build.__name__)
def test_the_bytes_run_like_the_program(build):
    """Trained from the same start, a program and what comes back from its bytes give the same losses."""
    with fluid.fresh():
        loss = L.mean(L.square(build()))
        fluid.optimizer.SGD(0.1).minimize(loss)
        main, startup, given = fluid.default_main_program(), fluid.default_startup_program(), feeds(build)
        again = fluid.Program.parse_from_string(main.desc.serialize_to_string())
        exe, runs = fluid.Executor(fluid.CPUPlace()), []
        for program in (main, again, main.clone()):
            scope = fluid.Scope()
            startup.random_seed = 5
            exe.run(startup, scope=scope)
            runs.append([exe.run(program, feed=given, fetch_list=[loss.name], scope=scope)[0].item() for _ in range(4)])
    assert runs[0] == runs[1] == runs[2] and len(set(runs[0])) == 4
