"""Narrow ids and labels, and tables without rows or columns."""

from __future__ import annotations

import numpy as np
import pytest

from fluidnb.errors import EnforceNotMet
from fluidnb.testing import run_op
from fluidnb_kernels.rows.values import sum_rows


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "int64"])
def test_ids_may_be_narrower_than_the_table_is_high(dtype: str) -> None:
    table = np.arange(600.0).reshape(300, 2)
    out = run_op("lookup_table", {"W": table, "Ids": np.array([[3], [100]], dtype)})["Out"]
    assert np.array_equal(out, table[[3, 100]])


@pytest.mark.parametrize("dtype", ["int8", "int16", "int64"])
def test_labels_may_be_narrower_than_the_classes_are_many(dtype: str) -> None:
    logits = np.zeros((2, 300))
    loss = run_op("softmax_with_cross_entropy", {"Logits": logits, "Label": np.array([[3], [100]], dtype)})["Loss"]
    assert np.allclose(loss, np.log(300))
    with pytest.raises(EnforceNotMet, match="out of range"):
        run_op("softmax_with_cross_entropy", {"Logits": logits, "Label": np.array([[3], [-1]], dtype)})


@pytest.mark.parametrize(("height", "width", "count"), [(0, 2, 0), (3, 0, 2), (3, 2, 0)])
def test_nothing_to_add(height: int, width: int, count: int) -> None:
    table = np.zeros((height, width))
    sum_rows(table, np.zeros(count, np.int64), np.zeros((count, width)))
    assert not table.any()
