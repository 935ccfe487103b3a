"""Scopes: trees of named runtime variables."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Never, NoReturn

from fluidnb.arguments import checked, refuse_unknown, shown
from fluidnb.errors import OpTypeError
from fluidnb.program import hooks
from fluidnb.utils.representations import repr_html
from fluidnb.values import CPUPlace
from fluidnb.values import invalidation as epoch
from fluidnb.values.tensor import LoDTensor
from fluidnb.values.variable import Variable


class Scope:
    """Variables by name, with a parent whose variables are visible too.

    A scope owns its variables. Leaving a block does not destroy its scope, since backward may need the values; the end
    of the mini-batch does.

    Args:
        parent: the scope around it, or None.

    Example:
        >>> scope = Scope()
        >>> scope.var("x").get_tensor().set(np.ones(2), fluid.CPUPlace())
        >>> scope.new_scope().find_var("x") is scope.find_var("x"), scope.find_var("y")
        (True, None)

    Source: design document "Block and Scope", section on the scope hierarchy.
    """

    #: What a message says where one is expected.
    argument_hint = "fluid.Scope() makes one, fluid.global_scope() is the one that programs run in."

    __slots__ = ("__weakref__", "block", "bound", "kept", "kids", "moved", "parent", "vars")

    def __init__(self, parent: Scope | None = None, block: Any = None, **unknown: Never) -> None:
        if unknown:
            refuse_unknown(Scope.__init__, self, unknown)
        if parent is not None and not isinstance(parent, Scope):
            raise OpTypeError("parent of Scope must be a Scope or None.", expected="a Scope", received=shown(parent))
        self.vars: dict[str, Variable] = {}
        self.parent = parent
        self.block = block  # while a program runs, the lowered block of its variables
        self.kids: list[Scope] = []  # scopes of `new_scope`
        self.bound = False
        #: Outer variables at the end of the iteration that ran here, where its gradient needs them.
        self.kept: dict[str, Variable] = {}
        #: Variable to which a nested block gives another buffer or LoD -> its tensor, and the former array and LoD.
        self.moved: dict[str, tuple[LoDTensor, Any, Any]] = {}

    # ---- Fluid's interface

    def var(self, name: Any) -> Variable:
        """The variable of this name in this very scope, created where it is missing."""
        variable = self.vars.get(name) if isinstance(name, str) else _refuse_name(name)
        if variable is None:
            variable = self.vars[name] = Variable(name)
            if self.bound:
                epoch.value += 1
        return variable

    new_var = var  # version 0.10's name

    def find_var(self, name: str) -> Variable | None:
        """The variable of this name here or in the nearest scope around; None when there is none."""
        if not isinstance(name, str):
            _refuse_name(name)
        scope: Scope | None = self
        while scope is not None:
            variable = scope.vars.get(name)
            if variable is not None:
                return variable
            scope = scope.parent
        return None

    def new_scope(self) -> Scope:
        """A scope inside this one."""
        kid = Scope(self)
        self.kids.append(kid)
        return kid

    def drop_kids(self) -> None:
        """Destroy the scopes inside this one, with their variables."""
        for kid in self.kids:
            kid.drop_kids()
            kid.parent = None
        self.kids.clear()

    def erase(self, names: Iterable[str]) -> None:
        """Destroy variables of this scope; unknown names are ignored."""
        if not isinstance(names, Iterable):
            _refuse_name(names)
        names = [names] if isinstance(names, str) else list(names)
        for name in names:
            if not isinstance(name, str):
                _refuse_name(name)
        for name in names:
            if self.vars.pop(name, None) is not None and self.bound:
                epoch.value += 1

    def local_var_names(self) -> list[str]:
        """The names of this scope's own variables, sorted."""
        return sorted(self.vars)

    def __repr__(self) -> str:
        inside = f", {len(self.kids)} inside" if self.kids else ""
        return f"<Scope: {len(self.vars)} variables{inside}>"

    _repr_html_ = repr_html

    # ---- interface of the executors

    @property
    def block_index(self) -> int:
        """Index of the block whose variables live here; -1 for a user's scope."""
        return -1 if self.block is None else int(self.block.index)

    def cell(self, name: str) -> tuple[Variable, Scope]:
        """The variable of a name for a block's operators, and its scope.

        It is the innermost that exists or whose block declares it; created there where it is missing.
        """
        scope = self
        while True:
            variable = scope.vars.get(name)
            if variable is not None:
                return variable, scope
            parent = scope.parent
            if parent is None or (scope.block is not None and name in scope.block.local):
                return scope.var(name), scope
            scope = parent

    def outermost(self) -> Scope:
        """The scope at the root, which has the persistable variables."""
        scope = self
        while scope.parent is not None:
            scope = scope.parent
        return scope

    def persistable(self, name: str) -> Variable:
        """The variable that a run in this scope would keep a persistable value in: a visible one, or the root's."""
        return self.find_var(name) or self.outermost().var(name)

    def fork(self) -> Scope:
        """A scope with the same content whose variables can be given other buffers."""
        twin = Scope(self.parent, self.block)
        for name, variable in self.vars.items():
            value = variable.value
            if type(value) is LoDTensor:
                value = LoDTensor(value.array, value.lod_, value.place, name)
            twin.vars[name] = Variable(name, value)
        return twin

    def showing(self, other: Scope) -> Scope:
        """A scope inside this one with the variables of a finished iteration, for its gradient operator."""
        view = Scope(self, other.block)
        view.vars = {**other.vars, **other.kept}
        return view


def _refuse_name(name: object) -> NoReturn:
    text = f"A variable's name is a str, but {type(name).__name__} was given."
    raise OpTypeError(text, expected="str", received=shown(name))


class _Mine(threading.local):
    """The scopes of `scope_guard` in this thread, the innermost last; empty in the main one."""

    def __init__(self) -> None:
        self.guards: list[Scope] = []


#: The scopes of `scope_guard` in the main thread, which all threads see that are in none of their own.
_stack: list[Scope] = [Scope()]
_mine = _Mine()


def _guards() -> list[Scope]:
    """The list whose last scope is the global one of this thread."""
    return _mine.guards or _stack


def global_scope() -> Scope:
    """The default scope of executors: the innermost of `scope_guard`, else the one created at start.

    A thread that is in no `scope_guard` of its own has the main thread's.
    """
    return _guards()[-1]


@checked
@contextmanager
def scope_guard(scope: Scope) -> Iterator[None]:
    """Make a scope the global one inside a ``with``.

    Example:
        >>> mine = Scope()
        >>> with scope_guard(mine):
        ...     global_scope() is mine
        True
    """
    if not isinstance(scope, Scope):
        raise OpTypeError(f"scope_guard takes a Scope, but {type(scope).__name__} was given.", received=repr(scope))
    guards = _stack if threading.current_thread() is threading.main_thread() else _mine.guards
    guards.append(scope)
    try:
        yield
    finally:
        guards.pop()


@checked
def switch_scope(scope: Scope) -> Scope:
    """Make a scope the global one from now on (``fluid._switch_scope``), and return the former one."""
    guards = _guards()
    old, guards[-1] = guards[-1], scope
    return old


def _set_value(name: str, array: Any) -> None:
    scope = global_scope()
    (scope.find_var(name) or scope.var(name)).get_tensor().set(array, CPUPlace())


hooks.set_value = _set_value
hooks.global_scope = global_scope
