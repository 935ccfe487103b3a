"""The module of each layer, as their ``__all__`` have it; ``python -m tests.house.layer_index`` writes it."""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path

from fluidnb import layers
from tests.house.operator_index import row

FILE = Path(layers.__file__).with_name("index.py")
_HEAD = '''"""Layers of each module, so that the use of one imports its module alone.

``python -m tests.house.layer_index`` writes this file.
"""

#: module -> its layers
NAMES = {
'''
_FOOT = '''}
#: layer -> its module
MODULES = {name: module for module, names in NAMES.items() for name in names.split()}
'''


def text() -> str:
    """The file, from the modules."""
    lines: list[str] = []
    owners: dict[str, str] = {}
    for module in sorted(info.name for info in pkgutil.iter_modules(layers.__path__) if info.name != "index"):
        names = getattr(importlib.import_module(f"fluidnb.layers.{module}"), "__all__", [])
        if module == "control_flow":  # its functions have other modules, and a few of its classes are no layers
            names = ["ConditionalBlock", "DynamicRNN", "IfElse", "StaticRNN", "Switch", "While"]
        for name in names:
            assert name not in owners, f"{name} is a layer of {owners[name]} and of {module}"
            owners[name] = module
        lines += row(module, sorted(names))
    return _HEAD + "".join(f"{line}\n" for line in lines) + _FOOT


if __name__ == "__main__":
    FILE.write_text(text(), "utf-8")
