"""The last value known of a variable, for its repr."""

from typing import Any

import numpy as np

from fluidnb.program import hooks
from fluidnb.runtime.compile.lowering import LoweredProgram
from fluidnb.runtime.program_state import program_state
from fluidnb.runtime.scope import global_scope
from fluidnb.values.copies import is_on_device, on_host
from fluidnb.values.device_array import DeviceArray
from fluidnb.values.tensor import array_of


def remember(program: Any, lowered: LoweredProgram) -> None:
    """Record that a lowered program has run. The list is replaced, not changed: other threads may read it."""
    state = program_state(program.desc)
    state.recent = [*(p for p in state.recent if p is not lowered), lowered][-4:]


def latest_array(variable: Any) -> Any:
    """The last value known of a variable: the array fetched last, else that of the global scope, or None."""
    value = latest_held(variable)
    return None if value is None else on_host(value)


def latest_held(variable: Any) -> Any:
    """As `latest_array`, without a copy to the host."""
    name = variable.name
    for lowered in reversed(program_state(variable.block.program.desc).recent):
        if name in lowered.fetches and lowered.latest is not None:
            value = lowered.latest[lowered.fetches.index(name)]
            array = array_of(value)
            return value if array is None else array
    kept = global_scope().find_var(name)
    return array_of(None if kept is None else kept.value)


def number_of(value: Any) -> float | None:
    """A value as one number: the mean of its elements."""
    if value is None:
        return None
    array: Any = DeviceArray(value) if is_on_device(value) else np.asarray(value)
    return float(array.item()) if array.size == 1 else float(array.mean()) if array.size else None


def summary(array: Any) -> str:
    """An array as ``0.1309`` (one element) or ``min -1, max 2, mean 0.5``."""
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
