"""The developer guide's frequent questions (S1.26)."""

from __future__ import annotations

import numpy as np

import fluidnb as fluid


def test_s1_26_evaluator() -> None:
    import paddle.v2.fluid as paddle_fluid

    predict = fluid.layers.data("predict", [2])
    label = fluid.layers.data("label", [1], dtype="int64")
    avg_cost = fluid.layers.mean(x=fluid.layers.cross_entropy(input=predict, label=label))
    exe = fluid.Executor(fluid.CPUPlace())
    scores = np.tile(np.array([0.75, 0.25], "float32"), (4, 1))
    batches = [np.array([[0], [0], [0], [1]]), np.array([[1], [1], [0], [1]])]  # 3 of 4 right, then 1 of 4

    accuracy = paddle_fluid.evaluator.Accuracy(input=predict, label=label)
    seen, totals = [], []
    for _ in range(2):
        accuracy.reset()
        for labels in batches:
            loss, acc = exe.run(
                fluid.default_main_program(),
                feed={"predict": scores, "label": labels},
                fetch_list=[avg_cost] + accuracy.metrics,
            )
            pass_acc = accuracy.eval(exe)
            seen.append((acc.item(), pass_acc.item()))
            np.testing.assert_allclose(loss, -np.log(np.where(labels, 0.25, 0.75)).mean(), rtol=1e-6)
        pass_total_acc = accuracy.eval(exe)
        totals.append(pass_total_acc.item())
    assert seen == [(0.75, 0.75), (0.25, 0.5)] * 2
    assert totals == [0.5, 0.5]
