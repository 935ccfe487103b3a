"""Training programs that the tests divide: with a fixed seed, so that every process begins with the same parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import fluidnb as fluid
from fluidnb import layers
from fluidnb.values.dtypes import np_dtype

#: main program, startup program, loss
Built = tuple[fluid.Program, fluid.Program, fluid.Variable]
Feeds = list[dict[str, Any]]


def built(network: Callable[[], fluid.Variable], optimizer: Callable[[], Any]) -> Built:
    """A training program in separate programs."""
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 7
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        loss = network()
        optimizer().minimize(loss)
    return main, startup, loss


def wide_regression(**weight: Any) -> fluid.Variable:
    """One layer of 1000 by 1000, whose weight is divided between two servers; names as in Fluid's tests."""
    x, y = layers.data("x", [1000]), layers.data("y", [1])
    prediction = layers.fc(
        x, 1000, param_attr=fluid.ParamAttr(name="fc_w", **weight), bias_attr=fluid.ParamAttr(name="fc_b")
    )
    return layers.mean(layers.square_error_cost(prediction, y))


def fit_a_line() -> fluid.Variable:
    """Linear regression on 13 features."""
    x, y = layers.data("x", [13]), layers.data("y", [1])
    return layers.mean(layers.square_error_cost(layers.fc(x, 1), y))


def lenet(dropout: float = 0.0) -> fluid.Variable:
    """A convolution and two layers on images of 28 by 28; one weight is divided."""
    image, label = layers.data("image", [1, 28, 28]), layers.data("label", [1], dtype="int64")
    pooled = fluid.nets.simple_img_conv_pool(image, 8, 5, 2, 2, act="relu")
    hidden = layers.fc(pooled, 64, act="relu")
    if dropout:
        hidden = layers.dropout(hidden, dropout)
    return layers.mean(layers.cross_entropy(layers.fc(hidden, 10, act="softmax"), label))


def word2vec(words: int = 1000, is_distributed: bool = False) -> fluid.Variable:
    """Four words predict the next one, by one table of embeddings whose gradient is SelectedRows."""
    names = ["first", "second", "third", "fourth"]
    ids = [layers.data(name, [1], dtype="int64") for name in names]
    table = fluid.ParamAttr(name="table")
    rows = [
        layers.embedding(i, size=[words, 32], is_sparse=True, is_distributed=is_distributed, param_attr=table)
        for i in ids
    ]
    hidden = layers.fc(layers.concat(rows, axis=1), 32, act="sigmoid")
    label = layers.data("next", [1], dtype="int64")
    return layers.mean(layers.cross_entropy(layers.fc(hidden, words, act="softmax"), label))


def shared_table() -> fluid.Variable:
    """The same with rows of the table on all servers."""
    return word2vec(is_distributed=True)


def sentiment() -> fluid.Variable:
    """A DynamicRNN over words, whose last state is classified."""
    words = layers.data("words", [1], dtype="int64", lod_level=1)
    label = layers.data("label", [1], dtype="int64")
    rows, rnn = layers.embedding(words, [50, 8]), layers.DynamicRNN()
    with rnn.block():
        word = rnn.step_input(rows)
        before = rnn.memory(shape=[8], value=0.0)
        state = layers.fc([word, before], 8, act="tanh")
        rnn.update_memory(before, state)
        rnn.output(state)
    last = layers.sequence_last_step(rnn())
    return layers.mean(layers.cross_entropy(layers.fc(last, 2, act="softmax"), label))


def sentences(count: int) -> Feeds:
    """Random feeds for `sentiment`: four sequences each."""
    feeds = []
    for i in range(count):
        draw = np.random.default_rng(i)
        lengths = draw.integers(1, 5, 4)
        words = fluid.create_lod_tensor(draw.integers(0, 50, (lengths.sum(), 1)), [list(lengths)], fluid.CPUPlace())
        feeds.append({"words": words, "label": draw.integers(0, 2, (4, 1))})
    return feeds


def batches(main: fluid.Program, count: int, rows: int = 8, words: int = 10) -> Feeds:
    """Random feeds for all data variables of a program without sequences."""
    draw = np.random.default_rng(3)
    block = main.global_block()
    data = [var for var in block.vars.values() if var.desc.is_data()]
    return [
        {
            var.name: draw.integers(0, words, (rows, *var.shape[1:]))
            if np_dtype(var.dtype).kind == "i"
            else draw.random((rows, *var.shape[1:]), dtype=np.float32)
            for var in data
        }
        for _ in range(count)
    ]


def one_process(parts: Built, feeds: Feeds) -> tuple[list[float], dict[str, Any]]:
    """Losses and final parameters of training in one process."""
    main, startup, loss = parts
    exe, scope = fluid.Executor(), fluid.Scope()
    exe.run(startup, scope=scope)
    losses = [exe.run(main, feed=feed, fetch_list=[loss], scope=scope)[0].item() for feed in feeds]
    return losses, {p.name: np.array(scope.find_var(p.name).get_tensor()) for p in main.all_parameters()}


def divided(
    parts: Built, servers: int = 2, trainers: int = 2, prefix: str = "ps", **how: Any
) -> fluid.DistributeTranspiler:
    """A transpiler after `transpile`; endpoints are ``ps:0``, ``ps:1``, …, or begin with another prefix."""
    config = fluid.DistributeTranspilerConfig()
    for name in set(how) & {"slice_var_up", "split_method", "min_block_size"}:
        setattr(config, name, how.pop(name))
    transpiler = fluid.DistributeTranspiler(config)
    endpoints = ",".join(f"{prefix}:{i}" for i in range(servers))
    transpiler.transpile(0, parts[0], pservers=endpoints, trainers=trainers, startup_program=parts[1], **how)
    return transpiler


def collective(parts: Built, trainers: int | str = 2) -> fluid.DistributeTranspiler:
    """A transpiler after `transpile` without servers."""
    config = fluid.DistributeTranspilerConfig()
    config.mode = "collective"
    transpiler = fluid.DistributeTranspiler(config)
    transpiler.transpile(0, parts[0], trainers=trainers, startup_program=parts[1])
    return transpiler


def types(block: fluid.Block) -> list[str]:
    """Operator types of a block."""
    return [op.type for op in block.ops]
