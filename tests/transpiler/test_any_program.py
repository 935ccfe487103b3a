"""Programs made at random: rewritten, they give the same bits by both walkers, and never a wrong value."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb import memory
from fluidnb.errors import EnforceNotMet
from fluidnb.passes.lint import lint
from tests.tools.sampling import SEED, sample

L = fluid.layers
CPU = fluid.CPUPlace()


class Maker:
    """Writes a program at random.

    Args:
        rng: decides.

    Attributes:
        values: variables of the global block that can be read and fetched, all [-1, n].
    """

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        x = L.data("x", [4], stop_gradient=False)
        self.values = [x, L.scale(x, scale=0.5)]

    def pick(self, among: list[Any]) -> Any:
        """One of some."""
        return among[int(self.rng.integers(len(among)))]

    def simple(self, among: list[Any]) -> Any:
        """The outputs of one or a few operators for some variables."""
        a = self.pick(among)
        match int(self.rng.integers(9)):
            case 0:
                return L.tanh(a)
            case 1:
                return L.elementwise_add(a, self.pick([v for v in among if v.shape == a.shape]))
            case 2:
                return L.fc(a, self.pick([2, 4]))
            case 3:
                return L.dropout(a, 0.5)
            case 4:
                return L.concat([a, a], axis=1) if a.shape[1] < 8 else L.reduce_sum(a, dim=1, keep_dim=True)
            case 5:
                return L.elementwise_mul(a, L.fill_constant_batch_size_like(a, list(a.shape), "float32", 0.5))
            case 6:
                return L.softmax(a)
            case 7 if a.shape[1] % 2 == 0:
                return L.split(a, 2, dim=1)[1]
            case _:
                return L.reshape(L.transpose(L.reshape(a, [-1, a.shape[1], 1]), [0, 2, 1]), [-1, a.shape[1]])

    def block(self) -> None:
        """A loop or a branch that adds to a variable what operators inside it make."""
        total = L.scale(self.pick(self.values), scale=1.0)
        i, n = L.zeros([1], "int64"), L.fill_constant([1], "int64", int(self.rng.integers(3)))
        more = L.less_than(i, n)
        loop = bool(self.rng.integers(2))
        with L.While(more).block() if loop else L.control_flow.ConditionalBlock([more], True).block():
            inside = [v for v in self.values if v.shape == total.shape]
            for _ in range(3):
                inside.append(L.tanh(L.scale(self.pick(inside), scale=0.7)))
            L.sums([total, inside[-1]], out=total)
            if loop:
                L.increment(i)
                L.less_than(i, n, cond=more)
        self.values.append(total)

    def make(self, steps: int, trained: bool) -> Any:
        """Write so many pieces; gives a loss. What is trained overwrites nothing that its gradients need."""
        for _ in range(steps):
            if self.rng.random() < 0.15:
                self.block()
            else:
                self.values.append(self.simple(self.values))
        if not trained:
            L.assign(L.scale(self.values[-1], scale=2.0), self.values[-1])
        return L.mean(L.square(L.fc(self.values[-1], 1)))


def run(program: fluid.Program, names: list[str], machine: bool = False) -> list[bytes]:
    """The bytes of what is fetched in two steps."""
    scope, out = fluid.Scope(), []
    exe = fluid.Executor(CPU)
    exe.run(fluid.default_startup_program(), scope=scope)
    for rows in (3, 2):
        feed = {"x": np.linspace(-1, 1, 4 * rows, dtype="float32").reshape(rows, 4)}
        out += [v.tobytes() for v in exe.run(program, feed=feed, fetch_list=names, scope=scope, keep_scopes=machine)]
    return out


@pytest.mark.parametrize("number", sample(range(300), 15))
def test_the_same_bits_or_an_error(number: int) -> None:
    rng = np.random.default_rng([SEED, number])
    maker, program = Maker(rng), fluid.default_main_program()
    program.random_seed = fluid.default_startup_program().random_seed = 5
    trained = bool(rng.random() < 0.7)
    loss = maker.make(int(rng.integers(4, 14)), trained)
    if trained:
        fluid.optimizer.Momentum(0.01, 0.9).minimize(loss)
    names = sorted({v.name for v in maker.values[1:]})
    wanted = dict(zip([*names, loss.name], by_name(run(program, [*names, loss.name])), strict=True))
    keep = [n for n in names if rng.random() < 0.3]
    other = program.clone()
    if rng.random() < 0.2:
        fluid.release_memory(other, keep)
    else:
        fluid.memory_optimize(other, keep, level=int(rng.integers(2)), skip_grads=bool(rng.integers(2)))
    assert lint(other) == lint(program)
    for machine in (False, True):
        assert run(other, [*keep, loss.name], machine) == [
            wanted[n][step] for step in range(2) for n in (*keep, loss.name)
        ]
    assert planned(other, [*keep, loss.name]) <= planned(program, [*keep, loss.name])
    for name in names:
        try:
            got = run(other, [name, loss.name])
        except EnforceNotMet as error:
            assert name not in keep and "skip_opt_set" in str(error)
        else:
            assert got[0::2] == list(wanted[name])


def planned(program: fluid.Program, names: list[str]) -> int:
    """Bytes that a planned run takes: its arenas, and what has a block of its own."""
    scope, exe = fluid.Scope(), fluid.Executor(CPU)
    exe.run(fluid.default_startup_program(), scope=scope)
    gc.collect()
    before = memory.used(CPU)
    exe.run(program, feed={"x": np.ones((2048, 4), "float32")}, fetch_list=names, scope=scope)
    return memory.used(CPU) - before


def by_name(out: list[bytes]) -> list[tuple[bytes, bytes]]:
    """The bytes of each variable in the first and the second step."""
    half = len(out) // 2
    return list(zip(out[:half], out[half:], strict=True))
