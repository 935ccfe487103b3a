"""A recurrent network with its gradient, and its training by the compiled run or by the interpreter."""

from __future__ import annotations

from typing import Any

import numpy as np

import fluidnb as fluid
from fluidnb import layers


def network(steps: int = 6, dropout: float = 0.0, reverse: bool = False) -> Any:
    """A recurrent network with two memories over ``x`` [steps, rows, 4] and its loss, trained with SGD."""
    x = layers.data("x", [steps, -1, 4], append_batch_size=False)
    rnn = layers.StaticRNN()
    with rnn.step():
        now = rnn.step_input(x)
        h, c = (rnn.memory(shape=[-1, 4], batch_ref=x) for _ in range(2))
        z = layers.fc([now, h], 8, bias_attr="b")
        kept, more = layers.split(z, 2, 1)
        cell = layers.sigmoid(kept) * c + layers.tanh(more)
        hidden = layers.tanh(cell)
        if dropout:
            hidden = layers.dropout(hidden, dropout, seed=0)
        rnn.update_memory(h, hidden)
        rnn.update_memory(c, cell)
        rnn.step_output(hidden)
        rnn.step_output(cell)
    if reverse:
        fluid.default_main_program().global_block().ops[-1].desc.set_attr("reverse", True)
    hidden, cell = rnn()
    loss = layers.mean(layers.square(hidden)) + layers.mean(cell)
    fluid.optimizer.SGD(0.1).minimize(loss)
    return loss


def losses(loss: Any, feeds: list[np.ndarray[Any, Any]], interpreted: bool) -> list[bytes]:
    """The losses of training, in a scope of its own."""
    exe, scope = fluid.Executor(), fluid.Scope()
    fluid.default_startup_program().random_seed = fluid.default_main_program().random_seed = 7
    found = []
    with fluid.scope_guard(scope):
        exe.run(fluid.default_startup_program())
        for x in feeds:
            if interpreted:
                (value,) = exe.interpret(feed={"x": x}, fetch_list=[loss]).run().fetch()
            else:
                (value,) = exe.run(feed={"x": x}, fetch_list=[loss])
            found.append(value.tobytes())
    return found
