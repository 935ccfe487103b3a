"""Looking into runs: debug sessions that go forwards and backwards, the hunt for NaN, gradients on their way, profiles.

``fluid.debug(program)`` begins a session: this package can be called as `session.debug` is.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any


class _Room(ModuleType):
    """A package that can be called."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        importlib.import_module("fluidnb.terminal")  # which fills in the hook that asks the user
        return importlib.import_module("fluidnb.debug.session").debug(*args, **kwargs)


sys.modules[__name__].__class__ = _Room

_NAMES = {
    "Breakpoint": "breakpoints",
    "Session": "session",
    "Snapshot": "snapshot",
    "Stopped": "session",
    "View": "look",
    "current": "session",
    "find_nan": "nan",
    "gradient_flow": "flow",
    "post_mortem": "session",
}


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        return getattr(importlib.import_module(f"fluidnb.debug.{_NAMES[name]}"), name)
    raise AttributeError(f"module 'fluidnb.debug' has no attribute {name!r}")
