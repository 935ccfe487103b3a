"""Imports the kernel packages: fluidnb's own, then third-party ones by entry point.

The only place where this package imports a higher one: by name, at the first use, never at import.
"""

import importlib
from importlib.metadata import entry_points

_loaded = False


def load() -> None:
    """Imports all kernel packages, once."""
    global _loaded
    if _loaded:
        return
    _loaded = True  # before the import: a kernel may look up an operator while it is defined
    try:
        importlib.import_module("fluidnb_kernels")
        for point in entry_points(group="fluidnb.kernels"):
            if point.value.partition(":")[0] != "fluidnb_kernels":
                point.load()
    except BaseException:
        _loaded = False  # the next call fails as loudly, instead of finding half of the operators
        raise
