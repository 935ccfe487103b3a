"""Readers from arrays and files."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fluidnb.arguments import checked
from fluidnb.data.reader.decorators import Reader
from fluidnb.data.reader.recordio import read_records
from fluidnb.data.reader.threads import buffered
from fluidnb.errors import OpValueError
from fluidnb.files import plain_pickle


@checked
def np_array(x: Any) -> Reader:
    """The rows of an array; a single number is one sample."""
    array = np.asarray(x)
    return lambda: iter(array if array.ndim else array.reshape(1))


@checked
def text_file(path: str | Path) -> Reader:
    """The lines of a text file, without their line ends."""
    if not Path(path).is_file():
        raise OpValueError(f'There is no text file "{path}".')

    def lines() -> Iterator[str]:
        with open(path, encoding="utf-8") as file:
            try:
                for line in file:
                    yield line.rstrip("\n")
            except UnicodeDecodeError as error:
                raise OpValueError(
                    f'"{path}" is not a text file in UTF-8.', expected="text in UTF-8", received=error.reason
                ) from None

    return lines


@checked
def recordio(paths: str | Sequence[str], buf_size: int = 100) -> Reader:
    """The samples of RecordIO files, as `fluid.dataset.common.convert` writes them; a thread reads ahead.

    Args:
        paths: the files: a list, or one text with commas between; each may be a pattern, as for a shell. Samples are
            plain values and numpy arrays.
    """
    patterns = paths.split(",") if isinstance(paths, str) else list(paths)
    files = [name for pattern in patterns for name in sorted(glob.glob(pattern)) if not os.path.isdir(name)]
    if not files:
        raise OpValueError(f"There is no file {' or '.join(patterns)}.", expected="a RecordIO file or more")

    def samples() -> Iterator[Any]:
        for name in files:
            with open(name, "rb") as file:
                for record in read_records(file, name):
                    yield plain_pickle.loads(record, f"A sample of {name}")

    return buffered(samples, buf_size)
