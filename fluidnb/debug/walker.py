"""What the worker of a session does: commands that walk the tape and tell how it stands."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from fluidnb.debug.breakpoints import AFTER, BEFORE, Breakpoint
from fluidnb.debug.change import Change, SetAttrs, SetTensor, names_of
from fluidnb.debug.look import View, frozen, holds
from fluidnb.debug.snapshot import Snapshot
from fluidnb.debug.stop import Direction, Stop, StopKind, stop_at
from fluidnb.debug.tape import quiet
from fluidnb.debug.teller import Teller
from fluidnb.debug.writes import wrote
from fluidnb.errors import EnforceNotMet, FluidError, NotFound, OpValueError, near
from fluidnb.runtime.compile.lowering import LoweredOp, LoweredProgram
from fluidnb.runtime.executor import Prepared
from fluidnb.runtime.interpreter.checkpoint import Checkpoint
from fluidnb.runtime.interpreter.failed_run import FailedRun
from fluidnb.runtime.results import fetched
from fluidnb.runtime.run_numbers import next_run
from fluidnb.values.device_array import DeviceArray

BACKWARD = Direction.BACKWARD


class _Paused(BaseException):
    """An operator gave up waiting; no error of its own, which would be told as one."""


class Walker(Teller):
    """Commands of a session; all but `pausing` belong to the worker's thread.

    Args:
        budget: bytes that the journal may hold.

    Attributes:
        breakpoints: where it stops by itself.
        pausing: set to let a running program stop.
    """

    def __init__(self, budget: int) -> None:
        super().__init__(budget)
        self.breakpoints: list[Breakpoint] = []
        self._numbered = 0
        self.pausing = threading.Event()
        self._marks: dict[LoweredOp, tuple[list[Breakpoint], list[Breakpoint]]] = {}
        self._afterwards: Checkpoint | None = None
        self.tape.check = self._check

    def _check(self) -> None:
        """End the waiting of an operator, for a batch say, when the program is to pause: the step is not taken."""
        if self.pausing.is_set():
            raise _Paused

    # ---- runs

    def begin(self, start: Prepared, stands: bool = True) -> Snapshot:
        """Stand at the first operator of a new run; one that goes on at once is told as running."""
        entry = Stop(StopKind.ENTRY)
        number = next_run(start.plan, start.program, start.scope)
        self.tape.begin(start.plan, start.scope, start.values, number)
        return self.stand(entry) if stands else self._publish("running", entry)

    def fetched(self, return_numpy: bool) -> list[Any]:
        """What the run fetches."""
        self._needs_run()
        machine = self.tape.machine
        if not machine.done:
            raise EnforceNotMet("The run is not over.", received=self.snapshot.text, hint="go_on() finishes it.")
        return fetched(machine.plan, machine.stack[0].scope, return_numpy)

    def post_mortem(self, failed: FailedRun) -> Snapshot:
        """Walk a failed run again, up to the operator that failed."""
        program, scope = failed.program(), failed.scope()
        assert program is not None and scope is not None, "last_failed() gives only runs whose program is there"
        plan = LoweredProgram(program.desc, tuple(failed.values), failed.fetches, failed.place, program.random_seed)
        plan.check_nan = failed.check_nan
        self._afterwards = Checkpoint(plan, scope)
        if failed.before is not None:
            failed.before.restore()
        self.tape.begin(plan, scope, failed.values, failed.number)
        outside = {name for row in plan.outer.values() for name in row}
        again: dict[str, None] = {}
        with quiet(plan):
            while not self.tape.done and self._took():
                again.update((name, None) for name in self.wrote if name in outside)
                self.running(Stop(StopKind.REPLAYING))
        if self.error is None:
            return self.stand(Stop(StopKind.NO_ERROR))
        lost = tuple(again) if failed.before is None and failed.began else ()
        return self.stand(Stop(StopKind.POST_MORTEM, names=lost))

    def close(self) -> None:
        """Leave no scope behind; what a walk after a failed run changed once more is put back."""
        self.tape.close()
        if self._afterwards is not None:
            self._afterwards.restore()
        self._show(replace(self.snapshot, closed=True))

    # ---- forwards

    def step(self, count: int = 1) -> Snapshot:
        """Take steps."""
        left = [count]

        def over() -> bool:
            left[0] -= 1
            return left[0] <= 0

        return self._forward(over, Stop(StopKind.STEP, count=count))

    def next(self) -> Snapshot:
        """Run one operator whole."""
        run, depth = self._depth()
        return self._forward(
            lambda: len(self.tape.runs) != run or len(self.tape.machine.stack) <= depth, Stop(StopKind.NEXT)
        )

    def out(self) -> Snapshot:
        """Run to the end of this block."""
        run, depth = self._depth()
        return self._forward(
            lambda: len(self.tape.runs) != run or len(self.tape.machine.stack) < depth, Stop(StopKind.OUT)
        )

    def go_on(self, fresh: bool = False) -> Snapshot:
        """Run to the next breakpoint; ``fresh``: also one before the very first operator."""
        return self._forward(lambda: False, fresh=fresh)

    def run_to(self, where: Breakpoint) -> Snapshot:
        """Run to a place, once."""
        self.breakpoints.append(where)
        self._marks.clear()
        try:
            snapshot = self._forward(lambda: False)
            if snapshot.stop.kind is StopKind.END:
                return self.stand(Stop(StopKind.END, breakpoint=where.copy()))
            return snapshot
        finally:
            self.breakpoints.remove(where)
            self._marks.clear()

    # ---- backwards

    def back(self, count: int = 1) -> Snapshot:
        """Take steps back."""
        self._needs_run()
        for _ in range(count):
            if not self.tape.can_back:
                return self.stand(Stop(StopKind.START, BACKWARD))
            self.tape.back()
        return self.stand(Stop(StopKind.STEP, BACKWARD, count))

    def back_over(self) -> Snapshot:
        """Go back over one operator whole."""
        run, depth = self._depth()
        while self.tape.can_back:
            self.tape.back()
            if len(self.tape.runs) != run or len(self.tape.machine.stack) <= depth:
                return self.stand(Stop(StopKind.NEXT, BACKWARD))
        return self.stand(Stop(StopKind.START, BACKWARD))

    def back_on(self) -> Snapshot:
        """Go back to where a breakpoint would have stopped."""
        self._needs_run()
        while self.tape.can_back:
            undo = self.tape.last()
            frame = undo.stack[-1]
            op = frame.block.ops[frame.pc] if frame.pc < len(frame.block.ops) else None
            stop = None
            if op is not None and undo.stack is not self.tape.machine.stack:
                before, after = ([b for b in bs if b.enabled and not b.only_says] for bs in self._marks_of(op))
                stop = next((b for b in after if b.stops_after(op, undo, frame)), None)
                stop = stop or next((b for b in before if b.stops_before(frame)), None)
            self.tape.back()
            if stop is not None:
                return self.stand(stop_at(stop, BACKWARD))
            if self.pausing.is_set():
                return self.stand(Stop(StopKind.PAUSE, BACKWARD))
            self.running(Stop(StopKind.RUNNING, BACKWARD))
        return self.stand(Stop(StopKind.START, BACKWARD))

    def last_write(self, name: str) -> Snapshot:
        """Go back to just before a variable got its value."""
        self._needs_run()
        machine = self.tape.machine
        variable = machine.stack[-1].scope.find_var(name)
        if variable is None:
            raise NotFound(
                f'"{name}" is not visible in this scope.', received=name, hint=near(name, names_of(machine)) or None
            )
        at = self.tape.at
        while self.tape.can_back:
            hit = wrote(self.tape.last(), variable)
            self.tape.back()
            if hit:
                return self.stand(Stop(StopKind.WRITE, BACKWARD, names=(name,)))
            if self.pausing.is_set():
                return self.stand(Stop(StopKind.PAUSE, BACKWARD))
            self.running(Stop(StopKind.RUNNING, BACKWARD))
        self.go(at)
        return self.stand(Stop(StopKind.NO_WRITE, BACKWARD, names=(name,)))

    def restart(self) -> Snapshot:
        """Go back to the beginning of this run."""
        self._needs_run()
        self.tape.go(self.tape.runs[-1].first)
        return self.stand(Stop(StopKind.RESTART, BACKWARD))

    def go(self, at: int) -> Snapshot:
        """Go to a step, whichever way."""
        self._needs_run()
        if not self.tape.forgotten <= at:
            raise OpValueError(
                "The tape does not begin that early.", expected=f"{self.tape.forgotten} or later", received=at
            )
        if at < self.tape.at:
            self.tape.go(at)
        while self.tape.at < at and not self.tape.done:
            try:
                if not self._took():
                    return self.stand(Stop(StopKind.ERROR))
            except _Paused:
                return self.stand(Stop(StopKind.PAUSE))
            if self.pausing.is_set():
                return self.stand(Stop(StopKind.PAUSE))
            self.running()
        return self.stand(Stop(StopKind.END) if self.tape.done else Stop(StopKind.GOTO, count=self.tape.at))

    # ---- looking

    def value(self, name: str) -> Any:
        """A copy of what a variable holds."""
        self._needs_run()
        machine = self.tape.machine
        variable = machine.stack[-1].scope.find_var(name)
        value = None if variable is None else variable.value
        if not holds(value):
            raise NotFound(
                f'"{name}" has no value here.', expected="a variable that holds something", received=name,
                hint=self._writer_of(name) or near(name, self.names()) or "names lists what there is.",
            )  # fmt: skip
        return frozen(value)

    def evaluate(self, text: str, around: Mapping[str, Any] | None = None) -> Any:
        """What an expression gives; a variable's name is one, with dots or without."""
        self._needs_run()
        view = View(self.tape.machine.stack[-1].scope, around)
        if text in view or self._writer_of(text):
            return self.value(text)
        try:
            found = view.evaluate(text)
        except FluidError:
            raise
        except Exception as error:
            raise OpValueError(
                f"{text} cannot be evaluated here.", expected="a Python expression over the variables",
                received=f"{type(error).__name__}: {error}",
            ) from None  # fmt: skip
        return found.copy() if isinstance(found, np.ndarray | DeviceArray) else found

    def _writer_of(self, name: str) -> str:
        """Where a variable is written first, as a hint; empty if nowhere."""
        ops = (op for block in self.tape.machine.plan.blocks for op in block.ops)
        op = next((op for op in ops if name in op.writes()), None)
        return "" if op is None else f"{op.block}:{op.index} {op.desc.optype} writes it; until var {name} goes there."

    def names(self) -> list[str]:
        """Variables that have a value here."""
        self._needs_run()
        return list(View(self.tape.machine.stack[-1].scope))

    def call(self, function: Callable[..., Any], *args: Any) -> Any:
        """What a function of this walker gives, called here in the worker's thread."""
        self._needs_run()
        return function(self, *args)

    # ---- changing

    def edit(self, name: str, value: Any, frame: int = -1) -> Snapshot:
        """Give a variable other values; ``frame``: which block it is seen from, outermost first."""
        return self._change(SetTensor(name, value, frame))

    def change_op(self, block: int, index: int, attrs: Mapping[str, Any]) -> Snapshot:
        """Give an operator other attributes."""
        self._needs_run()
        blocks = self.tape.machine.plan.blocks
        ops = blocks[block].ops if 0 <= block < len(blocks) else []
        op = next((o for o in ops if o.index == index), None)
        if op is None:
            raise NotFound(f"There is no operator {block}:{index}.", received=f"{block}:{index}")
        return self._change(SetAttrs(op.desc, attrs))

    def _change(self, change: Change) -> Snapshot:
        self._needs_run()
        self.tape.change(change)
        return self.stand(change.stop)

    # ---- settings

    def add(self, made: Breakpoint) -> None:
        """Set a breakpoint."""
        self._numbered += 1
        made.number = self._numbered
        self.breakpoints.append(made)
        self._marks.clear()
        self.again()

    def matches(self, where: Breakpoint) -> bool:
        """Whether a breakpoint can ever stop in the run under way, or nothing runs yet."""
        return not self.tape.runs or any(where.may_stop(op) for b in self.tape.machine.plan.blocks for op in b.ops)

    def clear(self, number: int | None = None) -> None:
        """Remove a breakpoint, or all."""
        if number is not None and all(b.number != number for b in self.breakpoints):
            raise NotFound(
                f"There is no breakpoint {number}.", received=number,
                expected=", ".join(str(b.number) for b in self.breakpoints) or "none is set",
            )  # fmt: skip
        self.breakpoints = [b for b in self.breakpoints if number is not None and b.number != number]
        self._marks.clear()
        self.again()

    def marks(self) -> set[tuple[int, int]]:
        """Operators of the innermost block at which a breakpoint may stop."""
        if not self.tape.runs or not self.breakpoints:
            return set()
        ops = self.tape.machine.stack[-1].block.ops
        named = [b for b in self.breakpoints if b.kind not in ("nan", "when")]
        return {(op.block, op.index) for op in ops if any(b.may_stop(op) for b in named)}

    # ---- how

    def _needs_run(self) -> None:
        if not self.tape.runs:
            raise EnforceNotMet("There is nothing to walk yet.", hint="begin(feed, fetch_list) begins a run.")

    def _depth(self) -> tuple[int, int]:
        self._needs_run()
        return len(self.tape.runs), len(self.tape.machine.stack)

    def _forward(self, over: Callable[[], bool], walked: Stop | None = None, fresh: bool = False) -> Snapshot:
        """Take steps until ``over`` (the stop is then ``walked``), a breakpoint, an error or the end."""
        self._needs_run()
        try:
            return self._take(over, walked or Stop(StopKind.STEP), fresh)
        except Exception as error:  # of a breakpoint's expression, for that of an operator is part of the snapshot
            self.stand(Stop(StopKind.CONDITION_ERROR, error=type(error).__name__))
            raise

    def _take(self, over: Callable[[], bool], walked: Stop, fresh: bool) -> Snapshot:
        tape = self.tape
        while not tape.done:
            machine = tape.machine
            frame, op = machine.stack[-1], machine.here
            before, after = self._marks_of(op) if op is not None and self.breakpoints else ((), ())
            if fresh:
                for b in before:
                    if b.enabled and b.stops_before(frame) and b.counts():
                        return self.stand(stop_at(b))
            fresh = True
            try:
                if not self._took():
                    return self.stand(Stop(StopKind.ERROR))
            except _Paused:
                return self.stand(Stop(StopKind.PAUSE))
            if op is not None:
                for b in after:
                    if b.enabled and b.stops_after(op, tape.journal[-1], frame) and b.counts():
                        return self.stand(stop_at(b))
            if over():
                break
            if self.pausing.is_set():
                return self.stand(Stop(StopKind.PAUSE))
            self.running()
        return self.stand(Stop(StopKind.END) if tape.done else walked)

    def _took(self) -> bool:
        """Take one step; whether it went well."""
        machine = self.tape.machine
        stack, op = machine.stack, machine.here
        if op is None and len(stack) > 1:  # what leaves a block may hand values to the block around
            op = stack[-2].block.ops[stack[-2].pc]
        try:
            self.tape.forward()
        except Exception as error:
            self.error = error
            return False
        self.wrote = () if op is None else op.writes()
        return True

    def _marks_of(self, op: LoweredOp) -> tuple[list[Breakpoint], list[Breakpoint]]:
        """The breakpoints that may stop before and after an operator."""
        found = self._marks.get(op)
        if found is None:
            mine = [b for b in self.breakpoints if b.may_stop(op)]
            found = [b for b in mine if b.kind in BEFORE], [b for b in mine if b.kind in AFTER]
            self._marks[op] = found
        return found
