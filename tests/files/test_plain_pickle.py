"""The restricted unpickler: what plain data may hold, and what is refused."""

from __future__ import annotations

import os
import pickle
import tracemalloc

import numpy as np
import pytest

from fluidnb.errors import EnforceNotMet
from fluidnb.files import plain_pickle

VALUES = [
    None, True, 3, 2**80, 1.5, "text", b"bytes", bytearray(b"ab"), [1, [2]], (1, (2, [3])), {"a": {1: (2,)}}, {1, 2},
    frozenset([3]), 1 + 2j,
]  # fmt: skip


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_plain_values(value: object, protocol: int) -> None:
    found = plain_pickle.loads(pickle.dumps(value, protocol), "x")
    assert found == value and type(found) is type(value)


@pytest.mark.parametrize("dtype", ["f4", "f8", ">i8", "u1", "?", "f2"])
def test_arrays_and_scalars_at_any_depth(dtype: str) -> None:
    array = np.arange(6).astype(dtype).reshape(2, 3)
    found = plain_pickle.loads(pickle.dumps([(array, array[0, 1], {"k": array.T})]), "x")[0]
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
def test_everything_else_is_refused(value: object, tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(EnforceNotMet, match="x is not plain data"):
        plain_pickle.loads(pickle.dumps([value]), "x")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    "data", [b"\x80\x02]r\xff\xff\xff\x7f.", b"\x80\x02]p999999999\n.", b"", b"junk", b"\x80\x04\x8c\xff"]
)
def test_damaged_pickles_take_no_memory(data: bytes) -> None:
    tracemalloc.start()
    with pytest.raises(EnforceNotMet, match="x is not plain data"):
        plain_pickle.loads(data, "x")
    assert tracemalloc.get_traced_memory()[1] < 1_000_000
    tracemalloc.stop()


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
