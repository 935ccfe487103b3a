"""Arrays from the files of numpy, which may be damaged."""

import lzma
import os
import struct
import zipfile
import zlib

import numpy as np

#: What numpy and zipfile raise for damaged files beside an OSError or a ValueError; the RuntimeError is of zipfile.
_DAMAGED = (
    EOFError, MemoryError, OverflowError, RuntimeError, lzma.LZMAError, struct.error, zipfile.BadZipFile, zlib.error,
)  # fmt: skip


def load_arrays(path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """The arrays of a ``.npz`` by name; the one of a ``.npy`` has an empty one. No code in it runs.

    Raises:
        OSError, ValueError: it cannot be read, or is damaged.
    """
    try:
        with open(path, "rb") as file:  # numpy leaves it open where it is damaged
            found = np.load(file, allow_pickle=False)
            return {n: found[n] for n in found.files} if isinstance(found, np.lib.npyio.NpzFile) else {"": found}
    except _DAMAGED as error:
        raise ValueError(str(error) or type(error).__name__) from error
