"""The recorded steps of a debug session as plain data: positions, and the values that each step wrote."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fluidnb.debug.debugger import Debugger
from fluidnb.debug.session import Session
from fluidnb.debug.snapshot import Snapshot
from fluidnb.debug.view import has_value
from fluidnb.runtime.scope import Scope
from fluidnb.values.array_stats import stats_of
from fluidnb.values.selected_rows import SelectedRows
from fluidnb.values.tensor import LoDTensor, array_of
from fluidnb.viz.session.panel_model import (
    BreakpointRow,
    SessionPosition,
    compiled_listing,
    has_changed,
    listing_json,
    read_breakpoints,
    read_listing,
    read_position,
)
from fluidnb.viz.session.panel_values import ValueLine, part_lines, value_line
from fluidnb.viz.values.preview import even_indices
from fluidnb.viz.values.preview_html import lod_html

#: Elements of a value that are recorded at most.
MOST = 1 << 12
#: The value of a variable that is gone.
GONE = -1


@dataclass(frozen=True, slots=True)
class RecordedValue:
    """A value that a step wrote."""

    line: ValueLine  # its summary, of all elements
    shape: tuple[int, ...] = ()
    array: np.ndarray[Any, Any] | None = None  # its elements, evenly spaced ones of large tensors; None without numbers
    kept: tuple[np.ndarray[Any, Any], ...] = ()  # the indices of these elements along each axis
    sequences: str = ""  # its LoD as nested boxes, HTML
    parts: tuple[ValueLine, ...] = ()  # its parts if it is not a tensor

    @property
    def size(self) -> int:
        """Number of elements of the whole value."""
        return math.prod(self.shape) if self.array is not None else 0


@dataclass(frozen=True, slots=True)
class RecordedStep:
    """A position of the session."""

    position: SessionPosition
    scopes: tuple[int, ...]  # numbers of the scopes of its frames, outermost first
    type: str  # the type of the next operator; empty at the end of a block
    wrote: tuple[tuple[int, str, int], ...]  # (scope, variable, index in `values` or `GONE`) that are new here
    watches: tuple[tuple[str, str], ...] = ()  # (expression, value as text)


@dataclass(slots=True)
class Recording:
    """The steps of a session."""

    listing: str  # the program as the panel lists it, JSON
    breakpoints: tuple[BreakpointRow, ...] = ()
    # positions in order; between two runs, the end of the one and the beginning of the other have the same step
    steps: list[RecordedStep] = field(default_factory=list)
    here: int = 0  # index of the position at which the session is
    values: list[RecordedValue] = field(default_factory=list)


def read_recording(session: Session, last: int | None = None) -> Recording | None:
    """Reads the recorded steps of a session, the last ones if a number is given; None before its first run."""
    if session.there is not None:
        recording: Recording | None = session.there(read_recording, last)
        return recording
    return None if session.snapshot.state == "idle" else session.do(_read, last)


def sampled(value: RecordedValue, most: int) -> RecordedValue:
    """A value with at most so many elements, evenly spaced along its axes."""
    if value.array is None or value.array.size <= most:
        return value
    chosen = _even(value.array.shape, most)
    kept = tuple(k[c] for k, c in zip(value.kept, chosen, strict=True))
    return RecordedValue(value.line, value.shape, value.array[np.ix_(*chosen)], kept, value.sequences, value.parts)


def _read(debugger: Debugger, last: int | None) -> Recording:
    """The recording, in the session's thread."""
    lowered = debugger.tape.interpreter.lowered
    listing = compiled_listing(lowered) if has_changed(lowered) else read_listing(lowered.desc, lowered.changed)
    stops = read_breakpoints(debugger.breakpoints, lowered)
    recorder = _Recorder(debugger, Recording(listing_json(listing), stops))
    reached = max(debugger.snapshot.reached, debugger.tape.at)
    debugger.review(0 if last is None else reached - last, recorder.look)
    return recorder.recording


class _Recorder:
    """Reads a step after the other."""

    def __init__(self, debugger: Debugger, recording: Recording) -> None:
        self.recording = recording
        self._debugger = debugger
        self._scopes: dict[int, tuple[int, Scope]] = {}  # id -> number, scope: kept, so that no other gets its id
        self._known: dict[int, dict[str, tuple[Any, Any, Any]]] = {}  # by scope: name -> value, array, LoD

    def look(self, snapshot: Snapshot) -> None:
        """Record a step."""
        tape = self._debugger.tape
        moved = bool(self.recording.steps) and self.recording.steps[-1].position.at < tape.at
        undo = tape.journal[-1] if moved and len(tape.journal) else None
        written = set() if undo is None else {id(item) for item, _ in (*undo.arrays, *undo.lists)}
        scopes = [tape.runs[-1].scope, *(frame.scope for frame in tape.interpreter.stack)]
        numbers = tuple(self._number(scope) for scope in scopes)
        wrote = tuple(
            row for n, scope in dict(zip(numbers, scopes, strict=True)).items() for row in self._new(n, scope, written)
        )
        now = self._debugger.snapshot
        if (snapshot.at, snapshot.run) == (now.at, now.run):
            self.recording.here = len(self.recording.steps)
        position = read_position(self._debugger, snapshot)
        kind = "" if snapshot.op is None else snapshot.op.type
        self.recording.steps.append(RecordedStep(position, numbers, kind, wrote, snapshot.watches))

    def _number(self, scope: Scope) -> int:
        return self._scopes.setdefault(id(scope), (len(self._scopes), scope))[0]

    def _new(self, number: int, scope: Scope, written: set[int]) -> Iterator[tuple[int, str, int]]:
        """The variables of a scope that have another value than at the step before."""
        known = self._known.setdefault(number, {})
        for name, variable in scope.vars.items():
            value = variable.value
            if not has_value(value):
                continue
            array, lod = _memory_of(value), getattr(value, "lod_", None)
            old = known.get(name)
            if old is not None and old[0] is value and old[1] is array and old[2] == lod:
                if id(array) not in written and id(value) not in written:
                    continue
            known[name] = value, array, lod
            self.recording.values.append(_recorded(name, value))
            yield number, name, len(self.recording.values) - 1
        for name in [n for n in known if n not in scope.vars or not has_value(scope.vars[n].value)]:
            del known[name]
            yield number, name, GONE


def _memory_of(value: Any) -> Any:
    """The array into which a step may write; None without one."""
    return value.value.array if isinstance(value, SelectedRows) else array_of(value)


def _recorded(name: str, value: Any) -> RecordedValue:
    line = value_line(name, value)
    array = array_of(value)
    if array is None or not isinstance(value, LoDTensor):
        return RecordedValue(line, parts=part_lines(name, value))
    shape = tuple(map(int, array.shape))
    kept = tuple(_even(shape, MOST))
    elements = np.array(stats_of(array).picked(array, *kept))
    return RecordedValue(line, shape, elements, kept, lod_html(value.lod_, shape[0] if shape else 0))


def _even(shape: tuple[int, ...], most: int) -> list[np.ndarray[Any, Any]]:
    """Evenly spaced indices of each axis, at most so many elements: the longest axis is halved first."""
    counts = list(shape)
    while math.prod(counts) > most and max(counts) > 1:
        longest = counts.index(max(counts))
        counts[longest] = -(-counts[longest] // 2)
    return [even_indices(n, count) if n else np.arange(0) for n, count in zip(shape, counts, strict=True)]
