"""Arrays of tensors on a device: on memory that counts as one, and on arrays of the CUDA emulator backend."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pytest

from fluidnb.memory import flags
from fluidnb.op import Binder, Clock, OpDesc, check_desc, get_op
from fluidnb.runtime import Scope
from fluidnb.runtime.compile.lowering import LoweredOp
from fluidnb.testing.eager import Fresh
from fluidnb.values import LoDTensor, LoDTensorArray
from fluidnb.values.rank_table import LoDRankTable
from fluidnb_kernels import emulator
from tests.cuda.devices import OnCupy, OnDevice

pytestmark = pytest.mark.skipif(bool(emulator.missing()), reason=emulator.missing())

LEVEL = ((0, 2, 2, 5, 6),)
TABLE = LoDRankTable(LEVEL)


@pytest.fixture(params=[OnDevice, OnCupy])
def device(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[type[OnDevice]]:
    """A device."""
    monkeypatch.setitem(flags.values, "cuda_backend", "emulator")
    yield request.param


def tensor(*shape: int, seed: int = 1, lod: Any = ()) -> LoDTensor:
    """Numbers that differ."""
    return LoDTensor(np.random.default_rng(seed).uniform(-1, 1, shape).astype(np.float32), lod)


def array(*shapes: tuple[int, ...]) -> LoDTensorArray:
    """An array of such tensors; a shape () stands for nothing."""
    return LoDTensorArray([tensor(*s, seed=i) if s else LoDTensor() for i, s in enumerate(shapes)])


def ran(
    memory: Fresh, type: str, inputs: Mapping[str, Any], attrs: Mapping[str, Any], outputs: Mapping[str, Any],
    marks: Mapping[str, Any] | None = None,
) -> Scope:  # fmt: skip
    """Run an operator; outputs are given with what their variables hold before, marks are what backward sets."""
    scope = Scope()
    names = {slot: [slot] for slot, value in inputs.items() if value is not None}
    desc = OpDesc(type, names, {slot: [f"{slot}@out"] for slot in outputs}, dict(attrs))
    check_desc(get_op(type), desc)
    for name, value in (marks or {}).items():
        desc.set_attr(name, value)
    for slot, value in inputs.items():
        scope.var(slot).value = value
    for slot, value in outputs.items():
        scope.var(f"{slot}@out").value = value
    calls = Binder(LoweredOp(desc, 0, 0), memory, scope).bind()
    for function, args, kw in calls:
        function(*args, **kw)
    scope.var("calls").value = calls  # workspaces are theirs, and a device works later
    return scope


def same(
    device: type[OnDevice], type: str, inputs: Mapping[str, Any], attrs: Mapping[str, Any], outputs: Any = ("Out",),
    **marks: Any,
) -> dict[str, Any]:  # fmt: skip
    """Run an operator on the host and on a device, and compare."""
    before = outputs if isinstance(outputs, Mapping) else dict.fromkeys(outputs)
    here, there = ([{slot: move(v) for slot, v in values.items()} for values in (inputs, before)]
                   for move in (copied, lambda v: device.taken(copied(v))))  # fmt: skip
    want = ran(Fresh(Clock(1)), type, here[0], attrs, here[1], marks)
    got = ran(device(Clock(1)), type, there[0], attrs, there[1], marks)
    out = {slot: want.find_var(f"{slot}@out").value for slot in before}
    for slot, value in [*out.items(), *((s, v) for s, v in here[0].items() if isinstance(v, LoDTensorArray))]:
        name = f"{slot}@out" if slot in before else slot
        equal(device.brought(got.find_var(name).value), value)
    return out


def copied(value: Any) -> Any:
    """A value of its own memory; the memory of an array's elements is what operators write."""
    if isinstance(value, LoDTensorArray):
        return LoDTensorArray([copied(v) for v in value])
    if isinstance(value, LoDTensor):
        return value if value.array is None else LoDTensor(value.array.copy(), value.lod_)
    return LoDTensor(value.copy()) if isinstance(value, np.ndarray) else value


def equal(got: Any, want: Any) -> None:
    if isinstance(want, LoDTensorArray):
        assert len(got) == len(want)
        for one, other in zip(got, want, strict=True):
            equal(one, other)
    elif want.array is None:
        assert got.array is None
    else:
        assert got.lod_ == want.lod_
        np.testing.assert_array_equal(got.array, want.array)


@pytest.mark.parametrize("accumulate", [False, True])
def test_elements_are_written(device: type[OnDevice], accumulate: bool) -> None:
    x = tensor(3, 5, lod=((0, 1, 3),))
    same(device, "write_to_array", {"X": x, "I": np.array([2])}, {}, accumulate=accumulate)
    given, held = {"X": x, "I": np.array([1], np.int32)}, array((3, 5), (3, 5))
    out = same(device, "write_to_array", given, {}, {"Out": held}, accumulate=accumulate)["Out"]
    assert np.array_equal(out[1].array, x.array) is not accumulate


@pytest.mark.parametrize("consume", [False, True])
def test_elements_are_read(device: type[OnDevice], consume: bool) -> None:
    same(device, "read_from_array", {"X": array((2, 3), (4, 3)), "I": np.array([1])}, {}, consume=consume)
    given = {"X": array((2, 3), ()), "I": np.array([1]), "X_W": tensor(2, 2)}
    same(device, "read_from_array", given, {}, consume=consume)


def test_steps_and_sequences_again(device: type[OnDevice]) -> None:
    x = tensor(6, 3, lod=LEVEL)
    steps = same(device, "lod_tensor_to_array", {"X": x, "RankTable": TABLE}, {})["Out"]
    assert [len(t.array) for t in steps] == [3, 2, 1]
    back = same(device, "array_to_lod_tensor", {"X": steps, "RankTable": TABLE}, {})["Out"]
    assert np.array_equal(back.array, x.array)
    steps[1] = LoDTensor()
    out = same(device, "array_to_lod_tensor", {"X": steps, "RankTable": TABLE, "X_W": x}, {})["Out"]
    assert not out.array[[1, 3]].any()


def test_steps_of_sequences(device: type[OnDevice]) -> None:
    table, x = LoDRankTable(((0, 1, 3),)), tensor(6, 2, lod=((0, 1, 3), (0, 2, 5, 6)))
    steps = same(device, "lod_tensor_to_array", {"X": x, "RankTable": table}, {})["Out"]
    same(device, "array_to_lod_tensor", {"X": steps, "RankTable": table}, {})


@pytest.mark.parametrize(("axis", "stack"), [(0, False), (1, False), (0, True), (2, True)])
def test_elements_are_joined(device: type[OnDevice], axis: int, stack: bool) -> None:
    shapes = [(2, 3), (2, 3)] if stack else [(1, 3), (4, 3)] if axis == 0 else [(2, 3), (2, 5)]
    xs, attrs = array(*shapes), {"axis": axis, "use_stack": stack}
    out = same(device, "tensor_array_to_tensor", {"X": xs}, attrs, ["Out", "OutIndex"])["Out"]
    same(device, "tensor_array_to_tensor_grad", {"X": xs, "Out@GRAD": out}, attrs, ["X@GRAD"])


@pytest.mark.parametrize(
    ("type", "more", "outputs"),
    [("array_to_lod_tensor", {"RankTable": TABLE}, ["Out"]), ("tensor_array_to_tensor", {}, ["Out", "OutIndex"])],
)
def test_what_the_host_has_made_is_brought_to_the_device(
    device: type[OnDevice], type: str, more: dict[str, Any], outputs: list[str]
) -> None:
    given = {"X": array((3, 2), (2, 2), (1, 2)), **more}
    want, got = (ran(m(Clock(1)), type, given, {}, dict.fromkeys(outputs)) for m in (Fresh, device))
    equal(device.brought(got.find_var("Out@out").value), want.find_var("Out@out").value)
