"""C code of operators: the results of the executor, without a warning of the compiler or of sanitizers."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.code_generator.batch import Batch

_rng = np.random.default_rng(3)


def real(*shape: int, low: float = -1, high: float = 1) -> np.ndarray:
    """Random float32 numbers."""
    return _rng.uniform(low, high, shape).astype(np.float32)


def whole(high: int, *shape: int, dtype: str = "int64") -> np.ndarray:
    """Random numbers from 0 to before a bound."""
    return _rng.integers(0, high, shape).astype(dtype)


def dense(b: Batch) -> None:
    """mul, softmax and arithmetic."""
    b.add("mul", {"X": real(3, 4), "Y": real(4, 5)}, grad=True)
    b.add("mul", {"X": real(3, 4), "Y": real(4, 5)}, grad=["X"])
    b.add("softmax", {"X": real(2, 3, 4)}, {"axis": 1}, grad=True)
    for name in ("add", "sub", "mul", "div", "max", "min", "pow"):
        x = real(2, 3, 4, low=0.5)
        b.add("elementwise_" + name, {"X": x, "Y": real(2, 3, 4, low=0.5)}, grad=True)
        b.add("elementwise_" + name, {"X": x, "Y": real(3, low=0.5)}, {"axis": 1}, grad=True)
        b.add("elementwise_" + name, {"X": x, "Y": real(4, low=0.5)}, grad=["Y"])
        b.add("elementwise_" + name, {"X": x, "Y": real(2, 1, 4, low=0.5)}, grad=["X"])
        b.add("elementwise_" + name, {"X": x, "Y": real(1, low=0.5)}, grad=True)
    for name in ("add", "sub", "mul", "div", "max", "min", "floordiv", "mod"):
        b.add("elementwise_" + name, {"X": whole(20, 3, 4) - 9, "Y": whole(5, 4) + 1})


GROUPS: list[Callable[[Batch], None]] = [dense]


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group.__name__)
def test_operators_in_c_match_the_executor(group: Callable[[Batch], None], tmp_path: Path) -> None:
    """A program of one kind of operators, with their gradients."""
    batch = Batch()
    group(batch)
    batch.check(tmp_path)
