"""Operators that move, choose and order elements in C, beside the executor."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.code_generator.batch import Batch
from tests.code_generator.test_operators import real, whole


def moved(b: Batch) -> None:
    """roll, unbind and tril_triu: negative axes, shifts beyond the size, one row."""
    x = real(3, 4, 5)
    for shifts, axes in (([1], [0]), ([-2, 7], [1, -1]), ([3], []), ([1, 1], [2, 2])):
        b.add("roll", {"X": x}, {"shifts": shifts, "axis": axes}, grad=True)
    b.add("roll", {"X": whole(9, 4)}, {"shifts": [1], "axis": [0]})
    for axis in (0, 1, -1):
        b.add("unbind", {"X": x}, {"axis": axis}, [("Out", x.shape[axis])])
    for diagonal in (0, 2, -1, 9):
        for lower in (True, False):
            b.add("tril_triu", {"X": x}, {"diagonal": diagonal, "lower": lower}, grad=True)


def chosen(b: Batch) -> None:
    """index_select, gather_nd, take_along_axis: repeated numbers, negative axes, numbers of int32."""
    x = real(3, 4, 5)
    for axis in (0, 1, -1):
        b.add("index_select", {"X": x, "Index": np.array([2, 0, 2])}, {"dim": axis}, grad=["X"])
    b.add("index_select", {"X": x, "Index": np.array([1], "int32")}, {"dim": 1}, grad=["X"])
    for depth in (1, 2, 3):
        b.add("gather_nd", {"X": x, "Index": whole(3, 2, 3, depth)}, grad=["X"])
    for axis, shape in ((0, (6, 4, 5)), (1, (3, 2, 5)), (-1, (2, 3, 7))):
        inputs = {"Input": x, "Index": whole(3, *shape) - (axis == 1)}
        b.add("take_along_axis", inputs, {"Axis": axis}, ["Result"], grad=["Input"])


def ordered(b: Batch) -> None:
    """argsort with equal elements and NaN; logsumexp of large and infinite elements."""
    equal = whole(3, 4, 6).astype(np.float32)
    lost = np.array([[1, np.nan, 3, np.nan, -np.inf, np.inf, 1]], np.float32)
    for descending in (False, True):
        for axis in (0, -1):
            for x in (real(3, 4), equal, lost, whole(4, 5, 3), whole(4, 5, 3, dtype="int32")):
                b.add("argsort", {"X": x}, {"axis": axis, "descending": descending}, ["Out", "Indices"])
    for attrs in ({"axis": [-1]}, {"axis": [0, 2], "keepdim": True}, {"axis": [1]}, {"reduce_all": True}):
        b.add("logsumexp", {"X": real(3, 4, 5, low=-9, high=90)}, attrs, grad=True)
    endless = np.array([[np.inf, 1], [-np.inf, -np.inf], [-np.inf, 2], [1000, 1000]], np.float32)
    b.add("logsumexp", {"X": endless}, {"axis": [1]})
    b.add("logsumexp", {"X": endless.astype(np.float64)}, {"axis": [1]})


@pytest.mark.parametrize("group", [moved, chosen, ordered], ids=lambda group: group.__name__)
def test_operators_on_elements_in_c(group: Callable[[Batch], None], tmp_path: Path) -> None:
    batch = Batch()
    group(batch)
    batch.check(tmp_path)
