"""Pinned memory of the host for copies that are under way."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from fluidnb import memory
from fluidnb.values import CUDAPinnedPlace

Array = np.ndarray[Any, Any]

_FIRST, _ALIGN = 1 << 16, 64


class Desk:
    """Pinned staging buffers for copies to and from a device.

    Copies of pinned memory go on while the host does other things. It is handed out piece by piece, and is free again
    all at once.

    Source: design document on memory, section on pinned memory.
    """

    def __init__(self) -> None:
        self._blocks: list[Array] = []
        self._at = 0

    def room(self, shape: Sequence[int], dtype: Any) -> Array:
        """An array to copy to or from, good until `clear`.

        Args:
            shape: its sizes.
            dtype: numpy dtype.

        Returns:
            An array in pinned memory, its content undefined.
        """
        size = prod(shape) * dtype.itemsize
        if not self._blocks or self._at + size > self._blocks[-1].nbytes:
            last = self._blocks[-1].nbytes if self._blocks else _FIRST // 2
            block = memory.raw(CUDAPinnedPlace(), max(2 * last, size))
            memory.tag(block, "copies to and from devices")
            self._blocks.append(block)
            self._at = 0
        made: Array = memory.view_of(self._blocks[-1], shape, dtype, self._at)
        self._at += -(-size // _ALIGN) * _ALIGN
        return made

    def clear(self) -> None:
        """All of it is free again: no copy is under way."""
        del self._blocks[:-1]
        self._at = 0
