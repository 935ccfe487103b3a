"""Scopes and values as variables of the protocol: tensors open into statistics, sequences and slices."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fluidnb.dap.references import References
from fluidnb.debug.debugger import Debugger
from fluidnb.debug.view import has_value
from fluidnb.runtime.compile.lowering import LoweredOp
from fluidnb.runtime.interpreter.interpreter import Frame
from fluidnb.runtime.scope import Scope
from fluidnb.values.copies import is_on_device
from fluidnb.values.device_array import part_of
from fluidnb.values.selected_rows import SelectedRows
from fluidnb.values.tensor import LoDTensor
from fluidnb.viz.program.reader import read_op
from fluidnb.viz.values.model import TensorSummary
from fluidnb.viz.values.reader import read_tensor
from fluidnb.viz.values.text import lod_text

Row = dict[str, Any]

#: Children of a value that are listed one by one for a client that cannot ask for a part of them.
_PAGE = 100


@dataclass(frozen=True, slots=True)
class Held:
    """A value that can be opened.

    Args:
        value: the value.
        text: the expression that gives it.
        root: the variable that holds it; empty if no variable does.
        index: where in that variable it is.
        part: (first, end) when it stands for some of the children only.
    """

    value: Any
    text: str = ""
    root: str = ""
    index: tuple[int, ...] = ()
    part: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Names:
    """Variables under one heading.

    Args:
        scope: where they are looked up.
        names: which; None for all that the scope itself has.
        extra: rows that are no variables.
    """

    scope: Scope
    names: tuple[str, ...] | None = None
    extra: tuple[tuple[str, str], ...] = field(default=())


def frame_scopes(debugger: Debugger, depth: int, known: References) -> list[Row]:
    """What can be seen from a frame: what its operator reads, writes and is told, then the scopes outwards.

    Args:
        debugger: stands still.
        depth: which frame, 0 the outermost.
        known: gives numbers.

    Returns:
        ``Scope`` rows of the protocol.
    """
    stack = debugger.tape.machine.stack
    frame = stack[depth]
    rows = []
    op = frame.block.ops[frame.pc] if frame.pc < len(frame.block.ops) else None
    if op is not None:
        rows += [
            _scope_row(f"{op.desc.optype}: inputs", Names(frame.scope, op.reads()), known, "arguments"),
            _scope_row(f"{op.desc.optype}: outputs", Names(frame.scope, op.writes()), known, "arguments"),
            _scope_row(f"{op.desc.optype}: attributes", Names(frame.scope, (), _attributes(op)), known, "arguments"),
        ]
    inner: Scope | None = frame.scope
    while inner is not None:
        title = _title(inner, stack)
        rows.append(_scope_row(title, Names(inner), known, "locals", expensive=inner.block is None))
        inner = inner.parent
    return rows


def children(
    thing: Held | Names, known: References, kind: str = "", start: int = 0, count: int = 0, pages: bool = False
) -> list[Row]:
    """What is inside a value or under a heading.

    Args:
        thing: the value, or the heading.
        known: gives numbers.
        kind: ``indexed`` or ``named``; empty for both.
        start: the first child wanted.
        count: how many are wanted, 0 for all.
        pages: whether the client asks for parts of long values by itself.

    Returns:
        ``Variable`` rows of the protocol.
    """
    if isinstance(thing, Names):
        rows = [] if kind == "indexed" else list(_named(thing, known))
        return rows[start : start + count if count else None]
    indexed = _length(thing.value)
    first, end = thing.part or (0, indexed)
    rows = []
    if kind != "indexed" and thing.part is None:
        rows += _facts(thing, known, _summary(thing.value))
        if kind == "named":
            return rows[start : start + count if count else None]
    if kind == "indexed" or (kind == "" and (pages or count)):
        begin = min(first + start, end)
        return rows + [_element(thing, i, known) for i in range(begin, min(begin + count, end) if count else end)]
    if end - first <= _PAGE:
        return rows + [_element(thing, i, known) for i in range(first, end)]
    width = _PAGE
    while width * _PAGE < end - first:
        width *= _PAGE
    parts = [(at, min(at + width, end)) for at in range(first, end, width)]
    return rows + [
        variable(
            f"[{a}:{b}]", Held(thing.value, f"{thing.text}[{a}:{b}]", thing.root, thing.index, (a, b)), known,
            f"{b - a:,} elements",
        )
        for a, b in parts
    ]  # fmt: skip


def variable(name: str, held: Held, known: References, text: str | None = None) -> Row:
    """A value as a ``Variable`` of the protocol.

    Args:
        name: what it is called.
        held: the value.
        known: gives numbers.
        text: it in one line; default what there is to say about it.
    """
    summary = _summary(held.value)
    said, kind, opens = describe(held.value, summary)
    row: Row = {"name": name, "value": said if text is None else text, "type": kind, "variablesReference": 0}
    if held.text:
        row["evaluateName"] = held.text
    if opens:
        row["variablesReference"] = known.make(held)
        row["indexedVariables"] = _length(held.value) if held.part is None else held.part[1] - held.part[0]
        row["namedVariables"] = len(_facts(held, References(), summary)) if held.part is None else 0
    return row


def describe(value: Any, summary: TensorSummary | None = None) -> tuple[str, str, bool]:
    """A value in one line.

    Args:
        value: what a variable has_value, or an expression gives.
        summary: what is known of it already, if it is a tensor.

    Returns:
        The line, the kind of the value, whether there is something inside.

    Example:
        >>> describe(np.arange(100, dtype="float32").reshape(10, 10))
        ('float32[10, 10]  49.5 ± 29 in [0, 99]', 'float32[10, 10]', True)
        >>> describe(3), describe(None)[0]
        (('3', 'int', False), 'nothing yet')
    """
    if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.ndim == 0):
        return str(value), str(value.dtype), False
    if type(value) is LoDTensor or isinstance(value, np.ndarray):
        if not has_value(value):
            return "nothing yet", "LoDTensor", False
        summary = summary or read_tensor(value)
        return f"{summary.facts}  {summary.statistics}".rstrip(), summary.facts, True
    if isinstance(value, SelectedRows):
        return f"SelectedRows: {len(value.rows_)} of {value.height_:,}", "SelectedRows", True
    if isinstance(value, list | tuple):
        if value and all(isinstance(item, Scope) for item in value):
            return f"{len(value)} step scopes", "step scopes", True
        return f"{type(value).__name__} of {len(value)}", type(value).__name__, bool(value)
    if isinstance(value, Scope):
        return f"scope of {len(value.vars)} variables", "Scope", bool(value.vars)
    text = " ".join(repr(value).split())
    return ("nothing yet" if value is None else text[:1000]), type(value).__name__, False


def _scope_row(title: str, names: Names, known: References, hint: str, expensive: bool = False) -> Row:
    return {
        "name": title, "presentationHint": hint, "expensive": expensive, "variablesReference": known.make(names),
        "namedVariables": len(list(_present(names))) + len(names.extra), "indexedVariables": 0,
    }  # fmt: skip


def _title(scope: Scope, stack: tuple[Frame, ...]) -> str:
    if scope.block is None:
        return "user's scope"
    frame = next((f for f in stack if f.scope is scope), None)
    if frame is None or frame.control is None:
        return f"block {scope.block_index}"
    return f"block {scope.block_index}, iteration {frame.control.iteration(frame.k)}"


def _attributes(op: LoweredOp) -> tuple[tuple[str, str], ...]:
    return tuple((name, text) for name, text in read_op(op.desc).attrs)


def _present(names: Names) -> Iterator[tuple[str, Any]]:
    if names.names is None:
        for name in sorted(names.scope.vars):
            if has_value(names.scope.vars[name].value):
                yield name, names.scope.vars[name].value
        return
    for name in dict.fromkeys(names.names):
        found = names.scope.find_var(name)
        yield name, None if found is None else found.value


def _named(names: Names, known: References) -> Iterator[Row]:
    for name, value in _present(names):
        yield variable(name, Held(value, expression(name), name), known)
    for name, text in names.extra:
        yield _fact(name, text)


def expression(name: str) -> str:
    """The expression that gives a variable.

    Args:
        name: its name.

    Example:
        >>> expression("x"), expression("fc_0.w_0")
        ('x', "v['fc_0.w_0']")
    """
    return name if name.isidentifier() else f"v[{name!r}]"


def _length(value: Any) -> int:
    if type(value) is LoDTensor:
        value = value.array
    if hasattr(value, "ndim"):
        return len(value) if value.ndim else 0
    if isinstance(value, list | tuple):
        return len(value)
    return 0


def _element(held: Held, i: int, known: References) -> Row:
    value = part_of(held.value.array, i) if type(held.value) is LoDTensor else held.value[i]
    inside = Held(value, held.text and f"{held.text}[{i}]", held.root, (*held.index, i))
    return variable(f"[{i}]", inside, known)


def _summary(value: Any) -> TensorSummary | None:
    is_tensor = type(value) is LoDTensor or (isinstance(value, np.ndarray) and value.ndim > 0)
    return read_tensor(value) if is_tensor and has_value(value) else None


def _facts(held: Held, known: References, summary: TensorSummary | None) -> list[Row]:
    """What is said of a value before its elements."""
    value = held.value
    if isinstance(value, Scope):
        return list(_named(Names(value), known))
    if isinstance(value, SelectedRows):
        return [
            variable("rows", Held(value.rows_, ""), known), _fact("height", f"{value.height_}"),
            variable("value", Held(value.value, ""), known),
        ]  # fmt: skip
    if summary is None:
        return []
    rows = [
        _fact("dtype", summary.dtype),
        _fact("shape", str(list(summary.shape))),
        _fact("bytes", f"{summary.nbytes:,}"),
    ]
    numbers = (("mean", summary.mean), ("std", summary.std), ("min", summary.low), ("max", summary.high))
    rows += [_fact(name, f"{number:.6g}") for name, number in numbers if number is not None]
    rows += [_fact(name, f"{count:,}") for name, count in (("NaN", summary.nan), ("infinite", summary.inf)) if count]
    if summary.where:
        rows.append(_fact("place", summary.where))
    if summary.lod:
        rows.append(_fact("LoD", lod_text(summary.lod)))
        offsets = summary.lod[-1]
        parts = [_some_rows(value, a, b) for a, b in zip(offsets, offsets[1:], strict=False)]
        rows.append(variable("sequences", Held(parts), known, f"{len(parts)} sequences"))
    return rows


def _some_rows(value: LoDTensor, first: int, end: int) -> Any:
    """Rows of a tensor; of one on a device they stay there until somebody opens them."""
    if is_on_device(value.array):
        return LoDTensor(value._held()[first:end], (), value.place)
    return np.asarray(value)[first:end]


def _fact(name: str, text: str) -> Row:
    hint = {"kind": "property", "attributes": ["readOnly"]}
    return {"name": name, "value": text, "variablesReference": 0, "presentationHint": hint}
