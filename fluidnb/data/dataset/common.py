"""Shared helpers of all data sets: the cache and its files, and splitting of a reader into files.

The cache is Paddle's, ``~/.cache/paddle/dataset``, with Paddle's names in it; FLUIDNB_DATA_HOME in the environment, or
an assignment to `DATA_HOME`, moves it. With FLUIDNB_DATA_URL set, files are fetched from that mirror, as
``<FLUIDNB_DATA_URL>/<data set>/<file>``.
"""

from __future__ import annotations

import glob
import os
import pickle
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

from fluidnb.arguments import checked
from fluidnb.data.dataset.fetch import algorithm, digest, fetch, mirrored
from fluidnb.data.reader.decorators import Reader, batch, check_count
from fluidnb.data.reader.recordio import write_records
from fluidnb.errors import EnforceNotMet, OpValueError
from fluidnb.files import plain_pickle
from fluidnb.files.atomic_write import atomic_write
from fluidnb.memory import flags

__all__ = ["DATA_HOME", "cluster_files_reader", "convert", "download", "md5file", "split"]

#: The folder of the cache.
DATA_HOME = os.environ.get("FLUIDNB_DATA_HOME") or os.path.join(os.path.expanduser("~"), ".cache", "paddle", "dataset")
#: Cached files whose checksum is known to be right: (path, checksum) -> (size, time of change).
_checked: dict[tuple[str, str], tuple[int, int]] = {}


def md5file(fname: str | os.PathLike[str]) -> str:
    """The MD5 of a file.

    Example:
        >>> md5file(os.devnull)
        'd41d8cd98f00b204e9800998ecf8427e'
    """
    try:
        return digest(fname)
    except (OSError, ValueError) as error:  # ValueError: a null byte
        raise EnforceNotMet(
            f"Cannot read {fname!s}.", received=getattr(error, "strerror", None) or str(error), hint="correct the path."
        ) from None


def download(url: str, module_name: str, md5sum: str, save_name: str | None = None) -> str:
    """A file of a data set, from the cache or, if it is not there or not right, over the network.

    Args:
        url: where it is, http or https.
        module_name: the data set, a folder of the cache.
        md5sum: its MD5; a SHA-1, SHA-256 or SHA-512 will do too.
        save_name: its name in the cache; without it, the last part of `url`.

    Returns:
        The path in the cache.

    Raises:
        EnforceNotMet: it cannot be fetched, or what came has another checksum.
    """
    path = _path(url, module_name, save_name)
    if not os.path.exists(path) or not _is_right(path, md5sum):
        fetch(mirrored(url, module_name, save_name), path, md5sum)
        _checked[path, md5sum] = _stamp(path)
    return path


def cached(url: str, module_name: str, checksum: str, save_name: str | None = None) -> str | None:
    """A file from the cache, or fetched if FLAGS_dataset_download allows; else None."""
    if flags.values["dataset_download"]:
        return download(url, module_name, checksum, save_name)
    path = _path(url, module_name, save_name)
    if not os.path.exists(path):
        return None
    if not _is_right(path, checksum):
        name = algorithm(checksum)
        raise EnforceNotMet(
            f"The cached file {path} is damaged, or another one.", attrs={"url": mirrored(url, module_name, save_name)},
            expected=f"{name} {checksum}", received=f"{name} {digest(path, name)}",
            hint="delete it, or fetch it again: fluid.dataset.download(True).",
        )  # fmt: skip
    return path


@checked
def split(
    reader: Reader, line_count: int, suffix: str = "%05d.pickle",
    dumper: Callable[[list[Any], BinaryIO], Any] = pickle.dump,
) -> None:  # fmt: skip
    """Write the samples of a reader into files of `line_count` samples each; the last may have fewer.

    Args:
        suffix: the files' path, with a ``%d`` for their number.
        dumper: called with a list of samples and a file that is open for bytes.

    Example:
        >>> import tempfile
        >>> name = tempfile.mkdtemp() + "/part-%02d.pickle"
        >>> split(lambda: range(5), 2, name)
        >>> list(cluster_files_reader(name.replace("%02d", "*"), trainer_count=2, trainer_id=0)())
        [0, 1, 4]
    """
    check_count("line_count", line_count)
    try:
        if suffix % 0 == suffix % 1:
            raise TypeError
    except (TypeError, ValueError):
        raise OpValueError(f'suffix "{suffix}" has no place for a file\'s number.', hint="write %05d in it.") from None
    for number, part in enumerate(batch(reader, line_count)()):
        with atomic_write(suffix % number) as file:
            dumper(part, file)


@checked
def cluster_files_reader(
    files_pattern: str, trainer_count: int, trainer_id: int, loader: Callable[[BinaryIO], Any] = plain_pickle.load
) -> Reader:
    """A reader of one trainer's share of the files that `split` wrote: every `trainer_count`-th, by name.

    Args:
        files_pattern: the files, as for a shell. The default `loader` reads plain values and numpy
            arrays; pickle.load reads any object, from files that you trust.
        trainer_id: this one's number, from 0.
        loader: called with a file open for bytes; gives the list of its samples.

    Example:
        >>> list(cluster_files_reader("/no/such/files-*", 2, 1)())
        []
    """
    check_count("trainer_count", trainer_count)
    if trainer_id not in range(trainer_count):
        raise OpValueError(
            f"There is no trainer {trainer_id!r} of {trainer_count}.", expected=f"0 to {trainer_count - 1}"
        )

    def samples() -> Iterator[Any]:
        for path in sorted(glob.glob(files_pattern))[trainer_id::trainer_count]:
            with open(path, "rb") as file:
                yield from loader(file)

    return samples


@checked
def convert(output_path: str, reader: Reader, line_count: int, name_prefix: str) -> None:
    """Write the samples of a reader, pickled, into RecordIO files; `fluid.reader.creator.recordio` reads them.

    Args:
        output_path: the folder of the files; it is made.
        name_prefix: the start of the files' names; a number of five digits follows.

    Example:
        >>> import tempfile
        >>> folder = tempfile.mkdtemp()
        >>> convert(folder, lambda: range(5), 2, "train")
        >>> sorted(os.listdir(folder))
        ['train-00000', 'train-00001', 'train-00002']
    """
    check_count("line_count", line_count)
    if os.path.basename(name_prefix) != name_prefix:
        raise OpValueError(f'"{name_prefix}" cannot be the start of a name in the folder.', received=output_path)
    for number, part in enumerate(batch(reader, line_count)()):
        with atomic_write(os.path.join(output_path, f"{name_prefix}-{number:05d}"), parents=True) as file:
            write_records(file, (pickle.dumps(sample) for sample in part))


def _path(url: str, module_name: str, save_name: str | None) -> str:
    name = save_name or url.rpartition("/")[2]
    for part in (module_name, name):
        if part in ("", ".", "..") or os.path.basename(part) != part or "\0" in part:
            raise OpValueError(f'"{part}" cannot be a name in the cache.', attrs={"url": url}, hint="give save_name.")
    return os.path.join(DATA_HOME, module_name, name)


def _is_right(path: str, checksum: str) -> bool:
    """Whether a file has a checksum; computed once, and again when the file has changed."""
    if _checked.get((path, checksum)) == _stamp(path):
        return True
    if digest(path, algorithm(checksum)) != checksum.lower():
        return False
    _checked[path, checksum] = _stamp(path)
    return True


def _stamp(path: str) -> tuple[int, int]:
    stat = os.stat(path)
    return stat.st_size, stat.st_mtime_ns
