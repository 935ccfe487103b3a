"""Changes the cases of the grids at random: their attributes, dtypes and sizes."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from fluidnb.op import get_op
from tests.paddle.grid import Case, values

#: Attributes that choose a library, a dtype or a random draw, or that say in which order equals come.
_LEFT_ALONE = {
    "use_cudnn", "use_mkldnn", "fuse_relu", "fuse_relu_before_depthwise_conv", "workspace_size_MB", "exhaustive_search",
    "mkldnn_data_type", "use_quantizer", "with_quant_attr", "seed", "use_random", "sorted", "dtype", "out_dtype",
    "in_dtype", "multi_precision", "is_test",
}  # fmt: skip
_DTYPES = [("float64", "float32"), ("float32", "float64"), ("int32", "int64"), ("int64", "int32")]


class Mutations:
    """Changes cases at random; the same seed gives the same changes.

    Args:
        cases: those from which texts of attributes are taken, beside what is declared.
    """

    def __init__(self, seed: int, cases: Sequence[Case]) -> None:
        self._random = random.Random(seed)
        self._cases: dict[str, list[Case]] = {}
        self._texts: dict[tuple[str, str], set[str]] = {}
        for case in cases:
            self._cases.setdefault(case.op, []).append(case)
            for name, value in case.attrs.items():
                if isinstance(value, str):
                    self._texts.setdefault((case.op, name), set()).add(value)

    def next(self) -> Case:
        """A case of some operator with one or two changes."""
        case = self._random.choice(self._cases[self._random.choice(sorted(self._cases))])
        for _ in range(self._random.choice([1, 1, 2])):
            case = self._random.choice([self._attribute, self._attribute, self._dtype, self._size])(case)
        return case

    def _attribute(self, case: Case) -> Case:
        declared = get_op(case.op).attrs
        names = [name for name in declared if name not in _LEFT_ALONE]
        if not names:
            return case
        name = self._random.choice(names)
        old = case.attrs.get(name, declared[name].default)
        new = self._other(old, sorted(self._texts.get((case.op, name), ())))
        return case if new is None else replace(case, attrs={**case.attrs, name: new})

    def _other(self, old: Any, texts: list[str]) -> Any:
        choose = self._random.choice
        if isinstance(old, bool):
            return not old
        if isinstance(old, int):
            return choose([old + 1, old - 1, 0, -1, 2, 3, -2])
        if isinstance(old, float):
            return choose([0.5, 2.0, 0.001, old * 2])
        if isinstance(old, str):
            return choose(texts) if texts else None
        if isinstance(old, list) and old and all(type(n) is int for n in old):
            at, how = self._random.randrange(len(old)), self._random.random()
            middle = [old[at] + choose([1, -1, 2])] if how < 0.7 else [] if how < 0.85 else [old[at]] * 2
            return [*old[:at], *middle, *old[at + 1 :]]
        return None

    def _dtype(self, case: Case) -> Case:
        old, new = self._random.choice(_DTYPES)
        return _each(case, lambda x: x.astype(new) if x.dtype == old else x)

    def _size(self, case: Case) -> Case:
        arrays = [x for given in case.inputs.values() for x in (given if isinstance(given, list) else [given])]
        sizes = sorted({n for x in arrays if isinstance(x, np.ndarray) for n in x.shape})
        if not sizes or any(isinstance(x, tuple) for x in arrays):  # lengths of sequences would not fit
            return case
        old = self._random.choice(sizes)
        new = self._random.choice([1, 2, old + 1, max(old - 1, 1)])

        def resized(x: Any) -> Any:
            shape = tuple(new if n == old else n for n in x.shape)
            if x.dtype.kind == "f" and x.size and shape != x.shape:  # no number twice, so that nothing is a tie
                return values(shape, str(x.dtype), float(x.min()), float(x.max()))
            return np.resize(x, shape).astype(x.dtype)

        return _each(case, resized)


def _each(case: Case, change: Callable[[Any], Any]) -> Case:
    def changed(given: Any) -> Any:
        if isinstance(given, list):
            return [changed(one) for one in given]
        return (change(given[0]), given[1]) if isinstance(given, tuple) else change(given)

    return replace(case, inputs={slot: changed(given) for slot, given in case.inputs.items()})
