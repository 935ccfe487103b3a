"""Lines of arguments, split as a shell does."""

from __future__ import annotations

from typing import Any

from IPython.core import magic_arguments
from IPython.core.error import UsageError


def parse_argstring(magic: Any, line: str) -> Any:
    """The arguments of a magic, as IPython parses them.

    Args:
        magic: the function with its declared arguments.
        line: what follows its name.

    Raises:
        UsageError: they do not fit, or a quote is not closed.
    """
    try:
        return magic_arguments.parse_argstring(magic, line)
    except ValueError as error:  # of shlex
        raise UsageError(f"{error}: {line!r}. Close every quote, or write a \\ before it.") from None
