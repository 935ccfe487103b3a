"""Memory that kernels take while they run comes from the place's pool."""

from __future__ import annotations

import numpy as np

import fluidnb as fluid
from fluidnb import memory
from fluidnb.values import DeviceContext
from fluidnb_kernels import cuda_emulator_backend
from fluidnb_kernels.cuda.upload import room_beside, uploaded


def test_new_memory_is_of_the_pool_of_what_lies_beside(cuda: fluid.CUDAPlace) -> None:
    near = DeviceContext.get(cuda).empty((3,), "float32")
    before = memory.used(cuda)
    made = uploaded(np.arange(4), near)
    assert made.get().tolist() == [0, 1, 2, 3]
    assert memory.owner(made) is not None and memory.used(cuda) > before
    assert memory.owner(room_beside(near, (2, 2), np.float32)) is not None


def test_new_memory_beside_what_is_of_no_pool(cuda: fluid.CUDAPlace) -> None:
    made = room_beside(cuda_emulator_backend.ndarray(2, np.float32), (2, 3), np.int32)
    assert made.shape == (2, 3) and memory.owner(made) is None
    assert type(room_beside(np.zeros(1), (1,), np.int32)) is np.ndarray
