"""Small networks for comparisons: a program, its parameters, and what is fed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import fluidnb as fluid
from fluidnb import layers
from fluidnb.compare.recording import Recording, record


@dataclass
class Network:
    """A network.

    Args:
        program: its program, for inference.
        scope: its parameters.
        feeds: array for each feed.
        fetches: names of its results.
    """

    program: fluid.Program
    scope: fluid.Scope
    feeds: dict[str, Any]
    fetches: list[str]

    def copy(self) -> Network:
        """The same network, to be changed."""
        scope = fluid.Scope()
        for var in self.program.list_vars():
            if var.persistable and self.scope.find_var(var.name) is not None:
                scope.var(var.name).get_tensor().set(np.array(self.scope.var(var.name).get_tensor()), fluid.CPUPlace())
        program = fluid.Program.parse_from_string(self.program.desc.serialize_to_string())
        return Network(program, scope, self.feeds, list(self.fetches))

    def record(self, title: str = "network") -> Recording:
        """All values of a run."""
        return record(title, self.program, self.feeds, self.fetches, self.scope, fluid.CPUPlace())


NETWORKS: dict[str, Callable[[], Any]] = {}


def network(build: Callable[[], Any]) -> Callable[[], Any]:
    """Registers what builds a network."""
    NETWORKS[build.__name__] = build
    return build


def built(name: str) -> Network:
    """A network with random parameters and feeds."""
    rng, scope = np.random.default_rng(1), fluid.Scope()
    with fluid.fresh(), fluid.scope_guard(scope):
        result = NETWORKS[name]()
        fluid.default_startup_program().random_seed = 1
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(fluid.default_startup_program())
        program = fluid.default_main_program().clone(for_test=True)
        for var in program.list_vars():  # none is 0 or 1, as in a new network
            if var.persistable and len(var.shape) == 1:
                value = rng.uniform(0.5, 1.5, var.shape).astype("float32")
                scope.var(var.name).get_tensor().set(value, fluid.CPUPlace())
        feeds = {
            v.name: rng.standard_normal([2 if n < 0 else n for n in v.shape]).astype("float32")
            for v in program.list_vars() if v.is_data
        }  # fmt: skip
        return Network(program, scope, feeds, [result.name])


@network
def convolutions() -> Any:
    x = layers.data("x", [3, 12, 12])
    for size in (4, 6):
        x = layers.conv2d(x, size, 3, padding=1, bias_attr=False)
        x = layers.pool2d(layers.leaky_relu(layers.batch_norm(x), alpha=0.1), 2, "avg", 2)
    x = layers.conv2d(x, 8, 3, padding=1, act="relu")
    return layers.softmax(layers.fc(layers.scale(x, 0.5, bias=0.1), 5))


@network
def attention() -> Any:
    x = layers.data("x", [6, 16])
    for _ in range(2):
        q, k, v = (layers.fc(x, 16, num_flatten_dims=2) for _ in range(3))
        weights = layers.softmax(layers.scale(layers.matmul(q, k, transpose_y=True), 0.25))
        x = layers.layer_norm(layers.elementwise_add(x, layers.matmul(weights, v)), begin_norm_axis=2)
        wide = layers.fc(x, 32, num_flatten_dims=2, act="tanh")
        x = layers.elementwise_add(x, layers.fc(wide, 16, num_flatten_dims=2))
    return layers.reduce_mean(layers.transpose(x, [0, 2, 1]), dim=1)


@network
def branches() -> Any:
    x = layers.data("x", [8])
    left, right = layers.fc(x, 6, act="sigmoid"), layers.fc(x, 6, act="tanh")
    both = layers.concat([left, layers.elementwise_mul(left, right), layers.clip(right, -0.5, 0.5)], axis=1)
    high, low = layers.split(both, 2, dim=1)
    return layers.elementwise_sub(layers.reduce_sum(layers.square(high), dim=1), layers.reduce_max(low, dim=1))


@network
def turns() -> Any:
    x = layers.data("x", [4])
    state, i = layers.fc(x, 4, act="tanh"), layers.zeros([1], "int64")
    count = layers.fill_constant([1], "int64", 5)
    more = layers.less_than(i, count)
    with layers.While(more).block():
        part = layers.scale(state, 0.9, bias=0.05)
        part = layers.elementwise_add(part, layers.scale(x, 0.1))
        layers.assign(layers.tanh(part), output=state)
        layers.increment(i)
        layers.less_than(i, count, cond=more)
    return layers.scale(state, 2.0)


@network
def recurrent() -> Any:
    x = layers.data("x", [5, 8])
    states = layers.transpose(layers.fc(x, 12, num_flatten_dims=2), [1, 0, 2])
    last = layers.fill_constant_batch_size_like(x, [-1, 12], "float32", 0.5)
    for k in range(5):
        now = layers.squeeze(layers.slice(states, [0], [k], [k + 1]), [0])
        last = layers.tanh(layers.elementwise_add(now, layers.fc(last, 12, param_attr="w", bias_attr="b")))
    return layers.softmax(layers.fc(last, 3))
