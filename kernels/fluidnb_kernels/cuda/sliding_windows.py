"""Windows that slide along the axes of an image, as kernels take them: see ``sliding_windows.cuh``."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from fluidnb_kernels.sliding import Axis

#: An axis of one element, for images that have less than three.
_FLAT = Axis(1, 1, 1, 1, 0, 1)


def numbers_of(axes: Sequence[Axis]) -> tuple[Any, ...]:
    """The axes of an image as arguments of a kernel: six numbers for each of three axes."""
    three = [_FLAT] * (3 - len(axes)) + list(axes)
    return tuple(np.int32(n) for a in three for n in (a.size, a.window, a.stride, a.dilation, a.low, a.out))
