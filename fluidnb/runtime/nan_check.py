"""FLAGS_check_nan_inf: after every operator, look for NaN and infinity in what it wrote."""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidnb.errors import EnforceNotMet
from fluidnb.op import EMPTY, Binder
from fluidnb.op.binder import Call
from fluidnb.values.copies import on_host


def checks(binder: Binder) -> list[Call]:
    """The calls that look at an operator's outputs.

    Args:
        binder: the operator, bound.

    Returns:
        One call for each floating output.
    """
    calls: list[Call] = []
    for slot, names in binder.outputs.items():
        for i, name in enumerate(names):
            arrays = binder._outputs.get(slot, [])
            array = arrays[i] if i < len(arrays) else None
            kind = getattr(getattr(array, "dtype", None), "kind", "")  # step scopes and rows have none
            if name != EMPTY and kind == "f":
                calls.append((check, (array, name, binder), {}))
    return calls


def check(array: Any, name: str, binder: Binder) -> None:
    """Raise if an array holds NaN or infinity.

    One sum tells: it is finite unless an element is not, or it overflows, and then each element is looked at.

    Args:
        array: a floating array; one of a device comes to the host.
        name: the variable.
        binder: the operator that wrote it.

    Raises:
        EnforceNotMet: naming operator, variable, counts and the user's line.
    """
    array = on_host(array)
    if np.isfinite(np.add.reduce(array, None)):
        return
    finite = np.isfinite(array)
    if finite.all():
        return
    nan, inf = int(np.isnan(array).sum()), int(np.isinf(array).sum())
    raise EnforceNotMet(
        f"Operator {binder.definition.type} output Tensor {name} contains NAN/Inf.",
        op=binder.text(), slots=binder.operands(), where=binder.where(),
        expected="finite numbers", received=f"{nan} NaN and {inf} infinite of {array.size} elements",
        hint="look at its inputs: the logarithm of 0, a division by 0, or a learning rate that is too large.",
    )  # fmt: skip
