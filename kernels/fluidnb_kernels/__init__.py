"""fluidnb's own operators: shape rules, gradients and numpy kernels, by family.

`import_all` registers all of them; a look-up of one operator imports its module alone, which `index.py` names. The
folders are the list: a new operator is a new file in its family, or a new row in the family's table.
"""

import importlib
import pkgutil
from collections.abc import Iterable

#: Packages without operators, imported by those who use them; the emulator's need a system with `mmap` and `mprotect`.
_APART = tuple(f"{__name__}.{package}" for package in ("emulator", "lab", "cuda_emulator_backend"))


def _import_all(folders: Iterable[str], prefix: str) -> None:
    """Import the modules of a package; `pkgutil.walk_packages` would import the packages apart, too."""
    for module in pkgutil.iter_modules(folders, prefix):
        if module.name not in _APART:
            imported = importlib.import_module(module.name)
            if module.ispkg:
                _import_all(imported.__path__, f"{module.name}.")


def import_all() -> None:
    """Import all modules that define operators, kernels or devices."""
    _import_all(__path__, f"{__name__}.")


def import_for(type: str) -> bool:
    """Import the module that defines an operator; False where the index has none."""
    from fluidnb_kernels.index import module_of

    module = module_of(type)
    if module is not None:
        importlib.import_module(module)
    return module is not None
