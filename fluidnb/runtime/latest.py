"""The last value known of a variable, for its repr."""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidnb.program import hooks
from fluidnb.runtime.plan import Plan
from fluidnb.runtime.scope import global_scope
from fluidnb.values.tensor import LoDTensor


def remember(program: Any, plan: Plan) -> None:
    """Note that a plan of a program has run.

    Args:
        program: the program.
        plan: the plan; its ``latest`` has the fetched values.
    """
    plans = program.desc.prepared.setdefault("recent", [])
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
    name = variable.name
    for plan in reversed(variable.block.program.desc.prepared.get("recent", [])):
        if name in plan.fetches and plan.latest is not None:
            return plan.latest[plan.fetches.index(name)]
    held = global_scope().find_var(name)
    value = None if held is None else held.value
    return np.asarray(value) if isinstance(value, LoDTensor) and value.array is not None else None


def summary(array: Any) -> str:
    """An array in a few words: the value of a scalar, else range and mean.

    Args:
        array: any array.

    Returns:
        For example ``0.1309`` or ``min -1, max 2, mean 0.5``.

    Example:
        >>> summary(np.array([1.0])), summary(np.arange(3))
        ('1', 'min 0, max 2, mean 1')
    """
    array = np.asarray(array)
    if array.size == 0:
        return "empty"
    if array.size == 1:
        return f"{array.item():.4g}" if array.dtype.kind in "fiu" else str(array.item())
    if array.dtype.kind not in "fiub":
        return f"{array.size} elements"
    wide = array.astype(np.float64)
    return f"min {wide.min():.4g}, max {wide.max():.4g}, mean {wide.mean():.4g}"


def _last_value(variable: Any) -> str | None:
    array = latest_array(variable)
    return None if array is None else summary(array)


hooks.last_value = _last_value
