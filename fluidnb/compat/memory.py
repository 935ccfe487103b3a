"""Memories of an RNN of the design documents: values passed from step to step."""

from __future__ import annotations

from typing import Protocol

from fluidnb.errors import OpValueError
from fluidnb.layers.one_op import check_variable
from fluidnb.program import Variable


class Keeper(Protocol):
    """The network that a `Memory` belongs to."""

    def remembered(self, memory: Memory) -> Variable:
        """Declare one more value from the steps before.

        Args:
            memory: whose value.

        Returns:
            The value, a variable of the step block.
        """


class Memory:
    """A value that goes from each step of an RNN to the next, like a reference that is read before it is written.

    Args:
        rnn: the network.
        init: what the first step sees.
        name: name of the value from the step before.

    Attributes:
        init: what the first step sees.
        name: name of the value from the step before, which it has once the step block is complete.
        before: the values from the step before, from two steps before, …, as far as they were requested.
        after: the new value, None until it is known.

    Example:
        >>> from fluidnb.compat import pd
        >>> x, m = pd.Variable([3, 1], name="x"), pd.var(0.0)
        >>> rnn = pd.create_rnn(inputs=[x])
        >>> with rnn.stepnet() as net:
        ...     h = net.add_memory(init=m)
        ...     h.update(pd.add(h.pre(), net.set_inputs(0)))
        ...     net.set_outputs(h.pre())
        >>> pd.evaluate(rnn(), feed={"x": np.array([[1], [2], [3]], "float32")}).ravel()
        array([0., 1., 3.], dtype=float32)

    Source: ``h = net.add_memory(init=m)`` in the first design of Block, ``rnn.memory(init=m)`` in the second.
    """

    def __init__(self, rnn: Keeper, init: Variable, name: str | None) -> None:
        check_variable(init, "init", "memory")
        self._rnn = rnn
        self.init, self.name = init, name
        self.before: list[Variable] = []
        self.after: Variable | None = None

    def pre(self, n: int = 1) -> Variable:
        """The value from some steps before; before there were so many steps, what the first step sees.

        Args:
            n: how many steps.

        Returns:
            The value, a variable of the step block.

        Raises:
            OpValueError: fewer than one step, or outside of the step block.
        """
        if n < 1:
            raise OpValueError("A memory remembers the steps before.", expected="n from 1 on", received=f"pre(n={n})")
        while len(self.before) < n:
            self.before.append(self._rnn.remembered(self))
        return self.before[n - 1]

    pre_state = pre

    def update(self, value: Variable) -> None:
        """Say what the memory becomes.

        Args:
            value: its new value, a variable that the step block sees.

        Raises:
            OpTypeError: not a Variable.
        """
        check_variable(value, "value", "update")
        self.after = value
