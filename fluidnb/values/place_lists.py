"""Lists of places, for multi-device scripts."""

import os
from collections.abc import Iterable

from fluidnb.arguments import Count, checked
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
    return [CPUPlace()] * (int(os.environ.get("CPU_NUM", "1")) if device_count is None else device_count)


@checked
def cuda_places(device_ids: Iterable[int] | None = None) -> list[CUDAPlace]:
    """Places on GPUs.

    Args:
        device_ids: their numbers; default the environment variable FLAGS_selected_gpus, else the first.

    Example:
        >>> cuda_places([0, 1])
        [CUDAPlace(0), CUDAPlace(1)]
    """
    chosen = os.environ.get("FLAGS_selected_gpus", "0").split(",") if device_ids is None else device_ids
    return [CUDAPlace(int(i)) for i in chosen]


@checked
def cuda_pinned_places(device_count: Count | None = None) -> list[CUDAPinnedPlace]:
    """Places in page-locked host memory.

    Example:
        >>> cuda_pinned_places(1)
        [CUDAPinnedPlace]
    """
    return [CUDAPinnedPlace()] * len(cpu_places(device_count))
