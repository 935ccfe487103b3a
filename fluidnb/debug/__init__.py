"""Debug sessions that step forwards and backwards, the search for NaN, gradient flow, profiles.

``fluid.debug(program)`` begins a session: this package can be called as `session.debug` is.
"""

import importlib
import sys
from types import ModuleType
from typing import Any


class _CallablePackage(ModuleType):
    """A package that can be called."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        importlib.import_module("fluidnb.terminal")  # fills in hooks.debug_prompt
        return importlib.import_module("fluidnb.debug.session").debug(*args, **kwargs)


sys.modules[__name__].__class__ = _CallablePackage

_NAMES = {
    "Breakpoint": "breakpoints",
    "Debugger": "debugger",
    "Session": "session",
    "Snapshot": "snapshot",
    "Stopped": "session",
    "View": "view",
    "current": "session",
    "find_nan": "nan",
    "gradient_flow": "flow",
    "post_mortem": "session",
}


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        return getattr(importlib.import_module(f"fluidnb.debug.{_NAMES[name]}"), name)
    raise AttributeError(f"module 'fluidnb.debug' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*_NAMES]
