"""Files that need ``from __future__ import annotations``; ``python -m tests.tools.annotations`` removes it from others.

A file needs it where an annotation names something that is defined below it or imported for type checkers alone, where
a class has an attribute of that name, and where a nested function has annotations: each call would evaluate them.
"""

from __future__ import annotations

import ast
import builtins
import sys
from collections.abc import Iterator
from pathlib import Path

LINE = "from __future__ import annotations\n"
#: Packages whose classes cannot be subscripted in every version that is supported.
NOT_GENERIC = {"traitlets", "ipywidgets", "cupy"}

Function = ast.FunctionDef | ast.AsyncFunctionDef


def has_import(source: str) -> bool:
    """Whether a file has the import."""
    return f"\n{LINE}" in source


def is_needed(source: str) -> bool:
    """Whether annotations of a file cannot be evaluated where they are."""
    return _Names().needs(ast.parse(source).body, None)


class _Names:
    """The names that are defined so far while a module is read from the top."""

    def __init__(self) -> None:
        self._known = set(dir(builtins))

    def needs(self, body: list[ast.stmt], attributes: set[str] | None) -> bool:
        """Reads statements; ``attributes`` are the names that a class body binds, None outside of classes."""
        return any([self._statement_needs(statement, attributes) for statement in body])

    def _statement_needs(self, statement: ast.stmt, attributes: set[str] | None) -> bool:
        needed = False
        if isinstance(statement, ast.If) and ast.unparse(statement.test) == "TYPE_CHECKING":
            return self.needs(statement.orelse, attributes)
        if isinstance(statement, Function):
            needed = any(self._is_late(a, attributes) for a in annotations(statement)) or has_nested(statement)
        elif isinstance(statement, ast.ClassDef):
            needed = self.needs(statement.body, {name for inner in statement.body for name in bound(inner)})
        elif isinstance(statement, ast.AnnAssign):
            needed = self._is_late(statement.annotation, attributes)
        elif isinstance(statement, ast.If | ast.Try | ast.With):
            needed = self.needs([s for s in ast.iter_child_nodes(statement) if isinstance(s, ast.stmt)], attributes)
        if attributes is None:
            self._known.update(bound(statement))
        return needed

    def _is_late(self, annotation: ast.expr, attributes: set[str] | None) -> bool:
        names = {node.id for node in ast.walk(annotation) if isinstance(node, ast.Name)}
        return not names <= self._known or bool(names & (attributes or set())) or bool(names & NOT_GENERIC)


def annotations(function: Function) -> Iterator[ast.expr]:
    """The annotations of a function."""
    a = function.args
    arguments = [*a.posonlyargs, *a.args, *a.kwonlyargs, *(x for x in (a.vararg, a.kwarg) if x is not None)]
    yield from (x.annotation for x in arguments if x.annotation is not None)
    if function.returns is not None:
        yield function.returns


def has_nested(function: Function) -> bool:
    """Whether a function has annotated functions inside it."""
    inner = (node for node in ast.walk(function) if node is not function and isinstance(node, Function))
    return any(next(annotations(node), None) is not None for node in inner)


def bound(statement: ast.stmt) -> set[str]:
    """The names that a statement of a module or of a class binds."""
    if isinstance(statement, Function | ast.ClassDef):
        return {statement.name}
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return {(alias.asname or alias.name).partition(".")[0] for alias in statement.names}
    if isinstance(statement, ast.If | ast.Try | ast.With | ast.For):
        inside = (inner for inner in ast.iter_child_nodes(statement) if isinstance(inner, ast.stmt))
        return {name for inner in inside for name in bound(inner)}
    return {n.id for n in ast.walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


def main(folders: list[str]) -> None:
    """Removes the import from the files of some folders that do not need it, and prints how many these are."""
    paths = [path for folder in folders for path in sorted(Path(folder).rglob("*.py"))]
    free = [path for path in paths if has_import(text := path.read_text()) and not is_needed(text)]
    for path in free:
        path.write_text(path.read_text().replace(f"\n{LINE}\n", "\n", 1).replace(f"\n{LINE}", "\n", 1))
    print(f"{len(free)} of {len(paths)} files do not need it any more")


if __name__ == "__main__":
    main(sys.argv[1:])
