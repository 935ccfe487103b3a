"""FLAGS_check_nan_inf: a check of every operator's outputs for NaN and infinity."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from fluidnb.errors import EnforceNotMet
from fluidnb.op import EMPTY, Binder
from fluidnb.op.binder import Call
from fluidnb.values.array_stats import ArrayStats, stats_of

_HOST = ArrayStats()


def checks(binder: Binder) -> list[Call]:
    """The calls that check an operator's outputs: one for each on the host, one for all on a device."""
    calls: list[Call] = []
    on_device: list[tuple[str, Any]] = []
    for slot, names in binder.outputs.items():
        for i, name in enumerate(names):
            arrays = binder._outputs.get(slot, [])
            array = arrays[i] if i < len(arrays) else None
            kind = getattr(getattr(array, "dtype", None), "kind", "")  # step scopes and rows have none
            if name != EMPTY and kind == "f":
                if isinstance(array, np.ndarray):
                    calls.append((check, (array, name, binder), {}))
                else:
                    on_device.append((name, array))
    if on_device:
        calls.append((check_on_device, (tuple(n for n, _ in on_device), binder, *(a for _, a in on_device)), {}))
    return calls


def check(array: Any, name: str, binder: Binder) -> None:
    """Raise if an array of the host has NaN or infinity."""
    if _HOST.beyond(array):
        raise _refused(array, name, binder)


def check_on_device(names: Sequence[str], binder: Binder, *arrays: Any) -> None:
    """Raise if a device array has NaN or infinity; one query of the device checks all arrays."""
    for name, array, odd in zip(names, arrays, stats_of(arrays[0]).odd(arrays), strict=True):
        if odd:
            raise _refused(array, name, binder)


def _refused(array: Any, name: str, binder: Binder) -> EnforceNotMet:
    nan, inf = stats_of(array).holes(array)
    return EnforceNotMet(
        f"Operator {binder.definition.type} output Tensor {name} contains NAN/Inf.",
        op=binder.text(), slots=binder.operands(), where=binder.where(),
        expected="finite numbers", received=f"{nan} NaN and {inf} infinite of {array.size} elements",
        hint="check its inputs: the logarithm of 0, a division by 0, or a learning rate that is too large.",
    )  # fmt: skip
