"""The last value known of a variable, for its repr."""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidnb.program import hooks
from fluidnb.runtime.compile.lowering import LoweredProgram
from fluidnb.runtime.program_state import program_state
from fluidnb.runtime.scope import global_scope
from fluidnb.values.copies import is_on_device, on_host
from fluidnb.values.device_array import DeviceArray
from fluidnb.values.tensor import array_of


def remember(program: Any, plan: LoweredProgram) -> None:
    """Note that a plan of a program has run.

    Args:
        program: the program.
        plan: the plan; its ``latest`` has the fetched values.
    """
    plans = program_state(program.desc).recent
    if plan in plans:
        plans.remove(plan)
    plans.append(plan)
    del plans[:-4]


def latest_array(variable: Any) -> Any:
    """The last value known of a variable.

    Args:
        variable: a Variable of a program.

    Returns:
        The array that was fetched last, or the one that the global scope holds, or None.
    """
    found = latest_held(variable)
    return None if found is None else on_host(found)


def latest_held(variable: Any) -> Any:
    """The last value known of a variable, where it is: one that the global scope holds may be on a device.

    Args:
        variable: a Variable of a program.

    Returns:
        The array that was fetched last, or the one that the global scope holds, or None.
    """
    name = variable.name
    for plan in reversed(program_state(variable.block.program.desc).recent):
        if name in plan.fetches and plan.latest is not None:
            found = plan.latest[plan.fetches.index(name)]
            array = array_of(found)
            return found if array is None else array
    held = global_scope().find_var(name)
    return array_of(None if held is None else held.value)


def summary(array: Any) -> str:
    """An array in a few words: the value of a scalar, else range and mean.

    Args:
        array: any array, of the host or of a device.

    Returns:
        For example ``0.1309`` or ``min -1, max 2, mean 0.5``.

    Example:
        >>> summary(np.array([1.0])), summary(np.arange(3))
        ('1', 'min 0, max 2, mean 1')
    """
    array = array if is_on_device(array) else np.asarray(array)
    if array.size == 0:
        return "empty"
    if array.size == 1:
        array = on_host(array)
        return f"{array.item():.4g}" if array.dtype.kind in "fiu" else str(array.item())
    if array.dtype.kind not in "fiub":
        return f"{array.size} elements"
    wide = DeviceArray(array) if is_on_device(array) else array.astype(np.float64)
    return f"min {wide.min():.4g}, max {wide.max():.4g}, mean {wide.mean():.4g}"


def _last_value(variable: Any) -> str | None:
    array = latest_held(variable)
    return None if array is None else summary(array)


hooks.last_value = _last_value
