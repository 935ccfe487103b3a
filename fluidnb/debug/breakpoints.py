"""Breakpoints: operators, lines, blocks, variables, NaN and conditions at which a session stops.

Those that name an operator, a line or a block stop before the operator; those that name a variable, NaN or an
expression stop after the step that wrote it.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fluidnb.debug.expressions import code_of
from fluidnb.debug.view import View
from fluidnb.errors import NotFound, OpValueError
from fluidnb.runtime.compile.lowering import LoweredOp
from fluidnb.runtime.interpreter.interpreter import Frame, Undo
from fluidnb.values.array_stats import stats_of
from fluidnb.values.selected_rows import SelectedRows
from fluidnb.values.tensor import array_of

#: The kinds that stop before an operator, and those that stop after a step.
BEFORE, AFTER = ("op", "line", "block", "at"), ("var", "nan", "when")


@dataclass(eq=False, slots=True, repr=False)
class Breakpoint:
    """A breakpoint.

    Args:
        what: a type of operator (``elementwise_*``), a line (``net:3``, ``train.py:12``), a block (``1``, ``1@5`` for
            its iteration 5), an operator (``0:12``: block 0, operator 12), a variable (``fc_0.w_0``, ``*@GRAD``), an
            expression, or for ``nan`` the absolute value above which a number counts as infinite (``1e6``).
    """

    kind: str  # ``op``, ``line``, ``block``, ``at``, ``var``, ``nan`` or ``when``
    what: str = ""
    after: int = 0  # the number of hits to ignore before the first stop
    # a condition, called with a `View`; of ``when`` the default evaluates ``what``
    test: Callable[[View], Any] | None = None
    enabled: bool = True  # whether it is checked
    hits: int = 0  # the number of hits so far
    number: int = 0  # its number in the session, from 1
    logs_only: bool = False  # whether it only logs, and never stops
    # a hit condition, called with the number of hits; the default compares with ``after``
    rule: Callable[[int], bool] | None = None

    def __post_init__(self) -> None:
        if self.kind not in (*BEFORE, *AFTER):
            raise OpValueError(
                f"There is no breakpoint on {self.kind!r}.", expected="op, line, block, at, var, nan or when",
                received=self.kind,
            )  # fmt: skip
        rule = _RULES.get(self.kind)
        if rule is not None and not re.fullmatch(rule[0], self.what):
            raise OpValueError(
                f"A breakpoint on {self.kind!r} cannot be at {self.what!r}.", expected=rule[1], received=self.what,
            )  # fmt: skip
        if self.kind == "when" and self.test is None:
            try:
                code_of(self.what, "<condition>")
            except SyntaxError:
                raise OpValueError(
                    "That is not a condition.", expected="a Python expression", received=self.what or "nothing",
                ) from None  # fmt: skip

    @property
    def text(self) -> str:
        """As users write it."""
        times = f", after {self.after} times" if self.after else ""
        return f"{self.kind} {self.what}".strip() + times

    def __repr__(self) -> str:
        return f"<breakpoint {self.number}: {self.text}>"

    def copy(self) -> Breakpoint:
        """A copy, which keeps its line when this one moves."""
        return replace(self)

    def is_like(self, other: Breakpoint) -> bool:
        """Whether another one stops at the same operators: two front ends may each have set one."""
        return (self.kind, self.what, self.after) == (other.kind, other.what, other.after)

    def may_stop(self, op: LoweredOp) -> bool:
        """Whether it can stop at an operator, whatever the values and iterations are."""
        match self.kind:
            case "op":
                return fnmatch.fnmatchcase(op.desc.optype, self.what)
            case "line":
                return _is_at_line(op, self.what)
            case "block":
                return op.index == op_first(op) and op.block == int(self.what.partition("@")[0])
            case "at":
                return self.what == f"{op.block}:{op.index}"
            case "var":
                return any(fnmatch.fnmatchcase(name, self.what) for name in op.writes())
            case _:
                return True

    def stops_before(self, frame: Frame) -> bool:
        """Whether it stops before the next operator of a frame, for which `may_stop` is true."""
        at = self.what.partition("@")[2] if self.kind == "block" else ""
        if at and (frame.control.iteration(frame.k) if frame.control else 0) != int(at):
            return False
        return self.test is None or self._holds(frame)

    def stops_after(self, op: LoweredOp, undo: Undo, frame: Frame) -> bool:
        """Whether it stops after a step of an operator, for which `may_stop` is true; its expression may raise."""
        if self.kind == "nan":
            limit = float(self.what or "inf")
            if not any(has_nan(frame.scope.find_var(name), limit) for name in op.writes()):
                return False
        return self._holds(frame) if self.kind == "when" or self.test is not None else True

    def _holds(self, frame: Frame) -> bool:
        view = View(frame.scope)
        try:
            return bool(view.evaluate(self.what) if self.test is None else self.test(view))
        except (LookupError, NotFound):
            return False  # a variable has no value yet
        except Exception as error:
            if self.test is not None:
                raise  # of a user's function
            raise OpValueError(
                f"The condition {self.what} is neither true nor false here.", expected="an expression that is",
                received=f"{type(error).__name__}: {error}",
                hint=f"clear {self.number} removes the breakpoint." if self.number else None,
            ) from error  # fmt: skip

    def hit(self) -> bool:
        """Count a hit; whether it stops this time."""
        self.hits += 1
        return self.hits > self.after if self.rule is None else self.rule(self.hits)


#: kind -> (pattern, its description)
_RULES = {
    "op": (r"[\w*?\[\]!]+", "the type of an operator; * matches anything"),
    "line": (r".*:\d+|\d+", "a line: 12, train.py:12, or a cell's name and line, net:3"),
    "block": (r"\d+(@\d+)?", "a block's number, or 1@5 for its iteration 5"),
    "at": (r"\d+:\d+", "block:operator, for example 0:12"),
    "var": (r"\S+", "a variable's name; * matches anything"),
    "nan": (r"|\+?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", "nothing, or the largest absolute value allowed, for example 1e6"),
}


def parse(text: str) -> Breakpoint:
    """Parse a breakpoint.

    Args:
        text: ``op mul``, ``var fc_0.w_0``, ``line net:3``, ``block 1@5``, ``at 0:12``, ``nan``, ``nan 1e6``,
            or ``when loss.mean() > 3``; ``, after 3`` at the end ignores three hits. A single word is the type of an
            operator.
    """
    body, _, tail = text.strip().rpartition(", after ")
    if not body or not re.fullmatch(r"\d+( times)?", tail):
        body, tail = text.strip(), "0"
    kind, _, what = body.partition(" ")
    if kind not in (*BEFORE, *AFTER):
        known = re.fullmatch(r"\d+:\d+", body)
        if not body or (not known and ":" not in body and " " in body):
            raise OpValueError(
                "That is not a breakpoint.", received=body or "nothing",
                expected="op TYPE, var NAME, line CELL:3, block 1@5, at 0:12, nan, or when EXPRESSION",
            )  # fmt: skip
        kind, what = ("at" if known else "line" if ":" in body else "op"), body
    return Breakpoint(kind, what.strip(), int(tail.split()[0]))


def has_nan(variable: Any, limit: float = np.inf) -> bool:
    """Whether a runtime variable, or None, contains NaN, infinity, or a number above a limit."""
    value = None if variable is None else variable.value
    if isinstance(value, SelectedRows):
        value = value.value
    array = array_of(value)
    if array is None or array.dtype.kind != "f":
        return False
    with np.errstate(over="ignore", invalid="ignore"):
        return stats_of(array).beyond(array, limit)


def op_first(op: LoweredOp) -> int:
    """The index of the first operator of an operator's block that runs."""
    block = op.desc.block
    return next((i for i, o in enumerate(() if block is None else block.ops) if o.optype not in ("feed", "fetch")), 0)


def _is_at_line(op: LoweredOp, text: str) -> bool:
    where = op.where()
    if where is None:
        return False
    name, _, line = text.rpartition(":")
    if where.line != int(line):
        return False
    return not name or name in (where.cell, where.file, where.file.rsplit("/", 1)[-1])
