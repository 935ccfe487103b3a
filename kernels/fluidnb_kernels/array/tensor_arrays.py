"""Writing, reading and measuring arrays of tensors."""

from collections.abc import Collection
from typing import Any

import numpy as np

from fluidnb.errors import EnforceNotMet
from fluidnb.op import Array, Binder, Context, OpDef, OpDesc, grad_names, op
from fluidnb.values import CPUPlace, LoDTensor, LoDTensorArray, Place
from fluidnb.values.copies import on_host
from fluidnb_kernels import verbs
from fluidnb_kernels.array.elements import add_to, array_now, beside, copied

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


def _write_grad(desc: OpDesc, definition: OpDef, no_grad: Collection[str]) -> list[OpDesc]:
    (target,) = grad_names(desc, "X", no_grad)
    ins = {"X": [desc.outs["Out"][0] + "@GRAD"], "I": desc.ins["I"], "X_W": desc.ins["X"]}
    return [] if target == "@EMPTY@" else [OpDesc("read_from_array", ins, {"Out": [target]})]


@op(
    "write_to_array",
    inputs={"X": "a tensor", "I: int64[1]": "the index, from 0"},
    outputs={"Out": "the array; it grows to hold the tensor"},
    infer=_item_infer,
    grad=_write_grad,
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
    found = array[index] if array is not None and 0 <= index < len(array) else None
    return None if found is None or found.array is None else found


def _element(b: Binder) -> Any:
    """Shape, dtype and LoD of the element that will be read; None where nothing has been written."""
    found = element_at(array_now(b), int(on_host(b["I"]).item()))  # a gradient block reads before it writes
    return None if found is None or found.array is None else (found.array.shape, found.array.dtype, found.lod_)


def read_item(array: LoDTensorArray, index: Array, out: Array) -> None:
    """Copy an element of an array."""
    copied(array[on_host(index).item()].array, out)


def take_out(array: LoDTensorArray, index: Array) -> None:
    """Leave nothing at an index of an array."""
    array[on_host(index).item()] = LoDTensor()


def _read_grad(desc: OpDesc, definition: OpDef, no_grad: Collection[str]) -> list[OpDesc]:
    (target,) = grad_names(desc, "X", no_grad)
    ins = {"X": [desc.outs["Out"][0] + "@GRAD"], "I": desc.ins["I"]}
    return [] if target == "@EMPTY@" else [OpDesc("write_to_array", ins, {"Out": [target]})]


@op(
    "read_from_array",
    inputs={"X: array": "the array", "I: int64[1]": "the index, from 0", "X_W?": "what an unwritten element is like"},
    outputs={"Out": "the element"},
    infer=_item_infer,
    grad=_read_grad,
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
