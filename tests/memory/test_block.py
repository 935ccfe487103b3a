"""Arrays that live in a pool: where they lie, when they die, what they hold first."""

from __future__ import annotations

import gc
import pickle
import sys
import threading
import weakref

import numpy as np
import pytest

from fluidnb import memory
from fluidnb.errors import OpTypeError, OpValueError
from fluidnb.values import CPUPlace

CPU = CPUPlace()


@pytest.fixture(autouse=True)
def no_old_cycles() -> None:
    """Memory that earlier tests left to the collector is freed before, not during a test."""
    gc.collect()


@pytest.fixture
def flags():
    """Flags as they were, after the test."""
    before = memory.get_flags()
    yield memory.set_flags
    memory.set_flags(before)


@pytest.mark.parametrize("shape", [(), (1,), (3, 5), (0, 3), (64, 3, 32, 32)])
@pytest.mark.parametrize("dtype", ["bool", "int8", "float16", "float32", "int64", "complex128"])
def test_the_data_lies_in_the_pool_aligned(shape: tuple[int, ...], dtype: str) -> None:
    a = memory.empty(CPU, shape, dtype)
    assert a.shape == shape and a.dtype == dtype and a.flags.writeable and a.flags.c_contiguous
    assert a.ctypes.data % 64 == 0
    assert memory.contains(CPU, a.ctypes.data)
    assert not memory.contains(CPU, np.empty(3).ctypes.data)
    a[...] = 1
    assert (a == 1).all()


def test_arrays_do_not_overlap() -> None:
    arrays = [memory.empty(CPU, (n,), "int32") for n in (1, 1024, 1025, 3, 5000)]
    for i, a in enumerate(arrays):
        a[...] = i
    assert all((a == i).all() for i, a in enumerate(arrays))


def test_memory_is_freed_with_the_last_view() -> None:
    before = memory.used(CPU)
    a = memory.empty(CPU, (4, 6), "float32")
    views = [a[1:].T, a.reshape(24)[3:], a.view("uint8"), np.lib.stride_tricks.as_strided(a, (2, 2), (24, 4))]
    views.append(np.frombuffer(memoryview(a), np.float32))
    taken = memory.used(CPU) - before
    assert taken == 4096
    block = memory.owner(a)
    assert block is not None and all(memory.owner(v) is block for v in views)
    del a, block
    while views:
        assert memory.used(CPU) - before == taken
        views.pop()
    assert memory.used(CPU) == before


def test_memory_in_a_cycle_is_freed_by_the_collector() -> None:
    before = memory.used(CPU)
    ring: list[object] = [memory.empty(CPU, (10,), "float32")]
    ring.append(ring)
    del ring
    gc.collect()
    assert memory.used(CPU) == before


def test_a_collection_inside_alloc_cannot_hang_or_corrupt() -> None:
    before = memory.used(CPU)
    threshold = gc.get_threshold()
    gc.set_threshold(1)  # collect at nearly every allocation of a container, so inside the pool's lock too
    try:
        for _ in range(300):
            ring: list[object] = [memory.empty(CPU, (2000,), "float32") for _ in range(3)]
            ring.append(ring)
    finally:
        gc.set_threshold(*threshold)
    del ring
    gc.collect()
    assert memory.used(CPU) == before


def test_threads_share_a_pool() -> None:
    before = memory.used(CPU)
    errors: list[BaseException] = []

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        held = []
        try:
            for i in range(400):
                a = memory.empty(CPU, (int(rng.integers(1, 3000)),), "int64")
                a[...] = seed * 1000 + i
                held.append((a, seed * 1000 + i))
                if len(held) > 20:
                    b, value = held.pop(int(rng.integers(len(held))))
                    assert (b == value).all()
        except BaseException as e:  # noqa: BLE001 - shown below
            errors.append(e)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)  # change threads inside alloc and free, not only between them
    try:
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    finally:
        sys.setswitchinterval(interval)
    assert errors == []
    assert memory.used(CPU) == before


def test_order_chooses_the_axis_order_in_memory() -> None:
    a = memory.empty(CPU, (8, 3, 5, 7), "float32", order=(1, 2, 3, 0))  # batch innermost
    assert a.shape == (8, 3, 5, 7)
    assert a.strides == (4, 4 * 8 * 7 * 5, 4 * 8 * 7, 4 * 8)
    assert a.transpose(1, 2, 3, 0).flags.c_contiguous
    with pytest.raises(OpValueError, match="order"):
        memory.empty(CPU, (2, 3), "float32", order=(0, 0))


def test_raw_is_bytes_to_lay_arrays_out_in() -> None:
    arena = memory.raw(CPU, 1 << 16)
    x = np.ndarray((4, 4), "float32", arena, 256)
    assert memory.owner(x) is memory.owner(arena)
    assert x.ctypes.data - arena.ctypes.data == 256


def test_objects_and_negative_sizes_are_refused_and_leave_nothing() -> None:
    before = memory.used(CPU)
    with pytest.raises(OpTypeError, match="not Python objects"):
        memory.empty(CPU, (2,), object)
    with pytest.raises(OpValueError, match=r"shape \[-1, 2\]"):
        memory.empty(CPU, (-1, 2), "float32")
    assert memory.used(CPU) == before


@pytest.mark.parametrize(
    ("dtype", "poisoned"),
    [("float32", np.isnan), ("float16", np.isnan), ("complex64", np.isnan), ("uint8", lambda a: a == 0xAA),
     ("int32", lambda a: a.view("uint32") == 0xAAAAAAAA), ("bool", lambda a: a)],
)  # fmt: skip
def test_init_allocated_mem_poisons_new_arrays(flags, dtype: str, poisoned) -> None:
    flags({"FLAGS_init_allocated_mem": True})
    assert poisoned(memory.empty(CPU, (5, 3), dtype)).all()
    assert poisoned(memory.empty(CPU, (5, 3), dtype, order=(1, 0))).all()


def test_tags_name_the_holder_until_the_block_is_freed() -> None:
    a = memory.empty(CPU, (100,), "float32")
    memory.tag(a[10:], "fc_0.w_0")
    memory.tag(np.ones(3), "not ours")
    tagged = [s for s in memory.stats(CPU).live if s.ptr == a.ctypes.data]
    assert [(s.tag, s.asked, s.size) for s in tagged] == [("fc_0.w_0", 400, 4096)]
    spans = [s for chunk in memory.arena_map(CPU) for s in chunk.spans]
    assert tagged[0] in spans
    assert "fc_0.w_0" in repr(memory.owner(a))
    del a
    assert not [s for s in memory.stats(CPU).live if s == tagged[0]]


def test_arrays_travel_by_value() -> None:
    a = memory.empty(CPU, (3,), "float32")
    a[...] = 5
    copy = pickle.loads(pickle.dumps(a))
    assert (copy == 5).all() and memory.owner(copy) is None


def test_a_block_can_be_watched() -> None:
    a = memory.empty(CPU, (3,), "float32")
    ref = weakref.ref(memory.owner(a))
    del a
    assert ref() is None


def test_a_small_array_takes_few_steps() -> None:
    memory.empty(CPU, (32, 32), "float32")
    steps: list[str] = []
    sys.setprofile(lambda frame, event, arg: steps.append(event))
    try:
        memory.empty(CPU, (32, 32), "float32")
    finally:
        sys.setprofile(None)
    calls = [step for step in steps if step in ("call", "c_call")]
    assert 20 < len(calls) < 60  # 43 to take it and give it back
