"""One pool per place: `alloc`, `free`, `used`, statistics, and how a new kind of place brings its allocator."""

import threading
from collections.abc import Callable
from typing import NamedTuple, Protocol

from fluidnb.errors import EnforceNotMet, OpTypeError
from fluidnb.memory.buddy import BuddyAllocator
from fluidnb.memory.stats import Chunk, Stats
from fluidnb.memory.system_allocator import CPUAllocator, SystemAllocator


class PlaceLike(Protocol):
    """Protocol of a place: hashable, with the kind of device and its number."""

    @property
    def kind(self) -> str:
        """The kind of device, for example ``cpu``."""

    @property
    def device(self) -> int:
        """The device's number, from 0."""

    def __hash__(self) -> int: ...


class _Kind(NamedTuple):
    factory: Callable[[int], SystemAllocator]
    min_chunk: int
    chunk_share: int


_kinds: dict[str, _Kind] = {}
#: Loads what registers allocators of other kinds.
_load: Callable[[], object] = dict
_pools: dict[PlaceLike, BuddyAllocator] = {}
_lock = threading.Lock()


def register_allocator(
    kind: str, factory: Callable[[int], SystemAllocator], min_chunk: int = 4096, chunk_share: int = 32
) -> None:
    """Registers the system allocator of a kind of places.

    Args:
        factory: device number -> system allocator; called once per place.
        min_chunk: granularity of the pool in bytes.
        chunk_share: a chunk of the arena is the allocator's total divided by this.

    Example:
        >>> register_allocator("toy", lambda device: CPUAllocator())
    """
    _kinds[kind] = _Kind(factory, min_chunk, chunk_share)


def load_by(load: Callable[[], object]) -> None:
    """Registers what is called, once, where a place has a kind without an allocator: it may register some."""
    global _load
    _load = load


def pool(place: PlaceLike) -> BuddyAllocator:
    """The pool of a place, created at the first call with the flags of that moment.

    Example:
        >>> from fluidnb.values import CPUPlace
        >>> pool(CPUPlace()) is pool(CPUPlace())
        True
    """
    existing = _pools.get(place)
    return existing if existing is not None else _make(place)


def _make(place: PlaceLike) -> BuddyAllocator:
    if getattr(place, "kind", "cpu") not in _kinds:
        _load()
    with _lock:
        if place in _pools:
            return _pools[place]
        if not hasattr(place, "kind"):
            raise OpTypeError("Memory is of a place.", expected="for example CPUPlace()", received=repr(place))
        if place.kind not in _kinds:
            raise EnforceNotMet(
                f"There is no memory for {place}.", expected=f"a place of kind {', '.join(_kinds)}",
                received=f"kind {place.kind}",
                hint="fluid.memory.register_allocator(kind, factory) adds one; use fluid.CPUPlace() otherwise.",
            )  # fmt: skip
        kind = _kinds[place.kind]
        system = kind.factory(place.device)
        whole = max(system.total() // kind.chunk_share // kind.min_chunk, 1) * kind.min_chunk
        _pools[place] = BuddyAllocator(system, kind.min_chunk, whole, str(place))
        return _pools[place]


def alloc(place: PlaceLike, size: int) -> int:
    """The address of a new block of bytes, at least 64-byte aligned; `free` returns it.

    Example:
        >>> from fluidnb.values import CPUPlace
        >>> before = used(CPUPlace()); p = alloc(CPUPlace(), 4097)
        >>> used(CPUPlace()) - before
        8192
        >>> free(CPUPlace(), p); used(CPUPlace()) == before
        True
    """
    return pool(place).alloc(size)


def free(place: PlaceLike, ptr: int) -> None:
    """Frees a block that `alloc` returned for the same place."""
    pool(place).free(ptr)


def used(place: PlaceLike) -> int:
    """Bytes in use on a place now, rounding included."""
    return pool(place).used


def stats(place: PlaceLike) -> Stats:
    """Used, peak, reserved, fragmentation and the live blocks of a place; ``str`` of it is one line."""
    return pool(place).stats()


def places() -> list[PlaceLike]:
    """The places with a pool, in order of creation."""
    return list(_pools)


def arena_map(place: PlaceLike) -> list[Chunk]:
    """The memory map of a place: its chunks by address, each with its live and free spans."""
    return [Chunk(ptr, size, spans) for ptr, size, spans in pool(place).spans()]


register_allocator("cpu", lambda device: CPUAllocator())
# Smaller chunks: systems limit how much memory may be locked.
register_allocator("cuda_pinned", lambda device: CPUAllocator(pinned=True), chunk_share=1024)
