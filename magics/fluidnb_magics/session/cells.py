"""A cell: its source, how it is compiled by the shell's own means, and how it runs in the user's namespace."""

import ast
import sys
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from types import CodeType
from typing import Any

from fluidnb.utils.source_location import cell_names

#: What a cell's file name maps to in `cell_names` and was put there by us.
named_files: set[str] = set()


@dataclass(frozen=True, slots=True, eq=False)
class Function:
    """A cell as a function of the user's."""

    code: CodeType  # of the user's function
    call: Callable[[], object]


@dataclass(frozen=True, slots=True)
class Cell:
    """One ``%%fluid`` cell as the user wrote it."""

    key: Hashable
    name: str  # names of variables that have no other name start with it
    source: str  # the text below the first line
    raw: str = ""  # the whole text, as the front end knows it
    program: str | None = None  # name of the program that it builds, or None for the default one
    block: str | None = None  # the sub-block that it continues, or None
    number: int = 0  # the execution count of its last run by the user
    skipped: int = 1  # lines above the source in the editor, so that line numbers are those that the user sees
    title: str = ""  # its name for people
    cell_id: str | None = None  # the front end's id of it, or None
    # the ids of all cells of the notebook that are this cell, by the same name; the first of them is its place
    ids: tuple[str, ...] = ()
    function: Function | None = None  # builds it, where it is no text of a shell

    @property
    def is_named(self) -> bool:
        """Whether the user gave it its name."""
        return self.title == self.name


@dataclass(frozen=True, slots=True)
class Compiled:
    """A cell ready to run."""

    file: str  # the file name of its code
    code: CodeType  # all of it, for looking at names
    steps: tuple[tuple[CodeType, bool], ...]  # its parts in order; True where the part's value goes to ``Out``


def compile_cell(shell: Any, cell: Cell) -> Compiled:
    """Compile a cell as the shell compiles its own: input transformation, file name, flags, AST transformers."""
    if cell.function is not None:
        return Compiled(cell.function.code.co_filename, cell.function.code, ())
    lead = len(cell.source) - len(cell.source.lstrip("\n"))  # the transformation drops empty lines in front
    text = "\n" * (cell.skipped + lead) + shell.transform_cell(cell.source)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise SyntaxError(f"The cell has a character that no file can hold: {text[error.start]!r}.") from None
    file = shell.compile.cache(text, cell.number, raw_code=cell.raw or cell.source)
    tree = shell.transform_ast(shell.compile.ast_parse(text, filename=file))
    code = shell.compile(tree, file, "exec")
    steps = []
    is_quiet = shell.displayhook.semicolon_at_end_of_expression(cell.source)
    for nodes, displayed in _parts(tree, "none" if is_quiet else shell.ast_node_interactivity):
        if displayed:
            steps += [(shell.compile(ast.Interactive([node]), file, "single"), True) for node in nodes]
        elif nodes:
            steps.append((shell.compile(ast.Module(nodes, []), file, "exec"), False))
    return Compiled(file, code, tuple(steps))


def run_cell(shell: Any, cell: Cell, compiled: Compiled, display: bool) -> None:
    """Run a compiled cell in the user's namespace; without ``display`` its values are dropped."""
    cell_names[compiled.file] = cell.title
    named_files.add(compiled.file)
    if cell.function is not None:
        cell.function.call()
        return
    with shell.builtin_trap, shell.display_trap:
        for code, displayed in compiled.steps:
            hook = sys.displayhook
            if displayed and not display:
                sys.displayhook = lambda value: None
            try:
                exec(code, shell.user_global_ns, shell.user_ns)
            finally:
                if displayed and not display:
                    sys.displayhook = hook


def forget_files() -> None:
    """Take our cells' names out of `cell_names`."""
    for file in named_files:
        cell_names.pop(file, None)
    named_files.clear()


def _parts(tree: ast.Module, interactivity: str) -> list[tuple[list[ast.stmt], bool]]:
    """The statements, cut where values go to ``Out``, by the shell's setting ``ast_node_interactivity``."""
    body = list(tree.body)
    last = body[-1] if body else None
    if interactivity == "last_expr_or_assign" and isinstance(last, ast.Assign | ast.AnnAssign | ast.AugAssign):
        target = last.targets[0] if isinstance(last, ast.Assign) else last.target
        if isinstance(target, ast.Name):
            shown = ast.copy_location(ast.Expr(ast.copy_location(ast.Name(target.id, ast.Load()), last)), last)
            return [(body, False), ([shown], True)]
    if interactivity == "all":
        return [([node], True) for node in body]
    if last is not None and (interactivity == "last" or (isinstance(last, ast.Expr) and interactivity != "none")):
        return [(body[:-1], False), ([last], True)]
    return [(body, False)]
