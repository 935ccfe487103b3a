"""Sources of data sets: real files, or synthetic data with one warning; and reading of archives."""

from __future__ import annotations

import functools
import posixpath
import struct
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from fluidnb.data.dataset import common
from fluidnb.errors import EnforceNotMet, FluidError
from fluidnb.memory import flags


def download(on: bool = True) -> None:
    """Let data sets fetch the files that are not in the cache, or stop that; FLAGS_dataset_download in one word.

    Args:
        on: whether they may. It is off at first: a data set that is not in the cache is synthetic.

    Example:
        >>> download(True)
        >>> flags.get_flags("FLAGS_dataset_download")
        {'FLAGS_dataset_download': True}
        >>> download(False)
    """
    flags.set_flags({"dataset_download": on})


def files(module_name: str, *wanted: Sequence[str], folder: str = "") -> tuple[str, ...] | None:
    """The files of a data set, or None with a warning that data are synthetic.

    Args:
        module_name: the data set.
        wanted: (url, checksum) or (url, checksum, name) of each file.
        folder: its folder in the cache where that has another name.

    Returns:
        The paths in the cache; None, after one line on stderr, when one is not there and may not be fetched.

    Raises:
        EnforceNotMet: a file is damaged or cannot be fetched.
    """
    paths = [common.cached(url, folder or module_name, checksum, *name) for url, checksum, *name in wanted]
    if any(path is None for path in paths):
        announce(module_name)
        return None
    return tuple(path for path in paths if path is not None)


@functools.cache
def announce(module_name: str) -> None:
    """Say, once a process, that a data set is not the real one.

    Args:
        module_name: the data set.
    """
    print(
        f"fluidnb: dataset.{module_name} is synthetic data; "
        "call fluid.dataset.download(True) to download the real data.",
        file=sys.stderr,
    )


@contextmanager
def reading(path: str, what: str = "") -> Iterator[None]:
    """Turn what goes wrong while a file is read into an error that names the file.

    Args:
        path: the file.
        what: the part of it.

    Raises:
        EnforceNotMet: the file is not in the format that it should have.

    Example:
        >>> with reading("digits.gz", "labels"):
        ...     int("x")
        Traceback (most recent call last):
        fluidnb.errors.EnforceNotMet: labels of digits.gz cannot be read: invalid literal for int() with base 10: 'x'.
          ...
    """
    import lzma
    import tarfile
    import zipfile
    import zlib

    # zipfile raises a RuntimeError for a version, a compression or a password that it cannot serve.
    broken = (tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, RuntimeError)
    try:
        yield
    except (*broken, OSError, EOFError, ValueError, KeyError, IndexError) as e:
        if isinstance(e, FluidError):
            raise
        subject = f"{what} of {path}" if what else path
        reason = e.args[0] if isinstance(e, KeyError) and e.args else str(e) or type(e).__name__
        raise EnforceNotMet(
            f"{subject} cannot be read: {reason}.",
            hint="delete the file and fetch it again: fluid.dataset.download(True).",
        ) from e


def contents(path: str, wanted: Callable[[str], Any]) -> Iterator[tuple[str, bytes]]:
    """The regular files of a tar archive that are wanted, in its order; nothing is ever unpacked to disk.

    Args:
        path: the archive, compressed or not.
        wanted: says whether a name is wanted; names come without a leading "./".

    Returns:
        (name, bytes) of each.

    Raises:
        EnforceNotMet: not a whole tar archive, or nothing in it is wanted.
    """
    with reading(path):
        for name, file in _members(path, wanted):
            yield name, file.read()


def lines(path: str, name: str, encoding: str = "utf-8") -> Iterator[str]:
    """The lines of the text files of a tar archive whose names end in `name`.

    Args:
        path: the archive, compressed or not.
        name: a file's name, with or without the folders before it.
        encoding: of the text.

    Returns:
        Lines, without the ends.

    Raises:
        EnforceNotMet: not a whole tar archive, no such file in it, or no such text.
    """
    with reading(path, name):
        for _, file in _members(path, lambda n: f"/{n}".endswith(f"/{name}"), name):
            for line in file:
                yield line.decode(encoding).rstrip("\r\n")


def _members(path: str, wanted: Callable[[str], Any], what: str = "") -> Iterator[tuple[str, Any]]:
    import tarfile

    found = False
    with reading(path), tarfile.open(path) as archive:
        for member in archive:
            name = posixpath.normpath(member.name)
            if member.isfile() and wanted(name):
                found = True
                yield name, archive.extractfile(member)
        if not found:
            raise KeyError(f"there is no file {what} in it" if what else "it lacks the files of this data set")
