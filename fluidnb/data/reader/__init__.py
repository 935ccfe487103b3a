"""Readers: functions that return the samples of one pass, and decorators that change them (Fluid's paddle.reader)."""

from fluidnb.data.reader import creator
from fluidnb.data.reader.decorators import (
    ComposeNotAligned,
    Fake,
    Reader,
    batch,
    cache,
    chain,
    compose,
    firstn,
    map_readers,
    shuffle,
)
from fluidnb.data.reader.pipe import PipeReader
from fluidnb.data.reader.processes import multiprocess_reader
from fluidnb.data.reader.threads import buffered, xmap_readers

__all__ = [
    "ComposeNotAligned", "Fake", "PipeReader", "Reader", "batch", "buffered", "cache", "chain", "compose", "creator",
    "firstn", "map_readers", "multiprocess_reader", "shuffle", "xmap_readers",
]  # fmt: skip
