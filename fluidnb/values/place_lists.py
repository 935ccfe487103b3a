"""Lists of places, for multi-device scripts."""

import os
from collections.abc import Iterable

from fluidnb.arguments import MOST, Count, checked
from fluidnb.errors import OpValueError
from fluidnb.values.place import CPUPlace, CUDAPinnedPlace, CUDAPlace


@checked
def cpu_places(device_count: Count | None = None) -> list[CPUPlace]:
    """Places on the CPU.

    Args:
        device_count: how many; default the environment variable CPU_NUM, else 1.

    Example:
        >>> cpu_places(2)
        [CPUPlace, CPUPlace]
    """
    return [CPUPlace()] * (_numbers("CPU_NUM", "1", 1)[0] if device_count is None else device_count)


@checked
def cuda_places(device_ids: Iterable[int] | None = None) -> list[CUDAPlace]:
    """Places on GPUs.

    Args:
        device_ids: their numbers; default the environment variable FLAGS_selected_gpus, else the first.

    Example:
        >>> cuda_places([0, 1])
        [CUDAPlace(0), CUDAPlace(1)]
    """
    chosen = _numbers("FLAGS_selected_gpus", "0", 0) if device_ids is None else device_ids
    return [CUDAPlace(int(i)) for i in chosen]


@checked
def cuda_pinned_places(device_count: Count | None = None) -> list[CUDAPinnedPlace]:
    """Places in page-locked host memory.

    Example:
        >>> cuda_pinned_places(1)
        [CUDAPinnedPlace]
    """
    return [CUDAPinnedPlace()] * len(cpu_places(device_count))


def _numbers(variable: str, default: str, least: int) -> list[int]:
    """The numbers in an environment variable, with commas between."""
    text = os.environ.get(variable, default)
    try:
        numbers = [int(part) for part in text.split(",")]
    except ValueError:
        numbers = []
    if not numbers or not all(least <= n <= MOST for n in numbers):
        raise OpValueError(
            f"The environment variable {variable} cannot be {text!r}.", expected=f"{least} to {MOST:,}",
            received=repr(text), hint=f"set {variable}={default}, or remove it.",
        )  # fmt: skip
    return numbers
