"""The index of layers is what their modules list, and the use of a layer imports its module alone."""

from __future__ import annotations

import pytest

from fluidnb import layers
from tests.house.layer_index import FILE, text
from tests.house.test_operator_index import child


def test_it_is_up_to_date() -> None:
    assert FILE.read_text("utf-8") == text(), "python -m tests.house.layer_index writes it"


def test_a_layer_imports_its_module() -> None:
    code = """
import fluidnb as fluid
x = fluid.layers.data("x", [13])
assert "fluidnb.layers.yolo" not in sys.modules and "fluidnb.layers.losses" not in sys.modules
print(fluid.layers.rank_loss.__name__, "fluidnb.layers.losses" in sys.modules, "fluidnb.layers.yolo" in sys.modules)
"""
    assert child(code) == "rank_loss True False"


@pytest.mark.parametrize("first", ["fluidnb.layers.fc", "fluidnb.layers.shape", "fluidnb.layers.embedding"])
def test_a_layer_is_found_beside_its_module_of_the_same_name(first: str) -> None:
    code = f"""
import {first}
from fluidnb import layers
print(type(layers.fc).__name__, type(layers.shape).__name__, type(layers.embedding).__name__)
"""
    assert child(code) == "function function function"


def test_names_that_are_not_used_yet_are_listed() -> None:
    code = """
from fluidnb import layers
assert {"yolo_box", "control_flow", "set_defaults"} <= set(dir(layers)) and "yolo_box" not in vars(layers)
exec("from fluidnb.layers import *")
print(yolo_box.__name__, "control_flow" in globals())
"""
    assert child(code) == "yolo_box False"


def test_modules_of_layers_are_attributes() -> None:
    assert layers.control_flow.While is layers.While and layers.nn is layers
