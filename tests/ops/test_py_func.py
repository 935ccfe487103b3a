"""py_func: the function's values and its own gradient."""

from typing import ClassVar

import numpy as np
import pytest

from fluidnb.errors import EnforceNotMet, NotFound
from fluidnb.op.callables import callable_id, callable_of
from fluidnb.testing import OpTest, run_op
from tests.ops.cases import values
from tests.tools.refused import refused

X, Y = values(3, 2), values(3, 2, seed=1)


def both(x, y):
    """A product and a sum of squares."""
    x, y = np.array(x), np.array(y)
    return x * y, (x**2).sum(0, keepdims=True)


def both_grad(x, y, product, squares, g, h):
    """The gradients of both."""
    x, y, g, h = (np.array(v) for v in (x, y, g, h))
    return g * y + 2 * x * h, g * x


PRODUCT, SQUARES = both(X, Y)
ATTRS = {"forward_callable_id": callable_id(both), "backward_callable_id": callable_id(both_grad)}

class TestPyFunc(OpTest):
    """Shapes are the function's own, so there is nothing to infer; tests/layers has both walkers."""

    op_type = "py_func"
    inputs: ClassVar = {"X": [("x", X), ("y", Y)]}
    attrs = ATTRS
    outputs: ClassVar = {"Out": [PRODUCT, SQUARES]}

    def test_output(self):
        got = run_op("py_func", {"X": [X, Y]}, ATTRS, outputs={"Out": 2})["Out"]
        assert all(np.array_equal(*pair) for pair in zip(got, (PRODUCT, SQUARES), strict=True))

    def test_grad(self):
        self.check_grad(["x", "y"])


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: (x, x), "must return a value for each output"),
        (lambda x: None, "returned None for"),
    ],
)
def test_what_does_not_fit_is_refused(function, message):
    with refused(EnforceNotMet, message):
        run_op("py_func", {"X": [X]}, {"forward_callable_id": callable_id(function)}, outputs={"Out": 1})


def test_a_function_that_python_has_lost():
    with pytest.raises(NotFound, match="There is no Python function number"):
        run_op("py_func", {"X": [X]}, {"forward_callable_id": 10**6}, outputs={"Out": 1})
    assert callable_of(callable_id(both)) is both
