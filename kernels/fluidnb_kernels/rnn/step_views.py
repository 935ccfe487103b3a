"""Views of arrays step by step, cached for arrays that are given again."""

from collections.abc import Callable, Iterable
from typing import Any
from weakref import ref

from fluidnb.op import Array


class StepViews:
    """The views of each step, cached from the second time on that the same arrays come; slicing is slow."""

    __slots__ = ("_kept", "_make", "_of")

    def __init__(self, make: Callable[..., Iterable[tuple[Any, ...]]]) -> None:
        self._make = make
        self._of: list[ref[Array]] = []
        self._kept: list[tuple[Any, ...]] | None = None

    def __call__(self, *arrays: Array) -> Iterable[tuple[Any, ...]]:
        """The views of arrays, step by step."""
        if len(self._of) != len(arrays) or any(old() is not new for old, new in zip(self._of, arrays, strict=True)):
            self._of, self._kept = [ref(x) for x in arrays], None
            return self._make(*arrays)
        if self._kept is None:
            self._kept = list(self._make(*arrays))
        return self._kept
