"""Views of arrays step by step, which are kept for arrays that come again."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any
from weakref import ref

Array = Any


class StepViews:
    """What each step works on.

    To slice an array costs as much as to calculate with few rows of it, so the views are kept from the second time on
    that the same arrays are given. Arrays that are gone are not held.

    Args:
        make: gives a tuple of views for each step of some arrays.

    Example:
        >>> import numpy as np
        >>> views, x = StepViews(lambda x: ((x[i], x[i + 1]) for i in range(2))), np.arange(3)
        >>> list(views(x)), views(x) is views(x), views(x.copy()) is views(x)
        ([(np.int64(0), np.int64(1)), (np.int64(1), np.int64(2))], True, False)
    """

    __slots__ = ("_kept", "_make", "_of")

    def __init__(self, make: Callable[..., Iterable[tuple[Any, ...]]]) -> None:
        self._make = make
        self._of: list[ref[Array]] = []
        self._kept: list[tuple[Any, ...]] | None = None

    def __call__(self, *arrays: Array) -> Iterable[tuple[Any, ...]]:
        """The views of arrays, step by step.

        Args:
            arrays: as ``make`` takes them.

        Returns:
            A tuple for each step.
        """
        if len(self._of) != len(arrays) or any(old() is not new for old, new in zip(self._of, arrays, strict=True)):
            self._of, self._kept = [ref(x) for x in arrays], None
            return self._make(*arrays)
        if self._kept is None:
            self._kept = list(self._make(*arrays))
        return self._kept
