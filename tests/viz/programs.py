"""Ten programs whose pictures are golden, from a straight line to gradients of loops."""

from __future__ import annotations

from collections.abc import Callable

import fluidnb as fluid
from fluidnb import layers


def fit_a_line() -> None:
    """A regression with its gradients and its optimizer."""
    x, y = layers.data("x", shape=[13]), layers.data("y", shape=[1])
    loss = layers.mean(layers.square_error_cost(layers.fc(x, 1), y))
    fluid.optimizer.SGD(0.01).minimize(loss)


def lenet() -> None:
    """Convolutions, with Adam."""
    image, label = layers.data("image", shape=[1, 28, 28]), layers.data("label", shape=[1], dtype="int64")
    h = image
    for filters in (6, 16):
        h = fluid.nets.simple_img_conv_pool(h, filters, 5, 2, 2, act="relu")
    for size in (120, 84):
        h = layers.fc(h, size, act="relu")
    loss = layers.mean(layers.cross_entropy(layers.fc(h, 10, act="softmax"), label))
    fluid.optimizer.Adam(0.001).minimize(loss)


def normalized() -> None:
    """Batch normalization and dropout, clipped gradients, momentum, weight decay."""
    x, y = layers.data("x", shape=[8]), layers.data("y", shape=[1])
    h = layers.dropout(layers.batch_norm(layers.fc(x, 4)), 0.5)
    loss = layers.mean(layers.square_error_cost(layers.fc(h, 1), y))
    fluid.clip.set_gradient_clip(fluid.clip.GradientClipByGlobalNorm(1.0))
    fluid.optimizer.Momentum(0.1, 0.9, regularization=fluid.regularizer.L2Decay(1e-4)).minimize(loss)


def sequences() -> None:
    """Words as sequences: an embedding with sparse gradients, an LSTM, a pool."""
    words = layers.data("words", shape=[1], dtype="int64", lod_level=1)
    embedded = layers.embedding(words, size=[50, 8], is_sparse=True)
    hidden, _ = layers.dynamic_lstm(layers.fc(embedded, 16), 16)
    loss = layers.mean(layers.fc(layers.sequence_pool(hidden, "max"), 1))
    fluid.optimizer.Adagrad(0.1).minimize(loss)


def counting() -> None:
    """A loop around operators of its own."""
    i, n = layers.fill_constant([1], "int64", 0), layers.fill_constant([1], "int64", 3)
    more = layers.less_than(i, n)
    with layers.While(more).block():
        layers.increment(i, 1)
        layers.less_than(i, n, cond=more)


def nested() -> None:
    """A loop inside a loop."""
    i, n = layers.fill_constant([1], "int64", 0), layers.fill_constant([1], "int64", 3)
    more = layers.less_than(i, n)
    with layers.While(more).block():
        j = layers.fill_constant([1], "int64", 0)
        less = layers.less_than(j, n)
        with layers.While(less).block():
            layers.increment(j, 1)
            layers.less_than(j, n, cond=less)
        layers.increment(i, 1)
        layers.less_than(i, n, cond=more)


def branches() -> None:
    """Rows that go one way or the other."""
    x = layers.data("x", shape=[1])
    limit = layers.fill_constant_batch_size_like(x, [-1, 1], "float32", 0.0)
    ways = layers.IfElse(layers.less_than(x, limit))
    with ways.true_block():
        ways.output(layers.scale(ways.input(x), -1.0))
    with ways.false_block():
        ways.output(ways.input(x))
    layers.mean(ways()[0])


def cases() -> None:
    """A learning rate by the number of the step."""
    step, rate = layers.data("step", shape=[1], append_batch_size=False), layers.create_global_var([1], 0.0, "float32")
    early = layers.less_than(step, layers.fill_constant([1], "float32", 10.0))
    with layers.Switch() as switch:
        with switch.case(early):
            layers.assign(layers.fill_constant([1], "float32", 0.1), rate)
        with switch.default():
            layers.assign(layers.fill_constant([1], "float32", 0.01), rate)


def static_rnn() -> None:
    """A recurrent network over steps of one length, with its gradients."""
    steps = layers.data("steps", shape=[3, 2, 4], append_batch_size=False)
    rnn = layers.StaticRNN()
    with rnn.step():
        step = rnn.step_input(steps)
        memory = rnn.memory(shape=[-1, 4], batch_ref=step)
        h = layers.fc([step, memory], 4, act="tanh")
        rnn.update_memory(memory, h)
        rnn.output(h)
    fluid.append_backward(layers.mean(rnn()))


def dynamic_rnn() -> None:
    """A recurrent network over sequences, with its gradients and its optimizer."""
    words = layers.data("words", shape=[1], dtype="int64", lod_level=1)
    embedded, rnn = layers.embedding(words, size=[50, 8]), layers.DynamicRNN()
    with rnn.block():
        word = rnn.step_input(embedded)
        memory = rnn.memory(shape=[8], value=0.0)
        h = layers.fc([word, memory], 8, act="tanh")
        rnn.update_memory(memory, h)
        rnn.output(h)
    loss = layers.mean(layers.fc(layers.sequence_last_step(rnn()), 1))
    fluid.optimizer.SGD(0.1).minimize(loss)


#: name -> what builds the program into the default ones
PROGRAMS: dict[str, Callable[[], None]] = {
    f.__name__: f for f in (
        fit_a_line, lenet, normalized, sequences, counting, nested, branches, cases, static_rnn, dynamic_rnn,
    )
}  # fmt: skip
