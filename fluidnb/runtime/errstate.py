"""numpy's warnings about NaN, overflow and division by zero, off while kernels run: these are values like others."""

import importlib
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

try:  # np.errstate costs 0.6 us a run; its own context variable a tenth of that
    _numpy: Any = importlib.import_module("numpy._core._ufunc_config")
    _quiet: Any = partial(_numpy._extobj_contextvar.set, _numpy._make_extobj(all="ignore"))
    _restore: Any = _numpy._extobj_contextvar.reset
except (ImportError, AttributeError):
    _quiet = partial(np.seterr, all="ignore")

    def _restore(old: Any) -> None:
        np.seterr(**old)


#: Switch the warnings off, in this thread; gives what `unmute` takes.
mute: Callable[[], Any] = _quiet
#: Restore the warnings.
unmute: Callable[[Any], Any] = _restore
