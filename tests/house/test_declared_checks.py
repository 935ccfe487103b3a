"""What the annotations of a layer check is not checked once more inside it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
CHECKS = {"check_variable", "check_is_variable"}
DECLARED = {"naming.layer", "checked"}


def repeated(tree: ast.Module) -> Iterator[str]:
    """Checks of arguments that a layer declares as a Variable."""
    for function in tree.body:
        if not isinstance(function, ast.FunctionDef) or not DECLARED & set(map(ast.unparse, function.decorator_list)):
            continue
        arguments = (*function.args.args, *function.args.kwonlyargs)
        declared = {a.arg for a in arguments if a.annotation is not None and ast.unparse(a.annotation) == "Variable"}
        for call in ast.walk(function):
            if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or not call.args:
                continue
            value = call.args[0]
            kind = ast.unparse(call.args[1]) if call.func.id == "isinstance" else "Variable"
            if call.func.id in CHECKS | {"isinstance"} and kind == "Variable" and ast.unparse(value) in declared:
                yield f"line {call.lineno}: {ast.unparse(call)}"


def test_no_layer_checks_a_variable_twice() -> None:
    paths = sorted((ROOT / "fluidnb" / "layers").rglob("*.py"))
    found = [f"{path.relative_to(ROOT)}, {text}" for path in paths for text in repeated(ast.parse(path.read_text()))]
    assert len(paths) > 30 and not found, "\n".join(found)


def test_a_check_that_is_repeated_is_found() -> None:
    source = "@naming.layer\ndef relu(x: Variable, y: Variable | None) -> None:\n    check_variable(x, 'x', 'relu')\n"
    assert list(repeated(ast.parse(source))) == ["line 3: check_variable(x, 'x', 'relu')"]
    assert not list(repeated(ast.parse(source.replace("(x, 'x'", "(y, 'y'"))))
