"""Readers: functions that return the samples of one pass, and decorators that change them (Fluid's paddle.reader).

Example:
    >>> from fluidnb.data import reader
    >>> source = reader.chain(lambda: range(3), lambda: range(2))
    >>> list(reader.batch(source, 2)())
    [[0, 1], [2, 0], [1]]
"""

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
    "ComposeNotAligned",
    "Fake",
    "PipeReader",
    "Reader",
    "batch",
    "buffered",
    "cache",
    "chain",
    "compose",
    "creator",
    "firstn",
    "map_readers",
    "multiprocess_reader",
    "shuffle",
    "xmap_readers",
]
