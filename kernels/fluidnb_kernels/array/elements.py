"""Copies and sums of the elements of arrays of tensors."""

from typing import Any

import numpy as np

from fluidnb.op import Array, Binder
from fluidnb.values import DeviceContext, LoDTensor, LoDTensorArray, Place
from fluidnb.values.copies import copy_between
from fluidnb_kernels.cuda import ctype, elementwise
from fluidnb_kernels.cuda.immediate import NOW
from fluidnb_kernels.cuda.upload import uploaded
from fluidnb_kernels.elementwise.launch import CUDA
from fluidnb_kernels.sequence import row_maps
from fluidnb_kernels.tensor.strided_copy import move


def array_now(b: Binder) -> LoDTensorArray | None:
    """The array X as a guard must see it, created after the binder perhaps; None where there is none yet."""
    array: LoDTensorArray | None = b["X"]
    if array is None:
        array = b.scope.cell(b.inputs["X"][0])[0].value
    b.require(
        array is None or isinstance(array, LoDTensorArray),
        f"Input(X) of {b.definition.type} must be an array of tensors.",
        expected="a LoDTensorArray", received=type(array).__name__, hint="array_write makes one.",
    )  # fmt: skip
    return array


def shapes_of(b: Binder) -> Any:
    """The guard of operators that read the array X: shape, dtype and LoD of each element, None if never written."""
    array = array_now(b)
    if array is None:
        return None
    return tuple((t.array.shape, t.array.dtype, t.lod_) if t.array is not None else None for t in array)


def fill(array: LoDTensorArray, tensors: list[LoDTensor]) -> None:
    """Let an array hold these tensors and no others."""
    array[:] = tensors


def copied(source: Array, target: Array) -> None:
    """Copy an array to another one, of the host or of a device."""
    if isinstance(source, np.ndarray) and isinstance(target, np.ndarray):
        np.copyto(target, source)
    else:
        copy_between(_kind(source), _kind(target))(source, target)


def _kind(array: Array) -> str:
    return "cpu" if isinstance(array, np.ndarray) else "cuda"


def beside(x: Array, place: Place) -> Array:
    """New memory for a copy of an array, its content undefined."""
    if _kind(x) == place.kind:
        return DeviceContext.get(place).empty(x.shape, x.dtype)
    return type(x)(x.shape, x.dtype)


def within_reach(x: Array, kernel_reads: Array) -> Array:
    """An element of an array where a kernel can read it."""
    return uploaded(x, kernel_reads) if _kind(x) != _kind(kernel_reads) else x


def copy_element(array: LoDTensorArray, index: int, out: Array) -> None:
    """Copy an element of an array."""
    np.copyto(out, np.asarray(array[index]))


def add_to(total: Array, x: Array) -> None:
    """Add an array to another one, of the host or of a device."""
    if isinstance(total, np.ndarray):
        np.add(total, x, total)
    else:
        elementwise(NOW, CUDA, f"binary<f::add, {ctype(total.dtype)}", total, within_reach(x, total), total)


def add_arrays_on_cuda(out: LoDTensorArray, arrays: list[LoDTensorArray], place: Place) -> None:
    """Sum arrays of tensors element by element; one that has no value at an index counts as zero there."""
    sums: list[LoDTensor] = []
    for i in range(max(map(len, arrays))):
        there = [a[i] for a in arrays if i < len(a) and a[i].array is not None]
        if not there:
            sums.append(LoDTensor())
            continue
        parts = [t.array for t in there]
        total = beside(next((x for x in parts if not isinstance(x, np.ndarray)), parts[0]), place)
        copied(parts[0], total)
        for part in parts[1:]:
            add_to(total, part)
        sums.append(LoDTensor(total, there[0].lod_, place))
    out[:] = sums


def copy_array_on_cuda(source: LoDTensorArray, target: LoDTensorArray, place: Place) -> None:
    """Make one array of tensors a copy of another."""
    made = [LoDTensor(None if t.array is None else beside(t.array, place), t.lod_, place) for t in source]
    for old, new in zip(source, made, strict=True):
        if old.array is not None:
            copied(old.array, new.array)
    target[:] = made


def put_rows(array: LoDTensorArray, step: int, rows: Array, out: Array) -> None:
    """Copy an element's rows to where they belong."""
    row_maps.place(NOW, within_reach(array[step].array, out), rows, out)


def put_part(array: LoDTensorArray, index: int, part: Array, out: Array) -> None:
    """Copy an element to a part of a tensor."""
    move(NOW, out, within_reach(array[index].array, out), to=part)
