"""Programs to walk: one that trains through a loop, with random numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

import fluidnb as fluid
from fluidnb import layers

X = np.random.RandomState(0).rand(6, 4).astype("float32")
FEED = {"x": X, "y": X.sum(1, keepdims=True)}


def looping() -> tuple[fluid.Program, fluid.Program, Any, Any]:
    """A regression with dropout whose loss is summed three times in a loop; (main, startup, loss, total)."""
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        x, y = layers.data("x", shape=[4]), layers.data("y", shape=[1])
        h = layers.dropout(layers.fc(x, 8, act="tanh"), 0.3)
        loss = layers.mean(layers.square_error_cost(layers.fc(h, 1), y))
        i, n = layers.fill_constant([1], "int64", 0), layers.fill_constant([1], "int64", 3)
        total = layers.fill_constant([1], "float32", 0.0)
        more = layers.less_than(i, n)
        with layers.While(more).block():
            layers.increment(i)
            layers.assign(layers.elementwise_add(total, loss), total)
            layers.less_than(i, n, cond=more)
        fluid.optimizer.Adam(0.05).minimize(loss)
    return main, startup, loss, total


def started(startup: fluid.Program) -> fluid.Scope:
    """A scope with the same parameters every time."""
    scope = fluid.Scope()
    startup.random_seed = 7
    fluid.Executor().run(startup, scope=scope)
    return scope


def held(scope: fluid.Scope) -> dict[str, bytes]:
    """The values of a scope, as bytes."""
    return {n: np.array(scope.find_var(n).get_tensor()).tobytes() for n in scope.local_var_names()}
