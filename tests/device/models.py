"""Programs of all kinds, for tests that let one run after the other go wrong at another point."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import fluidnb as fluid
from fluidnb import layers
from fluidnb.values import LoDTensor, SelectedRows

Values = dict[str, tuple[bytes, tuple[int, ...]]]


class Model(NamedTuple):
    """A program with what it is fed; the same program whenever it is made.

    Args:
        main: the program.
        startup: its startup program.
        feed: step -> what is fed.
        fetch: names.
    """

    main: fluid.Program
    startup: fluid.Program
    feed: Callable[[int], dict[str, Any]]
    fetch: list[str]


class Job:
    """A model with executor and scope.

    Args:
        name: of a model.
        place: where it runs.
    """

    def __init__(self, name: str, place: Any) -> None:
        self.model = make(name)
        self.exe, self.scope = fluid.Executor(place), fluid.Scope()

    def start(self) -> None:
        """Run the startup program."""
        self.exe.run(self.model.startup, scope=self.scope)

    def step(self, number: int = 0) -> list[bytes]:
        """One run; the bits of what is fetched."""
        return [bits(v) for v in self.run(number)]

    def run(self, number: int = 0) -> list[Any]:
        """One run; what is fetched."""
        feed, fetch = self.model.feed(number), self.model.fetch
        return self.exe.run(self.model.main, feed, fetch, scope=self.scope, return_numpy=False)

    def forget(self) -> None:
        """Let the next run be the first one."""
        self.model.main.desc.state = None
        self.exe = fluid.Executor(self.exe.place)

    def values(self) -> Values:
        """The values of its scope, by name."""
        return {n: (bits(v.value), ()) for n, v in self.scope.vars.items() if holds(v.value)}

    def put(self, arrays: dict[str, np.ndarray[Any, Any]]) -> None:
        """Let its scope hold other values.

        Args:
            arrays: by name.
        """
        for name, array in arrays.items():
            tensor = self.scope.var(name).get_tensor()
            tensor.set(array, tensor._place())

    def arrays(self) -> dict[str, np.ndarray[Any, Any]]:
        """Copies of what its scope holds."""
        return {n: np.array(v.value) for n, v in self.scope.vars.items() if holds(v.value)}


def holds(value: Any) -> bool:
    """Whether a variable's value is a tensor with memory."""
    return isinstance(value, LoDTensor) and value.array is not None


def bits(value: Any) -> bytes:
    """The values, as bytes."""
    if isinstance(value, list):
        return b"|".join(map(bits, value))
    if isinstance(value, SelectedRows):
        return repr(value.rows()).encode() + bits(value.get_tensor())
    lod = repr(value.lod()).encode() if isinstance(value, LoDTensor) and value.lod() else b""
    return np.array(value).tobytes() + lod


def _mlp() -> list[Any]:
    x, y = layers.data("x", shape=[6]), layers.data("y", shape=[1], dtype="int64")
    loss = layers.mean(layers.cross_entropy(layers.fc(layers.fc(x, 8, act="relu"), 4, act="softmax"), y))
    fluid.optimizer.Adam(0.01).minimize(loss)
    return [loss]


def _lenet() -> list[Any]:
    x, y = layers.data("x", shape=[1, 12, 12]), layers.data("y", shape=[1], dtype="int64")
    for size, channels in ((5, 2), (3, 3)):
        x = layers.pool2d(layers.conv2d(x, channels, size, act="relu"), 2, "max", 2)
    loss = layers.mean(layers.softmax_with_cross_entropy(layers.fc(x, 4), y))
    fluid.optimizer.Momentum(0.05, 0.9).minimize(loss)
    return [loss]


def _lstm() -> list[Any]:
    x, y = layers.data("x", shape=[3], lod_level=1), layers.data("y", shape=[1], dtype="int64")
    hidden, _ = layers.dynamic_lstm(layers.fc(x, 8), 8)
    loss = layers.mean(layers.cross_entropy(layers.fc(layers.sequence_pool(hidden, "max"), 3, act="softmax"), y))
    fluid.optimizer.SGD(0.1).minimize(loss)
    return [loss, hidden]


def _loop() -> list[Any]:
    x = layers.data("x", shape=[3], stop_gradient=False)
    i, n = layers.fill_constant([1], "int64", 0), layers.fill_constant([1], "int64", 3)
    array = layers.array_write(layers.fc(x, 3), i)
    more = layers.less_than(i, n)
    with layers.While(more).block():
        now = layers.fc(layers.array_read(array, i), 3, act="tanh")
        layers.increment(i)
        layers.array_write(now, i, array=array)
        layers.less_than(i, n, cond=more)
    loss = layers.mean(layers.array_read(array, i))
    fluid.optimizer.SGD(0.1).minimize(loss)
    return [loss]


def _sparse() -> list[Any]:
    x = layers.data("x", shape=[1], dtype="int64")
    words = layers.embedding(x, [10, 4], is_sparse=True)
    loss = layers.mean(layers.square(layers.fc(words, 3)))
    fluid.optimizer.Adagrad(0.1).minimize(loss)
    return [loss]


def _sides() -> list[Any]:
    x = layers.data("x", shape=[3])
    positive = layers.less_than(layers.fill_constant_batch_size_like(x, [-1, 1], "float32", 0.0), layers.slice(
        x, axes=[1], starts=[0], ends=[1]))  # fmt: skip
    split = layers.IfElse(positive)
    for side, act in ((split.true_block, "tanh"), (split.false_block, "sigmoid")):
        with side():
            split.output(layers.fc(split.input(x), 2, act=act))
    out = split()[0]
    loss = layers.mean(out)
    fluid.optimizer.SGD(0.1).minimize(loss)
    return [loss, out]


def _beam() -> list[Any]:
    i, limit = layers.zeros([1], "int64"), layers.fill_constant([1], "int64", 3)
    ids = layers.array_write(layers.data("begin", [1], dtype="int64", lod_level=2), i)
    scores = layers.array_write(layers.data("score", [1], lod_level=2), i)
    more = layers.less_than(i, limit)
    with layers.While(more).block():
        word, score = layers.array_read(ids, i), layers.array_read(scores, i)
        chance = layers.fc(layers.embedding(word, [5, 4]), 5, act="softmax")
        best, choice = layers.topk(layers.lod_reset(chance, score), k=2)
        total = layers.elementwise_add(layers.log(best), layers.reshape(score, [-1]), axis=0)
        chosen, ranks = layers.beam_search(word, score, choice, total, 2, end_id=0)
        layers.increment(i)
        layers.array_write(chosen, i, array=ids)
        layers.array_write(ranks, i, array=scores)
        layers.logical_and(layers.less_than(i, limit), layers.logical_not(layers.is_empty(chosen)), out=more)
    return list(layers.beam_search_decode(ids, scores, beam_size=2, end_id=0))


def _numbers(step: int, *shape: int) -> Any:
    return np.random.default_rng([7, step]).normal(size=shape).astype("float32")


def _labels(step: int, high: int, *shape: int) -> Any:
    return np.random.default_rng([9, step]).integers(0, high, shape)


def _two_levels(step: int, value: Any) -> Any:
    return fluid.create_lod_tensor(np.array(value), [[1, 1], [1, 1]], fluid.CPUPlace())


#: name -> what builds it, what feeds it
_MODELS: dict[str, tuple[Callable[[], list[Any]], Callable[[int], dict[str, Any]]]] = {
    "mlp": (_mlp, lambda s: {"x": _numbers(s, 5, 6), "y": _labels(s, 4, 5, 1)}),
    "lenet": (_lenet, lambda s: {"x": _numbers(s, 2, 1, 12, 12), "y": _labels(s, 4, 2, 1)}),
    "lstm": (_lstm, lambda s: {"x": (_numbers(s, 6, 3), [[3, 1, 2]]), "y": _labels(s, 3, 3, 1)}),
    "loop": (_loop, lambda s: {"x": _numbers(s, 2, 3)}),
    "sparse": (_sparse, lambda s: {"x": _labels(s, 10, 4, 1)}),
    "sides": (_sides, lambda s: {"x": _numbers(s, 4, 3)}),
    "beam": (
        _beam,
        lambda s: {
            "begin": _two_levels(s, [[1], [2]]), "score": _two_levels(s, np.array([[0.0], [0.0]], "float32"))
        },
    ),
}  # fmt: skip

NAMES = list(_MODELS)


def make(name: str) -> Model:
    """A model, made anew: nothing of it has run.

    Args:
        name: one of `NAMES`.
    """
    build, feed = _MODELS[name]
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 11
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        fetch = [v.name for v in build()]
    return Model(main, startup, feed, fetch)
