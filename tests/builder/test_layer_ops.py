"""The operators that a layer appends, from its example."""

from __future__ import annotations

import numpy as np

import fluidnb as fluid
from fluidnb import layers
from fluidnb.builder import find_recipe, recipes
from fluidnb.builder.layer_ops import layer_ops

NAMES = {"fluid": fluid, "layers": layers, "np": np}
LAYERS = [recipe.name for recipe in recipes() if recipe.group == "layer"]
#: Layers that append no operator to the main program.
NONE = {
    "data", "create_array", "create_global_var", "create_parameter", "create_tensor", "get_places",
    "random_data_generator",
}  # fmt: skip


def test_every_layer_has_an_example_that_calls_it() -> None:
    before = fluid.default_main_program().desc.serialize_to_string()
    functions = {name: getattr(layers, name) for name in LAYERS}
    none = set()
    for name in LAYERS:
        tried = layer_ops(find_recipe(name), NAMES)
        assert tried is not None and f"{name}(" in tried.source, name
        if not tried.types:
            none.add(name)
    assert none == NONE
    assert fluid.default_main_program().desc.serialize_to_string() == before
    assert {name: getattr(layers, name) for name in LAYERS} == functions


def test_operators_of_other_layers_in_the_example_are_not_counted() -> None:
    tried = layer_ops(find_recipe("dynamic_lstm"), NAMES)
    assert tried is not None and "layers.fc(" in tried.source and tried.types == ("lstm",)


def test_what_is_no_layer_has_none() -> None:
    assert layer_ops(find_recipe("SGD"), NAMES) is None
