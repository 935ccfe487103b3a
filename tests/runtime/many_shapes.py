"""Networks that are trained with feeds of many shapes, and what comes out, to the bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import fluidnb as fluid

L = fluid.layers
Feed = dict[str, Any]


def rows(count: int, seed: int = 0) -> Feed:
    r = np.random.RandomState(seed + count)
    return {"x": r.rand(count, 6).astype("float32"), "y": r.randint(0, 3, (count, 1))}


def texts(count: int, seed: int = 0) -> Feed:
    r = np.random.RandomState(seed + count)
    lengths = [int(n) for n in r.randint(1, 6, 3)]
    words = fluid.create_lod_tensor(r.randint(0, 20, (sum(lengths), 1)), [lengths], fluid.CPUPlace())
    return {"x": words, "y": r.randint(0, 3, (3, 1))}


def dense() -> Any:
    x = L.data("x", [6])
    return L.batch_norm(L.fc(x, 8, act="tanh"))


def embedded(sparse: bool = False) -> Any:
    words = L.data("x", [1], dtype="int64", lod_level=1)
    hidden, _ = L.dynamic_lstm(L.fc(L.embedding(words, [20, 5], is_sparse=sparse), 16), 16)
    return L.sequence_pool(hidden, "max")


def picked() -> Any:
    """Rows whose number depends on values, so that another segment follows."""
    hidden = L.fc(L.data("x", [6]), 8, act="tanh")
    rows = L.where(L.cast(L.greater_than(L.data("x", [6]), L.fill_constant([1], "float32", 0.5)), "bool"))
    return L.elementwise_add(hidden, L.reduce_mean(L.gather(hidden, L.slice(rows, [1], [0], [1])), dim=0))


def looped() -> Any:
    embedding = L.embedding(L.data("x", [1], dtype="int64", lod_level=1), [20, 5])
    rnn = L.DynamicRNN()
    with rnn.block():
        word = rnn.step_input(embedding)
        memory = rnn.memory(shape=[4])
        state = L.fc([word, memory], 4, act="tanh")
        rnn.update_memory(memory, state)
        rnn.output(state)
    return L.sequence_pool(rnn(), "last")


def train(features: Any, optimizer: Any) -> Any:
    y = L.data("y", [1], dtype="int64")
    loss = L.mean(L.softmax_with_cross_entropy(L.fc(features, 3), y))
    optimizer.minimize(loss)
    fluid.default_startup_program().random_seed = 5
    return loss


def average() -> Any:
    class Averaged:
        def minimize(self, loss: Any) -> None:
            fluid.optimizer.Momentum(0.1, 0.9).minimize(loss)
            fluid.optimizer.ModelAverage(0.5, min_average_window=2, max_average_window=4)

    return Averaged()


def clipped() -> Any:
    fluid.clip.set_gradient_clip(fluid.clip.GradientClipByGlobalNorm(0.1))
    return fluid.optimizer.Adam(L.exponential_decay(0.1, 3, 0.9, True), regularization=fluid.regularizer.L2Decay(0.01))


NETWORKS: dict[str, tuple[Callable[[], Any], Callable[[int], Feed]]] = {
    "batches": (dense, rows), "picked": (picked, rows), "texts": (embedded, texts), "loops": (looped, texts),
    "sparse": (lambda: embedded(sparse=True), texts),
}  # fmt: skip
OPTIMIZERS: dict[str, Callable[[], Any]] = {
    "sgd": lambda: fluid.optimizer.SGD(0.1), "adam": lambda: fluid.optimizer.Adam(0.1),
    "averaged": average, "clipped": clipped,
}  # fmt: skip


def values() -> dict[str, bytes]:
    """The persistable variables, to the bit."""
    scope, block = fluid.global_scope(), fluid.default_main_program().global_block()
    names = [name for name, var in block.vars.items() if var.persistable and scope.find_var(name) is not None]
    return {name: np.array(scope.find_var(name).get_tensor()).tobytes() for name in names}


def results(network: str, optimizer: str, place: Any) -> tuple[list[bytes], dict[str, bytes]]:
    """Losses and gradients of steps with ten shapes, each twice, and the variables at the end."""
    build, feed = NETWORKS[network]
    with fluid.fresh():
        loss = train(build(), OPTIMIZERS[optimizer]())
        exe = fluid.Executor(place)
        exe.run(fluid.default_startup_program())
        weight = fluid.default_main_program().all_parameters()[-1].name
        found: list[bytes] = []
        for count in [*range(1, 11), *range(10, 0, -1)]:
            out = exe.run(feed=feed(count), fetch_list=[loss, weight + "@GRAD", weight])
            found += [x.tobytes() for x in out]
        return found, values()
