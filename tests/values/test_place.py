"""Places and device contexts; a toy device joins in three steps."""

from __future__ import annotations

import copy
import pickle
import runpy
import sys

import numpy as np
import pytest

from fluidnb import memory
from fluidnb.errors import EnforceNotMet, OpTypeError, OpValueError
from fluidnb.memory import pools
from fluidnb.values import CPUPlace, CUDAPinnedPlace, CUDAPlace, DeviceContext, LoDTensor, Place, copies, device_context
from fluidnb_kernels.device import context


def test_equality_hash_and_text() -> None:
    assert CPUPlace() == CPUPlace() and hash(CPUPlace()) == hash(CPUPlace())
    assert CUDAPlace(0) == CUDAPlace(0) != CUDAPlace(1)
    assert len({CPUPlace(), CUDAPlace(0), CUDAPlace(1), CUDAPinnedPlace(), CPUPlace()}) == 4
    assert [str(p) for p in (CPUPlace(), CUDAPlace(2), CUDAPinnedPlace())] == [
        "CPUPlace", "CUDAPlace(2)", "CUDAPinnedPlace",
    ]  # fmt: skip
    assert (CUDAPlace(2).kind, CUDAPlace(2).device, CUDAPlace(2).get_device_id()) == ("cuda", 2, 2)


def test_places_are_copied_as_themselves() -> None:
    for place in (CPUPlace(), CUDAPlace(1)):
        assert pickle.loads(pickle.dumps(place)) is place
        assert copy.deepcopy([place])[0] is place


def test_wrong_device_numbers_are_refused() -> None:
    with pytest.raises(OpValueError, match="device number"):
        CUDAPlace(-1)
    with pytest.raises(OpTypeError, match="device number"):
        CUDAPlace("0")  # type: ignore[arg-type]


def test_cuda_without_cupy_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    monkeypatch.setattr(device_context, "_contexts", {})
    with pytest.raises(EnforceNotMet, match=r"Cannot run operator on place CUDAPlace\(0\): cupy is not installed") as e:
        DeviceContext.get(CUDAPlace(0))
    assert "fluid.CPUPlace()" in str(e.value)


def test_a_users_cuda_context_wins_over_that_of_the_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_context, "_contexts", {})
    monkeypatch.setattr(device_context, "_factories", dict(device_context._factories))
    monkeypatch.setattr(device_context, "_cuda_factory", None)

    class OwnContext(DeviceContext):
        """A context of the user's."""

    device_context.register_place(CUDAPlace, OwnContext)
    runpy.run_path(context.__file__)  # the kernels are loaded later
    assert device_context._cuda_factory is not None
    assert type(DeviceContext.get(CUDAPlace(0))) is OwnContext


def test_contexts_are_one_per_place() -> None:
    ctx = DeviceContext.create(CPUPlace())
    assert ctx is DeviceContext.get(CPUPlace())
    assert ctx.place is CPUPlace()
    assert repr(ctx) == "DeviceContext(CPUPlace)"
    a = ctx.empty((2, 3), 5, order=(1, 0))
    assert a.dtype == "float32" and a.strides == (4, 8) and memory.owner(a) is not None
    b = ctx.from_host(np.arange(3))
    assert memory.owner(b) is not None and ctx.to_host(b).tolist() == [0, 1, 2]
    ctx.wait()


def test_what_is_no_place_is_refused() -> None:
    with pytest.raises(OpTypeError, match="should be a Place"):
        DeviceContext.get("cpu")  # type: ignore[arg-type]

    class LonelyPlace(Place):
        """Known to nobody."""

        kind = "lonely"

    with pytest.raises(EnforceNotMet, match=r"LonelyPlace\(1\): no device context"):
        DeviceContext.get(LonelyPlace(1))


def test_a_toy_device_joins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pools, "_kinds", dict(pools._kinds))
    monkeypatch.setattr(device_context, "_factories", dict(device_context._factories))
    monkeypatch.setattr(copies, "_copies", dict(copies._copies))

    class ToyPlace(Place):
        """A device that is the host in disguise."""

        kind = "toy"

    class ToyContext(DeviceContext):
        """Counts its copies."""

        copies = 0

        def from_host(self, array):
            """Copy in and count."""
            ToyContext.copies += 1
            return super().from_host(array)

    memory.register_allocator("toy", lambda device: memory.CPUAllocator())
    for ends in (("cpu", "toy"), ("toy", "cpu")):
        copies.register_copy(*ends, copies.copy)
    device_context.register_place(ToyPlace, ToyContext)
    DeviceContext.get(ToyPlace(3)).from_host([1.0])
    assert ToyContext.copies == 1
    assert DeviceContext.get(ToyPlace(3)) is not DeviceContext.get(ToyPlace(4))
    t = LoDTensor()
    t.set(np.ones(3), ToyPlace(3))
    assert t._place() == ToyPlace(3)
    assert memory.contains(ToyPlace(3), t.array.ctypes.data)

    device_context.register_place(ToyPlace, DeviceContext)  # replaces the old contexts too
    assert type(DeviceContext.get(ToyPlace(3))) is DeviceContext
