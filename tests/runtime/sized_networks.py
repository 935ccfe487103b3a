"""Networks whose feeds have one size that changes, drawn by hand or at random."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np

import fluidnb as fluid
from fluidnb.values import LoDTensor

L = fluid.layers
Feed = dict[str, Any]
#: A network: builds it and gives the loss, and the feed of a size.
Network = Callable[[], tuple[Any, Callable[[int, Any], Feed]]]
#: The first three are bound as ever, the next three make a template, some more widen it, and the rest are between.
SIZES = (3, 2, 8, 40, 9, 17, 24, 5, 33, 64, 48, 7, 11, 60)


def lenet() -> Any:
    x, y = L.data("x", [1, 16, 16]), L.data("y", [1], dtype="int64")
    h = fluid.nets.simple_img_conv_pool(x, 4, 5, 2, 2, act="relu")
    loss = L.softmax_with_cross_entropy(L.fc(h, 10), y)
    return L.mean(loss), lambda n, r: {"x": r.rand(n, 1, 16, 16).astype("f"), "y": r.randint(0, 10, (n, 1))}


def resnet() -> Any:
    x, y = L.data("x", [3, 8, 8]), L.data("y", [1], dtype="int64")
    h = L.batch_norm(L.conv2d(x, 4, 3, padding=1, bias_attr=False), act="relu")
    for stride in (1, 2):
        a = L.batch_norm(L.conv2d(h, 4, 3, stride=stride, padding=1, bias_attr=False), act="relu")
        b = h if stride == 1 else L.conv2d(h, 4, 1, stride=stride)
        h = L.relu(L.elementwise_add(a, b))
    h = L.dropout(L.pool2d(h, pool_type="avg", global_pooling=True), 0.3)
    loss = L.cross_entropy(L.fc(h, 10, act="softmax"), y)
    return L.mean(loss), lambda n, r: {"x": r.rand(n, 3, 8, 8).astype("f"), "y": r.randint(0, 10, (n, 1))}


def attention() -> Any:
    """Sequences whose length changes: squares of it are shapes."""
    h = L.data("x", [2, -1, 16], append_batch_size=False)
    for _ in range(2):
        split = [L.reshape(L.fc(h, 16, num_flatten_dims=2), [0, 0, 2, 8]) for _ in range(3)]
        q, k, v = (L.transpose(part, [0, 2, 1, 3]) for part in split)
        weights = L.softmax(L.matmul(q, k, transpose_y=True, alpha=8**-0.5))
        out = L.reshape(L.transpose(L.matmul(weights, v), [0, 2, 1, 3]), [0, 0, 16])
        h = L.layer_norm(L.elementwise_add(h, L.fc(out, 16, num_flatten_dims=2)), begin_norm_axis=2)
        h = L.elementwise_add(h, L.fc(L.fc(h, 32, num_flatten_dims=2, act="gelu"), 16, num_flatten_dims=2))
    return L.reduce_mean(L.square(h)), lambda n, r: {"x": r.rand(2, n, 16).astype("f")}


def clicks() -> Any:
    ids, dense, y = L.data("ids", [3], dtype="int64"), L.data("dense", [5]), L.data("y", [1])
    h = L.concat([L.reshape(L.embedding(L.unsqueeze(ids, [2]), [50, 8]), [-1, 24]), dense], axis=1)
    for width in (32, 16):
        h = L.fc(h, width, act="relu")
    loss = L.mean(L.sigmoid_cross_entropy_with_logits(L.fc(h, 1), y))
    return loss, lambda n, r: {
        "ids": r.randint(0, 50, (n, 3)), "dense": r.rand(n, 5).astype("f"), "y": r.randint(0, 2, (n, 1)).astype("f")
    }  # fmt: skip


def recurrent() -> Any:
    x = L.data("x", [4, -1, 8], append_batch_size=False)
    rnn = L.StaticRNN()
    with rnn.step():
        word = rnn.step_input(x)
        memory = rnn.memory(shape=[-1, 8], batch_ref=x, ref_batch_dim_idx=1)
        state = L.fc([word, memory], 8, act="tanh")
        rnn.update_memory(memory, state)
        rnn.step_output(state)
    return L.mean(L.fc(rnn(), 3, num_flatten_dims=2)), lambda n, r: {"x": r.rand(4, n, 8).astype("f")}


def guarded() -> Any:
    """The rest is bound after an operator whose result has as many rows as values decide."""
    x = L.data("x", [6])
    h = L.fc(x, 8, act="tanh")
    rows = L.where(L.cast(L.greater_than(x, L.fill_constant([1], "float32", 0.5)), "bool"))
    some = L.reduce_mean(L.gather(h, L.slice(rows, [1], [0], [1])), dim=0)
    return L.mean(L.elementwise_add(h, some)), lambda n, r: {"x": r.rand(n, 6).astype("f")}


def sequences(numbers: np.ndarray, r: Any) -> Any:
    """Rows as three sequences of random lengths, some of which may be empty."""
    ends = sorted(r.randint(0, len(numbers) + 1, 2))
    return fluid.create_lod_tensor(numbers, [np.diff([0, *ends, len(numbers)]).tolist()], fluid.CPUPlace())


def texts() -> Any:
    words, y = L.data("x", [1], dtype="int64", lod_level=1), L.data("y", [1], dtype="int64")
    h = L.fc(L.embedding(words, [20, 6]), 6, act="tanh")
    hidden, _ = L.dynamic_lstm(L.fc(h, 16), 16)
    pooled = L.concat([L.sequence_pool(hidden, "max"), L.sequence_pool(h, "sum")], axis=1)
    loss = L.mean(L.softmax_with_cross_entropy(L.fc(pooled, 3), y))
    return loss, lambda n, r: {"x": sequences(r.randint(0, 20, (n, 1)), r), "y": r.randint(0, 3, (3, 1))}


NETWORKS: dict[str, Network] = {
    each.__name__: each for each in (lenet, resnet, attention, clicks, recurrent, guarded, texts)
}  # fmt: skip


def drawn(seed: int, lod: bool = False) -> Network:
    """A random network over rows of 12 numbers, with ``lod`` those of sequences."""

    def build() -> Any:
        dice = random.Random(seed)
        x, z = (L.data(name, [12], lod_level=int(lod)) for name in "xz")
        known = [L.fc(x, 12, act="tanh"), z]
        for _ in range(dice.randrange(4, 14)):
            operands = dice.choice(known), dice.choice(known)
            of_sequences = lod and dice.random() < 0.3
            known.append(_sequence_layer(dice, *operands) if of_sequences else _layer(dice, *operands))
        total = L.sum([L.reduce_mean(each) for each in (known[0], *known[-3:])])

        def feed(n: int, r: Any) -> Feed:
            rows = r.rand(n, 12).astype("f") - 0.3
            x = sequences(rows, r) if lod else rows
            z = LoDTensor(rows * 2, x.lod_ if dice.random() < 0.9 else sequences(rows, r).lod_) if lod else rows * 2
            return {"x": x, "z": z}

        return L.mean(total), feed

    return build


def _sequence_layer(dice: random.Random, x: Any, y: Any) -> Any:
    """A layer from sequences of rows of 12 numbers to such; rows without sequences become those of a feed first."""
    x = L.lod_reset(x, fluid.default_main_program().global_block().var("x"))
    choices: list[Callable[[], Any]] = [
        lambda: L.sequence_reverse(x),
        lambda: L.sequence_conv(x, 12, 3),
        lambda: L.sequence_expand_as(L.sequence_pool(x, dice.choice(["sum", "last", "max", "average"])), x),
        lambda: L.lod_reset(y, x),
        lambda: L.dynamic_lstm(L.fc(x, 48), 48)[0],
    ]
    return dice.choice(choices)()


def _layer(dice: random.Random, x: Any, y: Any) -> Any:
    """A layer from rows of 12 numbers to rows of 12 numbers."""
    choices: list[Callable[[], Any]] = [
        lambda: L.fc(x, 12, act=dice.choice(["relu", "tanh", "sigmoid", "gelu", "softmax", None])),
        lambda: L.fc([x, y], 12, bias_attr=dice.random() < 0.5),
        lambda: L.elementwise_add(x, y),
        lambda: L.elementwise_mul(x, L.scale(y, 0.5, bias=dice.random())),
        lambda: L.elementwise_max(x, y),
        lambda: L.layer_norm(x),
        lambda: L.batch_norm(x),
        lambda: L.dropout(x, 0.4),
        lambda: L.reshape(L.transpose(L.reshape(x, [-1, 3, 4]), [0, 2, 1]), [-1, 12]),
        lambda: L.concat(L.split(x, dice.choice([2, 3]), dim=1)[::-1], axis=1),
        lambda: L.concat([L.slice(x, [1], [0], [5]), L.slice(y, [1], [5], [12])], axis=1),
        lambda: L.elementwise_sub(x, L.reduce_mean(x, dim=dice.choice([0, 1]), keep_dim=True)),
        lambda: L.matmul(L.softmax(L.matmul(x, y, transpose_y=True)), x),
        lambda: L.matmul(x, L.matmul(x, y, transpose_x=True), alpha=0.05),
        lambda: L.squeeze(L.stack([x, y], axis=1)[:, dice.choice([0, 1])], []),
        lambda: L.pad(L.slice(x, [1], [2], [9]), [0, 0, 2, 3], pad_value=0.5),
        lambda: L.l2_normalize(x, axis=1),
        lambda: L.clip(x, -0.5, 0.5),
        lambda: L.leaky_relu(x, 0.1),
        lambda: L.cumsum(x, axis=dice.choice([0, 1])),
        lambda: L.reverse(x, dice.choice([0, 1])),
        lambda: L.expand(L.slice(x, [1], [0], [3]), [1, 4]),
        lambda: L.elementwise_add(x, L.cast(L.argmax(x, axis=1), "float32"), axis=0),
        lambda: L.one_hot(L.reshape(L.argmax(x, axis=1), [-1, 1]), 12),
        lambda: L.gather(x, L.argsort(L.reduce_sum(y, dim=1), axis=0)[1]),
    ]
    return dice.choice(choices)()
