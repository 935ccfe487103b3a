"""Calls in the background of the kernel; where no thread can start, as in a browser, they are made at once."""

import threading
from collections.abc import Callable
from typing import Any


def in_background(call: Callable[..., Any], *args: Any, delay: float = 0.0) -> None:
    """Call a function in a daemon thread.

    Args:
        delay: seconds before it.
    """
    thread = threading.Timer(delay, call, args) if delay else threading.Thread(target=call, args=args)
    thread.daemon = True
    try:
        thread.start()
    except RuntimeError:
        call(*args)
