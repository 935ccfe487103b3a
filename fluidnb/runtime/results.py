"""Results of a run: copies of the fetched values."""

from typing import Any

import numpy as np

from fluidnb.errors import EnforceNotMet, FluidError
from fluidnb.runtime.compile.lowering import LoweredProgram
from fluidnb.runtime.scope import Scope
from fluidnb.values.device_context import DeviceContext
from fluidnb.values.one_element_array import for_user
from fluidnb.values.selected_rows import SelectedRows
from fluidnb.values.tensor import LoDTensor, LoDTensorArray


def fetched(lowered: LoweredProgram, local: Scope, return_numpy: bool) -> list[Any]:
    """The fetched values after a run of the interpreter."""
    variables = [local.find_var(name) for name in lowered.fetches]
    values = [None if v is None else v.value for v in variables]
    return results([(v.array, v.lod_) if type(v) is LoDTensor else v for v in values], lowered, return_numpy)


def results(values: list[Any], lowered: LoweredProgram, return_numpy: bool) -> list[Any]:
    """Fetched values as the user gets them; ``values`` has (array, LoD) for tensors, other values as they are."""
    out: list[Any] = []
    arrays = iter(_arrays(values, lowered))
    for name, value in zip(lowered.fetches, values, strict=True):
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
                slots=[("fetched", name, str(array.dtype), array.shape)], expected="return_numpy=False",
                received=f"LoD {[list(level) for level in lod]}",
                hint="exe.run(..., return_numpy=False) gives LoDTensors; np.array(tensor) drops the LoD.",
            )  # fmt: skip
        else:
            out.append(for_user(np.array(array, order="C") if lowered.place.kind == "cpu" else array))
    return out


def _arrays(values: list[Any], lowered: LoweredProgram) -> list[Any]:
    """The arrays of fetched tensors, those of a device copied to the host all at once."""
    arrays = [value[0] for value in values if isinstance(value, tuple)]
    if lowered.place.kind == "cpu":
        return arrays
    try:
        return DeviceContext.get(lowered.place).fetch_all(arrays)
    except FluidError as e:
        names = [n for n, value in zip(lowered.fetches, values, strict=True) if isinstance(value, tuple)]
        slots = [("fetched", n, str(a.dtype), a.shape) for n, a in zip(names, arrays, strict=True)]
        e.with_context(slots=slots)
        raise


def _copied(value: Any) -> Any:
    if isinstance(value, LoDTensorArray):
        return LoDTensorArray([t._copy() if t.array is not None else LoDTensor() for t in value])
    if isinstance(value, SelectedRows):
        return SelectedRows(value.rows_, value.height_, value.value._copy())
    return value
