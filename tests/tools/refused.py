"""A call is refused with a message: the user's source line, which the error quotes, does not count as one."""

from __future__ import annotations

import re
from types import TracebackType

import pytest

from fluidnb.errors import FluidError


class refused:  # noqa: N801 - like pytest.raises
    """Like `pytest.raises`; a pattern that stands in a lambda of the test would match the quoted line of that lambda.

    A class, for the frame of a generator would keep the exception, and what it holds, until the next collection.

    Args:
        match: a pattern that the message without its row ``at`` has to contain.
    """

    def __init__(self, kind: type[BaseException] | tuple[type[BaseException], ...], match: str) -> None:
        self._raises = pytest.raises(kind)
        self._match = match

    def __enter__(self) -> pytest.ExceptionInfo[BaseException]:
        return self._raises.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        done = self._raises.__exit__(kind, error, traceback)
        if done:
            text = error.text(without=["at"]) if isinstance(error, FluidError) else str(error)
            assert re.search(self._match, text), text
        return done
