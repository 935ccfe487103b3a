"""A user's Python text as a kernel that binds: a function of the binder, or the body of one."""

import ast
import linecache
from collections.abc import Mapping
from typing import Any

import numpy as np

from fluidnb.errors import OpValueError
from fluidnb.op.define import KernelFunction
from fluidnb.utils.source_location import cell_names


def read_python(
    text: str, names: Mapping[str, Any] | None = None, file: str = "<kernel>", first: int = 1
) -> KernelFunction:
    """Make a kernel of Python text: ``def kernel(b)`` beside other functions, or the body of one alone."""
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
    """Run a text over a copy of names."""
    if file not in linecache.cache:
        lines = [line + "\n" for line in ("\n" * (first - 1) + text).splitlines()]
        linecache.cache[file] = (len(text), None, lines, file)
    cell_names.setdefault(file, file.strip("<>"))
    space: dict[str, Any] = {"np": np, **(names or {}), "__name__": "__main__"}
    exec(compile(tree, file, "exec"), space)
    return space
