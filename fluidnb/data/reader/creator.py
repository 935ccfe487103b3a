"""Readers from arrays and files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from fluidnb.data.reader.decorators import Reader
from fluidnb.errors import NotBuiltYet, OpValueError


def np_array(x: Any) -> Reader:
    """The rows of an array; a single number is one sample.

    Args:
        x: an array, or what numpy makes one of.

    Returns:
        A reader.

    Example:
        >>> list(np_array([[1, 2], [3, 4]])())
        [array([1, 2]), array([3, 4])]
    """
    array = np.asarray(x)
    return lambda: iter(array if array.ndim else array.reshape(1))


def text_file(path: str | Path) -> Reader:
    """The lines of a text file, without their line ends.

    Args:
        path: the file, UTF-8.

    Returns:
        A reader.

    Raises:
        OpValueError: there is no such file.

    Example:
        >>> import os, tempfile
        >>> name = os.path.join(tempfile.mkdtemp(), "a.txt")
        >>> with open(name, "w") as f: _ = f.write("one\\ntwo\\n")
        >>> list(text_file(name)())
        ['one', 'two']
    """
    if not Path(path).is_file():
        raise OpValueError(f'There is no text file "{path}".')

    def lines() -> Iterator[str]:
        with open(path, encoding="utf-8") as file:
            for line in file:
                yield line.rstrip("\n")

    return lines


def recordio(paths: Any, buf_size: int = 100) -> Reader:
    """Not part of fluidnb: the format is no longer written by anyone.

    Raises:
        NotBuiltYet: always.
    """
    raise NotBuiltYet("RecordIO files are not read.", hint="convert them to .npy or text, then np_array or text_file.")
