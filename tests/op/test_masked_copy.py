"""`masked_copy` does what `numpy.copyto` with ``where`` does, with the same bits."""

import numpy as np
import pytest

from fluidnb.op import masked_copy as module
from fluidnb.op.masked_copy import masked_copy

RNG = np.random.default_rng(0)
DTYPES = ("float16", "float32", "float64", "int8", "uint8", "int32", "int64", "bool", "complex128")


def numbers(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    x = (RNG.standard_normal(shape) * 50).astype(dtype)
    if x.dtype.kind == "f":
        x.flat[::7], x.flat[::11], x.flat[::13] = np.nan, -np.inf, -0.0
    return x


def check(target: np.ndarray, source: np.ndarray, mask: np.ndarray) -> None:
    wanted = target.copy()
    np.copyto(wanted, source, where=mask)
    masked_copy(target, source, mask)
    assert target.tobytes() == wanted.tobytes()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", [0, 1, 100, 4096, 32768, 70001])
def test_bits(dtype: str, size: int) -> None:
    for mask in (RNG.random(size) > 0.5, np.zeros(size, bool), np.ones(size, bool)):
        check(numbers((size,), dtype), numbers((size,), dtype), mask)
        check(numbers((size,), dtype), np.asarray(numbers((), "float64"), dtype), mask)


def test_other_memory_orders_and_shapes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MANY", 1)
    monkeypatch.setattr(module, "_PART", 16)
    x, mask = numbers((6, 35), "float32"), RNG.random((6, 35)) > 0.5
    check(x.copy(), numbers((35,), "float32"), mask)
    check(x.copy(), numbers((6, 35), "float64").astype("float32"), np.asfortranarray(mask))
    check(x.copy(), numbers((35, 6), "float32").T, mask)
    check(np.asfortranarray(x), numbers((6, 35), "float32"), mask)
    check(x.copy(), x, RNG.random((1, 35)) > 0.5)
    check(x.copy(), numbers((6, 35), "float16"), mask)
    check(x, x[::-1], mask)


def test_a_source_that_shares_memory_with_its_target(monkeypatch: pytest.MonkeyPatch) -> None:
    x = numbers((10000,), "float32")
    check(x[:9000], x[1000:], RNG.random(9000) > 0.5)
    monkeypatch.setattr(module, "_PART", 64)
    check(x[1000:], x[:9000], RNG.random(9000) > 0.5)
