"""Imports only go down: who may import whom, read off the syntax trees; lazy and by string too."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

#: The packages from the lowest up. A package imports those below it, never one beside it in the same row. Those of the
#: last row use fluidnb as its users do, and may import all the rest.
ROWS = [
    {"utils"},
    {"errors", "arguments", "absent"},
    {"extras"},
    {"files"},
    {"proto", "memory"},
    {"values"},
    {"op"},
    {"program"},
    {"cells", "passes", "pir", "onnx"},
    {"layers", "backward", "optimizer", "transpiler", "runtime", "data"},
    {"net", "metrics", "code_generator"},
    {"debug", "compare", "tracking"},
    {"viz"},
    {"builder"},
    {"distributed", "compat", "contrib", "cli", "dap", "testing", "terminal"},
]
#: Packages of one row that may import each other: layers build what backward and the optimizers rewrite, and readers
#: that data fills; cli installs compat, and offers what dap, terminal and distributed do; a prompt
#: and an editor attach to a role of a training.
FAMILIES = [
    {"layers", "backward", "optimizer", "transpiler"},
    {"runtime", "data"},
    {"runtime", "transpiler"},
    {"layers", "data"},
    {"errors", "arguments", "absent"},
    {"compat", "cli"},
    {"cli", "dap"},
    {"cli", "terminal"},
    {"cli", "distributed"},
    {"terminal", "distributed"},
    {"dap", "distributed"},
]
#: Modules in the root, with the package that each counts as.
COUNTS_AS = {
    "layer_helper": "layers",
    "layer_helper_base": "layers",
    "param_attr": "layers",
    "initializer": "layers",
    "regularizer": "layers",
    "clip": "layers",
    "nets": "layers",
    "average": "layers",
}
KERNELS_MAY_IMPORT = {"op", "values", "errors", "extras", "memory", "files", "utils"}
#: Imports by name, at the first use, of packages above: (file, module) -> why.
LOAD_HOOKS = {
    ("fluidnb/values/kernel_packages.py", "fluidnb_kernels"): "the extension's own load hook: operators and devices",
    ("fluidnb/op/factory.py", "fluidnb.core"): "fluid.op.Operator of versions 0.10 and 0.11 runs by itself",
    ("fluidnb/ui.py", "fluidnb_magics.ui"): "widgets and cells under the name that users import",
    ("fluidnb/debug/__init__.py", "fluidnb.terminal"): "the prompt of a debug session",
    ("fluidnb/transpiler/__init__.py", "fluidnb.code_generator"): "a door of Fluid's that runs programs",
    ("fluidnb/utils/representations.py", "fluidnb.viz.notebook_reprs"): "HTML of objects in notebooks",
    ("fluidnb/utils/representations.py", "fluidnb.viz.saved_page.page"): "programs and sessions as HTML files",
}
#: Files that import modules whose names are data.
BY_NAME = {
    "fluidnb/compat/aliases.py", "fluidnb/extras.py", "fluidnb_kernels/__init__.py", "fluidnb_kernels/cuda/backend.py",
}  # fmt: skip
#: Packages of the kernels that no other one imports; they use fluidnb as its users do.
KERNELS_APART = {"lab"}


def height(package: str) -> int:
    """The row of a package; Fluid's thin module names and fluidnb itself are above all of them."""
    package = COUNTS_AS.get(package, package)
    return next((i for i, row in enumerate(ROWS) if package in row), len(ROWS))


def may_import(package: str, other: str) -> bool:
    """Whether a package of fluidnb may import another."""
    package, other = COUNTS_AS.get(package, package), COUNTS_AS.get(other, other)
    if package == other or any({package, other} <= family for family in FAMILIES):
        return True
    return height(other) < height(package) or height(package) >= len(ROWS) - 1 and other not in ROWS[-1]


def is_type_checking(test: ast.expr) -> bool:
    """Whether a condition is `TYPE_CHECKING`, so that its body never runs."""
    return isinstance(test, ast.Name) and test.id == "TYPE_CHECKING"


def imported(tree: ast.AST, package: str) -> Iterator[str]:
    """Full names of what a module imports, inside functions too; `from a import b` gives a.b."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and is_type_checking(node.test):
            yield from (name for branch in node.orelse for name in imported(branch, package))
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package.split(".")[: len(package.split(".")) + 1 - node.level]) + "." if node.level else ""
            yield from (f"{base}{node.module + '.' if node.module else ''}{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and (name := by_string(node)) is not None:
            yield name
        else:
            yield from imported(node, package)


def by_string(call: ast.Call) -> str | None:
    """The module that ``import_module("...")`` or ``__import__("...")`` imports, as far as the text says; else None."""
    function = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if function not in ("import_module", "__import__"):
        return None
    parts = call.args[0].values if isinstance(call.args[0], ast.JoinedStr) else [call.args[0]]
    return str(parts[0].value).rstrip(".") if isinstance(parts[0], ast.Constant) else ""


def modules(folder: str) -> list[Path]:
    """The Python files of one of the three packages."""
    return sorted((ROOT / folder).rglob("*.py"))


def breaches(path: Path, base: Path) -> Iterator[str]:
    """The imports of a file that the order of packages does not allow."""
    parts = path.relative_to(base).with_suffix("").parts
    parent = ".".join(parts[:-1])
    package = parts[1] if len(parts) > 1 else ""
    file = path.relative_to(base).as_posix()
    for name in imported(ast.parse(path.read_text()), parent):
        if (file, name) in LOAD_HOOKS:
            continue
        if not name and file not in BY_NAME:
            yield "a module whose name is computed"
        top, _, rest = name.partition(".")
        other = rest.partition(".")[0]
        if parts[0] == "fluidnb":
            if top == "fluidnb" and not may_import(package, other):
                yield name
            if top in ("fluidnb_magics", "fluidnb_kernels") and (package, top) != ("__init__", "fluidnb_magics"):
                yield name
        elif parts[0] == "fluidnb_kernels":
            allowed = other in KERNELS_MAY_IMPORT or package in KERNELS_APART
            if top == "fluidnb_magics" or top == "fluidnb" and not allowed:
                yield name
            if top == "fluidnb_kernels" and other in KERNELS_APART and package != other:
                yield name


@pytest.mark.parametrize("folder", ["fluidnb", "kernels/fluidnb_kernels", "magics/fluidnb_magics"])
def test_imports_only_go_down(folder: str) -> None:
    base = (ROOT / folder).parent
    found = [f"{path.relative_to(ROOT)} imports {name}" for path in modules(folder) for name in breaches(path, base)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("file", "line", "wrong"),
    [
        ("fluidnb/proto/desc.py", "from fluidnb.program import Block", True),
        ("fluidnb/proto/desc.py", "def f():\n    import fluidnb.runtime", True),
        ("fluidnb/proto/desc.py", "from .. import values", True),
        ("fluidnb/proto/desc.py", "from fluidnb.memory import pool", True),
        ("fluidnb/proto/desc.py", "import fluidnb_kernels", True),
        ("fluidnb/proto/desc.py", "from fluidnb.proto import text", False),
        ("fluidnb/proto/desc.py", "from . import text", False),
        ("fluidnb/proto/desc.py", "if TYPE_CHECKING:\n    from fluidnb.program import Block", False),
        ("fluidnb/layers/nn.py", "from fluidnb.layer_helper import LayerHelper", False),
        ("fluidnb/layers/nn.py", "from fluidnb import runtime", True),
        ("fluidnb/runtime/compile/lowering.py", "from fluidnb.backward import append_backward", True),
        ("fluidnb/runtime/compile/lowering.py", "import fluidnb", True),
        ("fluidnb/compat/pd.py", "import fluidnb", False),
        ("fluidnb/compat/pd.py", "from fluidnb import testing", True),
        ("fluidnb/executor.py", "from fluidnb.runtime import Executor", False),
        ("fluidnb/__init__.py", "def load_ipython_extension(shell):\n    import fluidnb_magics", False),
        ("fluidnb/viz/program/svg.py", "import fluidnb_magics", True),
        ("fluidnb_kernels/relu.py", "from fluidnb.op import op", False),
        ("fluidnb_kernels/relu.py", "from fluidnb.runtime import Plan", True),
        ("fluidnb_kernels/lab/cases.py", "from fluidnb.runtime import Plan", False),
        ("fluidnb_kernels/lab/cases.py", "from fluidnb_kernels.lab import trial", False),
        ("fluidnb_kernels/relu.py", "from fluidnb_kernels.lab import trial", True),
        ("fluidnb/op/rules.py", "def f():\n    return importlib.import_module('fluidnb.core').Operator", True),
        ("fluidnb/op/rules.py", "def f(x):\n    return importlib.import_module(f'fluidnb.runtime.{x}')", True),
        ("fluidnb/op/rules.py", "def f(x):\n    return __import__(x)", True),
        ("fluidnb/op/rules.py", "def __getattr__(x):\n    return import_module('fluidnb.values.lod')", False),
        ("fluidnb_magics/cell.py", "import fluidnb.viz, fluidnb_kernels", False),
    ],
)
def test_the_rule_itself(tmp_path: Path, file: str, line: str, wrong: bool) -> None:
    path = tmp_path / file
    path.parent.mkdir(parents=True)
    path.write_text(line)
    assert bool(list(breaches(path, tmp_path))) is wrong


def test_every_load_hook_is_there() -> None:
    for (file, name), _ in LOAD_HOOKS.items():
        assert f'import_module("{name}")' in (ROOT / file).read_text(), file


def test_tests_import_what_is_there() -> None:
    """Files that only `make test-full` runs, too: mypy does not read tests."""
    for file in sorted((ROOT / "tests").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith("tests."):
                continue
            source = ROOT / f"{node.module.replace('.', '/')}.py"
            if not source.is_file():
                continue  # a folder of modules
            known = set(defined(source))
            missing = [alias.name for alias in node.names if alias.name not in known]
            assert not missing, (str(file.relative_to(ROOT)), node.module, missing)


def defined(file: Path) -> Iterator[str]:
    """The names that a module defines or imports, at any depth outside functions and classes."""
    todo: list[ast.stmt] = list(ast.parse(file.read_text("utf-8")).body)
    for node in todo:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
            continue
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from ((alias.asname or alias.name).split(".")[0] for alias in node.names)
        yield from (n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
        for part in ("body", "orelse", "finalbody"):
            todo += getattr(node, part, [])
        todo += [stmt for handler in getattr(node, "handlers", []) for stmt in handler.body]
