"""Recipes of the builder: layers, backward, optimizers, and operators without a layer, with their arguments."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, get_args, get_origin

from fluidnb import backward, layers, optimizer
from fluidnb.builder.arguments import Argument, arguments_of, attr_argument, evaluated, slot_argument
from fluidnb.errors import NotFound, near
from fluidnb.op import OpDef, all_ops
from fluidnb.utils.docstrings import first_sentence

#: The kinds of what can be built, in the order in which they are offered.
GROUPS = ("layer", "training", "operator")
#: The layers with which most networks begin; these come first.
_FIRST = (
    "data", "fc", "conv2d", "pool2d", "relu", "softmax", "embedding", "batch_norm", "dropout", "cross_entropy",
    "square_error_cost", "mean", "accuracy",
)  # fmt: skip
#: Functions of the module that are no layers one could choose arguments for.
_NO_LAYERS = ("set_defaults", "py_func")
#: Optimizers, those that people use most first.
_OPTIMIZERS = sorted(optimizer.SHORT, key=lambda name: (("SGD", "Momentum", "Adam") + (name,)).index(name))
#: The kinds of attributes that point into the program.
_BLOCKS = ("block", "blocks")


@dataclass(frozen=True, slots=True)
class Recipe:
    """A layer, an optimizer, ``append_backward`` or an operator, with its arguments.

    Example:
        >>> find_recipe("fc").summary
        'Fully connected layer: ``act(sum_i(input_i · weight_i) + bias)``.'
    """

    name: str  # ``fc``, ``SGD``, ``gelu``
    group: str  # one of `GROUPS`
    call: str  # the function that the line calls; empty for an operator, which is appended
    summary: str  # its docstring's first sentence
    doc: str  # its docstring
    arguments: tuple[Argument, ...]
    outputs: tuple[str, ...] = ("",)  # a text for each result: names, or of an operator its output slots
    page: str = ""  # the operator whose page ``%fluid ops`` shows; empty when there is none

    def argument(self, name: str) -> Argument:
        """An argument by its name; raises NotFound."""
        arguments = {each.name: each for each in self.arguments}
        if name not in arguments:
            raise NotFound(
                f"{self.name} has no argument {name}.", expected=", ".join(arguments), received=name,
                hint=near(name, arguments),
            )  # fmt: skip
        return arguments[name]

    @property
    def usage(self) -> str:
        """Its arguments in a line, those that may be left out with their defaults."""
        words = [a.name if a.required else f"{a.name}={a.default!r}" for a in self.arguments]
        return f"{self.name}({', '.join(words)})"


@lru_cache(maxsize=1)
def _functions() -> tuple[Recipe, ...]:
    """Layers, backward and optimizers; they do not change."""
    names = [*_FIRST, *sorted(set(layers.__all__) - set(_FIRST))]
    functions = [(name, getattr(layers, name)) for name in names if name not in _NO_LAYERS]
    doc = inspect.getdoc(backward.append_backward) or ""
    appended = Recipe(
        "append_backward",
        "training",
        "fluid.backward.append_backward",
        first_sentence(doc),
        doc,
        (_loss(),),
        ("grads",),
    )
    built = (_layer(name, function) for name, function in functions if not inspect.isclass(function))
    return (*built, appended, *map(_optimizer, _OPTIMIZERS))


def recipes() -> tuple[Recipe, ...]:
    """All recipes: the most common first, operators without a layer last.

    Example:
        >>> [r.name for r in recipes()][:3]
        ['data', 'fc', 'conv2d']
    """
    functions = _functions()
    taken = {recipe.name for recipe in functions}
    return functions + tuple(_operator(d) for d in all_ops() if d.type not in taken and _can_be_appended(d))


def find_recipe(name: str) -> Recipe:
    """A recipe by its name; raises NotFound, which offers similar names."""
    recipe = next((recipe for recipe in recipes() if recipe.name == name), None)
    if recipe is None:
        hint = near(name, [recipe.name for recipe in recipes()]) or "%fluid build shows all."
        raise NotFound(f"nothing that can be built is called {name}.", received=name, hint=hint)
    return recipe


def search(text: str) -> list[Recipe]:
    """The recipes in whose names or summaries all words of a text occur, the closest first.

    Example:
        >>> [r.name for r in search("fully connected")]
        ['fc']
    """
    words = text.lower().split()

    def distance(recipe: Recipe) -> int:
        name = recipe.name.lower()
        if name == text.lower().strip():
            return 0
        if all(word in name for word in words):
            return 1 if name.startswith(words[0]) else 2
        return 3 if all(word in f"{name} {recipe.summary.lower()}" for word in words) else 9

    return sorted((r for r in recipes() if distance(r) < 9), key=distance) if words else list(recipes())


def _layer(name: str, function: Any) -> Recipe:
    doc = inspect.getdoc(function) or ""
    skip = ("name", "use_cudnn") if name != "data" else ("type",)
    arguments = tuple(arguments_of(function, name, skip))
    returned = evaluated(inspect.signature(function).return_annotation, function)
    count = len(get_args(returned)) if get_origin(returned) is tuple and ... not in get_args(returned) else 1
    page = name if any(d.type == name for d in all_ops()) else ""
    return Recipe(name, "layer", f"layers.{name}", first_sentence(doc), doc, arguments, ("",) * count, page)


def _loss() -> Argument:
    return next(arguments_of(backward.append_backward, "append_backward"))


def _optimizer(name: str) -> Recipe:
    cls = getattr(optimizer, name)
    doc = inspect.getdoc(cls) or ""
    arguments = (_loss(), *arguments_of(cls, name, ("name", "global_step")))
    return Recipe(name, "training", f"fluid.optimizer.{name}", first_sentence(doc), doc, arguments, ("ops", "grads"))


def _operator(d: OpDef) -> Recipe:
    doc = inspect.cleandoc(d.doc)
    arguments = [slot_argument(slot) for slot in d.inputs.values()]
    arguments += [attr_argument(name, attr) for name, attr in d.attrs.items()]
    outputs = tuple(slot.name for slot in _outputs(d))
    return Recipe(d.type, "operator", "", first_sentence(doc), doc, tuple(arguments), outputs, d.type)


def _outputs(d: OpDef) -> Iterator[Any]:
    """Output slots that a new variable can fill; those for the gradient belong to them."""
    yield from (slot for slot in d.outputs.values() if not slot.dispensable or slot.intermediate)


def _can_be_appended(d: OpDef) -> bool:
    """Whether an operator runs by itself: it has outputs and no block, and overwrites no parameter."""
    if d.is_grad or d.control or d.alias or d.type in ("feed", "fetch"):
        return False
    return any(_outputs(d)) and not any(attr.kind in _BLOCKS for attr in d.attrs.values())
