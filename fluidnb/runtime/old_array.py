"""The arrays that runs give while Paddle's names are installed: like those of the numpy that old scripts know."""

from __future__ import annotations

from typing import Any

import numpy as np


class OldArray(np.ndarray[Any, Any]):
    """An array that is a number where it has one element, as every array was before numpy 2.4: ``float(loss)``.

    Example:
        >>> loss = np.array([0.5], dtype="float32").view(OldArray)
        >>> float(loss), "%.2f" % loss, loss
        (0.5, '0.50', array([0.5], dtype=float32))
    """

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __repr__(self) -> str:
        return repr(self.view(np.ndarray))
