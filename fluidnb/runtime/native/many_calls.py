"""Calls that stand for many, as kernels of recurrent networks emit them: taken apart, for native code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from fluidnb.runtime.native.segment_code import Calls


class ManyCalls(Protocol):
    """A callable that makes many calls; it has ``calls``."""

    def __call__(self, *args: Any) -> None:
        """Make them."""

    def calls(self, *args: Any) -> list[tuple[Any, tuple[Any, ...]]]:
        """Give them for the same arguments."""


def any_of(plain: Calls) -> bool:
    """Whether some calls stand for many."""
    return any(hasattr(function, "calls") for function, _ in plain.calls)


def taken_apart(plain: Calls, lives: Mapping[int, Any]) -> tuple[Calls, dict[int, Any]]:
    """The calls with those in place that they stand for, and the buffers by the numbers of these calls."""
    calls: list[tuple[Any, tuple[Any, ...]]] = []
    ops, units, first = list[Any](), list[Any](), [0]
    for call, op, unit in zip(*plain, strict=True):
        function, args = call
        more = function.calls(*args) if hasattr(function, "calls") else [call]
        calls += more
        ops += [op] * len(more)
        units += [unit] * len(more)
        first.append(len(calls))
    moved = {key: life._replace(first=first[life.first], last=first[life.last + 1] - 1) for key, life in lives.items()}
    return plain._replace(calls=calls, ops=ops, units=units), moved
