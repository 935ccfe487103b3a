"""The breakpoints of one client: source lines, types of operators, variables that are written, NaN."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from fluidnb.dap.references import BASE
from fluidnb.dap.sources import Source, Sources, first_of
from fluidnb.debug.breakpoints import Breakpoint
from fluidnb.debug.debugger import Debugger
from fluidnb.debug.expressions import code_of
from fluidnb.debug.stop import Stop, StopKind
from fluidnb.debug.view import View
from fluidnb.errors import NotFound, OpValueError

Row = dict[str, Any]
#: A hit condition: a number, or a comparison with one.
_HITS = re.compile(r"\s*(>=|<=|==|=|>|<|%)?\s*(\d+)\s*")

#: The protocol's reasons; all other stops are steps.
_REASONS = {
    StopKind.BREAKPOINT: "breakpoint", StopKind.WATCHPOINT: "data breakpoint", StopKind.NAN: "exception",
    StopKind.ENTRY: "entry", StopKind.PAUSE: "pause",
}  # fmt: skip

#: A place that no operator has: of a breakpoint whose line has no operator so far.
_NOWHERE = "0:999999999"


@dataclass(eq=False)
class SourceBreakpoint:
    """A breakpoint on a source line."""

    breakpoint: Breakpoint  # the session's breakpoint
    source: Source
    requested: int  # the line in the request
    line: int = 0  # the line where it stops; 0 while no operator is there


class ClientBreakpoints:
    """The breakpoints of one client; those of other clients stay as they are.

    Methods with a debugger are called in the worker thread.

    Args:
        log: called with the text of a log point, its source and its line.
    """

    def __init__(
        self, sources: Sources, log: Callable[[str, Source, int], None], around: Callable[[], Mapping[str, Any]] = dict
    ) -> None:
        self._sources, self._log, self._around = sources, log, around
        self._lines: dict[str, list[SourceBreakpoint]] = {}
        self._others: dict[str, list[Breakpoint]] = {}
        self.entry = Breakpoint("block", "0", enabled=False)

    # ---- requests

    def set_lines(self, debugger: Debugger, source: Source, wanted: list[Row]) -> list[Row]:
        """Replace the breakpoints of one source: ``SourceBreakpoint`` rows to ``Breakpoint`` rows."""
        path = source.get("path") or source.get("name") or ""
        rows: list[SourceBreakpoint | OpValueError] = []
        for row in wanted:
            try:
                rows.append(self._at_line(row, source))
            except OpValueError as error:
                rows.append(error)
        _clear(debugger, [old.breakpoint for old in self._lines.get(path, ())])
        self._lines[path] = [row for row in rows if isinstance(row, SourceBreakpoint)]
        for point in self._lines[path]:
            self._resolve(point)
            debugger.add_breakpoint(point.breakpoint)
        return [_row(row) if isinstance(row, SourceBreakpoint) else _unverified(row) for row in rows]

    def set_functions(self, debugger: Debugger, wanted: list[Row]) -> list[Row]:
        """Replace those on types of operators: ``FunctionBreakpoint`` rows, whose names may have ``*``."""
        return self._set(debugger, "op", [(str(row["name"]).strip(), row) for row in wanted])

    def set_data(self, debugger: Debugger, wanted: list[Row]) -> list[Row]:
        """Replace those on variables that are written: ``DataBreakpoint`` rows."""
        return self._set(debugger, "var", [(re.sub(r"([*?[])", r"[\1]", str(row["dataId"])), row) for row in wanted])

    def set_exceptions(self, debugger: Debugger, filters: list[Row]) -> list[Row]:
        """Replace those on NaN: ``ExceptionFilterOptions`` rows."""
        rows = [row for row in filters if row["filterId"] == "nan"]
        answers = iter(self._set(debugger, "nan", [(str(row.get("condition") or "").strip(), {}) for row in rows]))
        return [next(answers) if row["filterId"] == "nan" else {"verified": True} for row in filters]

    def stop_at_entry(self, debugger: Debugger) -> None:
        """Stop at the first operator of the next run, once."""
        if self.entry not in debugger.breakpoints:
            debugger.add_breakpoint(self.entry)
        self.entry.enabled = True

    def clear_entry(self, debugger: Debugger) -> None:
        """Remove the breakpoint of `stop_at_entry` after it has stopped."""
        if not self.entry.enabled:
            _clear(debugger, [self.entry])

    def close(self, debugger: Debugger) -> None:
        """Remove all."""
        _clear(debugger, [*self._all(), self.entry])
        self._lines, self._others = {}, {}

    # ---- state

    def resolve_again(self) -> list[Row]:
        """Move line breakpoints to where the program has its operators now; ``Breakpoint`` rows of those that moved."""
        changed = []
        for point in (point for row in self._lines.values() for point in row):
            before = point.line
            self._resolve(point)
            if point.line != before:
                changed.append(_row(point))
        return changed

    def ids_hit(self, stop: Stop) -> list[int]:
        """The ids of the client's breakpoints that a stop is at."""
        reached = stop.breakpoint
        if reached is None or not stop.at_breakpoint:
            return []
        return [BASE + b.number for b in self._all() if b.is_like(reached)]

    def stop_reason(self, stop: Stop) -> str:
        """The protocol's reason for a stop."""
        reached = stop.breakpoint
        if reached is not None and self.entry.enabled and reached.is_like(self.entry):
            return "entry"
        if stop.kind is StopKind.BREAKPOINT and reached is not None and reached.kind == "op":
            return "function breakpoint"
        return _REASONS.get(stop.kind, "step")

    # ---- helpers

    def _all(self) -> list[Breakpoint]:
        lines = [point.breakpoint for row in self._lines.values() for point in row]
        return lines + [b for row in self._others.values() for b in row]

    def _set(self, debugger: Debugger, kind: str, wanted: list[tuple[str, Row]]) -> list[Row]:
        """Replace the breakpoints of a kind; ``Breakpoint`` rows."""
        rows: list[Breakpoint | OpValueError] = []
        for what, row in wanted:
            try:
                rows.append(self._breakpoint(kind, what, row))
            except OpValueError as error:
                rows.append(error)
        _clear(debugger, self._others.get(kind, []))
        self._others[kind] = [b for b in rows if isinstance(b, Breakpoint)]
        for b in self._others[kind]:
            debugger.add_breakpoint(b)
        return [_unverified(b) if isinstance(b, OpValueError) else _verified(b, debugger.can_reach(b)) for b in rows]

    def _breakpoint(self, kind: str, what: str, row: Row) -> Breakpoint:
        """A breakpoint with the condition and the hit condition of a row."""
        breakpoint = Breakpoint(kind, what)
        condition, hits = row.get("condition"), row.get("hitCondition")
        if condition:
            breakpoint.test = self._condition(_compiled(str(condition)))
        if hits:
            breakpoint.rule = hit_rule(str(hits))
        return breakpoint

    def _condition(self, text: str) -> Callable[[View], bool]:
        def is_true(view: View) -> bool:
            try:
                return bool(view.among(self._around()).evaluate(text))
            except (LookupError, NotFound):
                return False  # a variable has no value yet
            except Exception as error:
                self._log(f"The condition {text} cannot be evaluated: {type(error).__name__}: {error}", {}, 0)
                return True

        return is_true

    def _at_line(self, row: Row, source: Source) -> SourceBreakpoint:
        point = SourceBreakpoint(self._breakpoint("at", _NOWHERE, row), source, int(row["line"]))
        if row.get("logMessage"):
            self._make_log_point(point, str(row["logMessage"]))
        return point

    def _make_log_point(self, point: SourceBreakpoint, message: str) -> None:
        """Let a breakpoint log instead of stopping."""
        text: list[str] = []
        point.breakpoint.logs_only = True
        test, rule = point.breakpoint.test, point.breakpoint.rule

        def fill(view: View) -> bool:
            text[:] = [filled(message, view.among(self._around()))]
            return test is None or bool(test(view))

        def log(hits: int) -> bool:
            if rule is None or rule(hits):
                self._log(text[0], point.source, point.line)
            return False

        point.breakpoint.test, point.breakpoint.rule = fill, log

    def _resolve(self, point: SourceBreakpoint) -> None:
        """Find the first operator at the requested line or below."""
        path = point.source.get("path") or point.source.get("name") or ""
        line = next((n for n in self._sources.lines(path) if n >= point.requested), 0)
        first = first_of(self._sources.ops_at(path, line)) if line else None
        point.line = 0 if first is None else line
        point.breakpoint.what = _NOWHERE if first is None else f"{first[0]}:{first[1]}"


def hit_rule(text: str) -> Callable[[int], bool]:
    """The rule of a hit condition: whether to stop at the n-th hit.

    Args:
        text: ``3`` or ``>= 3`` (from the third time on), ``== 3``, ``> 3``, ``< 3``, ``<= 3``, ``% 3`` (every third).

    Example:
        >>> [n for n in range(1, 10) if hit_rule("% 3")(n)], hit_rule("3")(2), hit_rule("3")(3)
        ([3, 6, 9], False, True)
    """
    match = _HITS.fullmatch(text)
    if match is None or (match[1] == "%" and int(match[2]) == 0):
        raise OpValueError("That is no count of hits.", expected="3, >= 3, == 3, > 3, < 3, <= 3 or % 3", received=text)
    sign, n = match[1] or ">=", int(match[2])
    rules: dict[str, Callable[[int], bool]] = {
        ">=": lambda k: k >= n, "<=": lambda k: k <= n, ">": lambda k: k > n, "<": lambda k: k < n,
        "%": lambda k: k % n == 0,
    }  # fmt: skip
    return rules.get(sign, lambda k: k == n)


def filled(message: str, view: View) -> str:
    """The text of a log point, with the expressions in braces evaluated."""

    def value(match: re.Match[str]) -> str:
        try:
            return str(view[match[1]] if match[1] in view else view.evaluate(match[1]))
        except NotFound as error:
            return "{" + f"{match[1]}: {error.summary}" + "}"
        except Exception as error:
            return "{" + f"{match[1]}: {type(error).__name__}: {error}" + "}"

    return re.sub(r"\{([^{}]+)\}", value, message)


def _compiled(text: str) -> str:
    try:
        code_of(text, "<condition>")
    except SyntaxError as error:
        raise OpValueError(
            "That is no condition.", expected="a Python expression", received=f"{text}: {error}"
        ) from None
    return text


def _clear(debugger: Debugger, breakpoints: list[Breakpoint]) -> None:
    for b in breakpoints:
        if b in debugger.breakpoints:
            debugger.clear_breakpoints(b.number)


def _row(point: SourceBreakpoint) -> Row:
    row: Row = {"id": BASE + point.breakpoint.number, "verified": point.line > 0, "source": point.source}
    row["line"] = point.line or point.requested
    if not point.line:
        row["message"] = "No operator was created at this line or below it so far."
    return row


def _verified(breakpoint: Breakpoint, reachable: bool) -> Row:
    message = {} if reachable else {"message": f"No operator in this program matches {breakpoint.text} yet."}
    return {"id": BASE + breakpoint.number, "verified": True, **message}


def _unverified(error: OpValueError) -> Row:
    return {"verified": False, "message": str(error)}
