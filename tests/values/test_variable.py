"""Runtime variables, rank tables, selected rows."""

from __future__ import annotations

import numpy as np
import pytest

from fluidnb.errors import EnforceNotMet, OpTypeError, OpValueError
from fluidnb.values import LoDRankTable, LoDTensor, LoDTensorArray, SelectedRows, Variable


def test_an_empty_variable_becomes_what_is_asked_first() -> None:
    for get, kind in (
        (Variable.get_tensor, LoDTensor),
        (Variable.get_lod_tensor_array, LoDTensorArray),
        (Variable.get_fetch_list, LoDTensorArray),
        (Variable.get_selected_rows, SelectedRows),
        (Variable.get_lod_rank_table, LoDRankTable),
    ):
        v = Variable("v")
        assert type(get(v)) is kind and get(v) is v.value


def test_the_tensor_knows_its_variable() -> None:
    with pytest.raises(EnforceNotMet, match='Variable "w" holds no memory'):
        np.array(Variable("w").get_tensor())


def test_a_wrong_type_names_both_and_changes_nothing() -> None:
    v = Variable("x")
    tensor = v.get_tensor()
    with pytest.raises(EnforceNotMet, match="must be type LoDTensorArray, the holding type is LoDTensor"):
        v.get_lod_tensor_array()
    assert v.value is tensor
    with pytest.raises(EnforceNotMet, match='Variable "y" must hold some thing'):
        Variable("y").get(LoDTensor)


def test_numbers() -> None:
    v = Variable("n")
    assert not v.is_int() and not v.is_float()
    v.set_int(3)
    assert v.is_int() and v.get_int() == 3
    with pytest.raises(EnforceNotMet, match="must be type float, the holding type is int"):
        v.get_float()
    v.set_float(2)
    assert v.is_float() and v.get_float() == 2.0 and not v.is_int()
    assert repr(v) == "Variable(n: 2.0)"


def test_rank_table_of_the_guides_example() -> None:
    table = LoDRankTable(((0, 5, 8, 10, 14),))
    assert table.items() == [(0, 5), (3, 4), (1, 3), (2, 2)]


def test_rank_table_is_stable_and_keeps_coarser_levels() -> None:
    lod = ((0, 2, 5), (0, 2, 4, 7, 9, 12))
    table = LoDRankTable(lod, 1)
    assert table.items() == [(2, 3), (4, 3), (0, 2), (1, 2), (3, 2)]
    assert table.coarse_lod == ((0, 2, 5),) and table.level == 1
    assert table == LoDRankTable(lod, 1) != LoDRankTable(lod, 0)
    for level in (2, -1):
        with pytest.raises(EnforceNotMet, match=f"no level {level} in a LoD of 2 levels"):
            table.reset(lod, level)
    assert table.level == 1


def test_selected_rows_add_up_repeated_rows() -> None:
    s = SelectedRows([4, 0, 4, 2], 6)
    s.get_tensor().set(np.arange(8, dtype="float32").reshape(4, 2))
    merged = s.merged()
    assert merged.rows() == [0, 2, 4] and np.array(merged.value).tolist() == [[2, 3], [6, 7], [4, 6]]
    assert merged.value.array.dtype == "float32"
    dense = s.to_dense()
    assert dense.shape == (6, 2) and (dense == merged.to_dense()).all() and dense[4].tolist() == [4, 6]
    assert (s.shape(), s.numel(), s.height()) == ([6, 2], 8, 6)
    s.sync_index()


def test_selected_rows_stay_inside_the_tensor() -> None:
    s = SelectedRows([1], 3)
    for wrong in ([3], [-1, 0]):
        with pytest.raises(OpValueError, match="outside the tensor"):
            s.set_rows(wrong)
    assert s.rows() == [1]
    s.set_height(10)
    s.set_rows(np.array([9]))
    assert s.rows() == [9] and repr(s) == "SelectedRows(rows=[9], height=10, value=none)"


@pytest.mark.parametrize("rows", [[1.5], "abc", None, [2**70], [[0], [1, 2]]])
def test_rows_are_ints(rows: object) -> None:
    with pytest.raises(OpTypeError, match="rows of SelectedRows are ints"):
        SelectedRows(rows, 10)
    assert SelectedRows([4.0], 10).rows() == [4]


def test_rows_and_values_that_do_not_go_together() -> None:
    for row in (-1, 3):
        s = SelectedRows([row])
        s.get_tensor().set(np.ones((1, 2)))
        s.set_height(3)
        with pytest.raises(OpValueError, match="outside the tensor"):
            s.to_dense()
    s.set_rows([0, 1])
    for method in (s.to_dense, s.merged):
        with pytest.raises(OpValueError, match="one value for each row"):
            method()
    for height in (-1, "a"):
        with pytest.raises(OpValueError, match="an int from 0"):
            s.set_height(height)  # type: ignore[arg-type]
        with pytest.raises(OpValueError, match="an int from 0"):
            SelectedRows([], height)  # type: ignore[arg-type]
