"""Results of a run: copies of the fetched values."""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidnb.errors import EnforceNotMet, FluidError
from fluidnb.runtime.compile.lowering import LoweredProgram
from fluidnb.runtime.scope import Scope
from fluidnb.values.device_context import DeviceContext
from fluidnb.values.one_element_array import for_user
from fluidnb.values.selected_rows import SelectedRows
from fluidnb.values.tensor import LoDTensor, LoDTensorArray


def fetched(plan: LoweredProgram, local: Scope, return_numpy: bool) -> list[Any]:
    """The fetched values after a run of the interpreter.

    Args:
        plan: the plan.
        local: the scope of block 0.
        return_numpy: see `Executor.run`.

    Returns:
        The values, copies.
    """
    found = [local.find_var(name) for name in plan.fetches]
    got = [None if v is None else v.value for v in found]
    return results([(v.array, v.lod_) if type(v) is LoDTensor else v for v in got], plan, return_numpy)


def results(values: list[Any], plan: LoweredProgram, return_numpy: bool) -> list[Any]:
    """Fetched values as the user gets them.

    Args:
        values: (array, LoD) for tensors, other values as they are, in the order of the plan's fetches.
        plan: the plan.
        return_numpy: see `Executor.run`.

    Returns:
        Copies.

    Raises:
        EnforceNotMet: a value has LoD, and ``return_numpy`` is True.
    """
    out: list[Any] = []
    arrays = iter(_arrays(values, plan))
    for name, value in zip(plan.fetches, values, strict=True):
        if not isinstance(value, tuple):
            out.append(_copied(value))
            continue
        array, lod = next(arrays), value[1]
        if not return_numpy:
            tensor = LoDTensor(name=name)
            tensor.set(array)
            tensor.lod_ = lod
            out.append(tensor)
        elif lod:
            raise EnforceNotMet(
                "Some of your fetched tensors hold LoD information. They can not be completely cast to Python ndarray.",
                slots=[("fetched", name, str(array.dtype), array.shape)],
                expected="return_numpy=False",
                received=f"LoD {[list(level) for level in lod]}",
                hint="exe.run(..., return_numpy=False) gives LoDTensors; np.array(tensor) drops the LoD.",
            )
        else:
            copy = np.array(array, order="C") if plan.place.kind == "cpu" else array
            out.append(for_user(copy))
    return out


def _arrays(values: list[Any], plan: LoweredProgram) -> list[Any]:
    """The arrays of fetched tensors where numpy reads them: those of a device are copied, all at once."""
    arrays = [value[0] for value in values if isinstance(value, tuple)]
    if plan.place.kind == "cpu":
        return arrays
    try:
        return DeviceContext.get(plan.place).fetch_all(arrays)
    except FluidError as e:
        names = [n for n, value in zip(plan.fetches, values, strict=True) if isinstance(value, tuple)]
        slots = [("fetched", n, str(a.dtype), a.shape) for n, a in zip(names, arrays, strict=True)]
        e.with_context(slots=slots)
        raise


def _copied(value: Any) -> Any:
    if isinstance(value, LoDTensorArray):
        return LoDTensorArray([t._copy() if t.array is not None else LoDTensor() for t in value])
    if isinstance(value, SelectedRows):
        return SelectedRows(value.rows_, value.height_, value.value._copy())
    return value
