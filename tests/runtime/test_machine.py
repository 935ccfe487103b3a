"""The machine: the same bits as the replay, forwards and backwards."""

import random

import numpy as np
import pytest

from fluidnb.errors import EnforceNotMet
from fluidnb.runtime import Executor, LoweredProgram
from fluidnb.values import CPUPlace, LoDTensor
from tests.runtime.programs import Raw, counting, dense, scope_of

X = np.arange(-6, 6, dtype="float32").reshape(4, 3)


def machine_of(program, scope, fetch, **feed):
    lowered = LoweredProgram(program.desc, tuple(feed), (fetch,), CPUPlace(), program.random_seed)
    return Executor.interpreter(lowered, scope, {n: (np.asarray(a), ()) for n, a in feed.items()})


def state(machine):
    """Everything that can be seen, as bytes."""
    rows = []
    scope = machine.stack[-1].scope
    while scope is not None:
        for name, variable in sorted(scope.vars.items()):
            v = variable.value
            if isinstance(v, LoDTensor):
                rows.append((name, None if v.array is None else v.array.tobytes(), v.lod_))
            else:
                rows.append((name, type(v).__name__, len(v) if isinstance(v, list) else 0))
        scope = scope.parent
    return [(f.block.index, f.pc, f.k) for f in machine.stack], rows


CASES = {
    "dense": (dense, {"x": X}, {"w": np.eye(3, dtype="float32")}),
    "counting": (counting, {"x": X[:, :2]}, {}),
}


@pytest.mark.parametrize("name", CASES)
def test_the_machine_and_the_replay_give_the_same_bits(name):
    make, feed, weights = CASES[name]
    program = make()
    program.random_seed = 3
    one, two = scope_of(**weights), scope_of(**weights)
    exe = Executor(CPUPlace())
    for run in range(4):
        replayed = exe.run(program, feed=feed, fetch_list=["out"], scope=one)[0]
        walked = exe.run(program, feed=feed, fetch_list=["out"], scope=two, keep_scopes=True)[0]
        assert replayed.tobytes() == walked.tobytes(), run
    for w in weights:
        assert np.array_equal(one.find_var(w).get_tensor(), two.find_var(w).get_tensor())


@pytest.mark.parametrize("name", CASES)
def test_back_to_the_start_and_forward_again(name):
    make, feed, weights = CASES[name]
    machine = machine_of(make(), scope_of(**weights), "out", **feed)
    seen = [state(machine)]
    while not machine.done:
        machine.step()
        seen.append(state(machine))
    dice = random.Random(0)
    at = len(seen) - 1
    for _ in range(300):
        if at == len(seen) - 1 or (at and dice.random() < 0.5):
            machine.back()
            at -= 1
        else:
            machine.step()
            at += 1
        assert _same(state(machine), seen[at])
    while at:
        machine.back()
        at -= 1
    assert _same(state(machine), seen[0])
    machine.run()
    assert _same(state(machine), seen[-1])


def _same(one, other):
    """Variables that nothing has written yet may exist or not."""
    full = [[r for r in rows if r[1] not in (None, "NoneType", "list")] for _, rows in (one, other)]
    return one[0] == other[0] and full[0] == full[1]


def test_a_step_that_fails_changes_nothing():
    p = Raw()
    p.data("x", [-1, 3])
    p.weight("w", [3, 3])
    p.op("scale", {"X": "x"}, "y", scale=2.0)
    p.op("mul", {"X": "y", "Y": "w"}, "out")
    machine = machine_of(p.program, scope_of(w=np.eye(4, dtype="float32")), "out", x=X)
    machine.step()
    before = state(machine)
    with pytest.raises(EnforceNotMet, match="width must be equal") as e:
        machine.step()
    assert "op 1 (mul) in block 0" in str(e.value)
    assert _same(state(machine), before) and len(machine.journal) == 1


def test_kept_scopes_form_the_hierarchy_of_blocks():
    scope = scope_of()
    Executor(CPUPlace()).run(counting(3), feed={"x": X[:, :2]}, fetch_list=["total"], scope=scope, keep_scopes=True)
    (run,) = scope.kids
    assert [np.array(k.find_var("part").get_tensor())[0, 0] for k in run.kids] == [-6.0, -12.0, -18.0]
    assert all(k.find_var("total") is run.find_var("total") for k in run.kids)
    Executor(CPUPlace()).run(counting(3), feed={"x": X[:, :2]}, fetch_list=["total"], scope=scope, keep_scopes=True)
    assert len(scope.kids) == 1
