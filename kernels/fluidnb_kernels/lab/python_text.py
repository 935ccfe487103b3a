"""A user's Python text as a kernel that binds: a function of the binder, or the body of one."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Mapping
from typing import Any

import numpy as np

from fluidnb import where
from fluidnb.errors import OpValueError
from fluidnb.op.define import KernelFunction


def read_python(
    text: str, names: Mapping[str, Any] | None = None, file: str = "<kernel>", first: int = 1
) -> KernelFunction:
    """Make a kernel of Python text.

    Args:
        text: ``def kernel(b): ...``, beside other functions if you like, or the body of such a function alone.
        names: what the text may use; ``np`` is there in any case.
        file: what tracebacks call it.
        first: the number of its first line.

    Returns:
        The function.

    Raises:
        SyntaxError: it is not Python.
        OpValueError: none of its functions takes the binder.

    Example:
        >>> read_python('b(np.maximum, b["X"], 0, out=b["Out"])').__name__
        'kernel'
    """
    tree = ast.parse("\n" * (first - 1) + text, file)
    if not any(isinstance(node, ast.FunctionDef) for node in tree.body):
        whole = ast.parse("def kernel(b): pass")
        [made] = whole.body
        assert isinstance(made, ast.FunctionDef)
        made.body = tree.body or made.body
        tree = ast.fix_missing_locations(whole)
    space = run_python(tree, text, names, file, first)
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    taking = [node.name for node in functions if len(node.args.args) == 1]
    if not taking:
        raise OpValueError(
            "No function of the text takes the binder.", expected="def kernel(b): ...",
            received=", ".join(f"def {node.name}({ast.unparse(node.args)})" for node in functions),
        )  # fmt: skip
    found: KernelFunction = space["kernel" if "kernel" in taking else taking[-1]]
    return found


def run_python(
    tree: ast.Module, text: str, names: Mapping[str, Any] | None, file: str, first: int = 1
) -> dict[str, Any]:
    """Run a text over a copy of names.

    Args:
        tree: the text, parsed.
        text: the text, for tracebacks.
        names: what it may use.
        file: what tracebacks call it.
        first: the number of its first line.

    Returns:
        The names afterwards.
    """
    if file not in linecache.cache:
        lines = [line + "\n" for line in ("\n" * (first - 1) + text).splitlines()]
        linecache.cache[file] = (len(text), None, lines, file)
    where.cell_names.setdefault(file, file.strip("<>"))
    space: dict[str, Any] = {"np": np, **(names or {}), "__name__": "__main__"}
    exec(compile(tree, file, "exec"), space)
    return space
