"""Operators that move, choose and order elements in C, beside the executor."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.code_generator.batch import Batch
from tests.code_generator.test_operators import real, whole


def moved(b: Batch) -> None:
    """roll, unbind, meshgrid and tril_triu: negative axes, shifts beyond the size, one row."""
    x = real(3, 4, 5)
    for shifts, axes in (([1], [0]), ([-2, 7], [1, -1]), ([3], []), ([1, 1], [2, 2])):
        b.add("roll", {"X": x}, {"shifts": shifts, "axis": axes}, grad=True)
    b.add("roll", {"X": whole(9, 4)}, {"shifts": [1], "axis": [0]})
    for axis in (0, 1, -1):
        b.add("unbind", {"X": x}, {"axis": axis}, [("Out", x.shape[axis])])
    b.add("meshgrid", {"X": [real(3), real(1), real(4)]}, outputs=[("Out", 3)])
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


def put(b: Batch) -> None:
    """put_along_axis: all ways to reduce, with and without what is there; set_value: parts of all kinds."""
    x = real(3, 4, 5)
    for how in ("assign", "add", "mul", "amax", "amin"):
        for included in (True, False):
            attrs = {"Axis": 1, "Reduce": how, "Include_self": included}
            inputs = {"Input": x, "Index": whole(4, 2, 3, 5) - 4, "Value": real(2, 3, 5)}
            b.add("put_along_axis", inputs, attrs, ["Result"])
    inputs = {"Input": whole(9, 3, 4), "Index": np.array([[2, 0]]), "Value": whole(9, 1, 1)}
    b.add("put_along_axis", inputs, {"Axis": -1, "Reduce": "amax"}, ["Result"])
    cut = {"axes": [0, 2], "starts": [0, -1], "ends": [3, -5], "steps": [2, -2]}
    b.add("set_value", {"Input": x}, {**cut, "values": [0.1], "shape": [1]})
    b.add("set_value", {"Input": x}, {**cut, "values": [1e-9, float("inf")], "shape": [1, 2]})
    b.add("set_value", {"Input": x, "ValueTensor": real(4, 2)}, cut)
    one = {"axes": [1], "starts": [-1], "ends": [4], "steps": [1], "decrease_axes": [1]}
    b.add("set_value", {"Input": x, "ValueTensor": real(1, 3, 5)}, one)
    b.add("set_value", {"Input": x, "ValueTensor": real(3, 1, 5)}, {**one, "none_axes": [1]})
    b.add("set_value", {"Input": whole(9, 4)}, {**cut, "axes": [0], "starts": [2], "ends": [2], "steps": [1],
                                                "values": [7], "shape": [1]})  # fmt: skip


def products(b: Batch) -> None:
    """einsum: sums, diagonals, several operands, axes of size 1, everything summed."""
    a, c = real(3, 4), real(4, 5)
    for equation, operands in (
        ("ij,jk->ik", [a, c]), ("ij,kj->ik", [a, real(2, 4)]), ("ij->ji", [a]), ("ii->i", [real(3, 3)]),
        ("ij->", [a]), ("ij,jk,kl->il", [a, c, real(5, 2)]), ("i,j->ij", [real(3), real(4)]),
        ("bij,bjk->bik", [real(2, 3, 4), real(2, 4, 5)]), ("ij,ij->i", [a, real(1, 4)]),
    ):  # fmt: skip
        b.add("einsum", {"Operands": operands}, {"equation": equation})


@pytest.mark.parametrize("group", [moved, chosen, ordered, put, products], ids=lambda group: group.__name__)
def test_operators_on_elements_in_c(group: Callable[[Batch], None], tmp_path: Path) -> None:
    batch = Batch()
    group(batch)
    batch.check(tmp_path)
