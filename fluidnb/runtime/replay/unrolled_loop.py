"""Loops that make the same number of iterations over the same arrays in every run, as one list of calls."""

from functools import partial
from time import perf_counter
from typing import Any

import numpy as np

from fluidnb.errors import FluidError
from fluidnb.memory import flags
from fluidnb.op.control import Backward, Control
from fluidnb.runtime.compile.saved_iterations import SavedIteration
from fluidnb.runtime.native.segment_code import Calls, SegmentCode
from fluidnb.runtime.replay.replay_memory import ReplayMemory
from fluidnb.runtime.replay.segment import Segment

#: Calls of a list at most; one takes about 400 bytes.
_MOST = 10_000


class UnrolledLoop:
    """All iterations of a recurrent network, or of its gradient.

    The copies around an iteration of an LSTM cell and its gradient took 77 us as methods of the operator; as calls in a
    list, where native code makes all that are between two iterations at once, they take 40.

    Args:
        control: what the kernel of the operator returned.
        body: the bound body.
        steps: the saved iterations that it writes, or reads.
        calls: what a run makes; that of the body once for each iteration.

    Attributes:
        code: the calls, and those with native code among them.
    """

    __slots__ = ("_body", "_control", "_run", "code", "steps")

    def __init__(
        self, control: Control, bound: ReplayMemory, body: Segment, steps: list[SavedIteration], calls: list[Any]
    ) -> None:
        self._control, self._run, self._body, self.steps = control, bound.run, body.run, steps
        units, k = [], 0
        for function, _ in calls:
            units.append(k)
            k += function is self._body
        plain = Calls(calls, [control.op] * len(calls), units)
        self.code = SegmentCode(plain, plain, dict)

    def run(self) -> None:
        """Make all iterations."""
        code, run = self.code, self._run
        begun = 0.0
        if flags.values["native"] == "off":
            calls, _, units = code.joined
        else:
            if code.waiting:
                code.first()
                begun = perf_counter()
            calls, _, units = code.best
        left: Any = iter(calls)
        run.stack.append((left, calls, units))
        try:
            for function, args in left:
                function(*args)
        except FluidError as e:
            e.iteration = self._iteration(calls, left)
            raise
        except KeyboardInterrupt:
            run.iteration = self._iteration(calls, left)
            raise
        finally:
            run.stack.pop()
        if begun:
            code.count(perf_counter() - begun)

    def _iteration(self, calls: list[Any], left: Any) -> int:
        """The iteration that a run has come to."""
        done = calls[: len(calls) - left.__length_hint__() - 1]
        return self._control.iteration(sum(function is self._body for function, _ in done))


def run_unrolled(control: Control, bound: ReplayMemory, saved: bool) -> bool:
    """Run all iterations of a control operator as one list of calls, where that can be; gives whether it could.

    Args:
        saved: whether backward reads the iterations.
    """
    if control.unrolled is False or len(control.roots) != 1:  # its first run binds the body
        return False
    (body,) = control.roots.values()
    if body.code is None or isinstance(body.run, partial):  # not bound, or not run yet
        return False
    if control.unrolled is None and not _is_simple(control, bound, body):
        control.unrolled = False
        return False
    steps, kept = control.steps, bound.lowered.steps
    if saved:
        steps += kept.first(control.count, body.block.index, body.scope)
    if control.unrolled is None or control.unrolled.steps != steps:
        calls = _calls(control, bound, body, saved)
        if calls is None:
            control.unrolled = False
            if saved:
                steps.clear()
                kept.first(0, body.block.index, body.scope)
            return False
        control.unrolled = UnrolledLoop(control, bound, body, list(steps), calls)
    body.unrolled = control.unrolled.code
    control.unrolled.run()
    return True


def _is_simple(control: Control, bound: ReplayMemory, body: Segment) -> bool:
    """Whether nothing but copies happens around the iterations, and all have the same calls."""
    lowered, index = bound.lowered, body.block.index
    if bound.place_kind != "cpu" or lowered.check_nan or control.op.block != 0:
        return False
    if body.guard is not None or index in lowered.movers or lowered.inner_arrays.get(index):
        return False
    return not any(op.definition.control for op in body.block.ops)


def _calls(control: Control, bound: ReplayMemory, body: Segment, saved: bool) -> list[Any] | None:
    """The calls of all iterations; None where something else than copies and sums is among those around the body."""
    calls: list[Any] = []
    clock, scope, backward = bound.clock, body.scope, isinstance(control, Backward)
    copied = [step.copies() for step in control.steps]
    if None in copied or control.count * len(body.calls) > _MOST:
        return None
    for k in range(control.count):
        if body.block.index in bound.lowered.random:
            calls.append((setattr, (clock, "path", clock.path * 1000003 + k + 1)))
        around = len(calls)
        if backward:
            calls += [(np.copyto, (live, mine)) for live, mine in copied[control.iteration(k)] or ()]
        calls += control.entering(k, scope)
        calls.append((body.run, ()))
        calls += control.leaving(k, scope)
        if saved:
            calls += [(np.copyto, (mine, live)) for live, mine in copied[k] or ()]
        if len(calls) > _MOST or any(f not in (np.copyto, np.add, body.run) for f, _ in calls[around:]):
            return None
    return calls
