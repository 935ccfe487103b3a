"""Recipes of the builder: layers, backward, optimizers, and operators without a layer, with their arguments."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from fluidnb import backward, layers, optimizer
from fluidnb.builder.arguments import Argument, arguments_of, attr_argument, slot_argument
from fluidnb.errors import NotFound, near
from fluidnb.op import OpDef, all_ops

#: The kinds of what can be built, in the order in which they are offered.
GROUPS = ("layer", "training", "operator")
#: What most networks begin with; these come first.
_FIRST = (
    "data", "fc", "conv2d", "pool2d", "relu", "softmax", "embedding", "batch_norm", "dropout", "cross_entropy",
    "square_error_cost", "mean", "accuracy",
)  # fmt: skip
#: Functions of the module that are no layers one could choose arguments for.
_NO_LAYERS = ("set_defaults", "py_func")
#: Optimizers, those that people use most first.
_OPTIMIZERS = sorted(
    (name for name in optimizer.__all__ if f"{name}Optimizer" in optimizer.__all__),
    key=lambda name: (("SGD", "Momentum", "Adam") + (name,)).index(name),
)
#: Attributes that say who made an operator, and kinds that point into the program.
_BLOCKS = ("block", "blocks")


@dataclass(frozen=True, slots=True)
class Recipe:
    """Something that can be built.

    Args:
        name: how it is called: ``fc``, ``SGD``, ``gelu``.
        group: one of `GROUPS`.
        call: what the line calls; empty for an operator, which is appended.
        summary: its docstring's first sentence.
        doc: its docstring.
        arguments: its arguments.
        outputs: how many results it has, or for an operator the names of its output slots.
        page: the operator whose page ``%fluid ops`` shows; empty when there is none.

    Example:
        >>> find_recipe("fc").summary
        'Fully connected layer: ``act(sum_i(input_i · weight_i) + bias)``.'
    """

    name: str
    group: str
    call: str
    summary: str
    doc: str
    arguments: tuple[Argument, ...]
    outputs: tuple[str, ...] = ("",)
    page: str = ""

    def argument(self, name: str) -> Argument:
        """An argument.

        Args:
            name: its name.

        Raises:
            NotFound: there is none.
        """
        for each in self.arguments:
            if each.name == name:
                return each
        names = [each.name for each in self.arguments]
        raise NotFound(
            f"{self.name} has no argument {name}.", expected=", ".join(names), received=name, hint=near(name, names)
        )

    @property
    def usage(self) -> str:
        """Its arguments in a line, those that may be left out with their defaults."""
        words = [a.name if a.required else f"{a.name}={a.default!r}" for a in self.arguments]
        return f"{self.name}({', '.join(words)})"


@lru_cache(maxsize=1)
def _functions() -> tuple[Recipe, ...]:
    """Layers, backward and optimizers; they do not change."""
    names = [*_FIRST, *sorted(set(layers.__all__) - set(_FIRST))]
    found = [(name, getattr(layers, name)) for name in names if name not in _NO_LAYERS]
    made = [_layer(name, function) for name, function in found if not inspect.isclass(function)]
    made += [_optimizer(name) for name in _OPTIMIZERS]
    loss = next(arguments_of(backward.append_backward, "append_backward"))
    doc = inspect.getdoc(backward.append_backward) or ""
    made.insert(
        len(made) - len(_OPTIMIZERS),
        Recipe(
            "append_backward", "training", "fluid.backward.append_backward", first_sentence(doc), doc, (loss,),
            ("grads",),
        ),
    )  # fmt: skip
    return tuple(made)


def recipes() -> tuple[Recipe, ...]:
    """All that can be built: what people write most first, operators without a layer last.

    Example:
        >>> [r.name for r in recipes()][:3]
        ['data', 'fc', 'conv2d']
    """
    functions = _functions()
    taken = {recipe.name for recipe in functions}
    return functions + tuple(_operator(d) for d in all_ops() if d.type not in taken and _can_be_appended(d))


def find_recipe(name: str) -> Recipe:
    """One of them.

    Args:
        name: its name.

    Raises:
        NotFound: there is none; the message offers names close to it.
    """
    everything = recipes()
    for recipe in everything:
        if recipe.name == name:
            return recipe
    raise NotFound(
        f"nothing that can be built is called {name}.", received=name,
        hint=near(name, [r.name for r in everything]) or "%fluid build shows all.",
    )  # fmt: skip


def search(text: str) -> list[Recipe]:
    """Searches recipes by name first, then by summary.

    Args:
        text: words that must all occur; nothing for all.

    Returns:
        The recipes, the closest first.

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

    found = [(distance(recipe), recipe) for recipe in recipes()] if words else [(0, r) for r in recipes()]
    return [recipe for far, recipe in sorted(found, key=lambda pair: pair[0]) if far < 9]


def first_sentence(doc: str) -> str:
    """The first sentence of a docstring, in one line.

    Example:
        >>> first_sentence("Mean of\\nall. More.")
        'Mean of all.'
    """
    text = " ".join(doc.partition("\n\n")[0].split())
    return re.split(r"(?<=[.!?])\s", text)[0]


def _layer(name: str, function: Any) -> Recipe:
    doc = inspect.getdoc(function) or ""
    skip = ("name", "use_cudnn") if name != "data" else ("type",)
    arguments = tuple(arguments_of(function, name, skip))
    returned = re.fullmatch(r"tuple\[(.*)\]", str(inspect.signature(function).return_annotation))
    count = 1 if returned is None or "..." in returned[1] else 1 + returned[1].count(", ")
    page = name if any(d.type == name for d in all_ops()) else ""
    return Recipe(name, "layer", f"layers.{name}", first_sentence(doc), doc, arguments, ("",) * count, page)


def _optimizer(name: str) -> Recipe:
    cls = getattr(optimizer, name)
    doc = inspect.getdoc(cls) or ""
    loss = next(arguments_of(backward.append_backward, "append_backward"))
    arguments = (loss, *arguments_of(cls, name, ("name", "global_step")))
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
