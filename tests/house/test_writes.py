"""All files that users keep are written atomically: no other code opens a file for writing."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ["fluidnb", "kernels/fluidnb_kernels", "magics/fluidnb_magics"]
#: Files that may write directly, and why.
ALLOWED = {
    "fluidnb/files/atomic_write.py": "it is the one way to write",
    "fluidnb/cli/new.py": "a developer's command that writes into the checkout",
    "fluidnb/distributed/ray_start.py": "a token in a temporary folder, which no other user may ever read",
    "fluidnb/runtime/native/compiler.py": "a source in a temporary folder; the library is renamed when whole",
    "fluidnb/cli/debug.py": "it speaks to an editor by pipes",
    "kernels/fluidnb_kernels/lab/watched.py": "messages between two processes in a temporary folder",
    "kernels/fluidnb_kernels/emulator/compiler.py": "a source in a temporary folder; the library is renamed when whole",
}


def writes(tree: ast.AST) -> list[int]:
    """Lines that open a file for writing, or write a whole one."""
    found = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        first = 1 if isinstance(node.func, ast.Name) or name == "fdopen" else 0  # Path.open has no path
        arguments = [*node.args[first:2], *(k.value for k in node.keywords if k.arg == "mode")]
        modes = [a.value for a in arguments if isinstance(a, ast.Constant) and isinstance(a.value, str)]
        opens = name in ("open", "fdopen") and any(set(m) <= set("rwaxbt+") and set(m) & set("wax+") for m in modes)
        if opens or name in ("write_text", "write_bytes", "mkstemp", "NamedTemporaryFile"):
            found.append(node.lineno)
    return found


@pytest.mark.parametrize("code", ["open(p, 'wb')", "p.write_text('a')", "open(p, mode='a')", "os.fdopen(f, 'w')"])
def test_the_rule_sees_writes(code: str) -> None:
    assert writes(ast.parse(code)) == [1]


def test_reading_is_free() -> None:
    assert writes(ast.parse("open('w'); open(p, 'rb'); open(p); archive.open('extra')")) == []


def test_files_are_written_by_the_helper_alone() -> None:
    paths = [p for package in PACKAGES for p in sorted((ROOT / package).rglob("*.py"))]
    found = {str(p.relative_to(ROOT)): writes(ast.parse(p.read_text())) for p in paths}
    assert {name: lines for name, lines in found.items() if lines and name not in ALLOWED} == {}
    assert [name for name in ALLOWED if not found.get(name)] == [], "no exception is left over"
