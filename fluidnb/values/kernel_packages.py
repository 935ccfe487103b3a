"""Imports the kernel packages: of fluidnb's own what an operator needs, and third-party ones by entry point.

The only place where this package imports a higher one: by name, at the first use, never at import.
"""

import importlib
import os
import sys

_GROUP = "fluidnb.kernels"

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
        if _has_others():
            from importlib.metadata import entry_points

            for point in entry_points(group=_GROUP):
                if point.value.partition(":")[0] != "fluidnb_kernels":
                    point.load()
    except BaseException:
        _others = False
        raise


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
                        if f"[{_GROUP}]" in file.read():
                            return True
                except (OSError, UnicodeError):
                    continue
    return False
