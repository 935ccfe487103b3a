"""Imports the kernel packages: of fluidnb's own what an operator needs, and third-party ones by entry point.

The only place where this package imports a higher one: by name, at the first use, never at import.
"""

import importlib
from importlib.metadata import entry_points

_others = False  # whether third-party packages are imported
_all = False


def load() -> None:
    """Imports all kernel packages, once."""
    global _all
    if _all:
        return
    _all = True  # before the import: a kernel may look up an operator while it is defined
    try:
        importlib.import_module("fluidnb_kernels").import_all()
        _load_others()
    except BaseException:
        _all = False  # the next call fails as loudly, instead of finding half of the operators
        raise


def load_for(type: str) -> None:
    """Imports the module that defines an operator, and third-party packages; all modules where the index has none."""
    if _all:
        return
    if load_own(type):
        _load_others()
    else:
        load()


def load_own(type: str) -> bool:
    """Imports the module of fluidnb's own kernels that defines an operator; False where the index has none."""
    found: bool = importlib.import_module("fluidnb_kernels").import_for(type)
    return found


def is_own(module: str) -> bool:
    """Whether a module belongs to fluidnb's own kernels."""
    return module.startswith("fluidnb_kernels.")


def _load_others() -> None:
    global _others
    if _others:
        return
    _others = True
    try:
        for point in entry_points(group="fluidnb.kernels"):
            if point.value.partition(":")[0] != "fluidnb_kernels":
                point.load()
    except BaseException:
        _others = False
        raise
