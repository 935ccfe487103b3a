"""Data: readers and their decorators, DataFeeder, data sets that need no network."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__all__ = ["DataFeeder", "batch", "dataset", "reader", "seeding"]

if TYPE_CHECKING:
    from fluidnb.data import dataset, reader, seeding
    from fluidnb.data.feeder import DataFeeder
    from fluidnb.data.reader import batch
else:
    #: Name -> the module that has it. Data sets import 40 modules, which `%load_ext fluidnb` does not need.
    _MODULES = {"DataFeeder": "feeder", "batch": "reader"}

    def __getattr__(name: str) -> Any:
        if name not in __all__:
            raise AttributeError(f"module 'fluidnb.data' has no attribute {name!r}")
        module = import_module(f"fluidnb.data.{_MODULES.get(name, name)}")
        return getattr(module, name) if name in _MODULES else module

    def __dir__() -> list[str]:
        return [*__all__]
