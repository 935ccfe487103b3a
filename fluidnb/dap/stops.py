"""The breakpoints of one client: source lines, types of operators, variables that are written, NaN."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from fluidnb.dap.references import BASE
from fluidnb.dap.sources import Source, Sources, first_of
from fluidnb.debug.breakpoints import Breakpoint
from fluidnb.debug.look import View
from fluidnb.debug.stop import Stop, StopKind
from fluidnb.debug.walker import Walker
from fluidnb.errors import NotFound, OpValueError
from fluidnb.expressions import code_of

Row = dict[str, Any]

#: What a hit condition may be: a number, or one behind a sign.
_HITS = re.compile(r"\s*(>=|<=|==|=|>|<|%)?\s*(\d+)\s*")

#: What the protocol calls a stop; all others are steps.
_KINDS = {
    StopKind.BREAKPOINT: "breakpoint", StopKind.WATCHPOINT: "data breakpoint", StopKind.NAN: "exception",
    StopKind.ENTRY: "entry", StopKind.PAUSE: "pause",
}  # fmt: skip

#: A line that no operator has; a breakpoint waits there until the program has grown to it.
_NOWHERE = "0:999999999"


@dataclass(eq=False)
class Asked:
    """A breakpoint on a source line, as a client asked for it.

    Args:
        made: the breakpoint.
        source: where.
        line: the line that was asked for.
        shown: the line where it stops; 0 while no operator is there.
    """

    made: Breakpoint
    source: Source
    line: int
    shown: int = 0


class Stops:
    """Sets and clears the breakpoints of one client; those of others stay.

    Its methods that take a walker are called in the worker's thread.

    Args:
        sources: where operators are shown.
        say: called with the text of a log point, its source and its line.
        around: gives the user's own names, for conditions.
    """

    def __init__(
        self,
        sources: Sources,
        say: Callable[[str, Source, int], None],
        around: Callable[[], Mapping[str, Any]] = dict,
    ) -> None:
        self._sources, self._say, self._around = sources, say, around
        self._lines: dict[str, list[Asked]] = {}
        self._others: dict[str, list[Breakpoint]] = {}
        self.entry = Breakpoint("block", "0", enabled=False)

    # ---- what is asked for

    def lines(self, walker: Walker, source: Source, wanted: list[Row]) -> list[Row]:
        """Set the breakpoints of one source.

        Args:
            walker: the session's.
            source: the source.
            wanted: ``SourceBreakpoint`` rows.

        Returns:
            ``Breakpoint`` rows.
        """
        path = source.get("path") or source.get("name") or ""
        rows: list[Asked | OpValueError] = []
        for row in wanted:
            try:
                rows.append(self._asked(row, source))
            except OpValueError as error:
                rows.append(error)
        _clear(walker, [old.made for old in self._lines.get(path, ())])
        self._lines[path] = [row for row in rows if isinstance(row, Asked)]
        for asked in self._lines[path]:
            self._place(asked)
            walker.add(asked.made)
        return [self._told(row) if isinstance(row, Asked) else {"verified": False, "message": str(row)} for row in rows]

    def functions(self, walker: Walker, wanted: list[Row]) -> list[Row]:
        """Stop before operators of some types.

        Args:
            walker: the session's.
            wanted: ``FunctionBreakpoint`` rows; a name may have ``*`` for anything.

        Returns:
            ``Breakpoint`` rows.
        """
        return self._set(walker, "op", [(str(row["name"]).strip(), row) for row in wanted])

    def data(self, walker: Walker, wanted: list[Row]) -> list[Row]:
        """Stop after steps that write some variables.

        Args:
            walker: the session's.
            wanted: ``DataBreakpoint`` rows.

        Returns:
            ``Breakpoint`` rows.
        """
        return self._set(walker, "var", [(re.sub(r"([*?[])", r"[\1]", str(row["dataId"])), row) for row in wanted])

    def exceptions(self, walker: Walker, filters: list[Row]) -> list[Row]:
        """Stop at NaN.

        Args:
            walker: the session's.
            filters: ``ExceptionFilterOptions`` rows.

        Returns:
            ``Breakpoint`` rows, one for each.
        """
        rows = [row for row in filters if row["filterId"] == "nan"]
        made = iter(self._set(walker, "nan", [(str(row.get("condition") or "").strip(), {}) for row in rows]))
        return [next(made) if row["filterId"] == "nan" else {"verified": True} for row in filters]

    def stop_soon(self, walker: Walker) -> None:
        """Stop at the first operator of the next run, once.

        Args:
            walker: the session's.
        """
        if self.entry not in walker.breakpoints:
            walker.add(self.entry)
        self.entry.enabled = True

    def entered(self, walker: Walker) -> None:
        """It has stopped since `stop_soon`.

        Args:
            walker: the session's.
        """
        if not self.entry.enabled:
            _clear(walker, [self.entry])

    def close(self, walker: Walker) -> None:
        """Clear everything.

        Args:
            walker: the session's.
        """
        mine = [asked.made for row in self._lines.values() for asked in row]
        mine += [made for row in self._others.values() for made in row]
        _clear(walker, [*mine, self.entry])
        self._lines, self._others = {}, {}

    # ---- how they stand

    def look_again(self) -> list[Row]:
        """Put line breakpoints where the program has its operators now.

        Returns:
            ``Breakpoint`` rows of those that have changed.
        """
        changed = []
        for asked in (asked for row in self._lines.values() for asked in row):
            before = asked.shown
            self._place(asked)
            if asked.shown != before:
                changed.append(self._told(asked))
        return changed

    def hit(self, stop: Stop) -> list[int]:
        """The ids of the client's breakpoints that were reached."""
        reached = stop.breakpoint
        if reached is None or not stop.at_breakpoint:
            return []
        mine = [asked.made for row in self._lines.values() for asked in row]
        mine += [made for row in self._others.values() for made in row]
        return [BASE + made.number for made in mine if made.is_like(reached)]

    def kind(self, stop: Stop) -> str:
        """The protocol's name for a stop.

        Example:
            >>> from fluidnb.debug.stop import Stop, StopKind, stop_at
            >>> stops = Stops(Sources(), print)
            >>> stops.kind(stop_at(Breakpoint("op", "mul"))), stops.kind(Stop(StopKind.STEP))
            ('function breakpoint', 'step')
        """
        reached = stop.breakpoint
        if reached is not None and self.entry.enabled and reached.is_like(self.entry):
            return "entry"
        if stop.kind is StopKind.BREAKPOINT and reached is not None and reached.kind == "op":
            return "function breakpoint"
        return _KINDS.get(stop.kind, "step")

    # ---- how it is done

    def _set(self, walker: Walker, kind: str, wanted: list[tuple[str, Row]]) -> list[Row]:
        made: list[Breakpoint | OpValueError] = []
        for what, row in wanted:
            try:
                made.append(self._made(kind, what, row))
            except OpValueError as error:
                made.append(error)
        _clear(walker, self._others.get(kind, []))
        self._others[kind] = [b for b in made if isinstance(b, Breakpoint)]
        for b in self._others[kind]:
            walker.add(b)
        return [
            {"verified": False, "message": str(b)} if isinstance(b, OpValueError)
            else {"id": BASE + b.number, "verified": True,
                  **({} if walker.matches(b) else {"message": f"Nothing in this program comes to {b.text} yet."})}
            for b in made
        ]  # fmt: skip

    def _made(self, kind: str, what: str, row: Row) -> Breakpoint:
        made = Breakpoint(kind, what)
        condition, hits = row.get("condition"), row.get("hitCondition")
        if condition:
            made.test = self._condition(_compiled(str(condition)))
        if hits:
            made.rule = hit_rule(str(hits))
        return made

    def _condition(self, text: str) -> Callable[[View], bool]:
        def holds(view: View) -> bool:
            try:
                return bool(view.among(self._around()).evaluate(text))
            except (LookupError, NotFound):
                return False  # what it speaks of is not there yet
            except Exception as error:
                self._say(f"The condition {text} cannot be evaluated: {type(error).__name__}: {error}", {}, 0)
                return True

        return holds

    def _asked(self, row: Row, source: Source) -> Asked:
        made = self._made("at", _NOWHERE, row)
        asked = Asked(made, source, int(row["line"]))
        if row.get("logMessage"):
            self._log(asked, str(row["logMessage"]))
        return asked

    def _log(self, asked: Asked, message: str) -> None:
        """Let a breakpoint say something instead of stopping."""
        said: list[str] = []
        asked.made.only_says = True
        test, rule = asked.made.test, asked.made.rule

        def look(view: View) -> bool:
            said[:] = [filled(message, view.among(self._around()))]
            return test is None or bool(test(view))

        def tell(hits: int) -> bool:
            if rule is None or rule(hits):
                self._say(said[0], asked.source, asked.shown)
            return False

        asked.made.test, asked.made.rule = look, tell

    def _place(self, asked: Asked) -> None:
        path = asked.source.get("path") or asked.source.get("name") or ""
        line = next((n for n in self._sources.lines(path) if n >= asked.line), 0)
        first = first_of(self._sources.ops_at(path, line)) if line else None
        asked.shown = 0 if first is None else line
        asked.made.what = _NOWHERE if first is None else f"{first[0]}:{first[1]}"

    def _told(self, asked: Asked) -> Row:
        row: Row = {"id": BASE + asked.made.number, "verified": asked.shown > 0, "source": asked.source}
        row["line"] = asked.shown or asked.line
        if not asked.shown:
            row["message"] = "No operator was made at this line or below it so far."
        return row


def hit_rule(text: str) -> Callable[[int], bool]:
    """When a breakpoint stops, by how many times it was reached.

    Args:
        text: ``3`` or ``>= 3`` (from the third time on), ``== 3``, ``> 3``, ``< 3``, ``<= 3``, ``% 3`` (every third).

    Returns:
        A function of the count.

    Raises:
        OpValueError: something else.

    Example:
        >>> [n for n in range(1, 10) if hit_rule("% 3")(n)], hit_rule("3")(2), hit_rule("3")(3)
        ([3, 6, 9], False, True)
    """
    found = _HITS.fullmatch(text)
    if found is None or (found[1] == "%" and int(found[2]) == 0):
        raise OpValueError("That is no count of hits.", expected="3, >= 3, == 3, > 3, < 3, <= 3 or % 3", received=text)
    sign, n = found[1] or ">=", int(found[2])
    rules: dict[str, Callable[[int], bool]] = {
        ">=": lambda k: k >= n, "<=": lambda k: k <= n, ">": lambda k: k > n, "<": lambda k: k < n,
        "%": lambda k: k % n == 0,
    }  # fmt: skip
    return rules.get(sign, lambda k: k == n)


def filled(message: str, view: View) -> str:
    """The text of a log point with what stands in braces evaluated.

    Args:
        message: for example ``loss is {loss.mean()}``.
        view: what can be seen.

    Example:
        >>> scope = fluid.Scope(); scope.var("x").get_tensor().set(np.ones(3, "float32"))
        >>> filled("x has {x.sum()}, {y}", View(scope))
        'x has 3.0, {y: "y" has no value here.}'
    """

    def value(found: re.Match[str]) -> str:
        try:
            return str(view[found[1]] if found[1] in view else view.evaluate(found[1]))
        except NotFound as error:
            return "{" + f"{found[1]}: {error.summary}" + "}"
        except Exception as error:
            return "{" + f"{found[1]}: {type(error).__name__}: {error}" + "}"

    return re.sub(r"\{([^{}]+)\}", value, message)


def _compiled(text: str) -> str:
    try:
        code_of(text, "<condition>")
    except SyntaxError as error:
        raise OpValueError(
            "That is no condition.", expected="a Python expression", received=f"{text}: {error}"
        ) from None
    return text


def _clear(walker: Walker, made: list[Breakpoint]) -> None:
    for b in made:
        if b in walker.breakpoints:
            walker.clear(b.number)
