"""The restricted unpicklers, of bytes and of files: what plain data may hold, and what is refused."""

from __future__ import annotations

import os
import pickle
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fluidnb.errors import EnforceNotMet
from fluidnb.files import plain_pickle

VALUES = [
    None, True, 3, 2**80, 1.5, "text", b"bytes", bytearray(b"ab"), [1, [2]], (1, (2, [3])), {"a": {1: (2,)}}, {1, 2},
    frozenset([3]), 1 + 2j,
]  # fmt: skip


def load(path: Path) -> Any:
    """Plain value of a file."""
    with path.open("rb") as file:
        return plain_pickle.load(file)


@pytest.fixture(params=["bytes", "file"])
def read(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[bytes], Any]:
    """Reads a pickle that is in memory, or in a file."""

    def from_file(data: bytes) -> Any:
        (tmp_path / "x").write_bytes(data)
        return load(tmp_path / "x")

    return from_file if request.param == "file" else lambda data: plain_pickle.loads(data, "x")


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_plain_values(value: object, protocol: int, read: Callable[[bytes], Any]) -> None:
    found = read(pickle.dumps(value, protocol))
    assert found == value and type(found) is type(value)


@pytest.mark.parametrize("dtype", ["f4", "f8", ">i8", "u1", "?", "f2"])
def test_arrays_and_scalars_at_any_depth(dtype: str, read: Callable[[bytes], Any]) -> None:
    array = np.arange(6).astype(dtype).reshape(2, 3)
    found = read(pickle.dumps([(array, array[0, 1], {"k": array.T})]))[0]
    assert (found[0] == array).all() and found[0].dtype == array.dtype
    assert found[1] == array[0, 1] and isinstance(found[1], np.generic)
    assert (found[2]["k"] == array.T).all()


class Calls:
    """Calls something where it is unpickled."""

    def __init__(self, function: object, *arguments: object) -> None:
        self.how = function, arguments

    def __reduce__(self):
        return self.how


@pytest.mark.parametrize(
    "value",
    [
        Calls(os.system, "touch evil"), Calls(eval, "1"), Calls(bytearray, 10**12), Calls(np.zeros, 10**12), np.ndarray,
        np.array(["text"]), np.array([object()], object), print,
    ],
    ids=["system", "eval", "bytearray", "zeros", "type", "text", "objects", "function"],
)  # fmt: skip
def test_everything_else_is_refused(
    value: object, read: Callable[[bytes], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for protocol in (2, 4):
        with pytest.raises(EnforceNotMet, match="x is not plain data"):
            read(pickle.dumps([value], protocol))
    assert set(os.listdir(tmp_path)) <= {"x"}


@pytest.mark.parametrize(
    "data", [b"\x80\x02]r\xff\xff\xff\x7f.", b"\x80\x02]p999999999\n.", b"", b"junk", b"\x80\x04\x8c\xff"]
)
def test_damaged_pickles_take_no_memory(data: bytes) -> None:
    tracemalloc.start()
    with pytest.raises(EnforceNotMet, match="x is not plain data"):
        plain_pickle.loads(data, "x")
    assert tracemalloc.get_traced_memory()[1] < 1_000_000
    tracemalloc.stop()


@pytest.mark.parametrize(
    "data",
    [b"", b"junk", b"\x80\x04\x8c\xff", b"\x80\x04B\xff\xff\xff\x7f.", b"\x80\x04\x8e" + b"\xff" * 7 + b"\x0f.",
     b"\x80\x04\x95" + b"\xff" * 7 + b"\x0f]", b"\x80\x04X\xff\xff\xff\x7f."],
)  # fmt: skip
def test_damaged_files_take_no_memory(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(data)
    tracemalloc.start()
    with pytest.raises(EnforceNotMet, match="x is not plain data"):
        load(tmp_path / "x")
    assert tracemalloc.get_traced_memory()[1] < 1_000_000
    tracemalloc.stop()


@pytest.mark.parametrize("protocol", [2, 3, 4])
@pytest.mark.parametrize("order", ["C", "F"])
def test_large_arrays_of_files(protocol: int, order: Any, tmp_path: Path) -> None:
    """Aligned arrays that may be written to, whatever the file; each is in memory once."""
    arrays = {str(n): np.asarray(np.random.default_rng(n).random((300, n)), order=order) for n in (40, 300, 301)}
    value = [arrays, arrays["300"], "é" * 80_000, b"\xff\0" * 80_000, "short"]
    (tmp_path / "x").write_bytes(pickle.dumps(value, protocol))
    tracemalloc.start()
    found = load(tmp_path / "x")
    size = sum(a.nbytes for a in arrays.values())
    assert tracemalloc.get_traced_memory()[1] < 1.3 * size + 3_000_000, "a chunk of text and its decoding"
    tracemalloc.stop()
    for name, array in arrays.items():
        np.testing.assert_array_equal(found[0][name], array)
        assert found[0][name].flags.writeable and found[0][name].flags.aligned
    assert found[1] is found[0]["300"] and found[2:] == value[2:]


@pytest.mark.parametrize("protocol", [2, 4])
def test_large_arrays_of_damaged_files(protocol: int, tmp_path: Path) -> None:
    data = pickle.dumps(np.full((100, 200), 7.5), protocol)
    path = tmp_path / "x"
    path.write_bytes(data)
    assert load(path).sum() == 150_000
    short = data.replace(b"K\xc8", b"K\xc9", 1)
    for damaged in (data[:-60_000], data[: len(data) // 2], short):
        path.write_bytes(damaged)
        with pytest.raises(EnforceNotMet, match="x is not plain data"):
            load(path)


def test_many_references_to_one_object_stay_small() -> None:
    value: list[object] = ["a"]
    for _ in range(60):
        value = [value, value]
    found = plain_pickle.loads(pickle.dumps(value), "x")
    for _ in range(60):
        assert found[0] is found[1]
        found = found[0]
    assert found == ["a"]
    loop: list[object] = []
    loop.append(loop)
    with pytest.raises(EnforceNotMet, match="recursion"):
        plain_pickle.loads(pickle.dumps(loop), "x")
