"""Fluid's ``reader`` module (``paddle.reader``): decorators of readers.

Example:
    >>> from fluidnb import reader
    >>> list(reader.firstn(lambda: range(10), 3)())
    [0, 1, 2]
"""

from fluidnb.data.reader import (
    ComposeNotAligned,
    Fake,
    PipeReader,
    batch,
    buffered,
    cache,
    chain,
    compose,
    creator,
    firstn,
    map_readers,
    multiprocess_reader,
    shuffle,
    xmap_readers,
)

__all__ = [
    "ComposeNotAligned",
    "Fake",
    "PipeReader",
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
