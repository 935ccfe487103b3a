"""alloc, free, used by place; new kinds of places; system allocators."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from fluidnb import memory
from fluidnb.errors import EnforceNotMet, OpTypeError, OpValueError
from fluidnb.memory import pools, system_allocator
from fluidnb.values import CPUPlace, CUDAPinnedPlace, CUDAPlace, Place

CPU = CPUPlace()


@pytest.fixture(autouse=True)
def no_garbage() -> Iterator[None]:
    """Let no memory of earlier tests be collected, and so freed, while a test counts."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def test_used_rises_and_falls_with_alloc_and_free() -> None:
    before = memory.used(CPU)
    p = memory.alloc(CPU, 4097)
    assert memory.used(CPU) - before >= 4097
    assert p % 4096 == 0
    memory.free(CPU, p)
    assert memory.used(CPU) == before
    with pytest.raises(OpValueError, match="Cannot free pointer"):
        memory.free(CPU, p)


def test_what_is_no_pointer_size_or_place() -> None:
    before = memory.used(CPU)
    with pytest.raises(OpValueError, match="Cannot free pointer None"):
        memory.free(CPU, None)  # type: ignore[arg-type]
    with pytest.raises(OpTypeError, match="Cannot allocate 'x'"):
        memory.alloc(CPU, "x")  # type: ignore[arg-type]
    with pytest.raises(OpTypeError, match="Memory is of a place"):
        memory.alloc("cpu", 10)  # type: ignore[arg-type]
    assert memory.used(CPU) == before


def test_two_adjacent_frees_show_as_one_span() -> None:
    large = memory.stats(CPU).largest_free // 4  # larger than the holes that others left
    a, b = memory.alloc(CPU, large), memory.alloc(CPU, large)
    memory.free(CPU, a)
    memory.free(CPU, b)
    free = [(s.ptr, s.ptr + s.size) for c in memory.arena_map(CPU) for s in c.spans if s.requested is None]
    assert any(start <= a < end and start <= b < end for start, end in free)


def test_a_chunk_draws_itself() -> None:
    p = memory.alloc(CPU, 1)
    (chunk,) = [c for c in memory.arena_map(CPU) if c.ptr <= p < c.ptr + c.size]
    assert sum(s.size for s in chunk.spans) == chunk.size
    line = chunk.text(40)
    assert len(line) == 40 and "#" in line and set(line) <= set("#.")
    memory.free(CPU, p)


def test_stats_are_one_line_of_text() -> None:
    assert str(memory.stats(CPU)).startswith("CPUPlace: ")
    assert "fragmentation" in str(memory.stats(CPU))


def test_a_place_without_allocator_says_so() -> None:
    class NoPlace(Place):
        """A kind of place that no allocator is registered for."""

        kind = "none"

    with pytest.raises(EnforceNotMet, match=r"no memory for NoPlace\(2\)") as e:
        memory.alloc(NoPlace(2), 1)
    assert "register_allocator" in str(e.value)
    with pytest.raises(EnforceNotMet, match=r"CUDAPlace\(0\)"):
        memory.used(CUDAPlace(0))


def test_a_new_kind_of_place_brings_its_allocator(monkeypatch: pytest.MonkeyPatch) -> None:
    class ShelfPlace(Place):
        """A kind of place whose allocator the test registers."""

        kind = "shelf"

    class ShelfAllocator(memory.CPUAllocator):
        """Counts its chunks."""

        made: list[int] = []

        def alloc(self, size: int) -> tuple[int, int]:
            self.made.append(size)
            return super().alloc(size)

        def total(self) -> int:
            return 1 << 20

    monkeypatch.setattr(pools, "_kinds", dict(pools._kinds))
    monkeypatch.setattr(pools, "_pools", dict(pools._pools))
    memory.register_allocator("shelf", lambda device: ShelfAllocator(), min_chunk=256, chunk_share=4)
    a = memory.empty(ShelfPlace(1), (10,), "float32")
    assert memory.used(ShelfPlace(1)) == 256 and memory.used(ShelfPlace(2)) == 0
    assert ShelfAllocator.made == [1 << 18]
    before = memory.used(CPU)
    memory.alloc(ShelfPlace(1), 1)
    assert memory.used(CPU) == before
    assert memory.contains(ShelfPlace(1), a.ctypes.data) and not memory.contains(CPU, a.ctypes.data)


def test_two_threads_get_the_same_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    class TwinPlace(Place):
        """A place for this test."""

        kind = "cpu"

    found: list[object] = []
    threads = [threading.Thread(target=lambda: found.append(memory.pool(TwinPlace(5)))) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(found) == 8 and len(set(map(id, found))) == 1


def test_cpu_memory_is_whole_and_writable() -> None:
    import ctypes

    cpu = memory.CPUAllocator()
    ptr, index = cpu.alloc(10000)
    assert ptr % 4096 == 0 and index == cpu.PAGEABLE and not cpu.use_gpu()
    ctypes.memset(ptr, 0x5A, 10000)
    assert ctypes.string_at(ptr + 9999, 1) == b"\x5a"
    cpu.free(ptr, 10000, index)


def test_refused_memory_is_a_memory_error() -> None:
    with pytest.raises(MemoryError):
        memory.CPUAllocator().alloc(1 << 62)
    with pytest.raises(memory.OutOfMemory, match="Out of memory on CPUPlace"):
        memory.empty(CPU, (1 << 59,), "float64")


def test_pinned_memory_is_locked_where_the_system_allows(capsys: pytest.CaptureFixture[str]) -> None:
    system_allocator._say_pageable.cache_clear()
    pinned = memory.CPUAllocator(pinned=True)
    ptr, index = pinned.alloc(8192)
    assert (index == pinned.PINNED) != ("could not be locked" in capsys.readouterr().err)
    pinned.free(ptr, 8192, index)


def test_memory_that_cannot_be_locked_is_said_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    system_allocator._say_pageable.cache_clear()
    monkeypatch.setattr(system_allocator.ctypes, "CDLL", lambda *a, **k: type("Libc", (), {"mlock2": lambda *a: -1})())
    pinned = memory.CPUAllocator(pinned=True)
    for _ in range(2):
        ptr, index = pinned.alloc(4096)
        assert index == pinned.PAGEABLE
        pinned.free(ptr, 4096, index)
    assert capsys.readouterr().err.count("pageable memory") == 1


def test_the_pinned_place_has_a_pool_of_its_own() -> None:
    assert memory.pool(CUDAPinnedPlace()) is not memory.pool(CPU)
    assert memory.pool(CUDAPinnedPlace()).system.pinned  # type: ignore[attr-defined]


def test_the_chunk_follows_the_fraction_flag() -> None:
    code = (
        "from fluidnb import memory; from fluidnb.values import CPUPlace;"
        "print(memory.pool(CPUPlace()).max_chunk, memory.pools.CPUAllocator().total())"
    )
    sizes = []
    for fraction in ("1", "0.25"):
        env = {"FLAGS_fraction_of_cpu_memory_to_use": fraction, "PATH": "", "PYTHONPATH": ":".join(sys.path)}
        done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
        sizes.append([int(n) for n in done.stdout.split()])
    assert abs(sizes[0][0] - 4 * sizes[1][0]) <= 4 * 4096
    assert sizes[0][0] == sizes[0][1] // 32 // 4096 * 4096
