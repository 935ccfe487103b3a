"""Paddle's file format of tensors: records of a LoD, a header and the data, all little endian, and numpy's ``.npy``.

A LoDTensor is: uint32 version 0; uint64 number of levels; for each level uint64 bytes and the offsets as uint64; then
a Tensor: uint32 version 0; int32 bytes of the header; the header, a TensorDesc message (field 1 dtype, field 2 sizes);
the data in row-major order. SelectedRows are: uint32 version 0; uint64 number of rows; the rows as int64; int64 height;
a Tensor.
"""

import math
import mmap
import os
import struct
from dataclasses import dataclass
from tokenize import TokenError
from typing import IO, Any

import numpy as np

from fluidnb.errors import EnforceNotMet
from fluidnb.files.remaining import remaining
from fluidnb.values import dtypes
from fluidnb.values.device_array import Array
from fluidnb.values.selected_rows import SelectedRows
from fluidnb.values.tensor import AXES

NUMPY = (".npy", ".numpy")


@dataclass(frozen=True, slots=True)
class Header:
    """The header of a record."""

    dtype: str  # name of the elements' dtype
    shape: tuple[int, ...]  # sizes
    lod: tuple[tuple[int, ...], ...]  # offsets of each level
    start: int  # where in the file the data begins
    rows: tuple[int, ...] | None = None  # of SelectedRows, the row numbers; None for a tensor
    height: int = 0  # of SelectedRows, rows of the whole tensor

    @property
    def size(self) -> int:
        """Bytes of the data."""
        return math.prod(self.shape) * dtypes.np_dtype(self.dtype).itemsize


def _varint(number: int) -> bytes:
    number &= 2**64 - 1
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def write_record(file: IO[bytes], array: Array, lod: Any = ()) -> None:
    """Write a LoDTensor.

    Args:
        lod: offsets of each level.

    Example:
        >>> import io
        >>> f = io.BytesIO(); write_record(f, np.zeros((13, 5), "float32")); f.getvalue()[16:26].hex(" ")
        '06 00 00 00 08 05 10 0d 10 05'

    Source: the layout was found by reading files that Paddle 2.6.2 had written.
    """
    file.write(struct.pack("<IQ", 0, len(lod)))
    for level in lod:
        file.write(struct.pack("<Q", 8 * len(level)) + np.asarray(level, "<u8").tobytes())
    _write_tensor(file, array)


def _write_tensor(file: IO[bytes], array: Array) -> None:
    desc = b"\x08" + _varint(int(dtypes.var_type(array.dtype))) + b"".join(b"\x10" + _varint(n) for n in array.shape)
    file.write(struct.pack("<Ii", 0, len(desc)) + desc)
    file.write(np.ascontiguousarray(array).tobytes())


def write_rows(file: IO[bytes], rows: SelectedRows) -> None:
    """Write SelectedRows."""
    numbers = np.asarray(rows.rows(), "<i8")
    file.write(struct.pack("<IQ", 0, len(numbers)) + numbers.tobytes() + struct.pack("<q", rows.height()))
    _write_tensor(file, np.asarray(rows.get_tensor()))


def _take(file: IO[bytes], n: int, path: str) -> bytes:
    """The next `n` bytes; the size is compared with the file's before memory is allocated for it."""
    left = remaining(file)
    if not 0 <= n <= left:
        raise EnforceNotMet(
            f"{path} is no tensor file, or it is cut off.", expected=f"{n} more bytes", received=f"{left}",
            hint="it was written by another program, by a save that failed, or as one file for several variables.",
        )  # fmt: skip
    return file.read(n)


def read_header(file: IO[bytes], path: str) -> Header:
    """Reads the header of a LoDTensor; the file position is then that of the data."""
    version, levels = struct.unpack("<IQ", _take(file, 12, path))
    if version != 0 or levels > 64:
        raise EnforceNotMet(
            f"{path} is no tensor file.", expected="version 0", received=version, hint="save it as one first."
        )
    lod = []
    for _ in range(levels):
        (size,) = struct.unpack("<Q", _take(file, 8, path))
        if size % 8:
            raise _no_header(path, "offsets of 8 bytes", f"a level of {size} bytes")
        lod.append(tuple(np.frombuffer(_take(file, size, path), "<u8").tolist()))
    return Header(*_tensor_header(file, path), tuple(lod), file.tell())


def read_rows_header(file: IO[bytes], path: str) -> Header:
    """Reads the header of SelectedRows; the file position is then that of the data."""
    version, count = struct.unpack("<IQ", _take(file, 12, path))
    if version != 0:
        raise EnforceNotMet(
            f"{path} holds no SelectedRows.", expected="version 0", received=version, hint="save them first."
        )
    rows = np.frombuffer(_take(file, 8 * count, path), "<i8")
    (height,) = struct.unpack("<q", _take(file, 8, path))
    dtype, shape = _tensor_header(file, path)
    if shape[:1] != (count,) or rows.size and not (0 <= rows.min() and rows.max() < height):
        raise EnforceNotMet(
            f"{path} holds no SelectedRows: its rows and its values do not go together.",
            expected=f"{count} rows of values, with numbers from 0 to {height - 1}",
            received=f"values {list(shape)}", hint="load it into a variable of the type with which it was saved.",
        )  # fmt: skip
    return Header(dtype, shape, (), file.tell(), tuple(rows.tolist()), height)


def _tensor_header(file: IO[bytes], path: str) -> tuple[str, tuple[int, ...]]:
    """Reads dtype and sizes of a Tensor; the file position is then that of its data."""
    _, size = struct.unpack("<Ii", _take(file, 8, path))
    number, shape = _parse(_take(file, size, path), path)
    name = dtypes.dtype_name(number)
    # numpy refuses an empty array whose other sizes are too many bytes; the file is too short for others
    too_large = 0 in shape and math.prod(n or 1 for n in shape) * dtypes.np_dtype(name).itemsize >= 2**63
    if len(shape) > AXES or too_large:
        raise _no_header(path, f"at most {AXES} sizes, of less than 2**63 bytes", f"sizes {list(shape)}"[:200])
    return name, shape


def _parse(desc: bytes, path: str) -> tuple[int, tuple[int, ...]]:
    """dtype number and sizes of a TensorDesc message."""
    number, shape, at = -1, [], 0

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while at < len(desc) and shift < 70:  # the 10 bytes of a number of 64 bits
            value |= (desc[at] & 0x7F) << shift
            shift, at = shift + 7, at + 1
            if desc[at - 1] < 0x80:
                return value
        raise _no_header(path, "a number that ends after 10 bytes", f"{len(desc)} bytes")

    while at < len(desc):
        key = varint()
        if key == 0x08:
            number = varint()
        elif key == 0x10:
            shape.append(varint())
        elif key == 0x12:  # packed, as some writers of protobuf do it
            end = varint() + at
            while at < end:
                shape.append(varint())
        else:
            raise _no_header(path, "fields 1 and 2", f"field {key >> 3}")
    return number, tuple(shape)


def _no_header(path: str, expected: str, received: str) -> EnforceNotMet:
    return EnforceNotMet(
        f"{path} is not a valid tensor file: bad header.", expected=expected, received=received,
        hint="save it again, or load it with what wrote it.",
    )  # fmt: skip


def read_data(file: IO[bytes], header: Header, path: str) -> Array:
    """Read the data of a record."""
    file.seek(header.start)
    return np.frombuffer(_take(file, header.size, path), dtypes.np_dtype(header.dtype)).reshape(header.shape)


def headers(path: str, kinds: tuple[bool, ...]) -> list[Header]:
    """The headers of the tensors in a file."""
    if path.endswith(NUMPY) and len(kinds) != 1:
        raise EnforceNotMet(
            f"{path} has one tensor, as every file in numpy's format.", expected=f"{len(kinds)} tensors",
            received="one", hint="save them with another ending than .npy, which gives Paddle's format.",
        )  # fmt: skip
    try:
        if path.endswith(NUMPY):
            array = _numpy_file(path)
            return [Header(dtypes.dtype_name(array.dtype), array.shape, (), -1)]
        with open(path, "rb") as file:
            found = []
            end, at = file.seek(0, os.SEEK_END), 0
            for is_rows in kinds:
                file.seek(at)
                found.append((read_rows_header if is_rows else read_header)(file, path))
                at = file.tell() + found[-1].size
                if at > end:
                    break
    except OSError as e:
        raise EnforceNotMet(
            f"Cannot open file {path} for load op.", expected="a file that can be read", received=e.strerror,
            hint="save it first, or correct the path.",
        ) from None  # fmt: skip
    if at != end:
        raise EnforceNotMet(
            f"{path} does not hold {'one tensor' if len(kinds) == 1 else f'{len(kinds)} tensors'}.",
            expected=f"{at} bytes", received=f"{end} bytes",
            hint="a file of several variables is read by load_combine, in the order in which they were saved.",
        )  # fmt: skip
    return found


def _numpy_file(path: str) -> Array:
    """The array in a file in numpy's format, mapped."""
    try:
        return np.lib.format.open_memmap(path, mode="r")
    except (ValueError, EOFError, OverflowError, SyntaxError, TypeError, TokenError) as e:
        raise EnforceNotMet(
            f"{path} is not a file in numpy's format, or it is cut off.", expected="what numpy.save writes",
            received=str(e)[:200], hint="save it again, or load it with what wrote it.",
        ) from None  # fmt: skip


def read_tensors(path: str, count: int) -> list[tuple[Array, tuple[tuple[int, ...], ...]]]:
    """The tensors of a file with their LoDs: mapped where their place in the file is aligned, else read.

    Memory that is mapped is loaded when it is used, and copied when it is written: the file does not change. Arrays
    whose address is no multiple of their elements' size are slow, and other code may not take them.

    Args:
        path: the file.
        count: how many tensors it has.

    Raises:
        EnforceNotMet: the file cannot be read, or does not hold so many tensors.
    """
    found = headers(path, (False,) * count)
    out: list[tuple[Array, tuple[tuple[int, ...], ...]]] = []
    with open(path, "rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY) if found else None
        for header in found:
            dtype = dtypes.np_dtype(header.dtype)
            if mapped is not None and header.size and header.start % dtype.itemsize == 0:
                array = np.frombuffer(mapped, dtype, math.prod(header.shape), header.start).reshape(header.shape)
            else:
                array = np.empty(header.shape, dtype)
                file.seek(header.start)
                file.readinto(array.reshape(-1).view(np.uint8).data)
            out.append((array, header.lod))
    return out
