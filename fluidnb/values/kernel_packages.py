"""Imports the kernel packages: of fluidnb's own what an operator needs, and third-party ones by entry point.

The only place where this package imports a higher one: by name, at the first use, never at import.
"""

import importlib
import os
import sys
from functools import cache

#: The entry points of third-party packages.
GROUP = "fluidnb.kernels"


def load() -> None:
    """Imports all kernel packages, once."""
    importlib.import_module("fluidnb.values.all_kernels")


def load_for(type: str) -> None:
    """Imports the module that defines an operator, and third-party packages; all modules where the index has none."""
    if load_own(type):
        load_others()
    else:
        load()


def load_own(type: str) -> bool:
    """Imports the module of fluidnb's own kernels that defines an operator; False where the index has none."""
    found: bool = importlib.import_module("fluidnb_kernels").import_for(type)
    return found


def is_own(module: str) -> bool:
    """Whether a module belongs to fluidnb's own kernels."""
    return module.startswith("fluidnb_kernels.")


def import_all_own() -> None:
    """Imports all modules of fluidnb's own kernels."""
    importlib.import_module("fluidnb_kernels").import_all()


def load_others() -> None:
    """Imports third-party packages with kernels, once."""
    if _has_others():
        importlib.import_module("fluidnb.values.third_party_kernels")


@cache
def _has_others() -> bool:
    """Whether an installed package brings kernels.

    importlib.metadata, with its import, takes a fifth of the time to a first run where 200 packages are installed, and
    looking for the group's name in their files a twentieth of that.
    """
    for folder in map(str, sys.path):
        if os.path.isfile(folder):
            return True  # a package in an archive is for importlib.metadata
        try:
            names = os.listdir(folder or ".")
        except OSError:
            continue
        for name in names:
            if name.endswith((".dist-info", ".egg-info")) and not name.startswith("fluidnb-"):
                try:
                    with open(os.path.join(folder, name, "entry_points.txt"), encoding="utf-8") as file:
                        if f"[{GROUP}]" in file.read():
                            return True
                except (OSError, UnicodeError):
                    continue
    return False
