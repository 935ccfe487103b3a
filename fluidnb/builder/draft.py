"""A draft: the user's choices so far, their errors, and the line of code that they give."""

import itertools
import keyword
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from fluidnb.builder.arguments import Argument
from fluidnb.builder.recipes import Recipe
from fluidnb.errors import FluidError, OpTypeError, OpValueError

#: A typed text, or the expressions of several inputs.
Text = str | list[str]
_NUMBERS = ("int", "float", "sizes")


@dataclass(slots=True)
class Draft:
    """A recipe with the values of its arguments.

    Example:
        >>> from fluidnb.builder import find_recipe
        >>> x = fluid.layers.data("x", [4])
        >>> draft = Draft(find_recipe("fc"), {"input": "x", "size": "10", "act": "relu"}, "h", {"x": x})
        >>> draft.problems, draft.source()
        ({}, 'h = layers.fc(x, 10, act="relu")')
    """

    recipe: Recipe
    values: Mapping[str, Text]  # argument -> typed or chosen text; arguments that are missing or empty are left out
    result: str  # the Python names for the results, with commas; may be empty for a layer
    names: Mapping[str, Any]  # the Python names that it may mention
    # argument, or ``result`` for the names -> its error; empty when the draft can be tried
    problems: dict[str, Exception] = field(init=False, default_factory=dict)
    _sources: dict[str, str] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        for name in self.values:
            self.recipe.argument(name)
        for argument in self.recipe.arguments:
            try:
                self._read(argument)
            except (FluidError, TypeError, ValueError) as error:
                if isinstance(error, FluidError):
                    error.where = None  # the line is that of the caller
                self.problems[argument.name] = error
        try:
            self._check_names()
        except FluidError as error:
            error.where = None
            self.problems["result"] = error

    @property
    def targets(self) -> list[str]:
        """The names to which the results are assigned."""
        return [name.strip() for name in self.result.split(",") if name.strip()]

    def source(self) -> str:
        """The line, or for an operator without a layer the lines, that build it; raises the first of `problems`."""
        for problem in self.problems.values():
            raise problem
        return self._call() if self.recipe.call else self._appended()

    def _read(self, argument: Argument) -> None:
        typed = self.values.get(argument.name, "")
        texts = [text for text in ([typed] if isinstance(typed, str) else typed) if text.strip()]
        if not texts:
            if argument.required:
                raise OpValueError(
                    f"{self.recipe.name} needs {argument.name}.", expected=argument.doc.rstrip(".") or argument.kind,
                    received="nothing", hint=f"{self.recipe.usage} is how it is called.",
                )  # fmt: skip
            return
        if argument.kind == "variables":
            one = Argument(argument.name, "variable", argument.doc, True)
            sources = [one.read(text, self.names, self.recipe.name)[0] for text in texts]
            single = len(sources) == 1 and argument.takes_variable
            self._sources[argument.name] = sources[0] if single else f"[{', '.join(sources)}]"
            return
        source, value = argument.read(texts[0], self.names, self.recipe.name)
        called = value is None and source != "None"
        if argument.required or argument.is_input or called or not _same(value, argument.default):
            self._sources[argument.name] = source

    def _check_names(self) -> None:
        wanted = len(self.recipe.outputs)
        for name in self.targets:
            if not name.isidentifier() or keyword.iskeyword(name):
                raise OpValueError(
                    f"{name} is no Python name.", expected="letters, digits and _", received=name,
                    hint="the variable is called after it.",
                )  # fmt: skip
            if name in ("fluid", "layers"):
                raise OpValueError(
                    f"{name} is taken.", expected="another name", received=name, hint="the next line needs it."
                )
        if not self.recipe.call and len(self.targets) != wanted:
            raise OpTypeError(
                f"{self.recipe.name} writes {', '.join(self.recipe.outputs)}.", expected=f"{wanted} names",
                received=self.result or "none", hint="separate them with commas.",
            )  # fmt: skip

    def _call(self) -> str:
        sources = dict(self._sources)
        loss = f".minimize({sources.pop('loss')})" if self.recipe.call.startswith("fluid.optimizer") else ""
        shown = [a for a in self.recipe.arguments if a.name in sources]
        several = sum(a.required and a.kind in _NUMBERS for a in shown) > 1
        words, positional = [], True
        for argument in self.recipe.arguments:
            if argument.name not in sources:
                positional = positional and argument.name == "loss" and bool(loss)
                continue
            positional = positional and argument.required and not (several and argument.kind in _NUMBERS)
            text = sources[argument.name]
            words.append(text if positional else f"{argument.name}={text}")
        start = f"{', '.join(self.targets)} = " if self.targets else ""
        return f"{start}{self.recipe.call}({', '.join(words)}){loss}"

    def _appended(self) -> str:
        arguments = [a for a in self.recipe.arguments if a.name in self._sources]
        inputs = {a.name: self._sources[a.name] for a in arguments if a.is_input}
        attrs = {a.name: self._sources[a.name] for a in arguments if not a.is_input}
        first = self.targets[0]
        block = "fluid.default_main_program().current_block()"
        lines = [f'{first} = {block}.create_var(name="{first}")']
        lines += [f'{name} = {first}.block.create_var(name="{name}")' for name in self.targets[1:]]
        outputs = dict(zip(self.recipe.outputs, self.targets, strict=True))
        parts = [f'type="{self.recipe.name}"', f"inputs={_slots(inputs)}", f"outputs={_slots(outputs)}"]
        parts += [f"attrs={_slots(attrs)}"] if attrs else []
        return "\n".join([*lines, f"{first}.block.append_op({', '.join(parts)});"])


def suggestion(recipe: Recipe, values: Mapping[str, Text], taken: Collection[str]) -> str:
    """Unused names for the results of a draft, with commas.

    Args:
        values: its arguments; ``layers.data`` is called as the variable that it creates.
        taken: the names in use.

    Example:
        >>> from fluidnb.builder import find_recipe
        >>> suggestion(find_recipe("conv2d"), {}, {"conv1"}), suggestion(find_recipe("topk"), {}, ())
        ('conv2', 'topk1, topk2')
    """
    name = values.get("name", "")
    if recipe.name == "data" and isinstance(name, str) and name.strip("\"' ").isidentifier():
        return name.strip("\"' ")
    if any(recipe.outputs) and recipe.call:
        return ", ".join(recipe.outputs)
    base = recipe.name.removesuffix("2d").rstrip("_0123456789").lower()
    free = (each for number in itertools.count(1) if (each := f"{base}{number}") not in taken)
    return ", ".join(itertools.islice(free, len(recipe.outputs)))


def _slots(slots: Mapping[str, str]) -> str:
    return "{" + ", ".join(f'"{name}": {text}' for name, text in slots.items()) + "}"


def _same(value: Any, default: Any) -> bool:
    return type(value) is type(default) and bool(value == default)
