"""The safetensors format: named tensors in one file, without code; a JSON header and the bytes of each.

A file is: uint64 size of the header; the header, a JSON object of name -> ``{"dtype", "shape", "data_offsets"}`` with
offsets behind the header; the data.
"""

import json
import os
import struct
from typing import Any, NoReturn

import numpy as np

from fluidnb.errors import EnforceNotMet
from fluidnb.extras import require
from fluidnb.files.atomic_write import atomic_write

#: Names of dtypes in the file -> numpy's.
_DTYPES = {
    "BOOL": "bool", "U8": "uint8", "I8": "int8", "I16": "int16", "U16": "uint16", "I32": "int32", "U32": "uint32",
    "I64": "int64", "U64": "uint64", "F16": "float16", "BF16": "bfloat16", "F32": "float32", "F64": "float64",
}  # fmt: skip
_NAMES = {name: short for short, name in _DTYPES.items()}
#: Bytes of a header at most, as the reference implementation has it.
_LIMIT = 100_000_000


def write_safetensors(path: str, tensors: dict[str, np.ndarray]) -> None:
    """Writes named tensors.

    Args:
        path: the file; folders are created.
        tensors: name -> array.

    Raises:
        EnforceNotMet: a dtype that the format does not have, or a file that cannot be written.
    """
    header: dict[str, Any] = {}
    at = 0
    for name, array in sorted(tensors.items()):
        if str(array.dtype) not in _NAMES:
            raise EnforceNotMet(
                f'safetensors has no dtype for "{name}".', expected=", ".join(_NAMES), received=str(array.dtype),
                hint="cast it, or save in another format.",
            )  # fmt: skip
        offsets = [at, at + array.nbytes]
        header[name] = {"dtype": _NAMES[str(array.dtype)], "shape": list(array.shape), "data_offsets": offsets}
        at += array.nbytes
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    with atomic_write(path, parents=True, size=8 + len(text) + at) as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for _, array in sorted(tensors.items()):
            file.write(np.ascontiguousarray(array).tobytes())


def read_safetensors(path: str) -> dict[str, np.ndarray]:
    """Reads named tensors; they are mapped from the file, and copied when they are written.

    Args:
        path: the file.

    Returns:
        name -> array.

    Raises:
        EnforceNotMet: the file cannot be read, is cut off, or is of another format.
    """
    try:
        size = os.path.getsize(path)
        with open(path, "rb") as file:
            first = file.read(8)
            length = struct.unpack("<Q", first)[0] if len(first) == 8 else 0
            if not 2 <= length <= min(_LIMIT, size - 8):
                _refuse(path, f"a header of at most {max(size - 8, 0)} bytes", f"{length}")
            header = json.loads(file.read(length))
    except OSError as error:
        raise EnforceNotMet(f"Cannot read {path}.", received=error.strerror, hint="correct the path.") from None
    except (ValueError, RecursionError) as error:
        _refuse(path, "a JSON header", str(error)[:80])
    start, found = 8 + length, {}
    data = np.memmap(path, np.uint8, "c", start) if size > start else np.empty(0, np.uint8)
    if not isinstance(header, dict):
        _refuse(path, "a JSON object", type(header).__name__)
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        try:
            dtype, shape = _dtype(entry["dtype"]), tuple(int(n) for n in entry["shape"])
            begin, end = (int(n) for n in entry["data_offsets"])
        except (KeyError, TypeError, ValueError) as error:
            _refuse(path, f'dtype, shape and data_offsets of "{name}"', f"{type(error).__name__} {error}"[:80])
        wanted = dtype.itemsize
        for n in shape:
            wanted *= n
        if min(shape, default=0) < 0 or not 0 <= begin <= end <= size - start or end - begin != wanted:
            _refuse(path, f'{wanted} bytes of "{name}" inside the file', f"{begin} to {end} of {size - start}")
        found[name] = data[begin:end].view(dtype).reshape(shape)
    return found


def _dtype(name: str) -> np.dtype[Any]:
    dtype: Any = _DTYPES[name]
    found: np.dtype[Any] = np.dtype(require("ml_dtypes", dtype).bfloat16 if name == "BF16" else dtype)
    return found


def _refuse(path: str, expected: str, received: str) -> NoReturn:
    raise EnforceNotMet(
        f"{path} is no safetensors file, or it is cut off.", expected=expected, received=received,
        hint="download or save it again.",
    ) from None  # fmt: skip
