"""Scopes and values as variables of the protocol: tensors open into statistics, sequences and slices."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fluidnb.dap.references import References
from fluidnb.debug.debugger import Debugger
from fluidnb.debug.view import has_value
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
#: The most children listed at once for a client without paging.
_PAGE = 100


@dataclass(frozen=True, slots=True)
class Expandable:
    """A value whose children a client can request."""

    value: Any
    text: str = ""  # the expression that gives it
    root: str = ""  # the variable that it is a part of; empty if there is none
    index: tuple[int, ...] = ()  # its index in that variable
    part: tuple[int, int] | None = None  # (first, end) where it is some of the children only


@dataclass(frozen=True, slots=True)
class VariableGroup:
    """Variables with a title."""

    scope: Scope  # where they are looked up
    names: tuple[str, ...] | None = None  # the variables; None for all of the scope itself
    extra: tuple[tuple[str, str], ...] = field(default=())  # (name, text) rows that are not variables


def frame_scopes(debugger: Debugger, depth: int, references: References) -> list[Row]:
    """The ``Scope`` rows of a frame: its operator's inputs, outputs and attributes, then the scopes outwards."""
    stack = debugger.tape.interpreter.stack
    frame = stack[depth]
    rows = []
    op = frame.block.ops[frame.pc] if frame.pc < len(frame.block.ops) else None
    if op is not None:
        groups = {
            "inputs": VariableGroup(frame.scope, op.reads()),
            "outputs": VariableGroup(frame.scope, op.writes()),
            "attributes": VariableGroup(frame.scope, (), tuple(read_op(op.desc, op.index).attrs)),
        }
        rows += [_scope_row(f"{op.desc.optype}: {what}", g, references, "arguments") for what, g in groups.items()]
    inner: Scope | None = frame.scope
    while inner is not None:
        title = _title(inner, stack)
        rows.append(_scope_row(title, VariableGroup(inner), references, "locals", expensive=inner.block is None))
        inner = inner.parent
    return rows


def children(
    thing: Expandable | VariableGroup, references: References, kind: str = "", start: int = 0, count: int = 0,
    pages: bool = False,
) -> list[Row]:  # fmt: skip
    """The ``Variable`` rows of a value or a group: ``indexed``, ``named``, or an empty kind for both."""
    if isinstance(thing, VariableGroup):
        rows = [] if kind == "indexed" else list(_named(thing, references))
        return rows[start : start + count if count else None]
    indexed = _length(thing.value)
    first, end = thing.part or (0, indexed)
    rows = []
    if kind != "indexed" and thing.part is None:
        rows += _facts(thing, references, _summary(thing.value))
        if kind == "named":
            return rows[start : start + count if count else None]
    if kind == "indexed" or (kind == "" and (pages or count)):
        begin = min(first + start, end)
        return rows + [_element(thing, i, references) for i in range(begin, min(begin + count, end) if count else end)]
    if end - first <= _PAGE:
        return rows + [_element(thing, i, references) for i in range(first, end)]
    width = _PAGE
    while width * _PAGE < end - first:
        width *= _PAGE
    parts = [(at, min(at + width, end)) for at in range(first, end, width)]
    for a, b in parts:
        page = Expandable(thing.value, f"{thing.text}[{a}:{b}]", thing.root, thing.index, (a, b))
        rows.append(variable(f"[{a}:{b}]", page, references, f"{b - a:,} elements"))
    return rows


def variable(name: str, item: Expandable, references: References, text: str | None = None) -> Row:
    """The ``Variable`` row of a value; ``text`` replaces its description."""
    summary = _summary(item.value)
    line, kind, opens = describe(item.value, summary)
    row: Row = {"name": name, "value": line if text is None else text, "type": kind, "variablesReference": 0}
    if item.text:
        row["evaluateName"] = item.text
    if opens:
        row["variablesReference"] = references.make(item)
        row["indexedVariables"] = _length(item.value) if item.part is None else item.part[1] - item.part[0]
        row["namedVariables"] = len(_facts(item, References(), summary)) if item.part is None else 0
    return row


def describe(value: Any, summary: TensorSummary | None = None) -> tuple[str, str, bool]:
    """A value in one line, its type, and whether it has children."""
    if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.ndim == 0):
        return str(value), str(value.dtype), False
    if type(value) is LoDTensor or isinstance(value, np.ndarray):
        if not has_value(value):
            return "no value yet", "LoDTensor", False
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
    return ("no value yet" if value is None else text[:1000]), type(value).__name__, False


def _scope_row(title: str, names: VariableGroup, references: References, hint: str, expensive: bool = False) -> Row:
    return {
        "name": title, "presentationHint": hint, "expensive": expensive, "variablesReference": references.make(names),
        "namedVariables": len(list(_present(names))) + len(names.extra), "indexedVariables": 0,
    }  # fmt: skip


def _title(scope: Scope, stack: tuple[Frame, ...]) -> str:
    if scope.block is None:
        return "user's scope"
    frame = next((f for f in stack if f.scope is scope), None)
    if frame is None or frame.control is None:
        return f"block {scope.block_index}"
    return f"block {scope.block_index}, iteration {frame.control.iteration(frame.k)}"


def _present(names: VariableGroup) -> Iterator[tuple[str, Any]]:
    if names.names is None:
        for name in sorted(names.scope.vars):
            if has_value(names.scope.vars[name].value):
                yield name, names.scope.vars[name].value
        return
    for name in dict.fromkeys(names.names):
        variable = names.scope.find_var(name)
        yield name, None if variable is None else variable.value


def _named(names: VariableGroup, references: References) -> Iterator[Row]:
    for name, value in _present(names):
        yield variable(name, Expandable(value, expression(name), name), references)
    for name, text in names.extra:
        yield _fact(name, text)


def expression(name: str) -> str:
    """The expression for a variable."""
    return name if name.isidentifier() else f"v[{name!r}]"


def _length(value: Any) -> int:
    if type(value) is LoDTensor:
        value = value.array
    if hasattr(value, "ndim"):
        return len(value) if value.ndim else 0
    if isinstance(value, list | tuple):
        return len(value)
    return 0


def _element(item: Expandable, i: int, references: References) -> Row:
    value = part_of(item.value.array, i) if type(item.value) is LoDTensor else item.value[i]
    inside = Expandable(value, item.text and f"{item.text}[{i}]", item.root, (*item.index, i))
    return variable(f"[{i}]", inside, references)


def _summary(value: Any) -> TensorSummary | None:
    is_tensor = type(value) is LoDTensor or (isinstance(value, np.ndarray) and value.ndim > 0)
    return read_tensor(value) if is_tensor and has_value(value) else None


def _facts(item: Expandable, references: References, summary: TensorSummary | None) -> list[Row]:
    """The rows of a value before its elements: dtype, shape, statistics."""
    value = item.value
    if isinstance(value, Scope):
        return list(_named(VariableGroup(value), references))
    if isinstance(value, SelectedRows):
        return [
            variable("rows", Expandable(value.rows_, ""), references), _fact("height", f"{value.height_}"),
            variable("value", Expandable(value.value, ""), references),
        ]  # fmt: skip
    if summary is None:
        return []
    rows = [
        _fact("dtype", summary.dtype), _fact("shape", str(list(summary.shape))), _fact("bytes", f"{summary.nbytes:,}")
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
        rows.append(variable("sequences", Expandable(parts), references, f"{len(parts)} sequences"))
    return rows


def _some_rows(value: LoDTensor, first: int, end: int) -> Any:
    """Rows of a tensor; on a device they stay there until a client requests their elements."""
    if is_on_device(value.array):
        return LoDTensor(value._held()[first:end], (), value.place)
    return np.asarray(value)[first:end]


def _fact(name: str, text: str) -> Row:
    hint = {"kind": "property", "attributes": ["readOnly"]}
    return {"name": name, "value": text, "variablesReference": 0, "presentationHint": hint}
