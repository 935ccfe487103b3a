"""numpy's warnings about NaN, overflow and division by zero, off while kernels run: these are values like others."""

import importlib
from typing import Any

import numpy as np

try:  # np.errstate costs 0.6 us a run; its own context variable a sixth of that
    _numpy: Any = importlib.import_module("numpy._core._ufunc_config")
    _QUIET: Any = _numpy._make_extobj(all="ignore")
    _set: Any = _numpy._extobj_contextvar.set
    _reset: Any = _numpy._extobj_contextvar.reset
except (ImportError, AttributeError):
    _QUIET = None

    def _set(_: Any) -> Any:
        return np.seterr(all="ignore")

    def _reset(old: Any) -> None:
        np.seterr(**old)


def mute() -> Any:
    """Switch the warnings off, in this thread."""
    return _set(_QUIET)


def unmute(token: Any) -> None:
    """Restore the warnings."""
    _reset(token)
