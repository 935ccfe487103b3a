"""Checks sizes stated in a file against its remaining bytes, before memory is allocated."""

import os
from typing import IO


def remaining(file: IO[bytes]) -> int:
    """Bytes from the position of a file to its end; the position does not change."""
    position = file.tell()
    end = file.seek(0, os.SEEK_END)
    file.seek(position)
    return end - position
