"""Launches that are made at once, in a call of a run: what they are about is known only then."""

from collections.abc import Callable
from typing import Any


class _Now:
    """A minimal binder for code that only emits launches."""

    def __call__(self, function: Callable[..., None], *args: Any) -> None:
        function(*args)


#: Give it to `elementwise` and the like instead of a binder.
NOW: Any = _Now()
