"""Facts are data: docstrings and phrases are only shown, nothing is decided by them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

import fluidnb as fluid
from fluidnb import layers, optimizer
from fluidnb.builder import Draft, find_recipe, in_reach, ordered, recipes
from fluidnb.builder.recipes import _functions
from fluidnb.op import InputSpec, all_ops, get_op, has_op
from fluidnb.op.define import Slot
from fluidnb.op.input_spec import declared
from fluidnb.viz import read_op


def answers() -> dict[str, Any]:
    """All that the builder decides: what is offered, in which order, with which kinds and choices."""
    x, y = layers.data("x", [3, 8, 8]), layers.data("y", [1], dtype="int64")
    words, mask = layers.data("words", [5], lod_level=1), layers.data("mask", [1], dtype="bool")
    steps = layers.array_write(x, layers.fill_constant([1], "int64", 0))
    cost = layers.mean(layers.fc(x, 1))
    values = {"x": x, "y": y, "words": words, "mask": mask, "steps": steps, "cost": cost}
    reach = in_reach(fluid.default_main_program(), 0, values)
    found: dict[str, Any] = {}
    for recipe in recipes():
        for a in recipe.arguments:
            offered = [(c.source, fits) for c, fits in ordered(a, reach)] if a.is_input else []
            found[f"{recipe.name}.{a.name}"] = a.kind, a.choices, a.takes_variable, a.required, a.specs, offered
        found[recipe.name] = recipe.group, recipe.outputs
    draft = Draft(find_recipe("fc"), {"input": "x", "size": "10"}, "h", {**values, "layers": layers})
    found["draft"] = draft.source(), list(draft.problems)
    found["sheets"] = [
        [(s.name, s.marks) for s in (*sheet.inputs, *sheet.outputs)] + [(a.name, a.type) for a in sheet.attrs]
        for sheet in map(read_op, ("conv2d", "lookup_table", "relu_grad", "adam"))
    ]
    return found


@pytest.fixture
def shuffled(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every docstring of layers and optimizers, every text of operators and their slots, with its words at random."""
    rng = random.Random(7)

    def mix(text: str | None) -> str:
        words = (text or "").split(" ")
        rng.shuffle(words)
        return " ".join(word for word in words if rng.random() < 0.7)

    for module in (layers, optimizer):
        for value in vars(module).values():
            if callable(value) and getattr(value, "__doc__", None):
                monkeypatch.setattr(value, "__doc__", mix(value.__doc__), raising=False)
    for definition in all_ops():
        monkeypatch.setattr(definition, "doc", mix(definition.doc))
        for slots in (definition.inputs, definition.outputs):
            for name, slot in list(slots.items()):
                other = Slot(name, mix(slot.phrase), slot.duplicable, slot.dispensable, slot.intermediate, slot.specs)
                monkeypatch.setitem(slots, name, other)
    yield


def test_rewritten_docstrings_change_no_answer(request: pytest.FixtureRequest) -> None:
    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.unique_name.guard():
        before = answers()
    request.getfixturevalue("shuffled")
    _functions.cache_clear()
    try:
        with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.unique_name.guard():
            after = answers()
        assert find_recipe("conv2d").doc != layers.conv2d.__wrapped__.__doc__  # type: ignore[attr-defined]
    finally:
        _functions.cache_clear()
    assert after == before


@pytest.mark.parametrize("name", [n for n in layers.__all__ if declared(getattr(layers, n))])
def test_declarations_of_layers_mean_something(name: str) -> None:
    """Each argument exists, and each slot or attribute that it refers to, too."""
    for argument, said in declared(getattr(layers, name)).items():
        found = find_recipe(name).argument(argument)
        if isinstance(said, tuple):
            assert found.choices == said and (found.default is None or found.required or found.default in said)
        elif "." in said:
            type, _, slot = said.partition(".")
            assert has_op(type) and (slot in get_op(type).inputs or slot in get_op(type).attrs)
        else:
            assert InputSpec.parse(said) == found.specs
