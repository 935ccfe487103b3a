"""Errors that speak of the user's program: operator, slot, variable, shape, line, expected and received, a hint."""

import difflib
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Self

from fluidnb.utils.escapes import visible, visible_line
from fluidnb.utils.names_elsewhere import FLUID_NAMES
from fluidnb.utils.source_location import SourceLocation, capture

#: (slot, variable name, dtype name or None, shape or None) of one operand.
Operand = tuple[str, str, str | None, Sequence[int] | None]


class FluidError(Exception):
    """The base of every error about a user's program.

    Args:
        summary: one sentence that says what is wrong.
        op: the operator as text, for example ``op 3 (clip) in block 0``.
        slots: the operands that matter, as (slot, variable, dtype, shape).
        attrs: the attributes that matter.
        where: the user's line that made the operator; without it, the line whose call raises.
        expected: what would have been right.
        received: what came instead.
        hint: what to do next.
        batch: drawings of sequences, a line each.
        argument: the argument of the layer or function that is wrong.

    Example:
        >>> e = FluidError("X is too wide.", op="op 0 (mul) in block 0", slots=[("X", "x", "float32", (-1, 13))],
        ...                expected="width 5", received="width 13", hint="change the size of the layer before it.")
        >>> print(e)
        X is too wide.
          op:       op 0 (mul) in block 0
          X:        x  float32[-1, 13]
          expected: width 5
          received: width 13
          hint:     change the size of the layer before it.
    """

    def __init__(
        self, summary: str, *, op: str | None = None, slots: Iterable[Operand] = (),
        attrs: Mapping[str, Any] | None = None, where: SourceLocation | None = None, expected: object = None,
        received: object = None, hint: str | None = None, batch: Iterable[str] = (), argument: str | None = None,
    ) -> None:  # fmt: skip
        self.summary = summary
        self.op = op
        self.slots = list(slots)
        self.attrs = dict(attrs or {})
        #: where it happened: the iterations of loops, innermost first, as text
        self.loops: list[str] = []
        #: the iteration of a loop whose operator has not been named yet
        self.iteration: int | None = None
        self._made_at, self._called_at = where, capture()
        self.expected = expected
        self.received = received
        self.hint = hint or None
        self.batch = list(batch)
        self.argument = argument
        super().__init__(summary)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled between processes as its texts: values that are not texts may not be picklable."""
        facts = dict(self.__dict__)
        facts["attrs"] = {name: _Shown(repr(value)) for name, value in self.attrs.items()}
        facts["expected"], facts["received"] = _plain(self.expected), _plain(self.received)
        return _unpickled, (type(self), facts)

    @property
    def where(self) -> SourceLocation | None:
        """The user's line: the one that made the operator, else the one whose call raised."""
        return self._made_at or self._called_at

    @where.setter
    def where(self, where: SourceLocation | None) -> None:
        self._made_at = where
        if where is None:  # no line of the user's is to be shown
            self._called_at = None

    def with_context(
        self, *, op: str | None = None, slots: Iterable[Operand] = (), where: SourceLocation | None = None
    ) -> Self:
        """Fill in what the place that raised could not know; what is there already stays.

        Example:
            >>> FluidError("no.").with_context(op="op 1 (relu) in block 0").op
            'op 1 (relu) in block 0'
        """
        self.op = self.op or op
        self.slots = self.slots or list(slots)
        self._made_at = self._made_at or where
        return self

    def __str__(self) -> str:
        return self.text()

    def text(self, without: Collection[str] = ()) -> str:
        """The error as text.

        Args:
            without: rows to leave out: ``op``, ``in``, ``at``, ``hint`` ...
        """
        rows: list[tuple[str, object]] = [("op", self.op), *(("in", text) for text in self.loops)]
        rows += [(slot, operand(name, dtype, shape)) for slot, name, dtype, shape in self.slots]
        if self.attrs:
            rows.append(("attrs", ", ".join(f"{k} = {v!r}" for k, v in self.attrs.items())))
        if self.where is not None:
            source = self.where.source
            rows.append(("at", self.where.short() + (f":  {source}" if source else "")))
        rows += [("" if i else "batch", text) for i, text in enumerate(self.batch)]
        rows += [("expected", _one_line(self.expected)), ("received", _one_line(self.received)), ("hint", self.hint)]
        shown = [(k, v) for k, v in rows if v is not None]
        width = max([8, *(len(k) for k, _ in shown)]) + 1
        shown = [(k, v) for k, v in shown if k not in without]
        return visible("\n".join([self.summary, *(f"  {k + ':' * bool(k):<{width}} {v}" for k, v in shown)]))

    def _render_traceback_(self) -> list[str]:
        """The traceback shown by IPython, without internal frames."""
        return [f"\x1b[31;1m{type(self).__name__}\x1b[0m: {self}"]


class EnforceNotMet(FluidError, RuntimeError):
    """A check that failed while a program ran, or in an operator's own rules (Fluid's name for it)."""


class OpValueError(FluidError, ValueError):
    """A wrong value while building or calling."""


class OpIndexError(OpValueError, IndexError):
    """An index outside a value; Python's own loops over an indexed value end at an IndexError."""


class OpTypeError(FluidError, TypeError):
    """A wrong type while building or calling."""


class ArgumentError(OpTypeError, OpValueError):
    """An argument that is not what the function declares; Fluid raised a TypeError or a ValueError, so it is both."""


class OpAssertionError(FluidError, AssertionError):
    """A broken rule that Fluid reports as an assertion."""


class NotFound(FluidError, ValueError):
    """A name that nothing has."""


class NotFed(NotFound):
    """A run without data that its program reads; ``names`` are those of the variables."""

    def __init__(self, summary: str, *, names: Sequence[str], **parts: Any) -> None:
        super().__init__(summary, **parts)
        self.names = list(names)


class NotBuiltYet(FluidError, NotImplementedError):
    """A part of Fluid that fluidnb does not have (yet); the text says why and what to use instead."""


class _Shown(str):
    """The repr of a value, which is also its own."""

    def __repr__(self) -> str:
        return str(self)


def _plain(value: object) -> object:
    """A value as an error shows it; None stays None."""
    return value if value is None or isinstance(value, str | int | float) else str(value)


def _unpickled(kind: type[FluidError], facts: dict[str, Any]) -> FluidError:
    """An error from its class and attributes."""
    error = kind.__new__(kind, facts["summary"])
    error.__dict__.update(facts)
    return error


def _one_line(value: object) -> object:
    """A value as one line: arrays and programs write several."""
    text = str(value)
    return " ".join(text.split()) if "\n" in text else value


def typed(value: object) -> str:
    """A value and the name of its type, for ``received``."""
    try:
        return f"{value!r} ({type(value).__name__})"[:200]
    except RecursionError:  # lists in lists, a thousand deep
        return f"a deep {type(value).__name__}"


def operand(name: str, dtype: str | None, shape: Sequence[int] | None) -> str:
    """One operand as text, for example ``x  float32[-1, 13]``."""
    if shape is None:
        return f"{visible_line(name)}  {dtype}" if dtype else visible_line(name)
    return f"{visible_line(name)}  {dtype or ''}[{', '.join(map(str, shape))}]"


def near(word: object, words: Iterable[str], n: int = 3) -> str:
    """A question with close names, ``Did you mean "scale"?``, or an empty text.

    Example:
        >>> near("ReLU", ["relu", "tanh"]), near("units", ["input", "size"]), near("xyz", ["input"])
        ('Did you mean "relu"?', 'Did you mean "size"?', '')
    """
    if not isinstance(word, str):  # a wrong argument, of which nothing is near
        return ""
    known, low = list(words), word.lower()
    close = [w for w in known if w.lower() == low][:n] or [w for w in FLUID_NAMES.get(low, ()) if w in known][:1]
    close = close or difflib.get_close_matches(word, known, n, 0.6)
    if not close and len(word) > 1:  # bs for batch_size
        close = [w for w in known if "_" in w and "".join(part[:1] for part in w.split("_")) == low][:n]
    offers = " or ".join(f'"{w}"' for w in close)
    return f"Did you mean {offers}?" if close else ""
