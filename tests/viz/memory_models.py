"""Programs whose memory and time are drawn in tests."""

from __future__ import annotations

from typing import Any

import numpy as np

import fluidnb as fluid
from fluidnb import layers

Made = tuple[dict[str, Any], Any]


def lenet() -> Made:
    """LeNet with backward and Adam: convolutions with workspace that they go over piece by piece."""
    images, labels = layers.data("images", [1, 28, 28]), layers.data("labels", [1], dtype="int64")
    h = fluid.nets.simple_img_conv_pool(images, 6, 5, 2, 2, act="relu")
    h = fluid.nets.simple_img_conv_pool(h, 16, 5, 2, 2, act="relu")
    loss = layers.mean(layers.cross_entropy(layers.fc(layers.fc(h, 60, act="relu"), 10, act="softmax"), labels))
    fluid.optimizer.Adam(0.01).minimize(loss)
    random = np.random.RandomState(0)
    return {"images": random.rand(4, 1, 28, 28).astype("float32"), "labels": np.zeros((4, 1), "int64")}, loss


def lstm() -> Made:
    """An LSTM over words, with backward and SGD."""
    words = layers.data("words", [1], dtype="int64", lod_level=1)
    hidden, _ = layers.dynamic_lstm(layers.fc(layers.embedding(words, [50, 16]), 32), 32)
    loss = layers.mean(layers.fc(layers.sequence_pool(hidden, "max"), 1))
    fluid.optimizer.SGD(0.1).minimize(loss)
    ids = np.arange(9).reshape(9, 1).astype("int64")
    return {"words": fluid.create_lod_tensor(ids, [[4, 5]], fluid.CPUPlace())}, loss


def views() -> Made:
    """Buffers under several names and shapes: reshape, transpose, split and concat, layer_norm, dropout."""
    h = x = layers.data("x", [64])
    for _ in range(3):
        left, right = layers.split(layers.fc(h, 64, act="relu"), 2, dim=1)
        square = layers.transpose(layers.reshape(layers.concat([right, left], 1), [-1, 8, 8]), [0, 2, 1])
        h = layers.dropout(layers.layer_norm(layers.elementwise_add(layers.reshape(square, [-1, 64]), h)), 0.3)
    loss = layers.mean(h)
    fluid.optimizer.Adam(0.1).minimize(loss)
    assert x.name == "x"
    return {"x": np.ones((4, 64), "float32")}, loss


def recurrent() -> Made:
    """A DynamicRNN with backward: bodies of loops with arenas of their own, and guards."""
    words = layers.data("words", [1], dtype="int64", lod_level=1)
    rnn = layers.DynamicRNN()
    embedded = layers.embedding(words, [50, 16])
    with rnn.block():
        x, state = rnn.step_input(embedded), rnn.memory(shape=[8], value=0.0)
        h = layers.fc([x, state], 8, act="tanh")
        rnn.update_memory(state, h)
        rnn.output(h)
    loss = layers.mean(layers.sequence_pool(rnn(), "last"))
    fluid.optimizer.SGD(0.1).minimize(loss)
    ids = np.arange(9).reshape(9, 1).astype("int64")
    return {"words": fluid.create_lod_tensor(ids, [[4, 5]], fluid.CPUPlace())}, loss


def small() -> Made:
    """A regression with its gradients and its optimizer."""
    x, y = layers.data("x", [13]), layers.data("y", [1])
    loss = layers.mean(layers.square_error_cost(layers.fc(layers.fc(x, 8, act="tanh"), 1), y))
    fluid.optimizer.SGD(0.01).minimize(loss)
    return {"x": np.ones((16, 13), "float32"), "y": np.ones((16, 1), "float32")}, loss


def ran(make: Any) -> tuple[fluid.Executor, dict[str, Any], Any]:
    """Build a program and run it once; the executor, the feed and the loss."""
    feed, loss = make()
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    exe.run(feed=feed, fetch_list=[loss])
    return exe, feed, loss
