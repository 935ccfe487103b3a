"""Models of live pictures, without a page: outlines, windows of tensors, changes, parts of large scopes."""

from __future__ import annotations

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb import viz
from fluidnb.errors import OpValueError
from fluidnb.values.rank_table import LoDRankTable
from fluidnb.values.selected_rows import SelectedRows
from fluidnb.values.tensor import LoDTensor, LoDTensorArray
from fluidnb.viz.values.history import ValueHistories
from fluidnb.viz.values.reader import levels, read_scope_tree, value_at
from fluidnb.viz.values.tensor_window import View, plane_image, plane_picture, read_page


def test_every_window_shows_the_elements_that_numpy_has_there() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        shape = tuple(rng.integers(1, 6, rng.integers(2, 5)))
        array = rng.normal(size=shape)
        axes = tuple(int(a) for a in rng.permutation(len(shape))[:2])
        at = tuple(int(rng.integers(0, n)) for n in shape)
        row, column, rows, columns = (int(v) for v in rng.integers(0, 7, 4))
        page = read_page(array, View(axes, at, row, column, rows, columns))
        assert page.shape == (shape[axes[0]], shape[axes[1]])
        for i, line in enumerate(page.cells):
            for j, text in enumerate(line):
                place = list(at)
                place[axes[0]], place[axes[1]] = page.view.row + i, page.view.column + j
                assert text == f"{array[tuple(place)]:.5g}"


def test_windows_stay_inside() -> None:
    page = read_page(np.zeros((3, 4)), View(row=99, column=-5, rows=1000, columns=1000))
    assert (page.view.row, page.view.column) == (2, 0) and len(page.cells) == 1 and len(page.cells[0]) == 4
    assert len(read_page(np.zeros((900, 900)), View(rows=10**9, columns=10**9)).cells) == 200
    assert read_page(np.zeros((0, 3))).cells == () and read_page(np.zeros(0)).shape == (0, 0)


def test_one_axis_is_wrapped() -> None:
    page = read_page(np.arange(25))
    assert page.wraps and page.shape == (3, 10) and page.cells[2] == ("20", "21", "22", "23", "24")
    assert read_page(np.array(3.5)).cells == (("3.5",),)
    assert read_page(np.array([True, False])).cells == (("True", "False"),)


def test_there_are_two_different_axes() -> None:
    for axes in ((0, 0), (0, 3), (-1, 0)):
        with pytest.raises(OpValueError, match="two different axes"):
            read_page(np.zeros((2, 2, 2)), View(axes))


def test_pictures_of_planes() -> None:
    array = np.zeros((2, 500, 3, 16, 16))[0]
    assert plane_picture(array, View((0, 3))).size == (96, 16)
    assert plane_image(array, View(at=(7,))).kind == "image"
    assert plane_image(array, View((0, 1))) is None and plane_picture(np.zeros(3)) is None


def test_outlines() -> None:
    scope = fluid.Scope()
    scope.var("b"), scope.var("a")
    scope.new_scope().new_scope().var("deep").value = 7
    outline = read_scope_tree(scope, "top")
    assert [(b.path, b.names) for b in outline.each()] == [((), ("a", "b")), ((0,), ()), ((0, 0), ("deep",))]
    assert outline.size == 3 and value_at(scope, (0, 0), "deep") == 7
    assert value_at(scope, (0, 1), "deep") is None and value_at(scope, (), "deep") is None


def test_changes_of_all_kinds_of_values_are_seen() -> None:
    tensor = LoDTensor(np.zeros((100, 1000), "float32"))
    rows = SelectedRows([1, 5], 10, LoDTensor(np.ones((2, 4), "float32")))
    several = LoDTensorArray([LoDTensor(np.zeros(2, "float32")) for _ in range(2)])
    table = LoDRankTable([(0, 3), (1, 2)])
    values = {"tensor": tensor, "rows": rows, "several": several, "table": table, "none": None, "number": 3}
    seen = ValueHistories()
    for key, value in values.items():
        assert not seen.add(key, value, 0, 0) and not seen.add(key, value, 1, 1), key
    tensor.array[...] = 2.0
    rows.value.array[1, 2] = 7.0
    several.append(LoDTensor(np.zeros(2, "float32")))
    table.become(LoDRankTable([(0, 1)]))
    for key in ("tensor", "rows", "several", "table"):
        assert seen.add(key, values[key], 2, 2), key
        assert seen.add(key, values[key], 2, 2), "asked again, the answer is the same"
        assert not seen.add(key, values[key], 3, 3), key
    assert not seen.add("none", None, 2, 2) and seen.add("number", 4, 2, 2)
    assert [(s, m) for s, m, _ in seen["tensor"].points] == [(0, 0.0), (1, 0.0), (2, 2.0), (3, 2.0)]
    seen.keep(["rows"])
    assert seen["tensor"].points == [] and seen["rows"].points == []


def test_lines_of_elements() -> None:
    assert levels(LoDTensor(np.zeros((2, 2), "float32"))) == [0, 0, 0, 0]
    assert levels(LoDTensor(np.array([np.nan, np.inf], "float32"))) == [None, None]
    line = levels(LoDTensor(np.arange(10_000, dtype="int64").reshape(100, 100)))
    assert len(line) == 32 and line[0] == 0 and line[-1] == 20 and line == sorted(line, key=lambda v: v or 0)
    assert levels(LoDTensor()) == [] and levels(3) == []


def test_a_part_of_a_large_scope_says_how_much_is_missing() -> None:
    scope = fluid.Scope()
    for i in range(7):
        scope.var(f"v{i}")
        scope.new_scope()
    row = viz.read_scope(scope, "top", most=5)
    assert len(row.variables) == 5 and row.more == 2 and len(row.kids) == 5 and row.more_kids == 2
    text = viz.plain(viz.scope_lines(row))
    assert "top  7 variables" in text and "… 2 more variables" in text and "… 2 more scopes" in text
    html = viz.scope_html(row)
    assert "7 variables" in html and "2 more variables" in html and "2 more scopes" in html
