"""RecordIO files: records in chunks, each chunk with a checksum. Written with gzip, read with gzip, snappy or neither.

A chunk is a head of five numbers of 32 bits (magic, CRC-32 of the body, compression, bytes of the body, records), and
a body: each record after its length. Source: the package recordio of PaddlePaddle, which paddle.reader.creator uses.
"""

from __future__ import annotations

import gzip
import struct
import zlib
from collections.abc import Iterable, Iterator
from typing import BinaryIO

from fluidnb.errors import EnforceNotMet
from fluidnb.files.remaining import remaining

_HEAD = struct.Struct("<5I")
_LENGTH = struct.Struct("<I")
_MAGIC = 0x01020304
_PLAIN, _SNAPPY, _GZIP = range(3)
_LARGEST = 1 << 28  # bytes of a decompressed chunk: gzip can expand 1,000 times, and writers stop at 32 MiB
_ENOUGH = 1 << 20  # bytes of records in a chunk, about


def write_records(file: BinaryIO, records: Iterable[bytes]) -> int:
    """Write records."""
    total, chunk, size = 0, list[bytes](), 0

    def end_chunk() -> None:
        body = gzip.compress(b"".join(_LENGTH.pack(len(record)) + record for record in chunk), mtime=0)
        file.write(_HEAD.pack(_MAGIC, zlib.crc32(body), _GZIP, len(body), len(chunk)) + body)

    for record in records:
        chunk.append(record)
        total, size = total + 1, size + len(record)
        if size >= _ENOUGH:
            end_chunk()
            chunk, size = [], 0
    if chunk:
        end_chunk()
    return total


def read_records(file: BinaryIO, name: str) -> Iterator[bytes]:
    """The records of a file, a chunk at a time."""
    number = 0
    while head := file.read(_HEAD.size):
        if len(head) < _HEAD.size or _HEAD.unpack(head)[0] != _MAGIC:
            raise _damaged(name, number, "it does not begin as a chunk of RecordIO does")
        _, checksum, kind, size, count = _HEAD.unpack(head)
        if file.seekable() and size > remaining(file):  # read(size) would allocate that much first
            raise _damaged(name, number, "it breaks off")
        body = file.read(size)
        if len(body) < size or zlib.crc32(body) != checksum:
            raise _damaged(name, number, "it breaks off" if len(body) < size else "its checksum is another")
        try:
            yield from _records(_unpacked(body, kind), count)
        except (ValueError, IndexError, EOFError, OSError, zlib.error, struct.error) as e:
            raise _damaged(name, number, str(e)) from None
        number += 1


def _damaged(name: str, chunk: int, why: str) -> EnforceNotMet:
    return EnforceNotMet(f"Chunk {chunk} of {name} cannot be read: {why}.")


def _records(body: bytes, count: int) -> list[bytes]:
    found, at = [], 0
    for _ in range(count):
        (length,) = _LENGTH.unpack_from(body, at)
        at += _LENGTH.size + length
        found.append(body[at - length : at])
    if at != len(body):
        raise ValueError("its records are not as long as it is")
    return found


def _unpacked(body: bytes, kind: int) -> bytes:
    if kind == _PLAIN:
        return body
    if kind == _GZIP:
        inflater = zlib.decompressobj(16 + zlib.MAX_WBITS)
        data = inflater.decompress(body, _LARGEST)
        if not inflater.eof:
            raise ValueError(f"it breaks off, or has more than {_LARGEST:,} bytes")
        return data
    if kind == _SNAPPY:
        return b"".join(_frames(body))
    raise ValueError(f"there is no compression {kind}")


def _frames(body: bytes) -> Iterator[bytes]:
    """The parts of a stream in snappy's framing format; the chunk's own checksum is over all of them."""
    at = 0
    while at < len(body):
        kind, size = body[at], int.from_bytes(body[at + 1 : at + 4], "little")
        frame = body[at + 4 : at + 4 + size]
        at += 4 + size
        if kind == 0:
            yield _snappy(frame[4:])
        elif kind == 1:
            yield frame[4:]
        elif kind < 0x80:
            raise ValueError(f"snappy has no frame of kind {kind}")


def _snappy(data: bytes) -> bytes:
    """Decompresses a snappy block: its length, then literals and copies of earlier output."""
    length = at = shift = 0
    while True:
        length |= (data[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if data[at - 1] < 0x80:
            break
    out = bytearray()
    while at < len(data):
        tag = data[at]
        kind, high = tag & 3, tag >> 2
        at += 1
        if kind == 0:
            extra = max(high - 59, 0)
            size = (int.from_bytes(data[at : at + extra], "little") if extra else high) + 1
            at += extra
            out += data[at : at + size]
            at += size
            continue
        width = (1, 2, 4)[kind - 1]
        back = int.from_bytes(data[at : at + width], "little") | ((tag >> 5) << 8 if kind == 1 else 0)
        size = (high & 7) + 4 if kind == 1 else high + 1
        at += width
        if not 0 < back <= len(out):
            raise ValueError("a copy in it reaches before its beginning")
        out += (bytes(out[-back:]) * (size // back + 1))[:size]  # a copy may overlap what it makes
    if len(out) != length:
        raise ValueError("it is not as long as it says")
    return bytes(out)
