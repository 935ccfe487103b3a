"""Several programs take turns over one scope: they share parameters by name and nothing else."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb import memory
from fluidnb.runtime.compile import lowering
from fluidnb.runtime.program_state import program_state

L = fluid.layers
CPU = fluid.CPUPlace()


def held(name: str, scope: fluid.Scope | None = None) -> Any:
    """The value of a variable of a scope."""
    return np.array((scope or fluid.global_scope()).find_var(name).get_tensor())


def two_players() -> tuple[list[fluid.Program], fluid.Program, list[Any]]:
    """Two programs over the same weight: one adds to it, the other takes away; the losses."""
    programs, startup, losses = [fluid.Program(), fluid.Program()], fluid.Program(), []
    for program, sign in zip(programs, (1.0, -1.0), strict=True):
        with fluid.program_guard(program, startup), fluid.unique_name.guard(f"player{sign}"):
            out = L.fc(L.data("x", [3]), 2, param_attr="shared.w", bias_attr=False)
            losses.append(L.mean(L.scale(out, scale=sign)))
            fluid.optimizer.SGD(1.0).minimize(losses[-1])
    return programs, startup, losses


def test_two_programs_train_one_weight() -> None:
    programs, startup, losses = two_players()
    exe = fluid.Executor(CPU)
    exe.run(startup)
    start, x = held("shared.w"), np.ones((4, 3), "float32")
    for turn in range(6):
        which = turn % 2
        before = held("shared.w")
        for machine in (False, True):
            exe.run(programs[which], feed={"x": x}, fetch_list=[losses[which]], keep_scopes=machine)
        moved = held("shared.w") - before
        assert (np.sign(moved) == (1 if which else -1)).all()
    np.testing.assert_allclose(held("shared.w"), start, atol=1e-6)


def test_turns_are_the_same_as_programs_of_their_own() -> None:
    """A program gives the same values whichever ran before it; only parameters are shared."""
    programs, startup, losses = two_players()
    x = [np.random.default_rng(i).random((1 + i % 3, 3), "float32") for i in range(6)]
    seen = []
    for fresh in (False, True):
        scope, exe, out = fluid.Scope(), fluid.Executor(CPU), []
        fluid.Executor(CPU).run(startup, scope=scope)
        scope.var("shared.w").get_tensor().set(np.ones((3, 2), "float32"), CPU)
        for i, batch in enumerate(x):
            program, loss = programs[i % 2], losses[i % 2]
            if fresh:
                exe, program = fluid.Executor(CPU), fluid.Program.parse_from_string(program.desc.serialize_to_string())
            out.append(exe.run(program, feed={"x": batch}, fetch_list=[loss.name], scope=scope)[0].tobytes())
        seen.append((out, held("shared.w", scope).tobytes(), scope.local_var_names()))
    assert seen[0] == seen[1]


def test_train_and_test_programs_with_loops_take_turns() -> None:
    fluid.default_main_program().random_seed = 3
    x, i, n = L.data("x", [3]), L.zeros([1], "int64"), L.fill_constant([1], "int64", 3)
    array = L.array_write(L.fc(x, 8, param_attr="w0", bias_attr=False), i)
    more = L.less_than(i, n)
    with L.While(more).block():
        now = L.dropout(L.fc(L.array_read(array, i), 8, param_attr="w1", act="tanh"), 0.2)
        i = L.increment(i)
        L.array_write(now, i, array=array)
        L.less_than(i, n, cond=more)
    loss = L.mean(L.square(L.array_read(array, i)))
    test = fluid.default_main_program().clone(for_test=True)
    fluid.optimizer.SGD(0.5).minimize(loss)
    train = fluid.default_main_program()
    exe = fluid.Executor(CPU)
    exe.run(fluid.default_startup_program())
    for batch in (4, 7, 4):
        feed = {"x": np.ones((batch, 3), "float32")}
        for machine in (False, True):
            scores = [exe.run(test, feed=feed, fetch_list=[loss.name], keep_scopes=machine)[0] for _ in range(2)]
            assert scores[0].tobytes() == scores[1].tobytes()
            before = held("w1")
            exe.run(train, feed=feed, fetch_list=[loss], keep_scopes=machine)
            assert not np.array_equal(held("w1"), before)
            assert exe.run(test, feed=feed, fetch_list=[loss.name])[0].tobytes() != scores[0].tobytes()
    fluid.global_scope().drop_kids()


def test_taking_turns_does_not_pile_up_memory() -> None:
    programs, startup, losses = two_players()
    exe = fluid.Executor(CPU)
    exe.run(startup)
    x, used = np.ones((4, 3), "float32"), []
    gc.collect()  # what earlier tests left would go while this one counts
    for _ in range(20):
        for program, loss in zip(programs, losses, strict=True):
            exe.run(program, feed={"x": x}, fetch_list=[loss])
        used.append(memory.used(CPU))
    assert used[-1] == used[0]


def test_a_fetch_is_that_variable_whatever_ran_between() -> None:
    """An executor remembers what was fetched last by `id()`, so these objects must live as long as it does."""
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()):
        x = fluid.layers.data("x", [2])
        doubled, tripled = fluid.layers.scale(x, 2.0).name, fluid.layers.scale(x, 3.0).name
    one, other = fluid.Executor(), fluid.Executor()
    feeds = [{"x": np.ones((n, 2), "float32")} for n in (1, 2)]

    def name(text: str) -> str:
        return "".join(list(text))  # a new object

    for _ in range(10):
        one.run(main, feed=feeds[0], fetch_list=[name(doubled)])
        other.run(main, feed=feeds[1], fetch_list=[name(doubled)])
        for fetched in [name(tripled) for _ in range(300)]:
            assert one.run(main, feed=feeds[0], fetch_list=[fetched])[0][0, 0] == 3


def test_buffers_of_fetches_asked_for_long_ago_are_released(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lowering, "_MOST_IN_ALL", 1 << 20)
    main, made = fluid.Program(), []
    with fluid.program_guard(main, fluid.Program()):
        x = fluid.layers.data("x", [1000])
        for _ in range(200):
            x = fluid.layers.relu(x)
            made.append(x)
    exe, feed = fluid.Executor(), {"x": np.ones((30, 1000), "float32")}
    for x in made:
        assert exe.run(main, feed=feed, fetch_list=[x])[0].sum() == 30_000
    forms = program_state(main.desc).lowered_programs
    assert len(forms) == lowering._MOST_FORMS and sum(form.nbytes for form in forms.values()) < 3 << 20
    assert exe.run(main, feed=feed, fetch_list=[made[0]])[0].sum() == 30_000
