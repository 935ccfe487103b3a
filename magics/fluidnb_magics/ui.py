"""Cells and widgets in plain Python: for front ends without magics, such as marimo."""

import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any, overload
from weakref import WeakKeyDictionary

from fluidnb.debug.session import Session, current
from fluidnb.errors import NotFound, OpTypeError, OpValueError, near
from fluidnb.program import Program, default_main_program
from fluidnb.runtime import global_scope
from fluidnb.viz import plain
from fluidnb.viz.base.html import lines_html
from fluidnb.viz.lessons.backward.examples import EXAMPLES
from fluidnb.viz.lessons.backward.model import read_backward_example
from fluidnb.viz.lessons.optimizer.model import parse_choice
from fluidnb_magics.extension import session_of
from fluidnb_magics.session.cells import Cell, Function
from fluidnb_magics.session.change_report import report_lines
from fluidnb_magics.session.python_shell import PythonShell
from fluidnb_magics.session.workbench import Workbench

__all__ = ["BuiltCell", "builder", "cell", "drop", "explorer", "lesson", "memory", "panel", "scope", "timeline"]

_LESSONS = ("backward", "lod", "optimizer")


class BuiltCell:
    """A cell in plain Python: what its function returned, and the change of the program as its picture.

    The names of a returned dict are attributes; a returned tuple can be unpacked.
    """

    def __init__(self, name: str) -> None:
        self._name, self._values, self._lines = name, dict[str, Any](), list[Any]()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if name not in self._values:
            hint = near(name, self._values) or "return locals() at its end gives all its names."
            raise AttributeError(f"cell {self._name} has no {name}. {hint}")
        return self._values[name]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._values.values())

    def __repr__(self) -> str:
        return plain(self._lines) or f"<cell {self._name}>"

    def _repr_html_(self) -> str:
        return lines_html(self._lines)


#: session -> its cells by name: a cell that runs again is the same object
_built: WeakKeyDictionary[Workbench, dict[str, BuiltCell]] = WeakKeyDictionary()


@overload
def cell(function: Callable[[], Any]) -> BuiltCell: ...
@overload
def cell(*, name: str | None = None, program: str | None = None) -> Callable[[Callable[[], Any]], BuiltCell]: ...
def cell(function: Any = None, *, name: str | None = None, program: str | None = None) -> Any:
    """Build a part of a program with a function, at once; the plain-Python form of ``%%fluid``.

    Running it again, edited or not, replaces what it built, in its place; later cells that read from it are built
    again. An error leaves everything as it was.

    Args:
        function: builds; the names of a returned dict, such as ``locals()``, are attributes, a tuple can be unpacked.
        name: the name of the cell; default that of the function.
        program: the program of the session that it builds; default the main program.

    Raises:
        OpTypeError: something else than a function without arguments.

    Example:
        >>> from fluidnb import ui
        >>> @ui.cell
        ... def net():
        ...     x = fluid.layers.data("x", shape=[4])
        ...     h = fluid.layers.fc(x, 3)
        ...     return locals()
        >>> net.h.shape
        (-1, 3)
    """
    if function is None:
        return lambda function: _run(function, name, program)
    return _run(function, name, program)


def _run(function: Callable[[], Any], name: str | None, program: str | None) -> BuiltCell:
    if not inspect.isfunction(function) or inspect.signature(function).parameters:
        raise OpTypeError(
            "ui.cell takes a function without arguments.", expected="@ui.cell above a def", received=repr(function)[:80]
        )
    bench = session_of(function.__globals__)
    title = name or function.__name__
    cells = _built.setdefault(bench, {})
    built = cells.setdefault(title, BuiltCell(title))
    before = {each: each._values for each in cells.values()}

    def build() -> None:
        built._values = _named(function())

    try:
        source = inspect.getsource(function)
    except OSError:  # typed at a prompt
        source = ""
    wanted = Cell(title, title, source, source, program, title=title, function=Function(function.__code__, build))
    found, replaced = bench.identified(wanted)
    try:
        report = bench.run_cell(found, replaced)
    except BaseException:
        for each, values in before.items():
            each._values = values
        raise
    placed = bench.placed(found.key)
    assert placed is not None
    # marimo removes the names of cells that it is about to run again.
    report.stale = {cell: why for cell, why in report.stale.items() if cell in function.__globals__}
    built._lines = report_lines(bench, report, placed)
    _changed(bench)
    return built


def _named(returned: Any) -> dict[str, Any]:
    """The values that a function returned, by name or by position."""
    if isinstance(returned, Mapping):
        return dict(returned)
    values = returned if isinstance(returned, tuple) else () if returned is None else (returned,)
    return {str(i): value for i, value in enumerate(values)}


def drop(name: str) -> None:
    """Remove a cell from its program, with what it built.

    Args:
        name: the name of the cell.
    """
    bench = _bench()
    bench.drop([name])
    _built.get(bench, {}).pop(name, None)
    _changed(bench)


def _bench() -> Workbench:
    return session_of(vars(sys.modules["__main__"]))


def _changed(bench: Workbench) -> None:
    """Notify widgets; IPython does that by itself after each cell."""
    if isinstance(bench.shell, PythonShell):
        bench.shell.events.trigger("post_run_cell", None)


def explorer(program: str | None = None, graph: bool = False) -> Any:
    """The program explorer, an anywidget.

    Args:
        program: a program of the session by its name; default the main program.
        graph: whether the graph is shown first.
    """
    from fluidnb_magics.widgets.explorer import Explorer

    return Explorer(_bench(), program=program, graph=graph)


def panel(session: Session | None = None) -> Any:
    """The debugger panel, an anywidget.

    Args:
        session: the debug session; default the one that was begun last.

    Raises:
        NotFound: there is none.
    """
    from fluidnb_magics.widgets.panel import Panel

    shown = current() if session is None else session
    if shown is None:
        raise NotFound("There is no debug session.", hint="session = fluid.debug(feed={...}) begins one.")
    return Panel(shown, _bench().changes)


def builder(layer: str = "") -> Any:
    """The builder, an anywidget; without cells that a page can write to it shows the line to copy.

    Args:
        layer: the layer with which it begins.
    """
    from fluidnb_magics.widgets.builder import Builder

    return Builder(_bench(), layer)


def scope() -> Any:
    """The live view of the scopes, an anywidget."""
    from fluidnb_magics.widgets.scope_explorer import ScopeExplorer

    return ScopeExplorer(_bench(), global_scope())


def memory(program: Program | None = None) -> Any:
    """The live view of the memory of a program, an anywidget; default the main program."""
    from fluidnb_magics.widgets.memory_explorer import MemoryExplorer

    return MemoryExplorer(_bench(), default_main_program() if program is None else program)


def timeline(program: Program | None = None) -> Any:
    """The live timeline of the runs of a program, an anywidget; default the main program."""
    from fluidnb_magics.widgets.timeline_explorer import TimelineExplorer

    return TimelineExplorer(_bench(), default_main_program() if program is None else program)


def lesson(name: str) -> Any:
    """A lesson, an anywidget: ``backward``, ``lod`` or ``optimizer``."""
    from fluidnb_magics.widgets.lessons import BackwardLessonWidget, LodLessonWidget, OptimizerLessonWidget

    if name == "lod":
        return LodLessonWidget("5 3 2 4")
    if name == "optimizer":
        return OptimizerLessonWidget("bowl", [parse_choice("SGD")])
    if name == "backward":
        return BackwardLessonWidget(lambda: {}, read_backward_example(next(iter(EXAMPLES))))
    raise OpValueError(f"There is no lesson {name!r}.", expected=", ".join(_LESSONS), received=name,
                       hint=near(name, _LESSONS))  # fmt: skip
