"""layers.mean_iou."""

from __future__ import annotations

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.errors import OpTypeError

L = fluid.layers


def test_mean_iou_gives_all_three_results() -> None:
    x, label = L.data("x", [4], dtype="int32"), L.data("label", [4], dtype="int32")
    found = L.mean_iou(x, label, num_classes=3)
    guess, truth = np.array([[0, 1, 1, 2]], "int32"), np.array([[0, 0, 1, 2]], "int32")
    feed = {"x": guess, "label": truth}
    mean, wrong, correct = fluid.Executor(fluid.CPUPlace()).run(feed=feed, fetch_list=list(found))
    np.testing.assert_allclose(mean, [(0.5 + 0.5 + 1) / 3], rtol=1e-6)
    assert wrong.tolist() == [1, 1, 0] and correct.tolist() == [1, 1, 1]
    assert all(v.stop_gradient for v in found)
    with pytest.raises(OpTypeError, match="label of mean_iou must be a Variable"):
        L.mean_iou(x, truth, 3)
