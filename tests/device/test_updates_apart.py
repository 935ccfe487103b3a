"""Steps of optimizers that are bound once for feeds of all shapes, on a device."""

import pytest

import fluidnb as fluid
from fluidnb.runtime.compile import lowering
from tests.runtime.many_shapes import results


@pytest.mark.parametrize("network", ["batches", "sparse"])
def test_the_same_bits(network: str, cuda: fluid.CUDAPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    apart = results(network, "adam", cuda)
    monkeypatch.setattr(lowering, "_MANY_SHAPES", 1 << 30)
    assert apart == results(network, "adam", cuda)
