"""FLAGS_check_nan_inf: after every operator, look for NaN and infinity in what it wrote."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fluidnb.errors import EnforceNotMet
from fluidnb.op import EMPTY, Binder
from fluidnb.op.binder import Call
from fluidnb.values.copies import is_on_device
from fluidnb.values.gauge import gauge_of


def checks(binder: Binder) -> list[Call]:
    """The call that looks at an operator's outputs.

    Args:
        binder: the operator, bound.

    Returns:
        One call; none for an operator without floating outputs.
    """
    found: list[tuple[str, Any]] = []
    for slot, names in binder.outputs.items():
        for i, name in enumerate(names):
            arrays = binder._outputs.get(slot, [])
            array = arrays[i] if i < len(arrays) else None
            kind = getattr(getattr(array, "dtype", None), "kind", "")  # step scopes and rows have none
            if name != EMPTY and kind == "f":
                found.append((name, array))
    arrays = [array for _, array in found]
    return [(check, (tuple(name for name, _ in found), binder, *arrays), {})] if found else []


def check(names: Sequence[str], binder: Binder, *arrays: Any) -> None:
    """Raise if an array holds NaN or infinity; those of a device are looked at there, all of them at once.

    Args:
        names: the variables.
        binder: the operator that wrote them.
        arrays: what they hold, floating arrays.

    Raises:
        EnforceNotMet: naming operator, variable, counts and the user's line.
    """
    for name, array, odd in zip(names, arrays, _odd(arrays), strict=True):
        if not odd:
            continue
        nan, inf = gauge_of(array).holes(array)
        raise EnforceNotMet(
            f"Operator {binder.definition.type} output Tensor {name} contains NAN/Inf.",
            op=binder.text(), slots=binder.operands(), where=binder.where(),
            expected="finite numbers", received=f"{nan} NaN and {inf} infinite of {array.size} elements",
            hint="look at its inputs: the logarithm of 0, a division by 0, or a learning rate that is too large.",
        )  # fmt: skip


def _odd(arrays: Sequence[Any]) -> list[bool]:
    """Which arrays hold NaN or infinity; what lies on a device is asked about once."""
    far = [array for array in arrays if is_on_device(array)]
    found = iter(gauge_of(far[0]).odd(far) if far else ())
    return [next(found) if is_on_device(array) else gauge_of(array).beyond(array) for array in arrays]
