"""Rules about files: line ends, docstrings, no leftovers, no large data."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tools.annotations import has_import, is_needed

ROOT = Path(__file__).parents[2]
TOP = {
    ".ci", ".gitignore", ".pre-commit-config.yaml", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "Makefile",
    "README.md", "README.zh.md", "SECURITY.md", "docs", "fluidnb", "kernels", "magics", "notebooks", "pyproject.toml",
    "tests",
}  # fmt: skip
PACKAGES = ["fluidnb", "kernels/fluidnb_kernels", "magics/fluidnb_magics"]
LARGEST = 1_000_000
BINARY = {".desc", ".npz", ".npy", ".pb", ".png", ".webp", ".pdmodel", ".pdiparams", ".bin", ".gz", ".onnx"}


def tracked() -> list[Path]:
    """The files of the checkout that git knows (all of them where there is no git, as in an sdist)."""
    done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        return [path for path in ROOT.rglob("*") if path.is_file() and ".venv" not in str(path)]
    return [ROOT / name for name in done.stdout.split("\0") if name and (ROOT / name).is_file()]


def sources() -> list[Path]:
    """The Python files of the three packages."""
    return sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))


def public(tree: ast.Module) -> Iterator[tuple[str, ast.AST]]:
    """Public functions, classes and methods of a module, with their names."""
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) and not node.name.startswith("_"):
            if isinstance(node, ast.FunctionDef) and is_echo(node):
                continue
            yield node.name, node
            if isinstance(node, ast.ClassDef):
                for inner in node.body:
                    if isinstance(inner, ast.FunctionDef) and not inner.name.startswith("_") and not is_echo(inner):
                        yield f"{node.name}.{inner.name}", inner


def is_echo(function: ast.FunctionDef) -> bool:
    """Whether a decorator documents a function: a setter, an overload, the kernel of an operator for a place."""
    names = {ast.unparse(decorator).partition("(")[0].rpartition(".")[2] for decorator in function.decorator_list}
    return bool(names & {"setter", "deleter", "overload", "override", "kernel"})


def undocumented(path: Path) -> Iterator[str]:
    """The names of a module without a docstring; a method of a subclass may inherit that of its parent."""
    tree = ast.parse(path.read_text())
    if not ast.get_docstring(tree):
        yield "the module"
    for name, node in public(tree):
        assert isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
        if not ast.get_docstring(node) and not ("." in name and inherits(tree, name)):
            yield name


def inherits(tree: ast.Module, method: str) -> bool:
    """Whether a method stands in a class with a parent, where its text may be."""
    owner = method.partition(".")[0]
    return any(isinstance(node, ast.ClassDef) and node.name == owner and node.bases for node in tree.body)


def test_the_top_level_is_fixed() -> None:
    assert {path.relative_to(ROOT).parts[0] for path in tracked()} <= TOP


def test_every_folder_of_the_packages_is_a_package() -> None:
    folders = {path.parent for path in sources()}
    assert [str(f.relative_to(ROOT)) for f in sorted(folders) if not (f / "__init__.py").exists()] == []



@pytest.mark.parametrize("package", PACKAGES)
def test_only_files_that_need_it_put_off_annotations(package: str) -> None:
    """Elsewhere ``from __future__ import annotations`` is noise; ``python -m tests.tools.annotations`` removes it."""
    texts = {str(path.relative_to(ROOT)): path.read_text() for path in sorted((ROOT / package).rglob("*.py"))}
    assert [name for name, text in texts.items() if has_import(text) and not is_needed(text)] == []


@pytest.mark.parametrize(
    ("code", "needed"),
    [
        ("def f(x: int) -> list[int]: ...", False),
        ("class A:\n    def f(self) -> A: ...", True),
        ("def f(x: B) -> None: ...\nclass B: ...", True),
        ("if TYPE_CHECKING:\n    from b import B\ndef f(x: B) -> None: ...", True),
        ("class A:\n    def type(self) -> str: ...\n    def f(self, x: type[int]) -> None: ...", True),
        ("def f() -> None:\n    def g(x: int) -> int: ...", True),
        ("def f() -> None:\n    x: Unknown = 1", False),
        ("import numpy as np\nx: np.ndarray | None = None", False),
    ],
)
def test_the_rule_sees_which_annotations_are_late(code: str, needed: bool) -> None:
    assert is_needed(code) is needed


@pytest.mark.parametrize("package", PACKAGES)
def test_everything_public_has_a_docstring(package: str) -> None:
    paths = sorted((ROOT / package).rglob("*.py"))
    assert [f"{path.relative_to(ROOT)}: {name}" for path in paths for name in undocumented(path)] == []


def test_every_file_of_tests_says_what_it_is_about() -> None:
    texts = {path: path.read_text() for path in (ROOT / "tests").rglob("*.py")}
    assert [str(path) for path, text in texts.items() if text.strip() and not ast.get_docstring(ast.parse(text))] == []


def test_text_files_end_in_one_newline_and_have_unix_line_ends() -> None:
    wrong = []
    for path in tracked():
        data = b"" if path.suffix in BINARY else path.read_bytes()
        if b"\r" in data or data and (not data.endswith(b"\n") or data.endswith(b"\n\n")):
            wrong.append(str(path.relative_to(ROOT)))
    assert wrong == []


def test_no_large_files() -> None:
    assert [str(p.relative_to(ROOT)) for p in tracked() if p.stat().st_size > LARGEST] == []


def test_no_leftovers() -> None:
    left = re.compile(r"\b(TODO|FIXME|XXX|breakpoint\(\)|pdb\.set_trace)\b")
    found = [str(path.relative_to(ROOT)) for path in sources() if left.search(path.read_text())]
    assert found == []


def test_no_empty_cuda_file() -> None:
    empty = [path for path in (ROOT / "kernels").rglob("*.cu") if "__global__" not in path.read_text()]
    assert empty == []


def test_the_changelog_says_first_what_is_in_progress_if_anything_is() -> None:
    headings = [line for line in (ROOT / "CHANGELOG.md").read_text().splitlines() if line.startswith("## ")]
    assert headings and "## In progress" not in headings[1:]
