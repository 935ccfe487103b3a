"""The developer guide's snippets that rewrite programs (S1.23)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from tests.transpiler.models import Model


def training() -> tuple[list[Any], dict[str, Any]]:
    """The guide's regression with a hidden layer, and a batch."""
    x = fluid.layers.data(name="x", shape=[13], dtype="float32")
    y = fluid.layers.data(name="y", shape=[1], dtype="float32")
    hidden = fluid.layers.fc(input=fluid.layers.fc(input=x, size=64, act="relu"), size=64, act="tanh")
    cost = fluid.layers.square_error_cost(input=fluid.layers.fc(input=hidden, size=1), label=y)
    loss = fluid.layers.mean(x=cost)
    fluid.optimizer.SGD(0.01).minimize(loss)
    rng = np.random.default_rng(0)
    return [loss], {"x": rng.normal(size=(20, 13)).astype("float32"), "y": rng.normal(size=(20, 1)).astype("float32")}


def built() -> Model:
    """The program and what feeds it, with the same first parameters each time."""
    fluid.seed(7)
    with fluid.fresh() as (main, startup):
        main.random_seed = startup.random_seed = 7
        fetch, feed = training()
    return Model(main, startup, [v.name for v in fetch], feed)


def test_s1_23_memory_optimize(capsys: pytest.CaptureFixture[str]) -> None:
    plain, leaner = built(), built()
    before = leaner.main.desc.serialize_to_string()
    fluid.memory_optimize(leaner.main, print_log=True)
    assert capsys.readouterr().out == ""
    assert leaner.main.desc.serialize_to_string() == before, "with Paddle's names the program stays as it is"
    assert leaner.train(steps=5) == plain.train(steps=5)
