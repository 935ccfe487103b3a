"""Stands for the package of this name, and imports it when something of it is used.

JupyterLab installs the package. jsonschema imports it for two of its formats, and each of Ray's processes imports
jsonschema: of 3.8 s, 2.8 s were its grammar, which Ray never uses.
"""

import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from pathlib import Path
from types import ModuleType
from typing import Any


def is_valid_syntax(term: str, value: str) -> bool:
    """Whether a text is an IRI, as the package has it.

    Args:
        term: rule of the grammar, such as ``"iri"`` or ``"iri_reference"``.
        value: the text.
    """
    return bool(_package().is_valid_syntax(term, value))


def __getattr__(name: str) -> Any:
    """Any other name from the package; none with two underscores, since an import reads ``__path__``.

    As a module of fluidnb, which pytest and documentation tools import, it has no other names: the package may be
    absent.
    """
    if name.startswith("__") or __name__ != "rfc3987_syntax":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(_package(), name)


def _package() -> ModuleType:
    """The package, which takes this module's place in `sys.modules`."""
    here = Path(__file__).parent
    loaded = sys.modules[__name__]
    if getattr(loaded, "__file__", None) != __file__:
        return loaded
    spec = PathFinder.find_spec(__name__, [path for path in sys.path if Path(path) != here])
    if spec is None or spec.loader is None:
        raise ModuleNotFoundError(f"No module named {__name__!r}", name=__name__)
    package = sys.modules[__name__] = module_from_spec(spec)
    try:
        spec.loader.exec_module(package)
    except BaseException:  # Ctrl-C in its 2.8 s: the next use begins anew
        sys.modules[__name__] = loaded
        raise
    return package
