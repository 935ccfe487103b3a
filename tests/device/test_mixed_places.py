"""Executors, scopes, feeds and files of several places at once: right numbers, or a clear error."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb import layers
from fluidnb.errors import EnforceNotMet, OpTypeError, OpValueError
from tests.device.faults import two_devices
from tests.device.models import NAMES, Job
from tests.tools.sampling import sample

CPU = fluid.CPUPlace()


@pytest.fixture
def places(cuda: fluid.CUDAPlace) -> Iterator[list[Any]]:
    """The host and two devices."""
    with two_devices() as devices:
        yield [CPU, *devices]


def _near(got: list[Any], want: list[Any]) -> None:
    for one, other in zip(got, want, strict=True):
        np.testing.assert_allclose(np.array(one), np.array(other), rtol=2e-3, atol=1e-4)


@pytest.mark.parametrize("name", sample(NAMES, 3))
def test_one_scope_on_all_of_them(name: str, places: list[Any], tmp_path: Path) -> None:
    """Trained here, then there, saved there, loaded elsewhere: as if it had stayed on the host."""
    host, job = Job(name, CPU), Job(name, places[2])
    host.start()
    job.put(host.arrays())
    for number, place in enumerate([places[0], places[1], places[2], places[1], places[0]]):
        job.exe = fluid.Executor(place)
        _near(job.run(number), host.run(number))
        held = [v.value for v in job.scope.vars.values() if v.value is not None]
        assert {tensor._place() for tensor in held} <= {place, CPU}
    for number, place in enumerate(places):
        with fluid.scope_guard(job.scope):
            fluid.io.save_persistables(fluid.Executor(place), str(tmp_path / str(number)), job.model.main)
    other = Job(name, places[1])
    with fluid.scope_guard(other.scope):
        fluid.io.load_persistables(other.exe, str(tmp_path / "2"), other.model.main)
    for file in (tmp_path / "0").iterdir():
        assert file.read_bytes() == (tmp_path / "1" / file.name).read_bytes()
    _near(other.run(7), host.run(7))


def test_feeds_of_other_places(places: list[Any]) -> None:
    x = layers.data("x", shape=[3], lod_level=1)
    out = layers.sequence_pool(layers.scale(x, scale=2.0), "sum")
    rows = np.arange(9, dtype="float32").reshape(3, 3)
    given: list[Any] = [(rows, [[1, 2]])]
    for place in (*places, fluid.CUDAPinnedPlace()):
        given.append(fluid.create_lod_tensor(rows, [[1, 2]], place))
    for place in places:
        for value in given:
            for _ in range(3):
                (got,) = fluid.Executor(place).run(feed={"x": value}, fetch_list=[out])
                np.testing.assert_array_equal(got, [[0, 2, 4], [18, 22, 26]])


def test_arrays_of_devices_as_feeds(places: list[Any]) -> None:
    """An array such as cupy's is fed as it is, whole or in part, to its own device and to others."""
    out = layers.scale(layers.data("x", shape=[3]), scale=2.0)
    rows = np.arange(12, dtype="float32").reshape(4, 3)
    for home in places[1:]:
        tensor = fluid.LoDTensor()
        tensor.set(rows, home)
        for place in places:
            for part in (slice(None), slice(1, 3)):
                (got,) = fluid.Executor(place).run(feed={"x": tensor.array[part]}, fetch_list=[out])
                np.testing.assert_array_equal(got, rows[part] * 2)
            with pytest.raises(OpValueError, match="C-contiguous"):
                fluid.Executor(place).run(feed={"x": tensor.array[::2]}, fetch_list=[out])
            with pytest.raises(OpValueError, match="fed shape"):
                fluid.Executor(place).run(feed={"x": tensor.array.reshape(6, 2)}, fetch_list=[out])


def test_arrays_of_the_host_where_a_device_computes(places: list[Any]) -> None:
    """Put there past `set`, they are refused; `set` puts it right."""
    w = layers.create_parameter([3], "float32", name="w")
    out, exe = layers.scale(w, scale=2.0), fluid.Executor(places[1])
    exe.run(fluid.default_startup_program())
    tensor = fluid.global_scope().find_var("w").get_tensor()
    tensor.array = np.ones(3, "float32")
    with pytest.raises(EnforceNotMet, match="are in host memory") as told:
        exe.run(fetch_list=[out])
    assert "w of the host" in str(told.value) and "set(array, place)" in str(told.value)
    tensor.set(np.ones(3, "float32"), fluid.CPUPlace())
    assert exe.run(fetch_list=[out])[0].tolist() == [2.0] * 3


def test_values_that_are_set_by_hand(places: list[Any]) -> None:
    """Whatever way a host array comes into a scope, programs of every place find it."""
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup):
        w = layers.create_parameter([3], "float32", name="w")
        out = layers.scale(w, scale=2.0)
    for place in places:
        scope, exe = fluid.Scope(), fluid.Executor(place)
        exe.run(startup, scope=scope)
        for number, home in enumerate((*places, fluid.CUDAPinnedPlace(), place)):
            scope.find_var("w").get_tensor().set(np.full(3, number, "float32"), home)
            for _ in range(2):
                (got,) = exe.run(main, fetch_list=[out], scope=scope)
                assert got.tolist() == [2.0 * number] * 3
        tensor = scope.find_var("w").get_tensor()
        tensor.set(np.ones(4, "float32"), place)  # another shape
        assert exe.run(main, fetch_list=[out], scope=scope)[0].tolist() == [2.0] * 4


def test_what_is_no_place(places: list[Any]) -> None:
    for wrong in (fluid.CUDAPlace(2), fluid.CUDAPlace(99)):
        for use in (fluid.Executor, fluid.memory.used, lambda place: fluid.LoDTensor().set(np.ones(2), place)):
            with pytest.raises(EnforceNotMet, match=f"no CUDA device {wrong.device} here") as told:
                use(wrong)
            assert "a number from 0 to 1" in str(told.value) and "fluid.cuda_places()" in str(told.value)
    for thing in ("cuda:0", 0, np.ones(2)):
        with pytest.raises(OpTypeError, match="place"):
            fluid.Executor(thing)  # type: ignore[arg-type]
        with pytest.raises(OpTypeError, match="place"):
            fluid.LoDTensor().set(np.ones(2), thing)  # type: ignore[arg-type]


def test_pinned_memory_runs_programs_as_the_host(places: list[Any]) -> None:
    host, pinned = Job("mlp", CPU), Job("mlp", fluid.CUDAPinnedPlace())
    host.start()
    pinned.start()
    for number in range(3):
        _near(pinned.run(number), host.run(number))


def test_feeders_and_saved_models(places: list[Any], tmp_path: Path) -> None:
    x, y = layers.data("x", shape=[3], lod_level=1), layers.data("y", shape=[1])
    out = layers.sequence_pool(layers.fc(x, 2, act="tanh"), "average")
    total = layers.elementwise_add(out, y)
    rows = [([[1.0, 2.0, 3.0]], [1.0]), ([[0.5] * 3, [0.25] * 3], [2.0])]
    fluid.Executor(CPU).run(fluid.default_startup_program())
    want = None
    for place in places:
        feeder = fluid.DataFeeder([x, y], place)
        exe = fluid.Executor(place)
        (got,) = exe.run(feed=feeder.feed(rows), fetch_list=[total])
        want = got if want is None else want
        np.testing.assert_allclose(got, want, rtol=1e-5)
        fluid.io.save_inference_model(str(tmp_path), ["x", "y"], [total], exe)
        for other in places:
            with fluid.scope_guard(fluid.Scope()):
                loader = fluid.Executor(other)
                program, names, fetches = fluid.io.load_inference_model(str(tmp_path), loader)
                again = loader.run(program, dict(zip(names, feeder.feed(rows).values(), strict=True)), fetches)
                np.testing.assert_allclose(again[0], want, rtol=1e-5)
