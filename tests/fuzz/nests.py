"""Random programs of loops, branches and recurrent networks inside each other, with what feeds them.

Every tensor is float64 [2, 3], or has as many rows as the batch of an IfElse block; every counter stays between 0 and 3
and every array has at least four elements, so that whatever is drawn can be read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import fluidnb as fluid

L = fluid.layers
Var = Any
Choose = Callable[[int], int]

#: What every program may read: trip counts, flags of branches, which rows take which side.
COUNTS, FLAGS, ROWS = ("n0", "n1"), ("b0", "b1"), ("r0",)
WEIGHTS = ("w0", "w1")
DEPTH, BUSY = 3, 14


@dataclass
class Sight:
    """Variables that can be used inside a block.

    Args:
        values: tensors with a value.
        carried: those among them that may be given another value.
        arrays: arrays with at least four elements.
        shelves: the same, to read only: a step net writes nothing outside.
        counters: int64 [1] with a value between 0 and 3.
        places: those among them that may be given another value.
        rows: whether tensors have all rows, so that those from outside may be used.
    """

    values: list[Var] = field(default_factory=list)
    carried: list[Var] = field(default_factory=list)
    arrays: list[Var] = field(default_factory=list)
    shelves: list[Var] = field(default_factory=list)
    counters: list[Var] = field(default_factory=list)
    places: list[Var] = field(default_factory=list)
    rows: bool = True


@dataclass
class Nest:
    """A random program; `build` makes it in the default program.

    Args:
        choose: ``choose(n)`` gives a number below n.
        array_style: whether only arrays carry values from iteration to iteration, each element written and read once
            and used, and no rows take sides: what Paddle's backward can do.
        random: whether operators may draw random numbers.

    Attributes:
        text: what was drawn, a line for each statement.
        shown: variables of the global block, to fetch beside the gradients.
    """

    choose: Choose
    array_style: bool = False
    random: bool = True
    text: list[str] = field(default_factory=list)
    shown: list[Var] = field(default_factory=list)
    _depth: int = 0
    _statements: int = 0
    _sight: Sight = field(default_factory=Sight)
    _weights: list[Var] = field(default_factory=list)
    _flags: list[Var] = field(default_factory=list)

    def build(self) -> tuple[fluid.Program, Var]:
        """Make the program.

        Returns:
            (program, loss), without backward.
        """
        x = L.data("x", [2, 3], dtype="float64", append_batch_size=False, stop_gradient=False)
        self._counts = [L.data(n, [1], dtype="int64", append_batch_size=False) for n in COUNTS]
        self._flags = [L.data(n, [1], dtype="bool", append_batch_size=False) for n in FLAGS]
        self._rows = [L.data(n, [2, 1], dtype="bool", append_batch_size=False) for n in ROWS]
        self._weights = [L.create_parameter([3, 3], "float64", name=n) for n in WEIGHTS]
        numbers = [L.fill_constant([1], "int64", k) for k in range(4)]
        self._numbers = numbers
        self._sight = Sight(values=[x, L.tanh(x), L.scale(x, 0.5)], counters=list(numbers))
        for _ in range(self.choose(3)):
            self._carry()
        for _ in range(0 if self.array_style else self.choose(2)):
            self._array()
        for _ in range(1 + self.choose(4)):
            self._statement()
        sight = self._sight
        self.shown = [*sight.values, *sight.carried, *sight.counters]
        ends = [x, *sight.values[-2:], *sight.carried]
        ends += [L.array_read(a, self._pick(sight.counters)) for a in sight.arrays]
        loss = L.mean(L.tanh(L.sums([L.scale(v, 0.3 + 0.1 * k) for k, v in enumerate(ends)])))
        return fluid.default_main_program(), loss

    # ---- drawing

    def _pick(self, things: list[Any]) -> Any:
        return things[len(things) - 1 - self.choose(len(things))]

    def _note(self, said: str) -> None:
        self.text.append("  " * self._depth + said)

    @contextmanager
    def _inside(self, sight: Sight) -> Iterator[None]:
        before, self._sight = self._sight, sight
        self._depth += 1
        yield
        self._depth -= 1
        self._sight = before

    def _within(self, **changes: Any) -> Sight:
        s = self._sight
        return Sight(**({"values": list(s.values), "carried": list(s.carried), "arrays": list(s.arrays),
                         "shelves": list(s.shelves), "counters": list(s.counters), "places": list(s.places),
                         "rows": s.rows} | changes))  # fmt: skip

    def _body(self, least: int = 1) -> None:
        for _ in range(least + self.choose(3)):
            self._statement()

    def _statement(self) -> None:
        self._statements += 1
        kinds = [self._compute, self._write, self._read, self._assign, self._array, self._carry]
        kinds += [self._place, self._move]
        if self.array_style:
            kinds = [self._compute]
        if self._depth < DEPTH and self._statements < BUSY:
            kinds += [self._loop, self._loop, self._branch, self._switch, self._recurrent, self._scan]
            kinds += [self._sides, self._grow] if self._sight.rows and not self.array_style else []
        kinds[len(kinds) - 1 - self.choose(len(kinds))]()

    # ---- tensors

    def _value(self) -> Var:
        """A tensor to read; what is still to change in the global block is copied, as its gradient may need it."""
        found = self._pick(self._sight.values + self._sight.carried)
        if self._depth == 0 and any(found is v for v in self._sight.carried):
            return L.assign(found)
        return found

    def _expression(self) -> Var:
        a, kind = self._value(), self.choose(9)
        if kind == 0:
            return L.scale(a, 0.7, bias=0.1)
        if kind == 1:
            return L.tanh(a)
        if kind == 2:
            return L.square(L.sigmoid(a))
        if kind == 3:
            return L.tanh(L.mul(a, self._pick(self._weights)))
        if kind == 4 and self.random:
            return L.dropout(a, 0.4)
        b = self._value()
        if kind == 5:
            return L.tanh(L.elementwise_mul(a, b))
        if kind == 6:
            return L.elementwise_sub(L.scale(a, 0.5), b)
        if kind == 7:
            return L.elementwise_mul(L.sigmoid(a), b)
        return L.sums([a, L.scale(b, 0.5)])

    def _compute(self) -> None:
        self._sight.values.append(self._expression())
        self._note(f"{self._sight.values[-1].name} = …")

    def _carry(self) -> None:
        if self.array_style:
            return
        self._sight.carried.append(L.assign(self._expression()))
        self._note(f"carried {self._sight.carried[-1].name}")

    def _assign(self) -> None:
        if not self._sight.carried or self._depth == 0:
            return self._compute()
        target = self._pick(self._sight.carried)
        how = self.choose(3)
        if how == 0:
            L.sums([target, L.scale(self._value(), 0.5)], out=target)
        elif how == 1:
            L.assign(L.tanh(L.elementwise_mul(target, self._value())), output=target)
        else:
            L.assign(self._expression(), output=target)
        return self._note(f"{target.name} <- … ({how})")

    # ---- arrays

    def _array(self) -> None:
        values = [self._expression() for _ in range(1 + self.choose(2))]
        array = L.array_write(values[0], self._numbers[0])
        for k in range(1, 4):
            L.array_write(values[k % len(values)], self._numbers[k], array=array)
        self._sight.arrays.append(array)
        self._note(f"array {array.name}")

    def _write(self) -> None:
        if not self._sight.arrays:
            return self._compute()
        array, at = self._pick(self._sight.arrays), self._pick(self._sight.counters)
        L.array_write(self._expression(), at, array=array)
        return self._note(f"{array.name}[{at.name}] <- …")

    def _read(self) -> None:
        arrays = self._sight.arrays + self._sight.shelves
        if not arrays:
            return self._compute()
        array, at = self._pick(arrays), self._pick(self._sight.counters)
        self._sight.values.append(L.array_read(array, at))
        return self._note(f"{self._sight.values[-1].name} = {array.name}[{at.name}]")

    # ---- places in arrays

    def _place(self) -> None:
        self._sight.places.append(L.assign(self._pick(self._numbers)))
        self._sight.counters.append(self._sight.places[-1])
        self._note(f"place {self._sight.places[-1].name}")

    def _move(self) -> None:
        """A place counts on, turning back to 0 after 3, or is given another value; inside a branch or not."""
        if not self._sight.places or self._depth == 0:
            return self._place()
        place, how = self._pick(self._sight.places), self.choose(4)
        if how == 0:
            L.assign(self._pick(self._sight.counters), output=place)
        elif how == 1:
            L.assign(L.elementwise_sub(self._numbers[3], place), output=place)
        else:
            with L.ConditionalBlock([L.less_than(place, self._numbers[3])], is_scalar_condition=True).block():
                L.increment(place)
            if how == 2:
                with L.ConditionalBlock([L.equal(place, self._numbers[3])], is_scalar_condition=True).block():
                    L.assign(self._numbers[0], output=place)
        return self._note(f"{place.name} moves ({how})")

    # ---- blocks

    @contextmanager
    def _while(self, count: Var, sight: Callable[[], Sight]) -> Iterator[Var]:
        i = L.fill_constant([1], "int64", 0)
        cond = L.less_than(i, count)
        with L.While(cond).block(), self._inside(sight()):
            self._sight.counters.append(i)
            yield i
            L.less_than(i, count, cond=cond)
        self._sight.counters.append(i)

    def _loop(self) -> None:
        count = self._pick([*self._numbers[1:], *self._counts])
        self._note(f"while i < {count.name}")
        with self._while(count, self._within) as i:
            self._body()
            L.increment(i)
            self._note(f"{i.name} += 1")
            if self.choose(3) == 0:
                self._body(0)

    def _scan(self) -> None:
        """A chain through an array of which only the beginning is written before the loop."""
        count = self._pick([*self._numbers[1:], *self._counts])
        chain = L.array_write(self._value(), self._numbers[0])
        self._note(f"scan {chain.name} while i < {count.name}")
        with self._while(count, self._within) as i:
            read = L.array_read(chain, i)
            self._sight.values.append(read)
            if self.choose(2) and not self.array_style:
                self._sight.values.append(L.array_read(chain, i))
            self._body(0)
            value = self._expression()
            if self.array_style:  # Paddle stops at an element of which no gradient arrives
                value = L.tanh(L.sums([value, read]))
            if self.choose(2):
                L.increment(i)
                L.array_write(value, i, array=chain)
            else:
                L.array_write(value, L.increment(L.assign(i)), array=chain)
                L.increment(i)
        self._sight.values.append(L.array_read(chain, count))
        if self.choose(2) and not self.array_style:
            self._sight.values.append(L.array_read(chain, self._numbers[0]))

    def _grow(self) -> None:
        """A value with more rows after each iteration."""
        value, count = self._value(), self._pick([*self._numbers[1:], *self._counts])
        grown = L.assign(value)
        grown.desc.set_shape([-1, 3])
        self._note(f"grow {grown.name} while i < {count.name}")
        with self._while(count, lambda: Sight(values=[grown], counters=list(self._sight.counters), rows=False)) as i:
            self._body(0)
            L.assign(L.concat([grown, self._expression()], axis=0), output=grown)
            L.increment(i)
        mean = L.scale(L.reduce_mean(grown, dim=0), 0.5)
        self._sight.values.append(L.elementwise_add(L.scale(value, 0.5), mean, axis=1))
        return None

    def _condition(self) -> Var:
        kind = self.choose(3)
        if kind == 0:
            return self._pick(self._flags)
        if kind == 1:
            return L.less_than(self._pick(self._sight.counters), self._pick(self._numbers))
        total = L.reshape(L.reduce_sum(self._value()), [1])
        return L.less_than(total, L.fill_constant([1], "float64", 0.05))

    def _branch(self) -> None:
        condition = self._condition()
        self._note(f"if {condition.name}")
        with L.ConditionalBlock([condition], is_scalar_condition=True).block(), self._inside(self._within()):
            self._body()

    def _switch(self) -> None:
        self._note("switch")
        conditions = [self._condition() for _ in range(1 + self.choose(2))]
        with L.Switch() as switch:
            for condition in conditions:
                with switch.case(condition), self._inside(self._within()):
                    self._body()
                self._note("-")
            if self.choose(2):
                with switch.default(), self._inside(self._within()):
                    self._body(0)

    def _recurrent(self) -> None:
        self._note("recurrent")
        if not self._sight.rows:
            return self._compute()
        parts = [self._value() for _ in range(1 + self.choose(3))]
        sequence = L.reshape(L.concat(parts, axis=0), [len(parts), 2, 3])
        start = self._value()
        rnn = L.StaticRNN()
        with rnn.step(), self._inside(self._step_net()):
            word, memory = rnn.step_input(sequence), rnn.memory(init=start)
            self._sight.values += [word, memory]
            self._body(0)
            new = L.tanh(L.sums([memory, self._expression()]))
            rnn.update_memory(memory, new)
            rnn.output(new if self.choose(2) else self._expression())
        out = rnn()
        self._sight.values.append(L.scale(L.reduce_sum(out, dim=0), 0.5))
        return None

    def _step_net(self) -> Sight:
        s = self._sight
        return self._within(values=s.values + s.carried, carried=[], arrays=[], shelves=s.arrays + s.shelves, places=[])

    def _sides(self) -> None:
        self._note("rows")
        whole = self._value()
        split = L.IfElse(self._pick(self._rows))
        for side in (split.true_block, split.false_block):
            with side(), self._inside(Sight(counters=list(self._sight.counters), rows=False)):
                self._sight.values.append(split.input(whole))
                self._body(0)
                split.output(L.tanh(self._expression()))
        self._sight.values.append(split()[0])


def weights(rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Values for the parameters."""
    return {n: rng.normal(size=(3, 3)) for n in WEIGHTS}


def feed(rng: np.random.Generator) -> dict[str, np.ndarray]:
    """One run's feeds: other values, other trip counts, other branches."""
    found: dict[str, np.ndarray] = {"x": rng.normal(size=(2, 3))}
    found |= {n: rng.integers(0, 4, [1]) for n in COUNTS}
    found |= {n: rng.random(1) < 0.5 for n in FLAGS}
    return found | {n: rng.random((2, 1)) < 0.5 for n in ROWS}
