"""Sources of data sets: real files, or synthetic data with one warning; and reading of archives."""

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


class Files:
    """The files of a data set: (URL, checksum) of each, and its name in the cache where the URL's will not do."""

    def __init__(self, module_name: str, *rows: Sequence[str], folder: str = "") -> None:
        self.module_name, self.rows, self.folder = module_name, rows, folder or module_name

    def fetch(self) -> None:
        """Fetch the files of the data set into the cache."""
        for url, checksum, *name in self.rows:
            common.download(url, self.folder, checksum, *name)

    def paths(self, *numbers: int) -> tuple[str, ...] | None:
        """Paths of the numbered files, or of all; None with a warning where data are synthetic."""
        rows = [self.rows[i] for i in numbers] or self.rows
        paths = [common.cached(url, self.folder, checksum, *name) for url, checksum, *name in rows]
        if None in paths:
            announce(self.module_name)
            return None
        return tuple(path for path in paths if path is not None)


@functools.cache
def announce(module_name: str) -> None:
    """Say, once a process, that a data set is not the real one."""
    print(
        f"fluidnb: dataset.{module_name} is synthetic data; "
        "call fluid.dataset.download(True) to download the real data.",
        file=sys.stderr,
    )


@contextmanager
def reading(path: str, what: str = "") -> Iterator[None]:
    """Turn what goes wrong while a file is read into an error that names the file."""
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
    """The regular files of a tar archive that are wanted, in its order; nothing is ever unpacked to disk."""
    with reading(path):
        for name, file in _members(path, wanted):
            yield name, file.read()


def lines(path: str, name: str, encoding: str = "utf-8") -> Iterator[str]:
    """The lines of the text files of a tar archive whose names end in `name`."""
    with reading(path, name):
        for _, file in _members(path, lambda n: f"/{n}".endswith(f"/{name}"), name):
            for line in file:
                yield line.decode(encoding).rstrip("\r\n")


def _members(path: str, wanted: Callable[[str], Any], what: str = "") -> Iterator[tuple[str, Any]]:
    import tarfile

    matched = False
    with reading(path), tarfile.open(path) as archive:
        for member in archive:
            name = posixpath.normpath(member.name)
            if member.isfile() and wanted(name):
                matched = True
                yield name, archive.extractfile(member)
        if not matched:
            raise KeyError(f"there is no file {what} in it" if what else "it lacks the files of this data set")
