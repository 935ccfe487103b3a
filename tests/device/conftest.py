"""CUDAPlace for the tests of this folder alone: on the CUDA emulator backend, or on what `make test-gpu` runs on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import fluidnb as fluid
from fluidnb.memory import flags, pools
from fluidnb.values import device_context
from fluidnb.values.device_context import DeviceContext
from fluidnb_kernels import emulator

#: The device and its pool, the same for all tests.
_known: dict[str, dict[Any, Any]] = {"contexts": {}, "pools": {}}


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch, pytestconfig: pytest.Config) -> Iterator[fluid.CUDAPlace]:
    """The first device; what was known of devices before is known again afterwards."""
    if not pytestconfig.pluginmanager.hasplugin("tests.gpu.plugin"):
        if emulator.missing():
            pytest.skip(emulator.missing())
        monkeypatch.setitem(flags.values, "cuda_backend", "emulator")
    monkeypatch.setattr(device_context, "_contexts", {**device_context._contexts, **_known["contexts"]})
    monkeypatch.setattr(pools, "_pools", {**pools._pools, **_known["pools"]})
    DeviceContext.get(place := fluid.CUDAPlace(0))
    pools.pool(place)  # now: a second one, made where a test hides this one, finds no memory
    yield place
    for name, table in (("contexts", device_context._contexts), ("pools", pools._pools)):
        _known[name].update({place: made for place, made in table.items() if place.kind == "cuda"})
