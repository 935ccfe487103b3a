"""Fluid's ``default_scope_funcs`` module: a stack of scopes for each thread, the innermost of which is the current one.

Example:
    >>> from fluidnb import default_scope_funcs as scopes
    >>> scopes.enter_local_scope()
    >>> x = scopes.var("x")
    >>> scopes.find_var("x") is x
    True
    >>> scopes.leave_local_scope(); scopes.find_var("x")
"""

import threading
from collections.abc import Callable
from typing import TypeVar

from fluidnb.arguments import checked
from fluidnb.errors import OpValueError
from fluidnb.runtime import Scope
from fluidnb.values.variable import Variable

__all__ = ["enter_local_scope", "find_var", "get_cur_scope", "leave_local_scope", "new_var", "scoped_function", "var"]

T = TypeVar("T")


class _Stack(threading.local):
    """The scopes of a thread, the outermost first."""

    def __init__(self) -> None:
        self.scopes = [Scope()]


_stack = _Stack()


def get_cur_scope() -> Scope:
    """The current scope of this thread."""
    return _stack.scopes[-1]


def enter_local_scope() -> None:
    """Make a scope inside the current one, and make it the current one."""
    _stack.scopes.append(get_cur_scope().new_scope())


def leave_local_scope() -> None:
    """Leave the current scope; it goes, and all scopes that the one around it has made.

    Example:
        >>> leave_local_scope()
        Traceback (most recent call last):
        fluidnb.errors.OpValueError: There is no local scope to leave.
          ...
    """
    if len(_stack.scopes) == 1:
        raise OpValueError("There is no local scope to leave.", expected="enter_local_scope() before it")
    _stack.scopes.pop()
    get_cur_scope().drop_kids()


@checked
def var(name: str) -> Variable:
    """The variable of this name in the current scope, made if need be."""
    return get_cur_scope().var(name)


new_var = var  # version 0.10's name


@checked
def find_var(name: str) -> Variable | None:
    """The variable that the current scope sees under a name, or None."""
    return get_cur_scope().find_var(name)


@checked
def scoped_function(func: Callable[[], T]) -> T:
    """Calls a function inside a new local scope.

    Example:
        >>> scoped_function(lambda: var("inside") is find_var("inside")), find_var("inside")
        (True, None)
    """
    enter_local_scope()
    try:
        return func()
    finally:
        leave_local_scope()
