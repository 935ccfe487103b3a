"""RecordIO: chunks as the Go library writes them, all three compressions, damage, and samples read from it."""

from __future__ import annotations

import gzip
import io
import pickle
import struct
import tracemalloc
import zlib
from pathlib import Path

import pytest

from fluidnb.data import reader
from fluidnb.data.reader.recordio import read_records, write_records
from fluidnb.errors import EnforceNotMet, OpValueError

RECORDS = [b"one", b"", b"three" * 1000]
BODY = b"".join(struct.pack("<I", len(record)) + record for record in RECORDS)


def chunk(body: bytes, kind: int, count: int = len(RECORDS)) -> bytes:
    """A chunk, written out by hand."""
    return struct.pack("<5I", 0x01020304, zlib.crc32(body), kind, len(body), count) + body


def read(data: bytes) -> list[bytes]:
    return list(read_records(io.BytesIO(data), "a.recordio"))


def varint(n: int) -> bytes:
    return bytes([n & 127 | 128]) + varint(n >> 7) if n > 127 else bytes([n])


def literal(data: bytes) -> bytes:
    """A piece of snappy that stands for itself."""
    n = len(data) - 1
    if n < 60:
        return bytes([n << 2]) + data
    width = (n.bit_length() + 7) // 8
    return bytes([(59 + width) << 2]) + n.to_bytes(width, "little") + data


def snappy(*parts: tuple[int, bytes]) -> bytes:
    """A stream of snappy frames: (kind, content)."""
    frames = [(0xFF, b"sNaPpY"), *((kind, b"CRC." + data if kind < 2 else data) for kind, data in parts)]
    return b"".join(bytes([kind]) + len(data).to_bytes(3, "little") + data for kind, data in frames)


def test_all_three_compressions_are_read() -> None:
    assert read(chunk(BODY, 0) + chunk(gzip.compress(BODY), 2)) == RECORDS * 2
    # "three" once, then copies of what stands 5 bytes before: of 11 bytes, of 64, and of the rest.
    rest = len(BODY) - 20 - 11
    copies = bytes([1 | (11 - 4) << 2, 5]) + bytes([2 | 63 << 2, 5, 0]) * (rest // 64)
    copies += bytes([3 | (rest % 64 - 1) << 2, 5, 0, 0, 0])
    block = varint(len(BODY)) + literal(BODY[:20]) + copies
    assert BODY[15:20] == b"three"
    assert read(chunk(snappy((0, block)), 1)) == RECORDS
    plain = varint(len(BODY) - 20) + literal(BODY[20:])
    assert read(chunk(snappy((1, BODY[:20]), (0xFE, b"pad"), (0, plain)), 1)) == RECORDS


def test_what_is_written_is_read() -> None:
    file = io.BytesIO()
    large = [bytes([i % 256]) * 100_000 for i in range(25)]
    assert write_records(file, large) == 25
    data = file.getvalue()
    assert read(data) == large and data.count(struct.pack("<I", 0x01020304)) == 3
    again = io.BytesIO()
    write_records(again, large)
    assert again.getvalue() == data  # no time in it
    empty = io.BytesIO()
    assert write_records(empty, []) == 0 and empty.getvalue() == b"" and read(b"") == []


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"no RecordIO file at all", "does not begin as a chunk"),
        (chunk(BODY, 0)[:-1], "breaks off"),
        (chunk(BODY, 0)[:10], "does not begin as a chunk"),
        (chunk(BODY, 0)[:-1] + b"X", "checksum"),
        (chunk(BODY, 7), "no compression 7"),
        (chunk(BODY, 2), "incorrect header check"),
        (chunk(BODY, 0, count=2), "not as long"),
        (chunk(BODY, 0, count=9), "unpack_from requires|not as long"),
        (chunk(snappy((0, varint(9) + literal(b"four"))), 1), "not as long as it says"),
        (chunk(snappy((0, varint(9) + bytes([1, 5]))), 1), "before its beginning"),
        (chunk(snappy((2, b"?")), 1), "no frame of kind 2"),
    ],
)
def test_damage_is_told_with_the_file_and_the_chunk(data: bytes, why: str) -> None:
    with pytest.raises(EnforceNotMet, match=rf"Chunk 1 of a\.recordio cannot be read: .*({why})"):
        read(chunk(BODY, 0) + data)


def test_samples_come_from_files_by_list_commas_and_patterns(tmp_path: Path) -> None:
    for name, samples in (("a-0", [(1, 2, 3)]), ("a-1", [(4, 5, 6)]), ("b", ["last"])):
        with open(tmp_path / name, "wb") as file:
            write_records(file, map(pickle.dumps, samples))
    both = f"{tmp_path}/a-*,{tmp_path}/b"
    for paths in (both, both.split(",")):
        assert list(reader.creator.recordio(paths, buf_size=1)()) == [(1, 2, 3), (4, 5, 6), "last"]
    with pytest.raises(OpValueError, match="There is no file .*nothing"):
        reader.creator.recordio(str(tmp_path / "nothing"))


def test_chunks_that_expand_without_bound_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fluidnb.data.reader.recordio._LARGEST", 10_000)
    body = struct.pack("<I", 20_000) + bytes(20_000)
    with pytest.raises(EnforceNotMet, match="more than 10,000 bytes"):
        read(chunk(gzip.compress(body), 2, 1))


def test_a_chunk_longer_than_its_file_takes_no_memory() -> None:
    tracemalloc.start()
    with pytest.raises(EnforceNotMet, match="it breaks off"):
        read(struct.pack("<5I", 0x01020304, 0, 2, 2**32 - 1, 1) + b"short")
    assert tracemalloc.get_traced_memory()[1] < 1_000_000
    tracemalloc.stop()
