"""The public API is complete and sorted: what `__all__` says, what is there, and what users were promised."""

from __future__ import annotations

import ast
import importlib
import types
from pathlib import Path

import pytest

import fluidnb as fluid
from fluidnb import absent
from fluidnb.builder import find_recipe
from fluidnb.errors import NotBuiltYet
from fluidnb.viz.lessons.optimizer.choices import OF_LAYERS, OPTIMIZERS

ROOT = Path(__file__).parents[2]
#: Every module of fluidnb that says what is public in it.
MODULES = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    for path in (ROOT / "fluidnb").rglob("*.py")
    if "\n__all__" in path.read_text()
)


@pytest.mark.parametrize("module", MODULES)
def test_what_all_names_is_there_once_and_in_order(module: str) -> None:
    loaded = importlib.import_module(module)
    names = list(loaded.__all__)
    assert names in (sorted(set(names)), sorted(set(names), key=by_kind))
    assert set(names) <= set(dir(loaded))  # the Tab key offers them before the first is imported
    for name in names:
        getattr(loaded, name)


def by_kind(name: str) -> tuple[int, str]:
    """The other usual order: constants, classes, functions."""
    return (0 if name.isupper() else 1 if name[0].isupper() else 2, name)


def test_every_layer_is_offered() -> None:
    """The layers that the files of layers/ make are in fluid.layers."""
    for path in (ROOT / "fluidnb" / "layers").glob("*.py"):
        module = importlib.import_module(f"fluidnb.layers.{path.stem}")
        for name, value in vars(module).items():
            if hasattr(value, "argument_kinds") and value.__module__ == module.__name__ and name[0] != "_":
                todo = f'"{name}" in __all__ of {path.name}, and `from {module.__name__} import *` in __init__.py'
                assert name in fluid.layers.__all__, todo


def test_every_optimizer_is_offered() -> None:
    """Each optimizer of the folder is in fluid.optimizer under both names, in the builder and in the lesson."""
    for path in (ROOT / "fluidnb" / "optimizer").glob("*.py"):
        for node in ast.parse(path.read_text()).body:
            if not isinstance(node, ast.ClassDef) or not node.name.endswith("Optimizer"):
                continue
            if path.stem in ("base", "recompute"):  # the second wraps an optimizer
                continue
            short = node.name.removesuffix("Optimizer")
            todo = f"{short} = {node.name} behind the class, in fluidnb/optimizer/{path.name}"
            assert {short, node.name} <= set(fluid.optimizer.__all__), todo
            assert getattr(fluid.optimizer, short) is getattr(fluid.optimizer, node.name), todo
            assert find_recipe(short).group == "training"
            assert short in {*OPTIMIZERS, *OF_LAYERS}


def test_dir_and_getattr_agree() -> None:
    assert set(fluid.__all__) <= set(dir(fluid))
    for name in fluid.__all__:
        value = getattr(fluid, name)
        assert isinstance(value, types.ModuleType) or callable(value), name
    with pytest.raises(AttributeError, match='has no attribute .Executr.*Did you mean "Executor"'):
        _ = fluid.Executr


def test_what_is_to_come_says_so() -> None:
    """README: what there is not yet raises an error that says so; and what has come is not called so any more."""
    names = {*absent.MODULES, *absent.NAMES}
    assert names.isdisjoint(fluid.__all__)
    for name in names:
        value = getattr(fluid, name)
        called, path = (value.anything, f"{name}.anything") if name in absent.MODULES else (value, name)
        with pytest.raises(NotImplementedError, match=rf"^fluid\.{path} is not part of fluidnb yet: .") as caught:
            called("anything", at="all")
        assert isinstance(caught.value, NotBuiltYet) and caught.value.hint
    for name in absent.CONTRIB:
        with pytest.raises(NotBuiltYet, match=rf"^fluid\.contrib\.{name} is not part of fluidnb yet") as caught:
            getattr(fluid.contrib, name)("anything")
        assert caught.value.hint
    with pytest.raises(NotBuiltYet, match=r"^fluid\.contrib\.slim\.Compressor is not part of fluidnb yet"):
        fluid.contrib.slim.Compressor("anything")
    with pytest.raises(NotBuiltYet, match=r"^fluid\.dygraph\.Layer is not part of fluidnb yet"):
        type("Mine", types.resolve_bases((fluid.dygraph.Layer,)), {})
    with pytest.raises(AttributeError):
        _ = fluid.dygraph.__wrapped__
    with pytest.raises(AttributeError, match='no fcc.*"fc"'):
        _ = fluid.layers.fcc


def test_public_names_stay_as_they_are_written_down() -> None:
    """New names need no line; a name that changes or is removed changes public_api.txt."""
    from tests.house.public_api import FILE, listing

    there, written = listing().splitlines(), FILE.read_text().splitlines()
    assert written == sorted(set(written)) and len(written) > 1000
    lost = sorted(set(written) - set(there))
    assert not lost, f"if this is meant, run: python -m tests.house.public_api, which rewrites {FILE.name}"
