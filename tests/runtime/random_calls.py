"""Random lists of calls as kernels emit them: functions, copies and sums of arrays with NaN, infinity and strides."""

from __future__ import annotations

import operator
import random
from collections.abc import Callable
from typing import Any

import numpy as np

Array = Any
Call = tuple[Any, tuple[Any, ...], dict[str, Any]]
ONE = (
    np.negative, np.absolute, np.sqrt, np.square, np.reciprocal, np.exp, np.log, np.tanh, np.sin, np.floor, np.ceil,
    np.trunc, np.rint, np.sign, np.expm1, np.log1p, np.positive,
)  # fmt: skip
TWO = (np.add, np.subtract, np.multiply, np.divide, np.power, np.logaddexp)
TESTS = (
    np.less, np.greater, np.equal, np.not_equal, np.less_equal, np.greater_equal, np.logical_and, np.logical_or,
)  # fmt: skip
REDUCTIONS = (np.add, np.add, np.maximum, np.minimum)
SPECIAL = (np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-40, 3e38, -104, 89)


class RandomCalls:
    """Calls over a few arrays of one shape, and others that broadcast to it.

    Attributes:
        calls: as kernels emit them.
        arrays: all arrays that they touch, but for constants.
    """

    def __init__(self, seed: int) -> None:
        self.random, self.numbers = random.Random(seed), np.random.default_rng(seed)
        pick = self.random.choice
        rank = pick([0, 1, 1, 2, 2, 2, 3, 4])
        inner = [1, 2, 3, 5, 7, 17, 64, 100, 300, 1500]
        self.shape = tuple(pick(inner if i == rank - 1 else [1, 2, 3, 4, 9]) for i in range(rank))
        self.dtype = pick(["f", "f", "f", "d"])
        self.full = [self._array(self.shape) for _ in range(self.random.randint(2, 5))]
        if rank and self.random.random() < 0.5:
            self.full += self._windows()
        self.small = [self._array(self._smaller()) for _ in range(3)]
        self.masks = [np.asarray(self.numbers.random(self.shape) > 0.5) for _ in range(2)]
        self.constant = np.array(self.numbers.standard_normal(), self.dtype)
        self.constant.flags.writeable = False
        self.sums: list[Array] = []
        self.calls: list[Call] = [self._call() for _ in range(self.random.randint(1, pick([12, 12, 40])))]
        self.arrays = [*self.full, *self.small, *self.masks, *self.sums]

    def _array(self, shape: tuple[int, ...]) -> Array:
        """Random and special numbers, sometimes with axes in another order or with gaps."""
        axes, kind = list(range(len(shape))), self.random.random()
        if kind < 0.15:
            self.random.shuffle(axes)
        sizes = [shape[i] + (self.random.choice([0, 0, 1]) if kind > 0.9 else 0) for i in axes]
        array = np.asarray(self.numbers.standard_normal(sizes), self.dtype)
        if sizes and self.random.random() < 0.5:
            odd = self.numbers.random(sizes) < 0.1
            array[odd] = self.numbers.choice(np.array(SPECIAL, self.dtype), odd.sum())
        if not sizes:
            return array
        return array[tuple(slice(0, shape[i]) for i in axes)].transpose([axes.index(i) for i in range(len(axes))])

    def _windows(self) -> list[Array]:
        """Parts of one array, some of which have elements in common."""
        axis = self.random.randrange(len(self.shape))
        steps = [0, self.random.randint(1, 3), self.shape[axis] + 2]
        whole = list(self.shape)
        whole[axis] += steps[-1]
        array = np.asarray(self.numbers.standard_normal(whole), self.dtype)
        return [array[(*[slice(None)] * axis, slice(step, step + self.shape[axis]))] for step in steps]

    def _smaller(self) -> tuple[int, ...]:
        shape = tuple(n if self.random.random() < 0.6 else 1 for n in self.shape)
        return shape[self.random.randint(0, len(shape)) :] if self.random.random() < 0.3 else shape

    def _input(self) -> Array:
        pick = self.random.choice
        return pick([pick(self.full), pick(self.full), pick(self.small), self.constant, *self.sums[-1:]])

    def _call(self) -> Call:
        pick, kind = self.random.choice, self.random.random()
        out, x, y, mask = pick(self.full), self._input(), self._input(), pick(self.masks)
        if kind < 0.3:
            return pick(ONE), (x, out), {}
        if kind < 0.6:
            return pick(TWO), (x, y, out), {}
        if kind < 0.65:
            return pick([np.maximum, np.minimum]), (x, y), {"out": out}
        if kind < 0.72:
            return pick(TESTS), (x, y, mask), {}
        if kind < 0.77:
            return np.multiply, (mask, x, out), {}
        if kind < 0.82:
            return np.copyto, (out, x), pick([{"where": mask}, {}])
        if kind < 0.85 or not self.shape:
            return operator.setitem, (out, ..., x), {}
        axis = pick([-1, 0, None, tuple(range(1, len(self.shape))) or None])
        axes = range(len(self.shape)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
        gone = {i % len(self.shape) for i in axes}
        total = np.empty([1 if i in gone else n for i, n in enumerate(self.shape)], self.dtype)
        self.sums.append(total)
        if pick([True, False]):
            return pick(REDUCTIONS).reduce, (pick(self.full), axis, None, total, True), {}
        flat = total.reshape([n for i, n in enumerate(self.shape) if i not in gone])
        return pick(REDUCTIONS).reduce, (pick(self.full), axis, None, flat), {}

    def memory(self) -> list[Array]:
        """Copies of everything that the calls may change, gaps between elements included."""
        return [_owner(array).copy() for array in self.arrays]

    def restore(self, memory: list[Array]) -> None:
        """Write copies back."""
        for array, copy in zip(self.arrays, memory, strict=True):
            _owner(array)[...] = copy


def _owner(array: Array) -> Array:
    return array if array.base is None else _owner(array.base)


def same_bits(a: Array, b: Array) -> bool:
    """Whether two arrays have the same bits; any NaN is like any other."""
    whole = f"u{a.itemsize}"
    equal = a.view(whole) == b.view(whole)
    return bool((equal | ((a != a) & (b != b))).all())


Run = Callable[[], None]
