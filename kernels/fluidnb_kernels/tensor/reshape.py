"""reshape: the same elements in another shape."""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidnb.op import Attr, Binder, Context, default_grad, grad_op, kernel, op, product, second_grad, values_of
from fluidnb_kernels.shape_inputs import integers
from fluidnb_kernels.views import is_view, writing, written

_INPUTS = {
    "X": "any shape",
    "Shape?": "the sizes as a variable, instead of the attribute",
    "ShapeTensor*?": "each size as a variable of one element",
}


def target_shape(c: Context, wanted: list[int]) -> tuple[int, ...]:
    """The shape that a reshape gives.

    Args:
        wanted: sizes; 0 copies the size of X in that dimension, one -1 takes what is left.

    Returns:
        The shape; -1 where it is not known yet.

    Raises:
        RuleError: the elements do not fit.
    """
    x = c["X"]
    c.require(
        wanted.count(-1) <= 1, "Only one dimension value of 'shape' in ReshapeOp can be -1.",
        expected="one -1 at most", received=wanted,
    )  # fmt: skip
    shape: list[int] = []
    for i, n in enumerate(wanted):
        c.require(
            n >= -1, "The sizes in Attr(shape) of reshape are -1, 0 or positive.", expected=">= -1", received=wanted
        )
        c.require(
            n != 0 or i < x.ndim, "A 0 in Attr(shape) of reshape copies a dimension that X does not have.",
            expected=f"0 before dimension {x.ndim}", received=wanted,
        )  # fmt: skip
        shape.append(x.shape[i] if n == 0 else n)
    copied = [i for i, n in enumerate(wanted) if n == 0 and x.shape[i] == -1]  # unknown on both sides: they cancel out
    if -1 in wanted and x.shape.count(-1) == len(copied):
        i = wanted.index(-1)
        size = product([n for n in x.shape if n != -1])
        rest = product([n for k, n in enumerate(shape) if k != i and k not in copied])
        c.require(
            rest > 0 and size % rest == 0 or size == 0,
            "X cannot be reshaped to Attr(shape) of reshape: sizes do not divide.",
            expected=f"a multiple of {rest} elements", received=f"{size} elements",
        )  # fmt: skip
        shape[i] = size // rest if rest > 0 else 0
    elif -1 not in shape and -1 not in x.shape:
        c.require(
            product(shape) == x.size, "The size of X must be that of Attr(shape) of reshape.",
            expected=f"{product(shape)} elements for {wanted}", received=f"{x.size} elements in {list(x.shape)}",
        )  # fmt: skip
    return tuple(shape)


def _wanted(c: Context) -> list[int]:
    """The requested sizes; while building, the attribute's in place of a variable's."""
    if not c.runtime and (c.has("Shape") or c.has("ShapeTensor")):
        return list(c.attr("shape")) or integers(c, "shape", "Shape", "ShapeTensor")
    return integers(c, "shape", "Shape", "ShapeTensor")


def _infer(c: Context) -> None:
    shape = target_shape(c, _wanted(c))
    if not c.runtime:  # while running Out may be a view of X, so the kernel makes it
        c.set("Out", shape, c["X"].dtype, _lod(c, shape))


def _lod(c: Context, shape: tuple[int, ...]) -> Any:
    return c.lod("X") if shape and c["X"].ndim and shape[0] == c["X"].shape[0] else ()


def emit_reshape(b: Binder, slot: str, x: Any, shape: tuple[int, ...], lod: Any) -> None:
    """Emit an output that has the elements of an array in another shape: a view of it where that is safe.

    Args:
        shape: sizes with the same product.
    """
    view = x.reshape(shape)
    if is_view(view, x):
        return b.alias(slot, view, lod)
    out = b.set(slot, shape, x.dtype, lod)
    if out is not None:
        whole = writing(b, out, x.shape)
        b(np.copyto, whole, x)
        written(b, out, whole)
    return None


@op(
    "reshape",
    inputs=_INPUTS,
    outputs={"Out": "its elements in another shape"},
    attrs={"shape": Attr("ints", [], "sizes: 0 copies that of X, one -1 takes what is left")},
    infer=_infer,
    grad=default_grad("X", "Out", "Out@GRAD", wrt=["X"]),
    guard=values_of("Shape", "ShapeTensor"),
    dtype_slot="X",
)
def reshape(b: Binder) -> None:
    """Out = the elements of X in another shape; the LoD is propagated where the number of rows stays.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("reshape", {"X": [[1, 2, 3], [4, 5, 6]]}, {"shape": [-1, 2]})["Out"]
        array([[1, 2],
               [3, 4],
               [5, 6]])

    Source: Fluid's reshape_op.
    """
    shape = target_shape(b, _wanted(b))
    emit_reshape(b, "Out", b["X"], shape, _lod(b, shape))


#: The gradient of the gradient of every operator that keeps the elements and changes the shape.
AGAIN = second_grad("reshape2_grad_grad", {"DOut": "Out@GRAD"}, {"DDX": "X@GRAD"}, {"DDOut": "Out@GRAD"})


@grad_op("reshape_grad", infer=None, grad=AGAIN)
def reshape_grad(b: Binder) -> None:
    """dX = dOut in the shape of X."""
    emit_reshape(b, "X@GRAD", b["Out@GRAD"], b["X"].shape, b.lod("X"))


def _infer2(c: Context) -> None:
    _infer(c)
    x = c["X"]
    c.set("XShape", (0, *x.shape), x.dtype, c.lod("X"))


@op(
    "reshape2",
    inputs=_INPUTS,
    outputs={"Out": "its elements in another shape", "XShape~": "no elements: [0, the shape of X]"},
    attrs={"shape": Attr("ints", [], "sizes: 0 copies that of X, one -1 takes what is left")},
    infer=_infer2,
    grad=default_grad("XShape", "Out@GRAD", wrt=["X"]),
    guard=values_of("Shape", "ShapeTensor"),
    dtype_slot="X",
)
def reshape2(b: Binder) -> None:
    """Out = the elements of X in another shape; its gradient needs the shape of X alone, which XShape keeps.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("reshape2", {"X": [[1, 2], [3, 4]]}, {"shape": [4]})["Out"]
        array([1, 2, 3, 4])

    Source: Fluid's reshape_op.
    """
    reshape(b)


@grad_op("reshape2_grad", infer=None, grad=AGAIN)
def reshape2_grad(b: Binder) -> None:
    """dX = dOut in the shape of X."""
    emit_reshape(b, "X@GRAD", b["Out@GRAD"], b["XShape"].shape[1:], b.lod("XShape"))


def _again_infer(c: Context) -> None:
    if not c.runtime:
        c.set("DDOut", c["DOut"].shape, c["DOut"].dtype, c.lod("DOut"))


@grad_op("reshape2_grad_grad", infer=_again_infer)
def reshape2_grad_grad(b: Binder) -> None:
    """DDOut = DDX in the shape of DOut."""
    emit_reshape(b, "DDOut", b["DDX"], b["DOut"].shape, b.lod("DOut"))


for _type, _function in (
    ("reshape", reshape), ("reshape_grad", reshape_grad), ("reshape2", reshape2), ("reshape2_grad", reshape2_grad),
    ("reshape2_grad_grad", reshape2_grad_grad),
):  # fmt: skip
    kernel(_type, place="cuda")(_function)  # tensors of a device are contiguous, so all of it is views and copies
