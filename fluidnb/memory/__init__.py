"""Memory: one pool per place over a system allocator, arrays in it, statistics, flags and VLOG.

Example:
    >>> from fluidnb import memory
    >>> from fluidnb.values import CPUPlace
    >>> x = memory.empty(CPUPlace(), (2, 3), "float32")
    >>> memory.used(CPUPlace()) >= x.nbytes
    True
"""

from fluidnb.memory.block import Block, contains, empty, owner, poison, raw, tag
from fluidnb.memory.buddy import BuddyAllocator, OutOfMemory
from fluidnb.memory.flags import define_flag, get_flags, set_flags
from fluidnb.memory.pools import PlaceLike, alloc, arena_map, free, pool, register_allocator, stats, used
from fluidnb.memory.stats import Chunk, Span, Stats, size_text
from fluidnb.memory.system_allocator import CPUAllocator, SystemAllocator
from fluidnb.memory.views import Reserve, address, as_base, moved, offset_of, part, root, strided, view_of
from fluidnb.memory.vlog import VLOG, init_glog, vlog_is_on

__all__ = [
    "VLOG", "Block", "BuddyAllocator", "CPUAllocator", "Chunk", "OutOfMemory", "PlaceLike", "Reserve", "Span",
    "Stats", "SystemAllocator", "address", "alloc", "arena_map", "as_base", "contains", "define_flag", "empty",
    "free", "get_flags", "init_glog", "moved", "offset_of", "owner", "part", "poison", "pool", "raw",
    "register_allocator", "root", "set_flags", "size_text", "stats", "strided", "tag", "used", "view_of",
    "vlog_is_on",
]  # fmt: skip
