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


class PinnedStaging:
    """Pinned staging buffers for asynchronous copies to and from a device, freed all at once."""

    def __init__(self) -> None:
        self._blocks: list[Array] = []
        self._at = 0

    def empty(self, shape: Sequence[int], dtype: Any) -> Array:
        """An array in pinned memory, its content undefined, good until `clear`."""
        size = prod(shape) * dtype.itemsize
        if not self._blocks or self._at + size > self._blocks[-1].nbytes:
            last = self._blocks[-1].nbytes if self._blocks else _FIRST // 2
            block = memory.raw(CUDAPinnedPlace(), max(2 * last, size))
            memory.tag(block, "copies to and from devices")
            self._blocks.append(block)
            self._at = 0
        array: Array = memory.view_of(self._blocks[-1], shape, dtype, self._at)
        self._at += -(-size // _ALIGN) * _ALIGN
        return array

    def clear(self) -> None:
        """All of it is free again: no copy is under way."""
        del self._blocks[:-1]
        self._at = 0
