"""The module of each operator, as the registry has it; ``python -m tests.house.operator_index`` writes it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

FILE = Path(__file__).parents[2] / "kernels" / "fluidnb_kernels" / "index.py"
_HEAD = '''"""Module of each operator, so that a look-up imports that one alone.

``python -m tests.house.operator_index`` writes this file. An operator that is not here is found by importing all.
"""

_TYPES = {
'''
_FOOT = '''}
_MODULES = {type: module for module, types in _TYPES.items() for type in types.split()}


def module_of(type: str) -> str | None:
    """The module that defines an operator; None where it is not known."""
    module = _MODULES.get(type)
    return module and f"{__package__}.{module}"
'''
#: Records which module is being imported when an operator or a kernel of it is registered.
_RECORD = """
import sys
from fluidnb.op import define
from fluidnb.values import kernel_packages
modules = {}

def note(type):
    frame = sys._getframe(2)
    while frame.f_code.co_name != "<module>" or not frame.f_globals["__name__"].startswith("fluidnb_kernels."):
        frame = frame.f_back
    modules.setdefault(type, set()).add(frame.f_globals["__name__"])

def register(definition, replace, old=define._register):
    note(definition.type)
    return old(definition, replace)

define._register = register
kernel_packages.load()
for type, found in modules.items():
    assert len(found) == 1, f"{type} is registered by several modules: {found}"
    print(type, *found)
"""


def text() -> str:
    """The file, from the registry of a new process."""
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:0] = {sys.path!r}\n{_RECORD}"], check=True, text=True,
        stdout=subprocess.PIPE,
    )  # fmt: skip
    types: dict[str, list[str]] = {}
    for line in done.stdout.splitlines():
        type, module = line.split()
        types.setdefault(module.removeprefix("fluidnb_kernels."), []).append(type)
    rows = [line for module, found in sorted(types.items()) for line in row(module, sorted(found))]
    return _HEAD + "".join(f"{row}\n" for row in rows) + _FOOT


def row(module: str, types: list[str]) -> list[str]:
    """An entry of the dictionary, in lines of at most 120 characters."""
    whole = f'    "{module}": "{" ".join(types)}",'
    if len(whole) <= 120:
        return [whole]
    lines = [""]
    for type in types:
        if len(lines[-1]) + len(type) > 105:
            lines.append("")
        lines[-1] += f"{type} "
    return [f'    "{module}": (', *(f'        "{line}"' for line in lines), "    ),"]


if __name__ == "__main__":
    FILE.write_text(text(), "utf-8")
