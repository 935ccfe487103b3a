"""PNG files from arrays of bytes."""

import struct
import zlib
from typing import Any

import numpy as np

#: Channels -> PNG's colour type: grey, RGB, RGB with opacity.
_COLOUR_TYPE = {1: 0, 3: 2, 4: 6}


def png(pixels: np.ndarray[Any, Any]) -> bytes:
    """An image as a PNG file; uint8 [height, width, channels], 1 for grey, 3 RGB, 4 RGB with opacity."""
    height, width, channels = pixels.shape
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)  # filter 0: bytes as they are
    head = struct.pack(">IIBBBBB", width, height, 8, _COLOUR_TYPE[channels], 0, 0, 0)
    chunks = ((b"IHDR", head), (b"IDAT", zlib.compress(rows, 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data)) for name, data in chunks
    )
