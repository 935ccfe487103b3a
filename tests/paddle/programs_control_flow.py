"""Programs with loops, branches and recurrent networks, to train here and in Paddle."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import fluidnb as fluid
from fluidnb import layers

L: Any = layers

#: What each program is fed in a step.
SHAPE = (6, 2)

#: Sequences that the rows of a step are cut into, as offsets.
OFFSETS = [0, 3, 4, 6]


def _number(value: float, dtype: str = "int64") -> Any:
    return L.fill_constant([1], dtype, value)


def _rows() -> Any:
    x = L.data("x", shape=list(SHAPE), append_batch_size=False)
    x.stop_gradient = False  # Paddle's recurrent_grad knows no sequence without gradient
    return x


def while_over_an_array() -> Any:
    """h = tanh(h · w), four times over."""
    i, n = L.zeros([1], "int64"), _number(4)
    array = L.array_write(L.fc(_rows(), 3), i)
    below = L.less_than(i, n)
    with L.While(below).block():
        more = L.fc(L.array_read(array, i), 3, act="tanh")
        i = L.increment(i)
        L.array_write(more, i, array=array)
        L.less_than(i, n, cond=below)
    return L.array_read(array, i)


def _if_else(limit: float) -> Any:
    x = _rows()
    total = L.reduce_sum(x, dim=1, keep_dim=True)
    bound = L.fill_constant_batch_size_like(x, [-1, 1], "float32", limit)
    ie = L.IfElse(L.less_than(total, bound))
    with ie.true_block():
        ie.output(L.fc(ie.input(x), 3, act="tanh"))
    with ie.false_block():
        ie.output(L.fc(ie.input(x), 3, act="sigmoid"))
    return ie()[0]


def if_else() -> Any:
    """Some rows go each way."""
    return _if_else(0.0)


def if_else_with_an_empty_side() -> Any:
    """All rows go one way."""
    return _if_else(-100.0)


def if_else_by_a_vector() -> Any:
    """The condition has no column; it is known at the end."""
    x = _rows()
    total = L.reduce_sum(x, dim=1)
    ie = L.IfElse()
    with ie.true_block():
        ie.output(L.fc(x, 3, act="tanh"))
    with ie.false_block():
        ie.output(L.fc(x, 3, act="sigmoid"))
    return ie(L.less_than(total, L.scale(total, 0.5)))[0]


def switch() -> Any:
    """The sum of a batch decides."""
    x = L.fc(_rows(), 3)
    total, zero = L.reshape(L.reduce_sum(x), [1]), _number(0.0, "float32")
    out = L.scale(x, 0.5)
    with L.Switch() as cases:
        with cases.case(L.less_than(total, zero)):
            L.assign(L.tanh(x), output=out)
        with cases.default():
            L.assign(L.square(x), output=out)
    return out


def static_rnn() -> Any:
    """Time first: six steps of one row of one number, for a batch of two."""
    x = L.fc(L.reshape(_rows(), [6, 2, 1]), 2, num_flatten_dims=2)
    rnn = L.StaticRNN()
    with rnn.step():
        now, before = rnn.step_input(x), rnn.memory(shape=[-1, 3], batch_ref=x)
        hidden = L.fc([now, before], 3, act="tanh")
        rnn.update_memory(before, hidden)
        rnn.output(hidden, L.scale(hidden, 2.0))
    return L.elementwise_add(*rnn())


def dynamic_rnn() -> Any:
    """Sequences of three lengths."""
    x = L.lod_reset(_rows(), target_lod=OFFSETS)
    rnn = L.DynamicRNN()
    with rnn.block():
        now, before = rnn.step_input(x), rnn.memory(shape=[3], value=0.1)
        hidden = L.fc([now, before], 3, act="tanh")
        rnn.update_memory(before, hidden)
        rnn.output(hidden)
    return rnn()


def static_rnn_from_a_given_memory() -> Any:
    """The first memory comes from a layer; what the step gives is the memory."""
    x = L.fc(L.reshape(_rows(), [3, 2, 2]), 2, num_flatten_dims=2)
    start = L.fc(L.reduce_sum(x, dim=0), 3)
    rnn = L.StaticRNN()
    with rnn.step():
        now, before = rnn.step_input(x), rnn.memory(init=start)
        hidden = L.fc([now, before], 3, act="tanh")
        rnn.update_memory(before, hidden)
        rnn.output(hidden)
    return rnn()


def static_rnn_without_parameters_and_memories() -> Any:
    """What is empty has to be named all the same."""
    x = L.fc(L.reshape(_rows(), [3, 2, 2]), 2, num_flatten_dims=2)
    rnn = L.StaticRNN()
    with rnn.step():
        rnn.output(L.tanh(rnn.step_input(x)))
    return rnn()


def while_in_while() -> Any:
    """h = sin(h · w), two times three times."""
    i, n, m = L.zeros([1], "int64"), _number(2), _number(3)
    rows = L.array_write(L.fc(_rows(), 3), i)
    outer = L.less_than(i, n)
    with L.While(outer).block():
        j = L.zeros([1], "int64")
        cells = L.array_write(L.array_read(rows, i), j)
        inner = L.less_than(j, m)
        with L.While(inner).block():
            more = L.fc(L.array_read(cells, j), 3, act="tanh")
            j = L.increment(j)
            L.array_write(more, j, array=cells)
            L.less_than(j, m, cond=inner)
        i = L.increment(i)
        L.array_write(L.array_read(cells, j), i, array=rows)
        L.less_than(i, n, cond=outer)
    return L.array_read(rows, i)


def if_else_in_while() -> Any:
    """Each pass sends the rows their ways anew."""
    x = L.fc(_rows(), 1)
    i, n = L.zeros([1], "int64"), _number(3)
    array = L.array_write(x, i)
    limit = L.fill_constant_batch_size_like(x, [-1, 1], "float32", 0.1)
    below = L.less_than(i, n)
    with L.While(below).block():
        before = L.array_read(array, i)
        ie = L.IfElse(L.less_than(before, limit))
        with ie.true_block():
            ie.output(L.fc(ie.input(before), 1, act="sigmoid"))
        with ie.false_block():
            ie.output(L.fc(ie.input(before), 1))
        (after,) = ie()
        i = L.increment(i)
        L.array_write(after, i, array=array)
        L.less_than(i, n, cond=below)
    return L.array_read(array, i)


def attention() -> Any:
    """A decoder that looks at the rows of an encoder's sequences."""
    states = L.fc(L.lod_reset(_rows(), target_lod=OFFSETS), 3, act="tanh")
    target = L.lod_reset(L.scale(_rows(), 0.5), target_lod=[0, 1, 4, 6])
    last = L.sequence_last_step(states)
    rnn = L.DynamicRNN()
    with rnn.block():
        now, before = rnn.step_input(target), rnn.memory(init=last, need_reorder=True)
        seen = rnn.static_input(states)
        wish = L.sequence_expand(x=L.fc(before, 3, bias_attr=False), y=seen)
        scores = L.fc(L.concat([seen, wish], axis=1), 1, act="tanh", bias_attr=False)
        weights = L.reshape(L.sequence_softmax(scores), [-1])
        context = L.sequence_pool(L.elementwise_mul(x=seen, y=weights, axis=0), "sum")
        hidden = L.fc([now, before, context], 3, act="tanh")
        rnn.update_memory(before, hidden)
        rnn.output(hidden)
    return rnn()


PROGRAMS: list[Callable[[], Any]] = [
    while_over_an_array, while_in_while, if_else, if_else_with_an_empty_side, if_else_in_while, if_else_by_a_vector,
    switch, static_rnn, static_rnn_from_a_given_memory, static_rnn_without_parameters_and_memories, dynamic_rnn,
    attention,
]  # fmt: skip


def trained(build: Callable[[], Any]) -> tuple[fluid.Program, fluid.Program, str]:
    """A program with our backward and an optimizer.

    Args:
        build: gives what is squared for the loss.

    Returns:
        The main program, the startup program and the loss's name.
    """
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 3
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        loss = L.mean(L.square(build()))
        fluid.optimizer.SGD(0.1).minimize(loss)
    return main, startup, loss.name
