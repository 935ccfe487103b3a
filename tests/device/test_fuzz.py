"""Random programs of loops, branches and recurrent networks give the same on a device as on the host, however run."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.backward import append_backward
from fluidnb.errors import OpValueError
from fluidnb.memory import flags
from fluidnb.runtime import Executor, LoweredProgram
from fluidnb.values import LoDTensor
from fluidnb.values.copies import on_host
from tests.fuzz.nests import Nest, feed, weights
from tests.tools.sampling import sample

SEEDS = range(300)


class Drawn:
    """A random program with backward; the same one for the same seed.

    Args:
        seed: of the program and of what it is fed.
    """

    def __init__(self, seed: int) -> None:
        dice = random.Random(seed)
        self.rng = np.random.default_rng(seed)
        self.program, fetch = None, []
        while self.program is None:
            with fluid.fresh():
                program, loss = (nest := Nest(dice.randrange)).build()
                try:
                    pairs = append_backward(loss)
                except OpValueError as error:
                    if "overwrites it" not in str(error):
                        raise
                    continue  # its backward would need what is gone: another one
            self.program, fetch = program, [loss.name, *(g.name for _, g in pairs), "x@GRAD"]
        self.program.random_seed = 5
        self.text, self.weights = "\n".join(nest.text), weights(self.rng)
        self.fetch = fetch + sorted({v.name for v in nest.shown} if dice.random() < 0.5 else ())

    def scope(self) -> fluid.Scope:
        """A new scope with parameters."""
        scope = fluid.Scope()
        for name, array in self.weights.items():
            scope.var(name).get_tensor().set(array, fluid.CPUPlace())
        return scope

    def run(self, given: Any, scope: fluid.Scope, place: Any, keep: bool = False) -> list[Any]:
        """The fetched values."""
        exe = fluid.Executor(place)
        got = exe.run(self.program, given, self.fetch, scope=scope, return_numpy=False, keep_scopes=keep)
        return [[np.array(t) for t in v] if isinstance(v, list) else np.array(v) for v in got]


def _same(got: list[Any], want: list[Any], text: str) -> None:
    for one, other in zip(got, want, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-7, atol=1e-9, err_msg=text)


@pytest.mark.parametrize("seed", sample(SEEDS, 6))
def test_as_on_the_host(seed: int, cuda: fluid.CUDAPlace) -> None:
    """With graphs and without, with poisoned memory, by the replay and by the machine, run after run."""
    drawn = Drawn(seed)
    feeds = [feed(drawn.rng) for _ in range(3)]
    given = [feeds[0], *feeds, feeds[0]]  # twice alike: captured, then launched
    there = drawn.scope()
    want = [drawn.run(g, there, fluid.CPUPlace()) for g in given]
    for settings in ({"cuda_graphs": True}, {"cuda_graphs": False, "init_allocated_mem": True}):
        with pytest.MonkeyPatch.context() as patch:
            for name, value in settings.items():
                patch.setitem(flags.values, name, value)
            for keep in (False, True):
                scope = drawn.scope()
                drawn.program.desc.state = None
                for g, expected in zip(given, want, strict=True):
                    _same(drawn.run(g, scope, cuda, keep), expected, f"seed {seed}, {settings}, {keep}\n{drawn.text}")


def _state(machine: Any) -> Any:
    """The position of a machine, and a number for everything that can be seen from there."""
    rows: list[Any] = []
    scope = machine.stack[-1].scope
    while scope is not None:
        for name, variable in sorted(scope.vars.items()):
            value = variable.value
            tensors = value if isinstance(value, list) else [value]
            held = [t for t in tensors if isinstance(t, LoDTensor) and t.array is not None]
            if held or isinstance(value, list) and value:
                rows.append((name, len(tensors), *((on_host(t.array).tobytes(), t.lod_) for t in held)))
        scope = scope.parent
    return [(f.block.index, f.pc, f.k) for f in machine.stack], hash(tuple(rows))


@pytest.mark.parametrize("seed", sample(SEEDS, 1))
def test_a_machine_goes_back_and_forth(seed: int, cuda: fluid.CUDAPlace) -> None:
    drawn = Drawn(seed)
    given = feed(drawn.rng)
    lowered = LoweredProgram(drawn.program.desc, tuple(given), tuple(drawn.fetch), cuda, 5)
    machine = Executor.interpreter(lowered, drawn.scope(), {n: (a, ()) for n, a in given.items()})
    seen = [_state(machine)]
    while not machine.done:
        machine.step()
        seen.append(_state(machine))
    for at in range(len(seen) - 2, -1, -1):
        machine.back()
        assert _state(machine) == seen[at], f"{at}\n{drawn.text}"
    for at in range(1, len(seen)):
        machine.step()
        assert _state(machine) == seen[at], f"{at}\n{drawn.text}"
