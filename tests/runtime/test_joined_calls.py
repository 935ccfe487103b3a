"""Calls that take in others: whatever stands between, the results are those of the calls one after another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from fluidnb.runtime.native.segment_code import Calls, nothing
from fluidnb.runtime.replay.joined_calls import extend, groups_of, joined

Array = Any
_FIXED, _ALL = 3, 8


class Doubled:
    """Writes twice a number, and what the calls that it takes in make of that.

    These are sums with something else, and pairs that compute x * (x - something else).
    """

    target = 1

    def __call__(self, x: Array, out: Array) -> None:
        """Two times x."""
        np.multiply(x, 2, out)

    def takes_in(self, array: Array, calls: Sequence[Any]) -> tuple[Array, int] | None:
        """A sum, or a pair."""
        function, args, _ = calls[0]
        if args[0] is not array or args[1] is array:
            return None
        if function is np.add:
            return args[2], 1
        second, factors, _ = calls[1] if len(calls) > 1 else (None, (), {})
        pair = function is np.subtract and second is np.multiply and args[2] is not array
        return (factors[2], 2) if pair and factors[0] is args[2] and factors[1] is array else None

    def joined(self, args: Sequence[Array], calls: Sequence[Any]) -> tuple[Any, tuple[Any, ...]]:
        """All of it at once: what it reads must not be what it writes."""
        steps = [(function, args[1]) for function, args, _ in calls if function is not np.multiply]

        def all_at_once(x: Array, out: Array, *others: Array) -> None:
            np.multiply(x, 2, out)
            for (function, _), other in zip(steps, others, strict=True):
                out[...] = out + other if function is np.add else out * (out - other)

        return all_at_once, (args[0], calls[-1][1][2], *(other for _, other in steps))


_NUMBERS = st.integers(0, _ALL - 1)
_KINDS = st.sampled_from(["double", "add", "copy", "pair"])
_CALLS = st.lists(st.tuples(_KINDS, _NUMBERS, _NUMBERS, _NUMBERS), max_size=20)


def _made(rows: list[tuple[str, int, int, int]], arrays: list[Array]) -> list[Any]:
    calls: list[Any] = []
    for kind, i, j, k in rows:
        if kind == "double" and i != k:
            calls.append((Doubled(), (arrays[i], arrays[k]), {}))
        elif kind == "add":
            calls.append((np.add, (arrays[i], arrays[j], arrays[k]), {}))
        elif kind == "pair" and len({i, j, k}) == 3:
            other = arrays[j]  # also what is written between
            calls += [(np.subtract, (arrays[i], other, other), {}), (np.multiply, (other, arrays[i], arrays[k]), {})]
        elif kind == "copy":
            calls.append((np.copyto, (arrays[k], arrays[i]), {}))
    return calls


@example([("double", 0, 0, 3), ("add", 3, 1, 1)])
@given(_CALLS)
def test_results_stay(rows: list[tuple[str, int, int, int]]) -> None:
    arrays = [np.arange(3.0) + 10 * k for k in range(_ALL)]
    calls = _made(rows, arrays)
    lives: dict[int, tuple[int, int]] = {}
    for t, (_, args, _) in enumerate(calls):
        for array in args:
            if any(array is one for one in arrays[_FIXED:]):
                lives[id(array)] = lives.get(id(array), (t, t))[0], t
    groups = groups_of(calls, lives)
    extend(lives, calls, groups)
    for group in groups:
        spans = [lives[id(array)] for t in group for array in calls[t][1] if id(array) in lives]
        assert all(first <= group[0] and group[-1] <= last for first, last in spans)
    plain = Calls([(f, args) for f, args, _ in calls], list(range(len(calls))), list(range(len(calls))))
    one = joined(plain, calls, groups)
    assert len(one.calls) == len(calls) and sum(f is nothing for f, _ in one.calls) == sum(len(g) - 1 for g in groups)
    results = []
    for each in (plain, one):
        for k, array in enumerate(arrays):
            array[...] = np.arange(3.0) + 10 * k
        for function, args in each.calls:
            function(*args)
        results.append([array.copy() for array in arrays[:_FIXED]])
    np.testing.assert_array_equal(*results)


def test_a_stop_falls_between_groups() -> None:
    x, a, b, out, side = (np.ones(3) for _ in range(5))
    calls: list[Any] = [
        (np.add, (x, x, x), {}), (Doubled(), (x, a), {}), (np.copyto, (side, 2.0), {}), (np.add, (a, b, out), {}),
        (np.add, (out, out, out), {}),
    ]  # fmt: skip
    groups = groups_of(calls, {id(a): (1, 3)})
    assert groups == [[1, 3]]
    one = joined(Calls([call[:2] for call in calls], [*"abcde"], [*"abcde"]), calls, groups)
    assert one.units == ["a", "b", "b", "b", "e"] and one.ops == ["a", "b", "c", "b", "e"]


def test_a_call_without_arrays_ends_the_search() -> None:
    x, a, out = (np.ones(3) for _ in range(3))
    calls: list[Any] = [(Doubled(), (x, a), {}), (print, (), {}), (np.add, (a, x, out), {})]
    assert groups_of(calls, {id(a): (0, 2)}) == []
