"""Shared by the tests of operators: cases that run in both precisions, and families of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import pytest

from fluidnb.testing import OpTest


def values(*shape: int, low: float = -1.0, high: float = 1.0, seed: int = 0) -> np.ndarray:
    """Random float64 numbers, the same in every run."""
    return np.random.default_rng((seed, *shape)).uniform(low, high, shape)


def distinct(*shape: int, step: float = 0.1) -> np.ndarray:
    """Numbers around 0, none of them 0, no two closer than a step: for functions with kinks."""
    size = int(np.prod(shape))
    order = np.random.default_rng(size).permutation(size)
    return ((order - size // 2 + 0.5) * step).reshape(shape)


def as_dtype(value: Any, dtype: str) -> Any:
    """A value of a case with its float64 arrays in another precision."""
    if isinstance(value, np.ndarray) and value.dtype == np.float64:
        return value.astype(dtype)
    if isinstance(value, list | tuple):
        return type(value)(as_dtype(v, dtype) for v in value)
    return value


class Forward(OpTest):
    """A case whose results are checked in float32 and in float64."""

    rtol: ClassVar[dict[str, float]] = {"float32": 2e-5, "float64": 1e-10}

    @pytest.mark.parametrize("dtype", ["float32", "float64"])
    def test_output(self, dtype: str) -> None:
        test = OpTest()
        test.op_type, test.attrs = self.op_type, self.attrs
        test.inputs = {s: as_dtype(v, dtype) for s, v in self.inputs.items()}
        test.outputs = {s: as_dtype(v, dtype) for s, v in self.outputs.items()}
        test.check_output(rtol=self.rtol[dtype], atol=self.rtol[dtype])


class Differentiable(Forward):
    """A case whose gradients are checked too, those of ``grads`` or of every floating input."""

    grads: ClassVar[tuple[str, ...]] = ()
    loss: ClassVar[tuple[str, ...] | None] = None

    def test_grad(self) -> None:
        self.check_grad(self.grads or list(self.inputs), self.loss)


def family(module: dict[str, Any], base: type[OpTest], cases: Mapping[str, Mapping[str, Any]]) -> None:
    """Put a test class for each case into a test module.

    Args:
        module: its ``globals()``.
        base: `Forward` or `Differentiable`.
        cases: ``"<op type>"`` or ``"<op type>/<case>"`` -> attributes of the class.
    """
    for name, case in cases.items():
        op_type = name.partition("/")[0]
        title = "Test" + "".join(part.capitalize() for part in name.replace("/", "_").split("_"))
        assert title not in module, title
        module[title] = type(title, (base,), {"op_type": op_type, "__module__": module["__name__"], **case})
