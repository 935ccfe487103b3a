"""Random networks of loops, branches and recurrent networks inside each other, over a batch of four rows of two."""

from __future__ import annotations

import random
from typing import Any

import fluidnb as fluid

L: Any = fluid.layers

ROWS, WIDTH = 4, 2

#: Ways to cut four rows into sequences.
CUTS = ([0, 1, 4], [0, 3, 4], [0, 2, 2, 4])


class Nest:
    """Draws a network from h [N, 2] to [N, 2].

    Args:
        seed: which network.
        dtype: of h.

    Attributes:
        kinds: what was drawn, as (depth, kind).
    """

    def __init__(self, seed: int, dtype: str = "float64") -> None:
        self.random, self.dtype = random.Random(seed), dtype
        self.kinds: list[tuple[int, str]] = []

    def build(self, h: Any, depth: int, whole: bool = True) -> Any:
        """A network of some depth.

        Args:
            h: what it sees.
            depth: how deep blocks may stand inside each other.
            whole: whether the whole batch of four rows is there.
        """
        inner = ["dense", "wave"]
        outer = ["loop", "branch", "late_branch", "cases", "steps", "two"] + ["sequences"] * whole
        kind = self.random.choice(outer if depth else inner)
        self.kinds.append((depth, kind))
        return getattr(self, f"_{kind}")(h, depth - 1, whole)

    def _number(self, value: float, dtype: str = "int64") -> Any:
        return L.fill_constant([1], dtype, value)

    def _dense(self, h: Any, depth: int, whole: bool) -> Any:
        return L.fc(h, WIDTH, act="tanh", param_attr="w", bias_attr="b")

    def _wave(self, h: Any, depth: int, whole: bool) -> Any:
        return L.elementwise_mul(L.tanh(h), L.sin(h))

    def _two(self, h: Any, depth: int, whole: bool) -> Any:
        return L.elementwise_add(self.build(h, depth, whole), L.scale(self.build(h, depth, whole), 0.5))

    def _loop(self, h: Any, depth: int, whole: bool) -> Any:
        i, n = L.zeros([1], "int64"), self._number(self.random.choice([1, 2]))
        array = L.array_write(h, i)
        below = L.less_than(i, n)
        with L.While(below).block():
            more = self.build(L.array_read(array, i), depth, whole)
            i = L.increment(i)
            L.array_write(more, i, array=array)
            L.less_than(i, n, cond=below)
        return L.array_read(array, i)

    def _condition(self, h: Any) -> Any:
        limit = self.random.choice([-5.0, 0.1, 0.3, 5.0])
        bound = L.fill_constant_batch_size_like(h, [-1, 1], self.dtype, limit)
        return L.less_than(L.reduce_sum(h, dim=1, keep_dim=True), bound)

    def _branch(self, h: Any, depth: int, whole: bool) -> Any:
        ie = L.IfElse(self._condition(h))
        for side in (ie.true_block, ie.false_block):
            with side():
                ie.output(self.build(ie.input(h), depth, False))
        return ie()[0]

    def _late_branch(self, h: Any, depth: int, whole: bool) -> Any:
        ie = L.IfElse()
        for side in (ie.true_block, ie.false_block):
            with side():
                ie.output(self.build(h, depth, False))
        return ie(self._condition(h))[0]

    def _cases(self, h: Any, depth: int, whole: bool) -> Any:
        out, total = L.scale(h, 0.7), L.reshape(L.reduce_sum(h), [1])
        with L.Switch() as switch:
            with switch.case(L.less_than(total, self._number(self.random.choice([-9.0, 0.2, 9.0]), self.dtype))):
                L.assign(self.build(h, depth, whole), output=out)
            if self.random.random() < 0.6:
                with switch.default():
                    L.assign(self.build(h, depth, whole), output=out)
        return out

    def _steps(self, h: Any, depth: int, whole: bool) -> Any:
        x = L.stack([h, L.scale(h, 0.5)], axis=0)
        rnn = L.StaticRNN()
        with rnn.step():
            now, before = rnn.step_input(x), rnn.memory(init=h)
            more = self.build(L.elementwise_add(now, before), depth, whole)
            rnn.update_memory(before, more)
            rnn.output(more if self.random.random() < 0.5 else L.scale(more, 2.0))
        return rnn(output_all_steps=False) if self.random.random() < 0.5 else L.reduce_sum(rnn(), dim=0)

    def _sequences(self, h: Any, depth: int, whole: bool) -> Any:
        x = L.lod_reset(L.scale(h, 1.0), target_lod=self.random.choice(CUTS))
        rnn = L.DynamicRNN()
        with rnn.block():
            now, before = rnn.step_input(x), rnn.memory(shape=[WIDTH], value=0.2, dtype=self.dtype)
            more = self.build(L.elementwise_add(now, before), depth, False)
            rnn.update_memory(before, more if self.random.random() < 0.7 else L.elementwise_mul(more, before))
            rnn.output(more)
        return L.elementwise_add(L.scale(h, 0.1), rnn())
