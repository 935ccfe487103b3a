"""Arrays of tensors: written, read, measured, and copied between places."""

from typing import Any

import numpy as np

from fluidnb.errors import EnforceNotMet
from fluidnb.op import Array, Binder, Context, op
from fluidnb.values import CPUPlace, DeviceContext, LoDTensor, LoDTensorArray, Place
from fluidnb.values.copies import copy_between, on_host
from fluidnb_kernels import verbs
from fluidnb_kernels.cuda import ctype, elementwise
from fluidnb_kernels.cuda.immediate import NOW
from fluidnb_kernels.cuda.upload import uploaded
from fluidnb_kernels.elementwise.launch import CUDA
from fluidnb_kernels.gradients import gradient_by
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


_CPU = CPUPlace()


def write_item(
    array: LoDTensorArray, index: Array, x: Array, lod: Any, spare: dict[int, LoDTensor], accumulate: bool = False,
    place: Place = _CPU,
) -> None:  # fmt: skip
    """Put a copy of a tensor into an array, in the memory of the run before where ``spare`` has it for the index."""
    i = on_host(index).item()
    tensor, before = spare.get(i), element_at(array, i)
    if tensor is None or before is tensor or tensor.array is None or tensor.array.shape != x.shape:
        tensor = spare[i] = LoDTensor(beside(x, place), lod, place)
    copied(x, tensor.array)
    if accumulate and before is not None and before.array is not None:
        add_to(tensor.array, before.array.reshape(x.shape))
    array.write(i, tensor)


def _item_infer(c: Context) -> None:
    c.check_inputs("I")
    if not c.runtime:
        x = c["X"]
        c.set("Out", x.shape, x.dtype, c.lod("X"))


@op(
    "write_to_array",
    inputs={"X": "a tensor", "I: int64[1]": "the index, from 0"},
    outputs={"Out": "the array; it grows to hold the tensor"},
    infer=_item_infer,
    grad=gradient_by("read_from_array", {"I": "I", "X_W": "X"}, {"X": "Out"}, {"Out": "X"}),
    dtype_slot="X",
    cuda=True,  # an element has memory of the place of X
)
def write_to_array(b: Binder) -> None:
    """Out[I] = X, with its LoD. The gradient reads the array of gradients at I.

    With the attribute ``accumulate``, which backward sets, X is added to what is there.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("write_to_array", {"X": [1.0, 2.0], "I": [0]})["Out"]
        LoDTensorArray([LoDTensor(shape=[2], dtype=float64, place=CPUPlace)])

    Source: Fluid's write_to_array_op.
    """
    b(write_item, b.array("Out"), b["I"], b["X"], b.lod("X"), {}, bool(b.attr("accumulate", False)), b.memory.place)


def element_at(array: LoDTensorArray | None, index: int) -> LoDTensor | None:
    """The tensor at an index, or None where none has been written."""
    # every step of a loop is here: the class's own method, which refuses what is outside, takes twice as long
    found = list.__getitem__(array, index) if array is not None and 0 <= index < len(array) else None
    return None if found is None or found.array is None else found


def _element(b: Binder) -> Any:
    """Shape, dtype and LoD of the element that will be read; None where nothing has been written."""
    found = element_at(array_now(b), int(on_host(b["I"]).item()))  # a gradient block reads before it writes
    return None if found is None or found.array is None else (found.array.shape, found.array.dtype, found.lod_)


def read_item(array: LoDTensorArray, index: Array, out: Array) -> None:
    """Copy an element of an array."""
    copied(list.__getitem__(array, on_host(index).item()).array, out)


def take_out(array: LoDTensorArray, index: Array) -> None:
    """Leave nothing at an index of an array."""
    array[on_host(index).item()] = LoDTensor()


@op(
    "read_from_array",
    inputs={"X: array": "the array", "I: int64[1]": "the index, from 0", "X_W?": "what an unwritten element is like"},
    outputs={"Out": "the element"},
    infer=_item_infer,
    grad=gradient_by("write_to_array", {"I": "I"}, {"X": "Out"}, {"Out": "X"}),
    guard=_element,
    unset=("X",),
    cuda=True,
)
def read_from_array(b: Binder) -> None:
    """Out = X[I], with its LoD; zeros like X_W where nothing has been written, as backward through time begins.

    With the attribute ``consume``, which backward sets, X has nothing at I afterwards.

    Example:
        >>> from fluidnb.testing import run_op
        >>> from fluidnb.values import LoDTensorArray
        >>> run_op("read_from_array", {"X": LoDTensorArray([np.array([7.0])]), "I": [0]})["Out"]
        array([7.])

    Source: Fluid's read_from_array_op.
    """
    found = _element(b)
    if found is not None:
        shape, dtype, lod = found
        b(read_item, b["X"], b["I"], b.set("Out", shape, dtype, lod))
        if b.attr("consume", False):
            b.overwrites.append(b["X"])
            b(take_out, b["X"], b["I"])
        return None
    like = b["X_W"]
    if like is None:
        raise EnforceNotMet(
            f"Cannot read index {on_host(b['I']).item()} of {b.name('X')}: nothing has been written there.",
            expected=f"0 to {len(b['X'] or ()) - 1}", received=on_host(b["I"]).item(),
            hint="array_write fills it; indices start at 0.",
        )  # fmt: skip
    return verbs.fill(b, b.set("Out", like.shape, like.dtype, b.lod("X_W")))


def measure(array: LoDTensorArray, out: Array) -> None:
    """Write how many elements an array has."""
    out[...] = len(array)


@op(
    "lod_array_length",
    inputs={"X: array": "the array"},
    outputs={"Out": "int64 [1]: how many elements it has"},
    infer=lambda c: c.set("Out", (1,), np.int64),
    host_only="works on offsets and lengths, which are kept on the host",
)
def lod_array_length(b: Binder) -> None:
    """Out = the number of elements of X.

    Example:
        >>> from fluidnb.testing import run_op
        >>> from fluidnb.values import LoDTensorArray
        >>> run_op("lod_array_length", {"X": LoDTensorArray([np.array([7.0])])})["Out"]
        array([1])

    Source: Fluid's lod_array_length_op.
    """
    b(measure, b["X"], b["Out"])
