"""sum: the sum of several tensors, or of several arrays of tensors."""


import numpy as np

from fluidnb.op import Binder, Context, op
from fluidnb.op.c_code import Constant, c_code
from fluidnb.values import LoDTensor, LoDTensorArray, SelectedRows
from fluidnb_kernels.array.tensor_arrays import add_arrays_on_cuda
from fluidnb_kernels.elementwise.launch import NUMBERS
from fluidnb_kernels.math.same_shape import added
from fluidnb_kernels.math.scale import scaled_gradients
from fluidnb_kernels.rows.device_rows import emit_sum_on_cuda
from fluidnb_kernels.rows.values import as_x, dtype_of, emit_sum, or_rows, shape_of
from fluidnb_kernels.rules import agree, joint


def _infer(c: Context) -> None:
    xs = c.all("X")
    if any(isinstance(x, LoDTensorArray) for x in xs):
        return  # the elements have shapes, the array has none
    dtype, shape, mixed = dtype_of(xs[0]), shape_of(xs[0]), any(isinstance(x, SelectedRows) for x in xs)
    for i, x in enumerate(xs[1:], 1):
        if not all(shape) and not mixed:  # what has no elements counts as nothing, whatever its shape is
            shape = shape_of(x)
        counts = mixed or all(shape_of(x))
        if counts and not agree(shape, shape_of(x)):
            c.fail(
                "Inputs of sum must have the same shape.", expected=f"{list(shape)}, the shape of {c.name('X')}",
                received=f"{list(shape_of(x))}, the shape of {c.name('X', i)}",
            )  # fmt: skip
        if dtype_of(x) != dtype:
            c.fail(
                f"DataType of Paddle Op sum must be the same. Get ({dtype}) != ({dtype_of(x)})",
                expected=dtype, received=dtype_of(x), hint="cast one of them with layers.cast.",
            )  # fmt: skip
        if counts:
            shape = joint(shape, shape_of(x))
    c.set("Out", shape, dtype, c.lod("X"))


def add_arrays(out: LoDTensorArray, arrays: list[LoDTensorArray]) -> None:
    """Sum arrays of tensors element by element; one that has no value at an index counts as zero there."""
    sums: list[LoDTensor] = []
    for i in range(max(map(len, arrays))):
        there = [a[i] for a in arrays if i < len(a) and a[i].array is not None]
        if not there:
            sums.append(LoDTensor())
            continue
        total = np.array(there[0])
        for other in there[1:]:
            np.add(total, np.asarray(other), out=total)
        sums.append(LoDTensor(total, there[0].lod_))
    out[:] = sums


@op(
    "sum",
    inputs={"X*: any | rows | array": "tensors of one shape, SelectedRows, or arrays of tensors"},
    outputs={"Out": "their sum"},
    cost="X",
    infer=or_rows(_infer),
    grad=lambda desc, definition, no_grad: scaled_gradients(desc, 1.0, no_grad),
    inplace=True,
    rows=as_x,
    cuda=NUMBERS,
)
def sum(b: Binder) -> None:
    """Out = X₀ + X₁ + …; Out inherits the LoD of the first. The gradient of each is a scale by 1.

    The sum of SelectedRows is SelectedRows with the rows of all, each once.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("sum", {"X": [np.array([1.0, 2.0]), np.array([3.0, 4.0])]})["Out"]
        array([4., 6.])

    Source: Fluid's sum_op.
    """
    xs = b.all("X")
    if not any(isinstance(x, SelectedRows | LoDTensorArray) for x in xs):
        xs = [x for x in xs if x.size] or xs[-1:]  # kernels trust that each has as many elements as Out
    if b.on_cuda:  # out = X₀ + X₁ + …, in launches of eight terms
        if any(isinstance(x, LoDTensorArray) for x in xs):
            return b(add_arrays_on_cuda, b.array("Out"), [x for x in xs if x is not None], b.memory.place)
        if any(isinstance(x, SelectedRows) for x in xs):
            return emit_sum_on_cuda(b, xs)
        return None if len(xs) == 1 and xs[0] is b["Out"] else added(b, xs, b["Out"])
    if any(isinstance(x, LoDTensorArray) for x in xs):
        return b(add_arrays, b.array("Out"), [x for x in xs if x is not None])
    if any(isinstance(x, SelectedRows) for x in xs):
        return emit_sum(b, xs)
    out = b["Out"]
    if len(xs) == 1:
        return None if xs[0] is out else b(np.copyto, out, xs[0])
    # The order of the terms is that of X wherever Out is, so that every executor rounds alike.
    total = b.like(out) if any(x is out for x in xs[2:]) else out
    b(np.add, xs[0], xs[1], out=total)
    for x in xs[2:]:
        b(np.add, total, x, out=total)
    return None if total is out else b(np.copyto, out, total)


@c_code("sum")
def _sum_in_c(c: Context) -> dict[str, Constant]:
    c.require(
        all(x.size == c["Out"].size for x in c.all("X")), "Tensors of one shape can be added up in C.",
        expected=list(c["Out"].shape), received=[list(x.shape) for x in c.all("X")],
    )  # fmt: skip
    return {"COUNT": c["Out"].size, "TERMS": len(c.all("X"))}
