"""The values of the debugger panel: a window of a scope, and details of one variable."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from fluidnb.debug.debugger import Debugger
from fluidnb.debug.view import has_value
from fluidnb.op import EMPTY
from fluidnb.values.tensor import LoDTensor, array_of
from fluidnb.viz.values.model import ScopeVariable
from fluidnb.viz.values.preview_html import lod_html, preview_url
from fluidnb.viz.values.reader import read_variable
from fluidnb.viz.values.tensor_window import ValuePage, View, plane_image, plane_picture, read_page
from fluidnb.viz.values.text import lod_text

#: Elements sampled for the statistics of a list: a panel reads many tensors at every step.
_SAMPLE = 1 << 16
#: Variables of a window, and LoD offsets of a row, at most.
_MOST, _OFFSETS = 60, 6


@dataclass(frozen=True, slots=True)
class Window:
    """The visible part of a scope."""

    frame: int = -1  # index of the scope in `SessionPosition`, 0 for the outermost; -1 for the innermost
    first: int = 0  # the first variable seen
    count: int = 24  # how many
    part: str = ""  # only variables whose name has this in it


@dataclass(frozen=True, slots=True)
class ValueLine:
    """A variable in a line."""

    name: str
    facts: str  # dtype and shape of a tensor, else its type
    lod: str = ""  # its LoD as text
    statistics: str = ""  # mean, deviation and range, or the values when they are few
    histogram: tuple[int, ...] = ()  # counts of elements in equal bins of the range
    bad: bool = False  # whether it contains NaN or infinity
    nbytes: int = 0  # its size in bytes


@dataclass(frozen=True, slots=True)
class ScopePage:
    """The visible variables of a scope that have a value."""

    frame: int  # index of the scope
    count: int  # number of matching variables
    first: int = 0  # index of the first row
    rows: tuple[ValueLine, ...] = ()  # the visible variables


@dataclass(frozen=True, slots=True)
class VariableDetails:
    """Details of a variable."""

    line: ValueLine  # its summary
    frame: int  # index of the scope from which it is looked up
    shape: tuple[int, ...] = ()  # sizes of a tensor
    page: ValuePage | None = None  # a window of its elements; None without elements
    picture: str = ""  # data URL of its plane as a picture; empty for small tensors
    image: str = ""  # the same as an image, if it has the shape of one
    sequences: str = ""  # its LoD as nested boxes, HTML
    parts: tuple[ValueLine, ...] = ()  # its parts if it is not a tensor
    gone: bool = False  # whether it has no value here


def read_window(debugger: Debugger, window: Window) -> ScopePage:
    """Reads the visible variables of a scope."""
    frame = frame_of(debugger, window.frame)
    scope = _scope(debugger, frame)
    part = window.part.lower()
    names = [n for n, v in scope.vars.items() if has_value(v.value) and part in n.lower()]
    first = max(0, min(window.first, len(names) - 1))
    shown = names[first : first + min(window.count, _MOST)]
    return ScopePage(frame, len(names), first, tuple(value_line(n, scope.vars[n].value) for n in shown))


def read_lines(debugger: Debugger, names: Iterable[str]) -> tuple[ValueLine, ...]:
    """Reads variables as visible at the current position; those without a value are omitted."""
    scope = debugger.tape.interpreter.stack[-1].scope
    variables = [(n, scope.find_var(n)) for n in list(dict.fromkeys(names))[:_MOST] if n != EMPTY]
    return tuple(value_line(n, v.value) for n, v in variables if v is not None and has_value(v.value))


def read_details(debugger: Debugger, name: str, frame: int, view: View | None = None) -> VariableDetails:
    """Reads the details of a variable."""
    frame = frame_of(debugger, frame)
    value = find_value(debugger, name, frame)
    if not has_value(value):
        return VariableDetails(ValueLine(name, "no value here"), frame, gone=True)
    variable = read_variable(name, value)
    line = _line(variable)
    array = array_of(value)
    if array is None or not isinstance(value, LoDTensor):
        return VariableDetails(line, frame, parts=tuple(_line(part) for part in variable.parts))
    if view is not None and view.axes is not None and max(view.axes) >= array.ndim:
        view = replace(view, axes=None)  # the view was chosen for another shape
    picture, image = plane_picture(array, view), plane_image(array, view)
    return VariableDetails(
        line, frame, array.shape, read_page(array, view),
        "" if picture is None or picture.kind == "line" else preview_url(picture),
        "" if image is None else preview_url(image),
        lod_html(value.lod_, array.shape[0] if array.ndim else 0),
    )  # fmt: skip


def find_value(debugger: Debugger, name: str, frame: int) -> Any:
    """The value of a variable as visible from a scope; None without one."""
    variable = _scope(debugger, frame_of(debugger, frame)).find_var(name)
    return None if variable is None else variable.value


def value_line(name: str, value: Any) -> ValueLine:
    """A variable in one line."""
    return _line(read_variable(name, value, sample=_SAMPLE))


def part_lines(name: str, value: Any) -> tuple[ValueLine, ...]:
    """The parts of a value that is not a tensor, a line for each."""
    return tuple(_line(part) for part in read_variable(name, value, sample=_SAMPLE).parts)


def frame_of(debugger: Debugger, frame: int) -> int:
    """A valid index of a scope, as the requested one may have been left."""
    innermost = len(debugger.tape.interpreter.stack)
    return frame if 0 <= frame <= innermost else innermost


def _scope(debugger: Debugger, frame: int) -> Any:
    return debugger.tape.runs[-1].scope if frame == 0 else debugger.tape.interpreter.stack[frame - 1].scope


def _line(variable: ScopeVariable) -> ValueLine:
    t = variable.tensor
    if t is None:
        return ValueLine(variable.name, variable.kind or " ".join(p.kind for p in variable.parts))
    lod = lod_text(t.lod, _OFFSETS) if t.lod else ""
    return ValueLine(
        variable.name, t.facts if t.dtype else "empty", lod, t.statistics, t.histogram, bool(t.nan or t.inf), t.nbytes
    )
