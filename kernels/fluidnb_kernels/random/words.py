"""Random numbers on a GPU: what a kernel needs to draw those of the host, and numbers that only the host can draw."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fluidnb.op import Binder, Stream
from fluidnb_kernels.cuda.source import Function
from fluidnb_kernels.cuda.upload import upload

Array = Any


def words_of(stream: Stream) -> tuple[np.uint64, ...]:
    """The numbers of this run as ``philox.cuh`` takes them.

    Args:
        stream: where they come from.

    Returns:
        The two words of the key and three of the counter; kernels count in its first word.

    Example:
        >>> from fluidnb.op import Clock
        >>> len(words_of(Stream("x", Clock(1))))
        5
    """
    state: Any = stream.rewind().bit_generator.state["state"]
    return *state["key"], *state["counter"][1:]


def launch(function: Function, stream: Stream, grid: int, block: tuple[int, ...], *args: Any) -> None:
    """Launch a kernel whose first arguments are the numbers of this run.

    Args:
        stream: where the numbers come from.
    """
    function((grid,), block, 0, *words_of(stream), *args)


def drawn_on_host(b: Binder, draw: Callable[..., None], out: Array, *args: Any) -> None:
    """Emit numbers that the host draws in every run, since each depends on how many were drawn in vain before it.

    Args:
        draw: ``draw(stream, out, *args)`` fills an array of the host.
    """
    numbers = b.memory.alloc_on("cpu", out.shape, out.dtype)
    b(draw, b.rng, numbers, *args)
    b(upload, numbers, out)
