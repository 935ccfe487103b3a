"""tensor_array_to_tensor: the elements of an array as one tensor."""

from operator import itemgetter

import numpy as np

from fluidnb.op import Array, Attr, Binder, Context, default_grad, grad_op, op
from fluidnb.values import LoDTensor, LoDTensorArray
from fluidnb_kernels import verbs
from fluidnb_kernels.array.tensor_arrays import copy_element, fill, put_part, shapes_of
from fluidnb_kernels.emit import of_paddle2
from fluidnb_kernels.rules import one_axis
from fluidnb_kernels.tensor.strided_copy import layout_of


def _infer(c: Context) -> None:
    if c.runtime:
        return
    x, stack = c["X"], c.attr("use_stack")
    c.set("OutIndex", (-1,), np.int32)
    if not x.ndim:  # an array whose elements nobody has described yet
        return
    axis = one_axis(c, c.attr("axis"), x.ndim + stack)
    c.set("Out", (*x.shape[:axis], -1, *x.shape[axis + (not stack) :]), x.dtype)


def _parts(b: Binder, sizes: list[int], axis: int) -> list[verbs.View]:
    """For each element the part of the whole that it is."""
    if b.attr("use_stack"):
        return [itemgetter((*[slice(None)] * axis, i, ...)) for i in range(len(sizes))]
    return verbs.parts_along(axis, sizes)


def _layout(b: Binder) -> tuple[list[Array], int, list[int]]:
    """The elements, the dimension along which they are joined, and their sizes along it."""
    b.require(
        isinstance(b["X"], LoDTensorArray), "Input(X) of tensor_array_to_tensor must be an array of tensors.",
        expected="a LoDTensorArray", received=type(b["X"]).__name__, hint="array_write makes one.",
    )  # fmt: skip
    elements = [t.array for t in b["X"]]
    b.require(elements, "There's no element in the input array.", expected="at least one")
    for i, x in enumerate(elements):
        b.require(
            x is not None, f"Nothing has been written to index {i} of {b.name('X')}.",
            expected="a value at each index", hint="array_write fills it; indices start at 0.",
        )  # fmt: skip
    first, stack = elements[0], b.attr("use_stack")
    axis = one_axis(b, b.attr("axis"), first.ndim + stack)
    for i, x in enumerate(elements):
        shape = x.shape if stack or x.ndim != first.ndim else (*x.shape[:axis], first.shape[axis], *x.shape[axis + 1 :])
        b.require(
            shape == first.shape and x.dtype == first.dtype,
            f"The dimension of the {i}'th element in LoDTensorArray differs from previous ones.",
            expected=f"{first.dtype}{list(first.shape)}" + ("" if stack else f", but for dimension {axis}"),
            received=f"{x.dtype}{list(x.shape)}",
        )  # fmt: skip
    return elements, axis, [1 if stack else x.shape[axis] for x in elements]


@op(
    "tensor_array_to_tensor",
    inputs={"X: array": "tensors that differ in one size at most"},
    outputs={"Out": "all of them, one after another", "OutIndex": "int32: the size of each along the axis"},
    attrs={
        "axis": Attr("int", 0, "the dimension along which they follow each other"),
        "use_stack": Attr("bool", False, "whether that is a new dimension"),
    },
    infer=_infer,
    grad=default_grad("X", "Out@GRAD"),
    guard=shapes_of,
    cuda=True,
)
def tensor_array_to_tensor(b: Binder) -> None:
    """Out = the elements of X one after another along ``axis``; OutIndex says where each ends.

    Example:
        >>> from fluidnb.testing import run_op
        >>> from fluidnb.values import LoDTensorArray
        >>> run_op("tensor_array_to_tensor", {"X": LoDTensorArray([np.array([1.0]), np.array([2.0, 3.0])])})
        {'Out': array([1., 2., 3.]), 'OutIndex': array([1, 2], dtype=int32)}

    Source: Fluid's tensor_array_to_tensor_op.
    """
    sizes, axis, index = _outputs(b)
    out = b["Out"]
    for i, part in enumerate(_parts(b, sizes, axis)):
        if b.on_cuda:
            b(put_part, b["X"], i, part(layout_of(out)), out)
        else:
            b(copy_element, b["X"], i, part(out))
    if index is not None:
        verbs.write(b, index, np.array(sizes, np.int32))


def _outputs(b: Binder) -> tuple[list[int], int, Array]:
    """Make the outputs; gives the sizes of the elements, the axis, and OutIndex where it gets a value."""
    elements, axis, sizes = _layout(b)
    shape = list(elements[0].shape)
    if b.attr("use_stack"):
        shape.insert(axis, len(sizes))
    else:
        shape[axis] = sum(sizes)
    b.set("Out", shape, elements[0].dtype)
    if of_paddle2(b):  # it leaves OutIndex without a value, which reads as an empty tensor
        b.set("OutIndex", (0,), np.float64)
        return sizes, axis, None
    return sizes, axis, b.set("OutIndex", (len(sizes),), np.int32)


@grad_op("tensor_array_to_tensor_grad", infer=None, guard=shapes_of, cuda=True)
def tensor_array_to_tensor_grad(b: Binder) -> None:
    """dX[i] = the part of dOut that is X[i]."""
    sizes, axis, tensors = _gradients(b)
    for tensor, part in zip(tensors, _parts(b, sizes, axis), strict=True):
        verbs.copy(b, tensor.array, b["Out@GRAD"], of=part)
    b(fill, b.array("X@GRAD"), tensors)


def _gradients(b: Binder) -> tuple[list[int], int, list[LoDTensor]]:
    """The sizes of the elements, the axis, and a tensor for the gradient of each."""
    elements, axis, sizes = _layout(b)
    pairs = zip(b["X"], elements, strict=True)
    return sizes, axis, [LoDTensor(b.keep(e.shape, e.dtype), x.lod_, b.memory.place) for x, e in pairs]
