"""The debugger behind a session: it steps, stops at breakpoints, steps back and publishes snapshots."""

import queue
import re
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Annotated, Any

import numpy as np

from fluidnb.arguments import Rule, shown
from fluidnb.debug.breakpoints import AFTER, BEFORE, Breakpoint
from fluidnb.debug.change import Change, SetAttrs, SetTensor, names_of
from fluidnb.debug.journal import wrote
from fluidnb.debug.snapshot import Snapshot, frames_of
from fluidnb.debug.stop import Direction, Stop, StopKind, stop_at
from fluidnb.debug.tape import Tape, quiet
from fluidnb.debug.view import NoValue, View, copied, has_value
from fluidnb.errors import EnforceNotMet, FluidError, NotFound, OpValueError, near
from fluidnb.runtime.compile.lowering import LoweredOp, LoweredProgram
from fluidnb.runtime.executor import Prepared
from fluidnb.runtime.interpreter.checkpoint import Checkpoint
from fluidnb.runtime.interpreter.failed_run import FailedRun
from fluidnb.runtime.interpreter.interpreter import Undo
from fluidnb.runtime.results import fetched
from fluidnb.runtime.run_numbers import next_run
from fluidnb.values import CPUPlace, DeviceContext
from fluidnb.values.device_array import DeviceArray

BACKWARD = Direction.BACKWARD
_RUNNING = Stop(StopKind.RUNNING)
#: How many steps to take; back may be given none.
Steps = Annotated[int, Rule("an int from 1 on", lambda n: n >= 1)]
HowMany = Annotated[int, Rule("an int from 0 on", lambda n: n >= 0)]
_INTERVAL = 0.1  # seconds between two snapshots of a running program


class _Paused(BaseException):
    """An operator stopped waiting: no error, so no `except Exception` may report it as one."""


class Debugger:
    """Executes the commands of one session; everything but `pausing` belongs to the session's worker thread."""

    def __init__(self, budget: int) -> None:  # bytes of the journal
        self.tape = Tape(budget)
        self.tape.check = self._check
        self.snapshot = Snapshot("idle", Stop(StopKind.IDLE))
        self.breakpoints: list[Breakpoint] = []
        self.watches: list[str] = []
        self.wrote: tuple[str, ...] = ()
        self.error: BaseException | None = None  # of the next operator
        self.pausing = threading.Event()
        self.between_steps: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._last_number = 0
        self._stopping: dict[LoweredOp, tuple[list[Breakpoint], list[Breakpoint]]] = {}
        self._afterwards: Checkpoint | None = None
        self._observers: list[Callable[[Snapshot], None]] = []
        self._problems: tuple[str, ...] = ()
        self._published = 0.0
        self._reached = 0

    def _check(self) -> None:
        """End the waiting of an operator, for a batch say, when the program is to pause: the step is not taken."""
        if self.pausing.is_set():
            raise _Paused

    # ---- runs

    def begin(self, start: Prepared, paused: bool = True) -> Snapshot:
        """Begin a run at its first operator; ``paused=False``: it is about to continue, and is reported as running."""
        number = next_run(start.lowered, start.program, start.scope)
        self.tape.begin(start.lowered, start.scope, start.values, number)
        entry = Stop(StopKind.ENTRY)
        return self.stop(entry) if paused else self._publish("running", entry)

    def results(self, return_numpy: bool) -> list[Any]:
        """The values of the run's fetch list."""
        interpreter = self.tape.interpreter
        if not interpreter.done:
            raise EnforceNotMet("The run is not over.", received=self.snapshot.text, hint="continue_() finishes it.")
        return fetched(interpreter.lowered, interpreter.stack[0].scope, return_numpy)

    def replay_failed(self, failed: FailedRun) -> Snapshot:
        """Replay a failed run up to the operator that failed."""
        program, scope = failed.program(), failed.scope()
        assert program is not None and scope is not None, "last_failed() gives only runs whose program is there"
        lowered = LoweredProgram(program.desc, tuple(failed.values), failed.fetches, failed.place, program.random_seed)
        lowered.check_nan = failed.check_nan
        self._afterwards = Checkpoint(lowered, scope)
        if failed.before is not None:
            failed.before.restore()
        self.tape.begin(lowered, scope, failed.values, failed.number)
        outside = {name for row in lowered.outer.values() for name in row}
        again: dict[str, None] = {}
        with quiet(lowered):
            while not self.tape.done and self._try_step():
                again.update((name, None) for name in self.wrote if name in outside)
                self._running(Stop(StopKind.REPLAYING))
        if self.error is None:
            return self.stop(Stop(StopKind.NO_ERROR))
        lost = tuple(again) if failed.before is None and failed.began else ()
        return self.stop(Stop(StopKind.POST_MORTEM, names=lost))

    def close(self) -> None:
        """Remove all scopes; undo what the replay of a failed run changed."""
        self.tape.close()
        if self._afterwards is not None:
            self._afterwards.restore()
        self._show(replace(self.snapshot, closed=True))

    # ---- forwards

    def step(self, count: Steps = 1) -> Snapshot:
        """Run operators, entering the blocks that they run."""
        left = iter(range(1, count))
        return self._forward(lambda: next(left, None) is None, Stop(StopKind.STEP, count=count))

    def next(self) -> Snapshot:
        """Run one operator with the blocks that it runs."""
        return self._forward(self._has_left(self._depth()), Stop(StopKind.NEXT))

    def out(self) -> Snapshot:
        """Run to the end of this block, and of its iterations."""
        return self._forward(self._has_left(self._depth() - 1), Stop(StopKind.OUT))

    def continue_(self, fresh: bool = False) -> Snapshot:
        """Run to the next breakpoint, or to the end; ``fresh``: also to one at the very first operator."""
        return self._forward(lambda: False, fresh=fresh)

    def run_to(self, where: Breakpoint) -> Snapshot:
        """Run to an operator, line, block or condition, once."""
        self.breakpoints.append(where)
        self._stopping.clear()
        try:
            snapshot = self._forward(lambda: False)
            if snapshot.stop.kind is StopKind.END:
                return self.stop(Stop(StopKind.END, breakpoint=where.copy()))
            return snapshot
        finally:
            self.breakpoints.remove(where)
            self._stopping.clear()

    # ---- backwards

    def back(self, count: HowMany = 1) -> Snapshot:
        """Take steps back."""
        self._require_run()
        for _ in range(count):
            if not self.tape.can_back:
                return self.stop(Stop(StopKind.START, BACKWARD))
            self.tape.back()
        return self.stop(Stop(StopKind.STEP, BACKWARD, count))

    def step_back_over(self) -> Snapshot:
        """Step back over one operator with the blocks that it ran."""
        has_left = self._has_left(self._depth())
        while self.tape.can_back:
            self.tape.back()
            if has_left():
                return self.stop(Stop(StopKind.NEXT, BACKWARD))
        return self.stop(Stop(StopKind.START, BACKWARD))

    def reverse_continue(self) -> Snapshot:
        """Go back to where a breakpoint would have stopped last, or to the beginning."""
        self._require_run()
        return self._back_until(self._stop_before) or self.stop(Stop(StopKind.START, BACKWARD))

    def _stop_before(self, undo: Undo) -> Stop | None:
        """The stop at a breakpoint before or after a step, going backwards."""
        frame = undo.stack[-1]
        if frame.pc == len(frame.block.ops) or undo.stack is self.tape.interpreter.stack:
            return None
        op = frame.block.ops[frame.pc]
        before, after = ([b for b in bs if b.enabled and not b.logs_only] for bs in self._breakpoints_at(op))
        hit = next((b for b in after if b.stops_after(op, undo, frame)), None)
        hit = hit or next((b for b in before if b.stops_before(frame)), None)
        return None if hit is None else stop_at(hit, BACKWARD)

    def _back_until(self, stop_of: Callable[[Undo], Stop | None]) -> Snapshot | None:
        """Step back to before the step that has a stop; None at the beginning."""
        while self.tape.can_back:
            stop = stop_of(self.tape.last())
            self.tape.back()
            if stop is not None or self.pausing.is_set():
                return self.stop(stop or Stop(StopKind.PAUSE, BACKWARD))
            self._running(Stop(StopKind.RUNNING, BACKWARD))
        return None

    def last_write(self, name: str) -> Snapshot:
        """Go back to just before the step that gave a variable the value that it has here."""
        names = names_of(self.tape.interpreter)
        variable = self.tape.interpreter.stack[-1].scope.find_var(name)
        if variable is None:
            raise NotFound(f'"{name}" is not visible in this scope.', received=name, hint=near(name, names) or None)
        at, stop = self.tape.at, Stop(StopKind.WRITE, BACKWARD, names=(name,))
        snapshot = self._back_until(lambda undo: stop if wrote(undo, variable) else None)
        if snapshot is None:
            self.go(at)
            snapshot = self.stop(Stop(StopKind.NO_WRITE, BACKWARD, names=(name,)))
        return snapshot

    def restart(self) -> Snapshot:
        """Go back to the beginning of this run."""
        self._require_run()
        self.tape.go(self.tape.runs[-1].first)
        return self.stop(Stop(StopKind.RESTART, BACKWARD))

    def go(self, at: int) -> Snapshot:
        """Go to a step, backwards or forwards; breakpoints do not stop it."""
        self._require_run()
        if not self.tape.forgotten <= at:
            raise OpValueError(
                f"Step {at} is not recorded any more.", expected=f"{self.tape.forgotten} or later", received=at
            )
        if at < self.tape.at:
            self.tape.go(at)
        while self.tape.at < at and not self.tape.done:
            try:
                if not self._try_step():
                    return self.stop(Stop(StopKind.ERROR))
            except _Paused:
                return self.stop(Stop(StopKind.PAUSE))
            if self.pausing.is_set():
                return self.stop(Stop(StopKind.PAUSE))
            self._running()
        return self.stop(Stop(StopKind.END) if self.tape.done else Stop(StopKind.GOTO, count=self.tape.at))

    # ---- values

    def value(self, name: str, frame: int = -1) -> Any:
        """A copy of a variable's value in a frame: ndarray, LoDTensor if there is LoD, list, SelectedRows."""
        variable = self.tape.interpreter.stack[frame].scope.find_var(name)
        value = None if variable is None else variable.value
        if not has_value(value):
            raise NotFound(
                f'"{name}" has no value here.', expected="a variable that has a value", received=name,
                hint=self._writer_of(name) or near(name, self.names()) or "names lists the variables that have one.",
            )  # fmt: skip
        return copied(value)

    def evaluate(self, text: str, around: Mapping[str, Any] | None = None, frame: int = -1) -> Any:
        """The value of an expression in a frame, or of a variable whose name need not be a Python name."""
        view = View(self.tape.interpreter.stack[frame].scope, around)
        if text in view or self._writer_of(text):
            return self.value(text, frame)
        try:
            result = view.evaluate(text)
        except FluidError:
            raise
        except Exception as error:
            raise OpValueError(
                f"{text} cannot be evaluated here.", expected="a Python expression over the variables",
                received=f"{type(error).__name__}: {error}",
            ) from None  # fmt: skip
        return result.copy() if isinstance(result, np.ndarray | DeviceArray) else result

    def _writer_of(self, name: str) -> str:
        """A hint that names the first operator that writes a variable; empty if there is none."""
        ops = (op for block in self.tape.interpreter.lowered.blocks for op in block.ops)
        op = next((op for op in ops if name in op.writes()), None)
        return "" if op is None else f"{op.block}:{op.index} {op.desc.optype} writes it; until var {name} goes there."

    def names(self) -> list[str]:
        """The names of the variables that have a value here, innermost scope first."""
        return list(View(self.tape.interpreter.stack[-1].scope))

    # ---- edits

    def edit(self, name: str, value: Any, frame: int = -1) -> Snapshot:
        """Set a variable, as seen from a frame (0 is the outermost)."""
        return self._change(SetTensor(name, value, frame))

    def change_op(self, block: int, index: int, attrs: Mapping[str, Any]) -> Snapshot:
        """Set attributes of an operator for the rest of the run; stepping back undoes it."""
        blocks = self.tape.interpreter.lowered.blocks
        ops = blocks[block].ops if 0 <= block < len(blocks) else []
        op = next((o for o in ops if o.index == index), None)
        if op is None:
            known = ", ".join(f"{b.index}:{b.ops[0].index} to {b.index}:{b.ops[-1].index}" for b in blocks if b.ops)
            raise NotFound(f"There is no operator {block}:{index}.", expected=known, received=f"{block}:{index}")
        return self._change(SetAttrs(op, attrs))

    def _change(self, change: Change) -> Snapshot:
        self._require_run()
        self.tape.change(change)
        return self.stop(change.stop)

    # ---- breakpoints

    def add_breakpoint(self, breakpoint: Breakpoint) -> None:
        """Set a breakpoint."""
        self._last_number += 1
        breakpoint.number = self._last_number
        self.breakpoints.append(breakpoint)
        self._settings_changed()

    def clear_breakpoints(self, number: int | None = None) -> None:
        """Remove a breakpoint by its number; None for all."""
        if number is not None and all(b.number != number for b in self.breakpoints):
            raise NotFound(
                f"There is no breakpoint {number}.", received=number,
                expected=", ".join(str(b.number) for b in self.breakpoints) or "none is set",
            )  # fmt: skip
        self.breakpoints = [b for b in self.breakpoints if number is not None and b.number != number]
        self._settings_changed()

    def can_reach(self, where: Breakpoint) -> bool:
        """Whether a breakpoint can ever stop the current run; True before the first run."""
        if not self.tape.runs:
            return True
        return any(where.may_stop(op) for block in self.tape.interpreter.lowered.blocks for op in block.ops)

    def marks(self) -> set[tuple[int, int]]:
        """(block, index) of the operators of the innermost block at which a breakpoint may stop."""
        if not self.tape.runs or not self.breakpoints:
            return set()
        ops = self.tape.interpreter.stack[-1].block.ops
        named = [b for b in self.breakpoints if b.kind not in ("nan", "when")]
        return {(op.block, op.index) for op in ops if any(b.may_stop(op) for b in named)}

    def _breakpoints_at(self, op: LoweredOp) -> tuple[list[Breakpoint], list[Breakpoint]]:
        """The breakpoints that may stop before and after an operator."""
        if op not in self._stopping:
            mine = [b for b in self.breakpoints if b.may_stop(op)]
            self._stopping[op] = [b for b in mine if b.kind in BEFORE], [b for b in mine if b.kind in AFTER]
        return self._stopping[op]

    # ---- observers and watches

    def observe(self, observer: Callable[[Snapshot], None]) -> None:
        """Report every snapshot to an observer, beginning with this one."""
        self._observers.append(observer)
        self._notify(observer)

    def forget(self, observer: Callable[[Snapshot], None]) -> None:
        """Remove an observer."""
        if observer not in self._observers:
            raise NotFound("This does not observe the session.", expected="an observer", received=shown(observer))
        self._observers.remove(observer)

    def watch(self, text: str) -> Snapshot:
        """Evaluate an expression in every snapshot."""
        if text not in self.watches:
            self.watches.append(text)
        return self._settings_changed()

    def unwatch(self, text: str | None = None) -> Snapshot:
        """Remove a watch; None for all."""
        self.watches = [w for w in self.watches if text is not None and w != text]
        return self._settings_changed()

    def _settings_changed(self) -> Snapshot:
        """Publish the snapshot again: its watches may have other values, the program has not moved."""
        self._stopping.clear()
        return self._show(replace(self.snapshot, watches=self._watch_values()))

    def _watch_values(self) -> tuple[tuple[str, str], ...]:
        return tuple((text, self._watch_value(text)) for text in self.watches)

    def _watch_value(self, text: str) -> str:
        if not self.tape.runs:
            return "—"
        view = View(self.tape.interpreter.stack[-1].scope)
        try:
            value = view[text] if text in view else view.evaluate(text)
        except NotFound as error:
            similar = error.similar if isinstance(error, NoValue) else ""
            missing = f'"{text}" has no value here.' if re.fullmatch(r"[\w.@]+", text) else error.summary
            return f"{missing} {similar}".rstrip()
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        with np.printoptions(threshold=6, edgeitems=2, precision=4):
            return " ".join(str(value).split())

    # ---- snapshots

    def stop(self, stop: Stop) -> Snapshot:
        """Publish the snapshot of a session that does not move."""
        state = "idle" if not self.tape.runs else "done" if self.tape.done else "paused"
        self._published = 0.0
        snapshot = self._publish(state, stop)
        self.error, self.wrote = None, ()
        return snapshot

    def run_between_steps(self) -> None:
        """Do what waits in `between_steps`."""
        while not self.between_steps.empty():
            self.between_steps.get()()

    def _running(self, stop: Stop = _RUNNING) -> None:
        """Publish progress now and then, and do what waits in `between_steps`."""
        now = time.monotonic()
        if not self.between_steps.empty():
            self._publish("running", stop)
            self.run_between_steps()
        if self._published == 0.0:
            self._published = now
        elif now - self._published > _INTERVAL:
            self._published = now
            self._publish("running", stop)

    def _publish(self, state: str, stop: Stop) -> Snapshot:
        self._reached = self.tape.at if state == "done" else max(self.tape.at, self._reached)
        return self._show(self._snapshot(state, stop))

    def _snapshot(self, state: str, stop: Stop) -> Snapshot:
        """The present state."""
        tape = self.tape
        frames = frames_of(tape.interpreter.stack, tape.interpreter.lowered.changed) if tape.runs else ()
        return Snapshot(
            state, stop, tape.at, max(0, len(tape.runs) - 1), frames, self.wrote,
            self._watch_values(), tape.can_back, self.error, tape.journal.nbytes, self._problems, self._reached,
            device=self._device(),
        )  # fmt: skip

    def review(self, first: int, look: Callable[[Snapshot], None]) -> None:
        """Call a function at each recorded step from one on, with its snapshot; then the session is here again.

        Observers see none of it.
        """
        tape, here = self.tape, self.snapshot

        def snapshot() -> None:
            shown = self._snapshot(
                "done" if tape.done else "paused", Stop(StopKind.END if tape.done else StopKind.STEP)
            )
            if tape.at == tape.runs[-1].first:
                shown = replace(shown, stop=Stop(StopKind.ENTRY))
            present = (shown.at, shown.run) == (here.at, here.run)
            look(replace(shown, stop=here.stop, error=here.error) if present else shown)

        tape.walk(min(max(first, tape.forgotten), tape.at), max(self._reached, tape.at), snapshot)

    def _device(self) -> str:
        """The device with its name; empty on the host."""
        place = self.tape.interpreter.lowered.place if self.tape.runs else CPUPlace()
        return "" if place.kind == "cpu" else f"{place}, {DeviceContext.get(place).name}"

    def _show(self, snapshot: Snapshot) -> Snapshot:
        self.snapshot = snapshot
        for observer in list(self._observers):
            self._notify(observer)
        return self.snapshot

    def _notify(self, observer: Callable[[Snapshot], None]) -> None:
        try:
            observer(self.snapshot)
        except Exception as error:
            text = "".join(traceback.format_exception(error)).rstrip()
            self._problems = (*self._problems[-9:], text)
            print(f"an observer of the debug session raised:\n{text}", file=sys.stderr)

    # ---- steps

    def _require_run(self) -> None:
        """Raise unless a run was begun."""
        _ = self.tape.interpreter

    def _depth(self) -> int:
        return len(self.tape.interpreter.stack)

    def _has_left(self, depth: int) -> Callable[[], bool]:
        """A test whether the session left this run, or all frames above a depth."""
        run = len(self.tape.runs)
        return lambda: len(self.tape.runs) != run or self._depth() <= depth

    def _forward(self, over: Callable[[], bool], stop: Stop | None = None, fresh: bool = False) -> Snapshot:
        """Take steps until ``over`` (that is ``stop``), a breakpoint, an error or the end."""
        self._require_run()
        try:
            return self._take_steps(over, stop or Stop(StopKind.STEP), fresh)
        except Exception as error:  # of a breakpoint's expression, for that of an operator is part of the snapshot
            self.stop(Stop(StopKind.CONDITION_ERROR, error=type(error.__cause__ or error).__name__))
            raise

    def _take_steps(self, over: Callable[[], bool], stop: Stop, fresh: bool) -> Snapshot:
        tape = self.tape
        while not tape.done:
            interpreter = tape.interpreter
            frame, op = interpreter.stack[-1], interpreter.here
            before, after = self._breakpoints_at(op) if op is not None and self.breakpoints else ((), ())
            if fresh:
                for b in before:
                    if b.enabled and b.stops_before(frame) and b.hit():
                        return self.stop(stop_at(b))
            fresh = True
            try:
                if not self._try_step():
                    return self.stop(Stop(StopKind.ERROR))
            except _Paused:
                return self.stop(Stop(StopKind.PAUSE))
            if op is not None:
                for b in after:
                    if b.enabled and b.stops_after(op, tape.journal[-1], frame) and b.hit():
                        return self.stop(stop_at(b))
            if over():
                break
            if self.pausing.is_set():
                return self.stop(Stop(StopKind.PAUSE))
            self._running()
        return self.stop(Stop(StopKind.END) if tape.done else stop)

    def _try_step(self) -> bool:
        """Take one step; False if the operator failed, which leaves everything as it was."""
        interpreter = self.tape.interpreter
        stack, op = interpreter.stack, interpreter.here
        if op is None and len(stack) > 1:  # what leaves a block may hand values to the block around
            op = stack[-2].block.ops[stack[-2].pc]
        try:
            self.tape.forward()
        except Exception as error:
            self.error = error
            return False
        self.wrote = () if op is None else op.writes()
        return True
