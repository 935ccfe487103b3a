"""Labels that must be classes."""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidnb.errors import EnforceNotMet


def check_classes(label: Any, classes: int) -> None:
    """Raise unless all labels are classes.

    Args:
        label: ints, any shape.

    Raises:
        EnforceNotMet: one is below 0 or too large.

    Example:
        >>> check_classes(np.array([0, 3]), 4)
    """
    wrong = (np.asarray(label) < 0) | (np.asarray(label) >= classes)
    if wrong.any():
        raise EnforceNotMet(
            f"A label is out of range: it should be from 0 to {classes - 1}.", expected=f"0 to {classes - 1}",
            received=int(np.asarray(label)[wrong][0]),
        )  # fmt: skip
