"""assign and cast: copies."""

from collections.abc import Collection

import numpy as np

from fluidnb.op import Attr, Binder, Context, OpDef, OpDesc, grad_names, op
from fluidnb.op.c_code import Constant, c_code
from fluidnb.values import LoDTensor, LoDTensorArray, dtypes
from fluidnb_kernels import verbs
from fluidnb_kernels.array.tensor_arrays import copy_array_on_cuda
from fluidnb_kernels.cuda import CTYPES
from fluidnb_kernels.cuda import cast as emit_cast
from fluidnb_kernels.gradients import gradient_by
from fluidnb_kernels.tensor.strided_copy import move


def _assign_infer(c: Context) -> None:
    x = c["X"]
    if not isinstance(x, LoDTensorArray):
        c.set("Out", x.shape, x.dtype, c.lod("X"))


def copy_array(source: LoDTensorArray, target: LoDTensorArray) -> None:
    """Make one array of tensors a copy of another."""
    target[:] = [LoDTensor() if t.array is None else LoDTensor(t.array.copy(), t.lod_) for t in source]


@op(
    "assign",
    inputs={"X: any | array": "a tensor or an array of tensors"},
    outputs={"Out": "its copy"},
    infer=_assign_infer,
    grad=gradient_by("assign", {}, {"X": "Out"}, {"Out": "X"}),
    inplace=True,
    cuda=True,
)
def assign(b: Binder) -> None:
    """Out = X, with its LoD. The gradient is an assign too.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("assign", {"X": [1.0, 2.0]})["Out"]
        array([1., 2.])

    Source: Fluid's assign_op.
    """
    x = b["X"]
    if not isinstance(x, LoDTensorArray):
        return None if b["Out"] is x else verbs.copy(b, b["Out"], x)
    if b.on_cuda:
        return b(copy_array_on_cuda, x, b.array("Out"), b.memory.place)
    return b(copy_array, x, b.array("Out"))


def _cast_grad(desc: OpDesc, definition: OpDef, no_grad: Collection[str]) -> list[OpDesc]:
    (target,) = grad_names(desc, "X", no_grad)
    if target == "@EMPTY@":
        return []
    attrs = {"in_dtype": desc.attrs["out_dtype"], "out_dtype": desc.attrs["in_dtype"]}
    return [OpDesc("cast", {"X": [desc.outs["Out"][0] + "@GRAD"]}, {"Out": [target]}, attrs)]


@op(
    "cast",
    inputs={"X": "any shape"},
    outputs={"Out": "X in another dtype"},
    attrs={"in_dtype": Attr("dtype", doc="dtype of X"), "out_dtype": Attr("dtype", doc="dtype of Out")},
    infer=lambda c: c.set("Out", c["X"].shape, dtypes.np_dtype(c.attr("out_dtype")), c.lod("X")),
    grad=_cast_grad,
    cuda=tuple(CTYPES),
)
def cast(b: Binder) -> None:
    """Out = X in the dtype ``out_dtype``, with its LoD; to whole numbers it cuts off, to bool it tests for not zero.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("cast", {"X": [1.7, -1.7]}, {"in_dtype": "float64", "out_dtype": "int64"})["Out"]
        array([ 1, -1])

    Source: Fluid's cast_op.
    """
    x, out = b["X"], b["Out"]
    if not b.on_cuda:
        return b(np.copyto, out, x, casting="unsafe")
    return move(b, out, x) if x.dtype == out.dtype else emit_cast(b, x, out)


@c_code("assign", "cast")
def _copied_in_c(c: Context) -> dict[str, Constant]:
    return {"COUNT": c["Out"].size}
