"""Fluid's ``reader`` module (``paddle.reader``): decorators of readers.

Example:
    >>> from fluidnb import reader
    >>> list(reader.firstn(lambda: range(10), 3)())
    [0, 1, 2]
"""

from fluidnb.data import reader as _reader
from fluidnb.data.reader import *  # noqa: F403

__all__ = [name for name in _reader.__all__ if name != "Reader"]
