"""crop_tensor: a piece out of a tensor, with a shape and offsets that may be variables."""

from __future__ import annotations

from fluidnb.op import Attr, Binder, Context, default_grad, grad_op, op, values_of
from fluidnb_kernels.rules import integers
from fluidnb_kernels.tensor.pad import put_window, take_window

_VARIABLES = ("Shape", "ShapeTensor", "Offsets", "OffsetsTensor")


def _piece(c: Context) -> tuple[list[int], list[int]]:
    """The offsets of the piece and its sizes; while building, -1 stands for what is unknown."""
    x = c["X"]
    shape = integers(c, "shape", "Shape", "ShapeTensor") or [-1] * x.ndim
    offsets = integers(c, "offsets", "Offsets", "OffsetsTensor") or [0] * x.ndim
    c.require(
        len(shape) == len(offsets) == x.ndim, "crop_tensor needs a size and an offset for each dimension of X.",
        expected=f"{x.ndim} of each", received=f"shape {shape}, offsets {offsets}",
    )  # fmt: skip
    placed = c.runtime or not (c.has("Offsets") or c.has("OffsetsTensor"))
    sized = c.runtime or not (c.has("Shape") or c.has("ShapeTensor"))
    sizes = []
    for n, o, whole in zip(shape, offsets, x.shape, strict=True):
        size = whole - o if n == -1 and placed and sized and whole >= 0 else n
        fits = not placed or whole < 0 or o >= 0 and (-1 if not sized else 0) <= size <= whole - o
        c.require(
            fits, "The region that crop_tensor takes must be inside X.", expected=f"inside {list(x.shape)}",
            received=f"{shape} from {offsets} on",
        )  # fmt: skip
        sizes.append(size)
    return offsets, sizes


@op(
    "crop_tensor",
    inputs={
        "X": "any shape",
        "Shape?": "the shape as a variable",
        "ShapeTensor*?": "its sizes as variables",
        "Offsets?": "the offsets as a variable",
        "OffsetsTensor*?": "the offsets as variables",
    },
    outputs={"Out": "a piece of X"},
    attrs={
        "shape": Attr("ints", [], "its sizes; -1 for all that comes after the offset"),
        "offsets": Attr("ints", [], "where it begins; none for the first corner"),
    },
    infer=lambda c: c.set("Out", _piece(c)[1], c["X"].dtype),
    grad=default_grad("X", *_VARIABLES[2:], "Out@GRAD", wrt=["X"]),
    guard=values_of(*_VARIABLES),
    dtype_slot="X",
    cuda=True,
)
def crop_tensor(b: Binder) -> None:
    """Out = the piece of X that begins at ``offsets``.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("crop_tensor", {"X": [1.0, 2.0, 3.0]}, {"offsets": [1], "shape": [-1]})["Out"]
        array([2., 3.])

    Source: Paddle's crop_tensor_op.
    """
    take_window(b, b["X"], _piece(b)[0], b["Out"])


@grad_op("crop_tensor_grad", guard=values_of(*_VARIABLES[2:]), dtype_slot="X", cuda=True)
def crop_tensor_grad(b: Binder) -> None:
    """dX = dOut where the piece was, 0 elsewhere."""
    put_window(b, b["X@GRAD"], _offsets(b, b["X@GRAD"].ndim), b["Out@GRAD"])


def _offsets(b: Binder, rank: int) -> list[int]:
    return integers(b, "offsets", "Offsets", "OffsetsTensor") or [0] * rank
