"""Run in Pyodide by `test_pyodide.py`: prints what is there, which modules import, and a worker's results."""

import importlib
import importlib.abc
import importlib.machinery
import json
import pathlib
import sys
import threading
import types
from typing import Any

#: Operators of the objects that are in the place of numpy's.
_OPERATORS = "add sub mul neg radd rsub rmul truediv rtruediv pow rpow invert or ror and mod lshift rshift getitem"


class _Anything(type):
    """Numbers, types and functions alike: enough for `import`, which computes little."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return cls

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        return cls

    def __iter__(cls) -> Any:
        return iter(())

    def __int__(cls) -> int:
        return 1

    __index__ = __int__

    def __float__(cls) -> float:
        return 1.0

    def __lt__(cls, other: Any) -> bool:
        return False

    __gt__ = __le__ = __ge__ = __lt__


for _name in _OPERATORS.split():
    setattr(_Anything, f"__{_name}__", lambda cls, *args: cls)


class _Numpy(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """In the place of numpy, which Pyodide loads from its own server and npm does not have."""

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        mine = name.partition(".")[0] in ("numpy", "ml_dtypes")
        return importlib.machinery.ModuleSpec(name, self) if mine else None

    def create_module(self, spec: Any) -> Any:
        return _Module(spec.name)

    def exec_module(self, module: Any) -> None:
        pass


class _Module(types.ModuleType):
    __path__: list[str] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Anything("Anything", (), {"__slots__": ()})


#: Modules that import another package: the notebook's needs IPython, the kernels' compute with numpy at import.
_ABOVE = ("fluidnb.ui", "fluidnb.values.all_kernels")


def _imported(package: str) -> dict[str, str]:
    """Each module of a package, and why it cannot be imported; empty if it can."""
    found = {}
    for path in sorted(pathlib.Path("/source", package).rglob("*.py")):
        parts = path.relative_to("/source").with_suffix("").parts
        if parts[-1] != "__main__":
            name = ".".join(parts).removesuffix(".__init__")
            if name in _ABOVE:
                continue
            try:
                importlib.import_module(name)
                found[name] = ""
            except Exception as error:
                found[name] = f"{type(error).__name__}: {error}"
    return found


def _said(call: Any) -> str:
    try:
        call()
    except Exception as error:
        return str(error)
    return ""


def _worked_inline() -> list[int]:
    """The numbers that requests append, in order; one request adds another one."""
    from fluidnb.debug.worker import Request, worker_of

    worker, done = worker_of(lambda: None, False), list[int]()
    assert worker.inline

    def first() -> None:
        assert worker.busy_here
        worker.put(Request(lambda: done.append(2)))
        worker.work()  # it is busy
        done.append(1)

    worker.put(Request(first))
    worker.work()
    return done


def main() -> None:
    """Print the facts."""
    from limits import browser

    found: dict[str, Any] = {
        "version": sys.version.split()[0],
        "modules": [name for name in browser.MODULES if _said(lambda name=name: importlib.import_module(name)) == ""],
        "names": [
            f"{module}.{name}" for module, names in browser.NAMES.items() for name in names
            if hasattr(importlib.import_module(module), name)
        ],
        "thread": _said(lambda: threading.Thread(target=print).start()),
    }  # fmt: skip
    sys.meta_path.insert(0, _Numpy())
    found["imported"] = _imported("fluidnb")
    found["worked"] = _worked_inline()
    print(json.dumps(found))


if __name__ == "__main__":
    main()
