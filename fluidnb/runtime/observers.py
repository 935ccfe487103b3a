"""Observers of runs: notified of each operator's time and of the end of a run.

Without any, a run checks an empty list once per segment and once at its end.
"""

import traceback
from collections.abc import Callable
from time import perf_counter_ns
from typing import Any

from fluidnb.runtime.compile.lowering import LoweredOp
from fluidnb.values.device_context import DeviceContext
from fluidnb.values.place import CPUPlace, Place

#: ``observer(op, start, end, place)``, times in ns, after each operator; a control operator follows those inside it.
Observer = Callable[[LoweredOp, int, int, Place], None]
_HOST = CPUPlace()
observers: list[Observer] = []
#: ``callback(program, scope)`` after each run without an error, in its thread.
after_run: list[Callable[[Any, Any], None]] = []


def observed(calls: Any, ops: list[LoweredOp]) -> None:
    """Make the calls of a segment and notify the observers of each operator."""
    start, last = perf_counter_ns(), len(ops) - 1
    for i, (function, args) in enumerate(calls):
        function(*args)
        if i == last or ops[i + 1] is not ops[i]:
            end = perf_counter_ns()
            for observer in observers:
                observer(ops[i], start, end, _HOST)
            start = perf_counter_ns()


def observed_on_device(calls: Any, ops: list[LoweredOp], context: DeviceContext) -> None:
    """The same for asynchronous device calls: times come from device events, read after synchronization."""
    marks, ended, last = [context.mark()], [], len(ops) - 1
    for i, (function, args) in enumerate(calls):
        function(*args)
        if i == last or ops[i + 1] is not ops[i]:
            marks.append(context.mark())
            ended.append(ops[i])
    times = context.times(marks)
    for op, start, end in zip(ended, times, times[1:], strict=False):
        place = context.place if any(k.place == context.place.kind for k in op.definition.kernels) else _HOST
        for observer in observers:
            observer(op, start, end, place)


def awaited(calls: Any, context: DeviceContext) -> None:
    """Make the calls of a segment, waiting for the device after each: FLAGS_benchmark."""
    for function, args in calls:
        function(*args)
        context.wait()


def over(program: Any, scope: Any) -> None:
    """Notifies observers of the end of a run; their exceptions are printed, not raised."""
    for callback in list(after_run):
        try:
            callback(program, scope)
        except Exception:
            traceback.print_exc()
