"""bitwise_and, bitwise_or, bitwise_xor, bitwise_not: whole numbers and bool, also broadcast."""

import numpy as np
import pytest

from fluidnb.op import RuleError
from fluidnb.testing import OpTest, run_op
from tests.ops.cases import family

X = np.array([[12, 10, -1], [0, 7, 127]])
Y = np.array([[10, 10, 5], [-3, 1, 64]])
FUNCTIONS = {"bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor}
DTYPES = ("int8", "int16", "int32", "int64", "bool")


class Exact(OpTest):
    """A case without rounding."""

    def test_output(self) -> None:
        self.check_output(rtol=0, atol=0)


family(
    globals(),
    Exact,
    {f"{name}/{kind}": {"inputs": {"X": X.astype(kind), "Y": Y.astype(kind)},
                        "outputs": {"Out": f(X.astype(kind), Y.astype(kind))}}
     for name, f in FUNCTIONS.items() for kind in DTYPES}
    | {f"{name}/broadcast": {"inputs": {"X": X, "Y": Y[:1]}, "outputs": {"Out": f(X, Y[:1])}}
       for name, f in FUNCTIONS.items()}
    | {"bitwise_and/uint8": {"inputs": {"X": np.array([255, 3], "uint8"), "Y": np.array([6, 6], "uint8")},
                             "outputs": {"Out": np.array([6, 2], "uint8")}}}
    | {f"bitwise_not/{kind}": {"inputs": {"X": X.astype(kind)}, "outputs": {"Out": ~X.astype(kind)}}
       for kind in DTYPES},
)  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_floats_have_no_bits(name):
    with pytest.raises((RuleError, ValueError), match="float64"):
        run_op(name, {"X": [1.0], "Y": [2.0]})
