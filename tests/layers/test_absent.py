"""Layers that there are not say why when they are called."""

from __future__ import annotations

import pytest

import fluidnb as fluid
from fluidnb.absent import LAYERS
from fluidnb.errors import NotBuiltYet


def test_what_is_there_is_not_called_absent() -> None:
    assert set(LAYERS).isdisjoint(fluid.layers.__all__)


@pytest.mark.parametrize("name", ["open_files", "Preprocessor"])
def test_a_call_says_why_and_what_to_do(name: str) -> None:
    layer = getattr(fluid.layers, name)
    with pytest.raises(NotImplementedError, match=f"^fluid.layers.{name} is not part of fluidnb yet: .*") as caught:
        layer("anything", at="all")
    assert isinstance(caught.value, NotBuiltYet) and caught.value.hint
    assert layer.__name__ == name and "Not part of fluidnb" in str(layer.__doc__)


def test_a_mistyped_name_is_still_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no prior_boxx"):
        _ = fluid.layers.prior_boxx
