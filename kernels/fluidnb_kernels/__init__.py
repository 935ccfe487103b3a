"""fluidnb's own operators: shape rules, gradients and numpy kernels, by family.

Importing the package registers all of them. The folders are the list: a new operator is a new file in its family, or a
new row in the family's table.
"""

import importlib
import pkgutil

#: Packages without operators, imported by those who use them.
_APART = tuple(f"{__name__}.{package}" for package in ("emulator", "lab", "cuda_emulator_backend"))

for _module in pkgutil.walk_packages(__path__, __name__ + "."):
    if not _module.name.startswith(_APART):
        importlib.import_module(_module.name)
