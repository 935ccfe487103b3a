"""Layers over SelectedRows, on the gradient of a sparse embedding."""

from __future__ import annotations

import numpy as np

import fluidnb as fluid

L = fluid.layers


def test_the_gradient_of_an_embedding_merged_and_as_a_tensor() -> None:
    ids = L.data("ids", [1], dtype="int64")
    table = L.embedding(ids, size=[9, 2], is_sparse=True)
    fluid.backward.append_backward(L.reduce_sum(table))
    merged = L.merge_selected_rows(table.param.grad, name="merged")
    values = L.get_tensor_from_selected_rows(merged)
    assert merged.name == "merged.out" and values.shape == (-1, 2)
    executor = fluid.Executor(fluid.CPUPlace())
    executor.run(fluid.default_startup_program())
    feed = {"ids": np.array([[4], [0], [4]])}
    rows, tensor = executor.run(feed=feed, fetch_list=[merged, values], return_numpy=False)
    assert rows.rows() == [0, 4] and rows.height() == 9
    np.testing.assert_array_equal(np.array(tensor), [[1, 1], [2, 2]])
