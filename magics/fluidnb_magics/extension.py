"""Loading and unloading of the extension."""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

from IPython.core.getipython import get_ipython

import fluidnb as fluid
from fluidnb.program import Program, hooks
from fluidnb.runtime import Scope
from fluidnb.viz.base.styled_text import Line
from fluidnb_magics.cell_magic import FluidCells
from fluidnb_magics.commands import compat
from fluidnb_magics.completion import Completion
from fluidnb_magics.display import show
from fluidnb_magics.jupyter.front_end import FrontEnd
from fluidnb_magics.jupyter.kernel_private import DebugChannel
from fluidnb_magics.kernel_magics import KernelCells
from fluidnb_magics.line_magic import FluidLines, question_as_help
from fluidnb_magics.session.cells import forget_files
from fluidnb_magics.session.change_report import report_lines, stale_line
from fluidnb_magics.session.python_shell import PythonShell
from fluidnb_magics.session.workbench import Workbench

_loaded: WeakKeyDictionary[Any, Extension] = WeakKeyDictionary()
_plain: list[Workbench] = []  # the session of cells without a shell, if there is one


class Extension:
    """Everything that `load` adds to a shell."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self.bench = Workbench(shell)
        self._front_end = FrontEnd(shell)
        self._magics = (
            FluidCells(shell, self.bench, self._front_end),
            FluidLines(shell, self.bench),
            KernelCells(shell, self.bench, self._front_end),
        )
        self._completion = Completion(self.bench)
        self._debugger = _debugger_proxy(shell, self.bench)
        self._bound: dict[str, Any] = {}
        self._mentioned: list[Line] = []
        self._reporter: Any = None
        self._names = {"fluid": fluid, "layers": fluid.layers}

    def load(self) -> None:
        """Register magics, events and completions; bind ``fluid`` and ``layers``."""
        shell = self._shell
        for magics in self._magics:
            shell.register_magics(magics)
        shell.events.register("pre_run_cell", self._front_end.before_cell)
        shell.events.register("pre_run_cell", self._follow)
        shell.Completer.custom_matchers.append(self._completion.match)
        shell.input_transformers_cleanup.append(question_as_help)
        self._bound = {name: value for name, value in self._names.items() if name not in shell.user_ns}
        shell.push(self._bound, interactive=False)
        if self._debugger is not None:
            self._debugger.install()

    def unload(self) -> None:
        """Remove everything from the shell."""
        shell = self._shell
        if self.bench.server is not None:
            self.bench.server.close()
        for widget in list(self.bench.widgets):
            widget.close()
        for kind in shell.magics_manager.magics.values():
            for name in [n for n, f in kind.items() if getattr(f, "__self__", None) in self._magics]:
                del kind[name]
        for magics in self._magics:
            shell.magics_manager.registry.pop(type(magics).__name__, None)
            shell.configurables[:] = [c for c in shell.configurables if c is not magics]
        shell.events.unregister("pre_run_cell", self._front_end.before_cell)
        shell.events.unregister("pre_run_cell", self._follow)
        shell.Completer.custom_matchers.remove(self._completion.match)
        shell.input_transformers_cleanup.remove(question_as_help)
        if self._reporter:
            self._reporter.close()
        self.bench.changes.close()
        for name, value in self._bound.items():
            if shell.user_ns.get(name) is value:
                del shell.user_ns[name]
            shell.user_ns_hidden.pop(name, None)
        if self._debugger is not None:
            self._debugger.remove()
        forget_files()

    def before_run(self, program: Program, scope: Scope) -> None:
        """Executor hook."""
        self.bench.before_run(program, scope)
        line = stale_line(self.bench, program) if any(f.stale for f in self.bench.log.runs) else None
        if line is not None and line not in self._mentioned:  # once for each cell that the user runs
            self._mentioned.append(line)
            show(self._shell, [line])
        if self._debugger is not None:
            self._debugger.before_run(program)

    def _follow(self, info: Any) -> None:
        """Event of the shell: cells may have been deleted or moved since the last one."""
        self._mentioned.clear()
        if self.bench.distributed is not None:
            from fluidnb_magics.session.distributed_training import collect

            note = collect(self.bench)
            if note:
                show(self._shell, [[(note, "bold")]])
        if self._reporter is None and self._front_end.cell_id is not None and self.bench.notebook.path:
            self._reporter = _order_reporter(self.bench)
        report = self.bench.follow(self._front_end.cell_id, self._front_end.deleted())
        if report.removed or report.executed or report.stale:
            show(self._shell, report_lines(self.bench, report))


def load(shell: Any) -> Extension:
    """Load the extension into a shell; a second time, nothing changes."""
    if shell not in _loaded:
        extension = Extension(shell)
        extension.load()
        _loaded[shell] = extension
        hooks.before_run = _before_run
    return _loaded[shell]


def session_of(names: dict[str, Any]) -> Workbench:
    """The session of the shell that runs; where there is none, one without a shell.

    Args:
        names: the user's names, for the latter.
    """
    shell = get_ipython()
    if shell is not None:
        return load(shell).bench
    if not _plain:
        _plain.append(Workbench(PythonShell(names)))
        hooks.before_run = _before_run
    return _plain[0]


def unload(shell: Any = None) -> None:
    """Remove the extension from a shell; without one, end the session of cells without a shell."""
    if shell is None:
        for bench in _plain:
            bench.changes.close()
        _plain.clear()
    elif (extension := _loaded.pop(shell, None)) is not None:
        extension.unload()
    if not _loaded and not _plain:
        hooks.before_run = None
        compat.uninstall()


def _debugger_proxy(shell: Any, bench: Workbench) -> Any:
    """The proxy of JupyterLab's debugger; None outside a kernel that has one."""
    channel = DebugChannel.of(getattr(shell, "kernel", None))
    if channel is None:
        return None
    from fluidnb_magics.jupyter.debugger import DebuggerProxy

    def startups() -> list[Program]:
        return [startup for _, startup in bench.programs.values()]

    return DebuggerProxy(channel, shell.user_ns, shell.display_formatter.format, startups)


def _order_reporter(bench: Workbench) -> Any:
    """The receiver of the order of cells from a notebook's page; False where widgets are not installed."""
    try:
        from fluidnb_magics.widgets.order_reporter import OrderReporter
    except ImportError:
        return False
    return OrderReporter(bench.notebook)


def _before_run(program: Program, scope: Scope) -> None:
    """Executor hook: initializes the parameters of every session."""
    for extension in list(_loaded.values()):
        extension.before_run(program, scope)
    for session in _plain:
        session.before_run(program, scope)
