"""Giving variables, or parts of them, other values, as a client asks for it."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

import numpy as np

from fluidnb.debug.look import View, frozen, holds
from fluidnb.debug.walker import Walker
from fluidnb.errors import EnforceNotMet, NotFound, OpTypeError, OpValueError
from fluidnb.expressions import tree_of
from fluidnb.program import Variable
from fluidnb.values.device_array import DeviceArray


def evaluate(walker: Walker, depth: int, text: str, around: Mapping[str, Any]) -> Any:
    """What an expression gives, as seen from a frame.

    Args:
        walker: stands still.
        depth: which frame, 0 the outermost.
        text: a variable's name, a Python name of one, or an expression.
        around: the user's own names.

    Returns:
        Its value, a copy where it is a tensor.

    Raises:
        FluidError: it cannot be evaluated.
    """
    if depth == len(walker.tape.machine.stack) - 1:
        return walker.evaluate(text, around)
    scope = walker.tape.machine.stack[depth].scope
    variable = scope.find_var(text)
    if variable is not None and holds(variable.value):
        return frozen(variable.value)
    try:
        found = View(scope, around).evaluate(text)
    except NotFound:
        raise
    except Exception as error:
        raise OpValueError(
            f"{text} cannot be evaluated here.", expected="a Python expression over the variables",
            received=f"{type(error).__name__}: {error}",
        ) from None  # fmt: skip
    return found.copy() if isinstance(found, np.ndarray | DeviceArray) else found


def assign(walker: Walker, depth: int, name: str, index: tuple[Any, ...], text: str, around: Mapping[str, Any]) -> Any:
    """Give a variable, or a part of it, another value; going back undoes it.

    Args:
        walker: stands still.
        depth: the frame whose variable it is.
        name: the variable.
        index: what follows it in brackets, outermost first; empty for the whole.
        text: an expression for the value.
        around: the user's own names.

    Returns:
        The value that it has now.

    Raises:
        FluidError: it cannot have this value; nothing has changed.
    """
    stack = walker.tape.machine.stack
    variable = stack[depth].scope.find_var(name)
    if variable is not None and stack[-1].scope.find_var(name) is not variable:
        raise EnforceNotMet(
            f'"{name}" of this frame is hidden by another one further in.', hint="step out of the block first."
        )
    value = evaluate(walker, depth, text, around)
    if index:
        value = _with(walker.value(name), index, value, name)
    walker.edit(name, value)
    now = walker.value(name)
    for i in index:
        now = np.asarray(now)[i]
    return now


def _with(whole: Any, index: tuple[Any, ...], value: Any, name: str) -> Any:
    """An array with another value at a place."""
    array = np.array(whole)
    if np.asarray(value).dtype.kind == "f" and array.dtype.kind in "iub":
        raise OpTypeError(
            f'"{name}" cannot hold this value.', expected=str(array.dtype), received=str(np.asarray(value).dtype)
        )
    part = array
    try:
        for i in index[:-1]:
            part = part[i]
        part[index[-1]] = value
    except (IndexError, ValueError, TypeError) as error:
        raise OpValueError(
            f'That part of "{name}" cannot have this value.', expected=f"something that fits in {list(array.shape)}",
            received=str(error),
        ) from None  # fmt: skip
    return array


def target(text: str, around: Mapping[str, Any]) -> tuple[str, tuple[Any, ...]]:
    """What an expression on the left of an assignment means.

    Args:
        text: ``x``, ``fc_0.w_0``, ``x[0][1:3]`` or ``v['fc_0.w_0'][0]``.
        around: the user's own names.

    Returns:
        The variable's name, and what follows in brackets.

    Raises:
        OpValueError: it is something else.

    Example:
        >>> target("fc_0.w_0", {}), target("x[0][1:3]", {}), target("v['fc_0.w_0'][2]", {})
        (('fc_0.w_0', ()), ('x', (0, slice(1, 3, None))), ('fc_0.w_0', (2,)))
    """
    base, _, _ = text.partition("[")
    try:
        node = tree_of(text).body
    except SyntaxError:
        return text.strip(), ()  # the name of a gradient
    index: list[Any] = []
    while isinstance(node, ast.Subscript):
        try:
            index.insert(0, eval(f"np.s_[{ast.unparse(node.slice)}]", {"np": np}))
        except Exception as error:
            raise OpValueError(
                f"{text} is nothing that can be set.", expected="numbers and slices in brackets", received=str(error)
            ) from None
        node = node.value
    if isinstance(node, ast.Name) and node.id == "v" and index and isinstance(index[0], str):
        return index[0], tuple(index[1:])
    if isinstance(node, ast.Name | ast.Attribute):
        name = ast.unparse(node)
        named = around.get(name)
        return (named.name if isinstance(named, Variable) else name), tuple(index)
    raise OpValueError(f"{text} is nothing that can be set.", expected="a variable, or a part of one", received=base)
