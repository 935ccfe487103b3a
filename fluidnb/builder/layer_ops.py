"""The operators that a layer appends, from a trial of the example in its docstring."""

from __future__ import annotations

import contextlib
import doctest
import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import Any

from fluidnb import layers
from fluidnb.builder.recipes import Recipe
from fluidnb.program import Program, default_main_program, program_guard, unique_name
from fluidnb.runtime import Scope, scope_guard


@dataclass(frozen=True, slots=True)
class LayerOps:
    """Operators that a layer appends in the example of its docstring."""

    source: str  # the lines of the example up to the layer's call
    types: tuple[str, ...]  # the types of the operators, in order, those of nested blocks too


class _Appended(Exception):
    """The layer has been called."""


def layer_ops(recipe: Recipe, names: Mapping[str, Any]) -> LayerOps | None:
    """Runs a layer's example in empty programs up to its first call; None where no example calls it.

    Example:
        >>> from fluidnb.builder import find_recipe
        >>> layer_ops(find_recipe("fc"), {"fluid": fluid}).types
        ('mul', 'elementwise_add', 'relu')
    """
    if recipe.group != "layer":
        return None
    lines: list[str] = []
    namespace = dict(names)
    function = getattr(layers, recipe.name)
    types: list[str] = []
    with (
        program_guard(Program(), Program()), scope_guard(Scope()), unique_name.guard(),
        contextlib.redirect_stdout(io.StringIO()),
    ):  # fmt: skip
        setattr(layers, recipe.name, _recorded(function, types))
        try:
            for example in doctest.DocTestParser().get_examples(recipe.doc):
                lines.append(example.source.rstrip())
                exec(compile(example.source, f"<example of {recipe.name}>", "single"), namespace)
        except _Appended:
            return LayerOps("\n".join(lines), tuple(types))
        finally:
            setattr(layers, recipe.name, function)
    return None


def _recorded(function: Callable[..., Any], types: list[str]) -> Callable[..., Any]:
    """A layer that records the types of the operators that its first call appends, and ends the example."""

    @wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        before = {op for block in default_main_program().desc.blocks for op in block.ops}
        function(*args, **kwargs)
        blocks = default_main_program().desc.blocks
        types.extend(op.optype for block in blocks for op in block.ops if op not in before)
        raise _Appended

    return called
