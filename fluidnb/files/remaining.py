"""Checks sizes stated in a file against its remaining bytes, before memory is allocated."""

from __future__ import annotations

import os
from typing import IO


def remaining(file: IO[bytes]) -> int:
    """Bytes from the position of a file to its end; the position does not change.

    Args:
        file: open for binary reading, seekable.

    Returns:
        The number of bytes.

    Example:
        >>> import io
        >>> file = io.BytesIO(b"abc"); _ = file.read(1); remaining(file)
        2
    """
    position = file.tell()
    end = file.seek(0, os.SEEK_END)
    file.seek(position)
    return end - position
