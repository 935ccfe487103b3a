"""Errors cross processes: the text is the same on the other side, whatever values they hold."""

import pickle
from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.errors import FluidError, NotFed


def classes() -> list[type[FluidError]]:
    """All classes of errors that are imported."""
    kinds, left = [], [FluidError]
    while left:
        kinds.append(left.pop())
        left += kinds[-1].__subclasses__()
    return kinds


@pytest.mark.parametrize("kind", classes(), ids=lambda kind: kind.__name__)
def test_an_error_of_every_class_is_pickled(kind: type[FluidError]) -> None:
    error: Any = kind.__new__(kind, "It failed.")
    FluidError.__init__(
        error, "It failed.", expected=[1, 2], received=lambda: None, attrs={"x": np.ones(2)}, hint="Try."
    )
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is kind and str(again) == str(error)


def test_an_error_of_a_run_is_pickled_with_names_and_line() -> None:
    x = fluid.layers.data("x", [2])
    fluid.layers.relu(x)
    with pytest.raises(NotFed) as caught:
        fluid.Executor().run()
    again = pickle.loads(pickle.dumps(caught.value))
    assert (again.names, str(again)) == (["x"], str(caught.value))
    assert "test_pickled.py" in str(again)
