"""The safetensors format: written and read again, and files that are damaged."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import numpy as np
import pytest

from fluidnb.errors import EnforceNotMet
from fluidnb.files.safetensors import read_safetensors, write_safetensors

TENSORS = {
    "w": np.arange(6, dtype="float32").reshape(2, 3), "b": np.array([True, False]), "n": np.array(7, "int64"),
    "half": np.array([1.5, 2.5], "float16"), "none": np.zeros((0, 3), "float64"),
}  # fmt: skip


def test_tensors_come_back(tmp_path: Path) -> None:
    path = str(tmp_path / "a.safetensors")
    write_safetensors(path, TENSORS)
    found = read_safetensors(path)
    assert found.keys() == TENSORS.keys()
    for name, value in TENSORS.items():
        assert (found[name].dtype, found[name].shape) == (value.dtype, value.shape)
        np.testing.assert_array_equal(found[name], value)
    found["w"][0, 0] = 9  # the file stays as it is
    np.testing.assert_array_equal(read_safetensors(path)["w"], TENSORS["w"])


def test_the_bytes_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    write_safetensors(str(path), {"x": np.array([1, 2], "<i4")})
    head = b'{"x":{"dtype":"I32","shape":[2],"data_offsets":[0,8]}}'
    head += b" " * (-len(head) % 8)
    assert path.read_bytes() == struct.pack("<Q", len(head)) + head + b"\x01\0\0\0\x02\0\0\0"


def test_a_dtype_that_the_format_does_not_have(tmp_path: Path) -> None:
    with pytest.raises(EnforceNotMet, match='no dtype for "c"(.|\n)*complex64'):
        write_safetensors(str(tmp_path / "a"), {"c": np.zeros(2, "complex64")})
    assert list(tmp_path.iterdir()) == []


def file_of(folder: Path, header: object, data: bytes = b"\0" * 8) -> str:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    (folder / "a").write_bytes(struct.pack("<Q", len(text)) + text + data)
    return str(folder / "a")


@pytest.mark.parametrize(
    "header",
    [
        b"{", b"[]", b"\xff\xff", b"[" * 100_000, {"x": 3}, {"x": {"dtype": "F32", "shape": [2]}},
        {"x": {"dtype": "F33", "shape": [2], "data_offsets": [0, 8]}},
        {"x": {"dtype": "F32", "shape": [3], "data_offsets": [0, 8]}},
        {"x": {"dtype": "F32", "shape": [-2], "data_offsets": [0, 8]}},
        {"x": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}},
        {"x": {"dtype": "F32", "shape": [2], "data_offsets": [-8, 0]}},
        {"x": {"dtype": "F32", "shape": [2**40, 2**40], "data_offsets": [0, 8]}},
    ],
)  # fmt: skip
def test_headers_that_do_not_fit(header: object, tmp_path: Path) -> None:
    with pytest.raises(EnforceNotMet, match="no safetensors file, or it is cut off"):
        read_safetensors(file_of(tmp_path, header))


@pytest.mark.parametrize("data", [b"", b"\0" * 7, struct.pack("<Q", 2**60) + b"{}", b"\0" * 8])
def test_files_that_are_too_short(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(data)
    with pytest.raises(EnforceNotMet, match="no safetensors file"):
        read_safetensors(str(tmp_path / "a"))


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(EnforceNotMet, match="Cannot read"):
        read_safetensors(str(tmp_path / "a"))
