"""The developer guide's snippets that feed and run (S1.3, S1.24, S1.25)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.errors import OpTypeError, OpValueError


def test_s1_3_reader_feeder_executor() -> None:
    import paddle

    x = fluid.layers.data(name="x", shape=[13], dtype="float32")
    y_predict = fluid.layers.fc(input=x, size=1, act=None)
    y = fluid.layers.data(name="y", shape=[1], dtype="float32")
    avg_cost = fluid.layers.mean(x=fluid.layers.square_error_cost(input=y_predict, label=y))
    fluid.optimizer.SGD(0.01).minimize(avg_cost)
    place = fluid.CPUPlace()
    train_reader = paddle.batch(paddle.reader.shuffle(paddle.dataset.uci_housing.train(), buf_size=500), batch_size=20)
    feeder = fluid.DataFeeder(place=place, feed_list=[x, y])
    exe = fluid.Executor(place)
    exe.run(fluid.default_startup_program())
    scope = fluid.global_scope()
    w, b = (np.array(scope.find_var(n).get_tensor()) for n in ("fc_0.w_0", "fc_0.b_0"))
    losses = []
    for _ in range(100):
        for data in train_reader():
            (avg_loss_value,) = exe.run(fluid.default_main_program(), feed=feeder.feed(data), fetch_list=[avg_cost])
            losses.append(float(avg_loss_value[0]))
            features, prices = (np.stack(part).astype("float32") for part in zip(*data, strict=True))
            error = features @ w + b - prices
            assert losses[-1] == pytest.approx(float(np.mean(error**2)), rel=1e-3, abs=1e-4)
            w -= 0.01 * 2 * features.T @ error / len(data)
            b -= 0.01 * 2 * error.mean(0)
    assert len(losses) == 100 * 21 and losses[-1] < 0.01 * losses[0]


def regression() -> Any:
    """x [8], y [1] and the mean squared error of an fc."""
    x = fluid.layers.data(name="x", shape=[8], dtype="float32")
    y = fluid.layers.data(name="y", shape=[1], dtype="float32")
    return fluid.layers.mean(fluid.layers.square_error_cost(input=fluid.layers.fc(x, size=1), label=y))


def test_s1_24_feed_by_dict() -> None:
    from paddle.fluid import core

    place = fluid.CPUPlace()
    avg_cost = regression()
    exe = fluid.Executor(place)
    exe.run(fluid.default_startup_program())
    y_data = np.random.randint(0, 8, [11, 1]).astype("float32")
    y_tensor = core.Tensor()
    y_tensor.set(y_data, place)
    x_data = np.random.uniform(0.1, 1, [11, 8]).astype("float32")
    x_tensor = core.Tensor()
    x_tensor.set(x_data, place)
    main = fluid.default_main_program()
    cost = exe.run(main, feed={"x": x_tensor, "y": y_tensor}, fetch_list=[avg_cost])
    same = exe.run(main, feed={"x": x_data, "y": y_data}, fetch_list=[avg_cost])
    assert cost[0].tobytes() == same[0].tobytes()
    with pytest.raises(OpTypeError, match="fetchlist") as caught:
        exe.run(main, feed={"x": x_tensor, "y": y_tensor}, fetchlist=[avg_cost])
    assert caught.value.hint == 'Did you mean "fetch_list"?'
    y_tensor.set(y_data.astype("int32"), place)
    with pytest.raises(OpValueError, match=r"must be the same. Get \(float32\) != \(int32\)"):
        exe.run(main, feed={"x": x_tensor, "y": y_tensor}, fetch_list=[avg_cost])


def test_s1_25_data_feeder() -> None:
    import paddle

    def demo_reader() -> Any:
        def random_generator() -> Any:
            yield np.random.uniform(0.1, 1, [4]), np.random.randint(0, 1, [1])

        return random_generator

    x = fluid.layers.data(name="x", shape=[4], dtype="float32")
    y = fluid.layers.data(name="y", shape=[1], dtype="int64")
    score = fluid.layers.fc(x, size=2, act="softmax")
    avg_cost = fluid.layers.mean(fluid.layers.cross_entropy(input=score, label=y))
    place = fluid.CPUPlace()
    exe = fluid.Executor(place)
    exe.run(fluid.default_startup_program())
    train_reader = paddle.batch(paddle.reader.shuffle(demo_reader(), buf_size=500), batch_size=4)
    feeder = fluid.DataFeeder(place=place, feed_list=[x, y])
    results = []
    for data in train_reader():
        results += exe.run(fluid.default_main_program(), feed=feeder.feed(data), fetch_list=[avg_cost, score])
    assert [r.shape for r in results] == [(1,), (1, 2)]
    assert results[0][0] == pytest.approx(-np.log(results[1][0, 0]), rel=1e-5)
