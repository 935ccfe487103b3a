"""Tensors on a device answer as those on the host do."""

from __future__ import annotations

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb import layers
from fluidnb.cli import version

VALUES = np.arange(6, dtype="float32").reshape(2, 3)


@pytest.fixture
def tensor(cuda: fluid.CUDAPlace) -> fluid.LoDTensor:
    """A tensor on the device."""
    made = fluid.LoDTensor()
    made.set(VALUES, cuda)
    return made


def test_it_becomes_numpys(tensor: fluid.LoDTensor) -> None:
    np.testing.assert_array_equal(np.array(tensor), VALUES)
    assert np.asarray(tensor, "float64").dtype == "float64"
    assert tensor.shape() == [2, 3]
    with pytest.raises(ValueError, match="as a copy"):
        np.asarray(tensor, copy=False)
    assert "on CUDAPlace(0)" not in str(tensor)
    assert "[0. 1. 2.]" in str(tensor)


def test_one_element_at_a_time(tensor: fluid.LoDTensor, cuda: fluid.CUDAPlace) -> None:
    tensor._set_float_element(4, 7.5)
    assert tensor._get_float_element(4) == 7.5
    np.testing.assert_array_equal(np.array(tensor), [[0, 1, 2], [3, 7.5, 5]])
    with pytest.raises(IndexError):
        tensor._get_float_element(6)
    with pytest.raises(fluid.core.EnforceNotMet, match="holds the wrong type"):
        tensor._set_double_element(0, 1.0)
    wide = fluid.LoDTensor()
    wide.set_dims([2, 2])
    wide.alloc_double(cuda)
    for i in range(4):
        wide._set_double_element(i, i / 2)
    np.testing.assert_array_equal(np.array(wide), [[0, 0.5], [1, 1.5]])


def test_parts_shapes_and_copies(tensor: fluid.LoDTensor, cuda: fluid.CUDAPlace) -> None:
    np.testing.assert_array_equal(np.array(tensor[1]), VALUES[1])
    copy, shared = tensor._copy(cuda), fluid.LoDTensor()
    shared._share_data_with(tensor)
    tensor._set_float_element(0, 9.0)
    assert (copy._get_float_element(0), shared._get_float_element(0)) == (0.0, 9.0)
    assert copy._place() == shared._place() == cuda
    tensor.set_dims([2, 2])
    np.testing.assert_array_equal(np.array(tensor), [[9, 1], [2, 3]])


def test_values_go_from_place_to_place(tensor: fluid.LoDTensor, cuda: fluid.CUDAPlace) -> None:
    other = fluid.LoDTensor()
    for source, place in ((tensor, fluid.CUDAPinnedPlace()), (other, cuda), (tensor.array, cuda)):
        other.set(source, place)
        assert other._place() == place
        np.testing.assert_array_equal(np.array(other), VALUES)


def test_pinned_memory_is_fed(cuda: fluid.CUDAPlace) -> None:
    out = layers.scale(layers.data("x", shape=[3]), scale=2.0)
    pinned = fluid.LoDTensor()
    pinned.set(VALUES, fluid.CUDAPinnedPlace())
    for place in (cuda, fluid.CPUPlace()):
        (got,) = fluid.Executor(place).run(feed={"x": pinned}, fetch_list=[out])
        np.testing.assert_array_equal(got, VALUES * 2)


def test_what_there_is_is_told(cuda: fluid.CUDAPlace) -> None:
    assert fluid.core.get_cuda_device_count() == 1
    assert fluid.core.is_compiled_with_cuda()
    assert fluid.cuda_places() == [cuda]
    assert version.cuda().startswith("emulator in place of cupy ")
    assert fluid.memory.stats(cuda).place == "CUDAPlace(0)"


def test_without_a_device_that_is_told(cuda: fluid.CUDAPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fluidnb_kernels.cuda.backend.missing", lambda: "no device: get one.")
    monkeypatch.setattr("fluidnb.values.device_context._contexts", {})
    assert fluid.core.get_cuda_device_count() == 0
    assert not fluid.core.is_compiled_with_cuda()
    with pytest.raises(fluid.core.EnforceNotMet, match="no device"):
        fluid.LoDTensor().set(VALUES, cuda)
