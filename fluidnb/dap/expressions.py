"""Expressions of a client: evaluated in a frame, or assigned to a variable or a part of one."""

import ast
from collections.abc import Mapping
from typing import Any

import numpy as np

from fluidnb.debug.debugger import Debugger
from fluidnb.debug.expressions import tree_of
from fluidnb.errors import EnforceNotMet, OpValueError
from fluidnb.program import Variable
from fluidnb.values.exact_cast import exact_cast, numbers

#: What follows a variable's name in brackets, outermost first.
Index = tuple[Any, ...]


def assign(debugger: Debugger, depth: int, name: str, index: Index, text: str, around: Mapping[str, Any]) -> Any:
    """Assign to a variable, or to a part of it; stepping back undoes it."""
    stack = debugger.tape.interpreter.stack
    variable = stack[depth].scope.find_var(name)
    if variable is not None and stack[-1].scope.find_var(name) is not variable:
        raise EnforceNotMet(
            f'"{name}" of this frame is hidden by a variable of an inner block.', hint="step out of the block first."
        )
    value = debugger.evaluate(text, around, depth)
    if index:
        value = _with_part(debugger.value(name), index, value, name)
    debugger.edit(name, value)
    now = debugger.value(name)
    for i in index:
        now = np.asarray(now)[i]
    return now


def _with_part(whole: Any, index: Index, value: Any, name: str) -> Any:
    """A copy of an array with another value at an index."""
    array = np.array(whole)
    given = numbers(name, value)
    given = exact_cast(name, given, np.empty(given.shape, array.dtype))
    part = array
    try:
        for i in index[:-1]:
            part = part[i]
        part[index[-1]] = given
    except (IndexError, ValueError, TypeError) as error:
        raise OpValueError(
            f'That part of "{name}" cannot have this value.', expected=f"something that fits in {list(array.shape)}",
            received=str(error),
        ) from None  # fmt: skip
    return array


def target(text: str, around: Mapping[str, Any]) -> tuple[str, Index]:
    """The variable and the index of an assignment: ``x[0][1:3]``, ``fc_0.w_0``, ``v['fc_0.w_0'][0]``."""
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
