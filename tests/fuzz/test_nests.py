"""Random programs of loops, branches and recurrent networks inside each other, with backward.

Both walkers give the same bits, also when the same program runs again with other values, trip counts and branches; the
gradients are the slopes; a machine that goes back finds everything as it was; clones and bytes run alike.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, note, reject, settings

import fluidnb as fluid
from fluidnb.backward import append_backward
from fluidnb.errors import OpValueError
from fluidnb.runtime import Executor, LoweredProgram
from fluidnb.values import CPUPlace, LoDTensor
from tests.fuzz.nests import WEIGHTS, Nest, feed, weights

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]

Feed = dict[str, np.ndarray]

_SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]
_PHASES = [Phase.explicit, Phase.reuse, Phase.generate]  # shrinking takes minutes; the notes show the program
_FULL = settings().max_examples >= 1000  # the profile of --full

#: How many programs each test draws, in a normal run and with --full.
some = settings(max_examples=1000 if _FULL else 20, suppress_health_check=_SLOW, phases=_PHASES)
few = settings(max_examples=300 if _FULL else 6, suppress_health_check=_SLOW, phases=_PHASES)


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    with fluid.fresh():
        yield


class Drawn:
    """A random program with backward.

    Args:
        data: draws it.

    Attributes:
        program: the program.
        loss: its loss's name.
        gradients: parameter, or x -> name of its gradient.
        fetch: what to fetch: the loss, the gradients, and sometimes more.
        rng: for values.
    """

    def __init__(self, data: st.DataObject) -> None:
        nest = Nest(lambda n: data.draw(st.integers(0, n - 1)))
        with fluid.fresh():
            self.program, loss = nest.build()
            self.program.random_seed = 5
            note("\n".join(nest.text))
            try:
                pairs = append_backward(loss)
            except OpValueError as e:
                if "overwrites it" in str(e) and "in block 0\n" in str(e):
                    reject()
                raise
        self.loss = loss.name
        self.gradients = {p.name: g.name for p, g in pairs} | {"x": "x@GRAD"}
        self.fetch = [self.loss, *self.gradients.values()]
        if data.draw(st.booleans()):  # who is fetched keeps its memory
            self.fetch += sorted({v.name for v in nest.shown})
        self.rng = np.random.default_rng(data.draw(st.integers(0, 2**20)))
        self.weights = weights(self.rng)

    def scope(self, **values: np.ndarray) -> fluid.Scope:
        """A new scope with parameters."""
        scope = fluid.Scope()
        for name, array in {**self.weights, **values}.items():
            scope.var(name).get_tensor().set(array, CPUPlace())
        return scope


def bits(value: Any) -> Any:
    """A value as something to compare."""
    if isinstance(value, list):
        return [bits(v) for v in value]
    array = np.asarray(value)
    return array.tobytes(), array.shape, str(array.dtype)


def run(drawn: Drawn, given: Feed, scope: fluid.Scope, program: Any = None, machine: bool = False) -> list[Any]:
    """The fetched values, as bits."""
    exe = fluid.Executor(CPUPlace())
    return [
        bits(v)
        for v in exe.run(
            program or drawn.program, feed=given, fetch_list=drawn.fetch, scope=scope, keep_scopes=machine,
            return_numpy=False,
        )
    ]  # fmt: skip


@some
@given(st.data())
def test_both_walkers_give_the_same_bits_run_after_run(data: st.DataObject) -> None:
    drawn = Drawn(data)
    one, two = drawn.scope(), drawn.scope()
    feeds = [feed(drawn.rng) for _ in range(3)]
    for given_ in (*feeds, feeds[0]):
        note(str({n: a.tolist() for n, a in given_.items()}))
        replayed = run(drawn, given_, one)
        assert replayed == run(drawn, given_, two, machine=True)


@some
@given(st.data())
def test_gradients_are_slopes(data: st.DataObject) -> None:
    drawn = Drawn(data)
    point = feed(drawn.rng) | drawn.weights
    direction = {n: drawn.rng.normal(size=point[n].shape) for n in ("x", *WEIGHTS)}

    def at(step: float) -> tuple[float, float]:
        """The loss a step along the direction away, and its slope by the gradients."""
        values = point | {n: point[n] + step * d for n, d in direction.items()}
        scope = drawn.scope(**{n: values.pop(n) for n in WEIGHTS})
        fetch = [drawn.loss, *drawn.gradients.values()]
        loss, *found = fluid.Executor(CPUPlace()).run(drawn.program, feed=values, fetch_list=fetch, scope=scope)
        slope = sum((g * direction[n]).sum() for n, g in zip(drawn.gradients, found, strict=True))
        return loss.item(), slope

    def slope(step: float) -> float:
        return (at(step)[0] - at(-step)[0]) / (2 * step)

    wide, narrow = slope(1e-5), slope(1e-6)
    if abs(wide - narrow) > 1e-5 * (1 + abs(wide)):
        reject()  # a branch goes the other way close by
    assert at(0.0)[1] == pytest.approx(wide, rel=1e-6, abs=1e-6)


@few
@given(st.data())
def test_a_machine_goes_back_to_the_start_and_forward_again(data: st.DataObject) -> None:
    drawn = Drawn(data)
    lowered = LoweredProgram(
        drawn.program.desc, tuple(feed(drawn.rng)), tuple(drawn.fetch), CPUPlace(), drawn.program.random_seed
    )
    machine = Executor.interpreter(lowered, drawn.scope(), {n: (a, ()) for n, a in feed(drawn.rng).items()})
    seen = [state(machine)]
    while not machine.done:
        machine.step()
        seen.append(state(machine))
    for at in range(len(seen) - 2, -1, -1):
        machine.back()
        assert state(machine) == seen[at], at
    for at in range(1, len(seen)):
        machine.step()
        assert state(machine) == seen[at], at


def state(machine: Any) -> Any:
    """The position of a machine, and a number for everything that can be seen from there."""
    rows = []
    scope = machine.stack[-1].scope
    while scope is not None:
        for name, variable in sorted(scope.vars.items()):
            v = variable.value
            if isinstance(v, LoDTensor) and v.array is not None:
                rows.append((name, v.array.tobytes(), v.lod_))
            elif isinstance(v, list) and v:  # an array, or the scopes of iterations
                items = [t.array.tobytes() for t in v if isinstance(t, LoDTensor) and t.array is not None]
                rows.append((name, len(v), *items))
        scope = scope.parent
    return [(f.block.index, f.pc, f.k) for f in machine.stack], hash(tuple(rows))


@few
@given(st.data())
def test_clones_and_bytes_run_alike(data: st.DataObject) -> None:
    drawn = Drawn(data)
    copies = [drawn.program.clone(), fluid.Program.parse_from_string(drawn.program.desc.serialize_to_string())]
    for copy in copies:
        copy.random_seed = drawn.program.random_seed
    scopes = [drawn.scope() for _ in range(3)]
    for _ in range(2):
        given_ = feed(drawn.rng)
        first = run(drawn, given_, scopes[0])
        for copy, scope in zip(copies, scopes[1:], strict=True):
            assert run(drawn, given_, scope, copy) == first
