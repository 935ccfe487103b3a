"""where, where_index and diag: elements chosen by a condition, and a diagonal."""

import numpy as np

from fluidnb.op import Array, Binder, Context, default_grad, grad_op, op
from fluidnb.op.c_code import Constant, c_code
from fluidnb.op.masked_copy import masked_copy
from fluidnb.values.copies import on_host
from fluidnb_kernels import verbs
from fluidnb_kernels.emit import apply, zeros
from fluidnb_kernels.rules import agree
from fluidnb_kernels.tensor import row_indexing
from fluidnb_kernels.tensor.diagonals import diagonal_view


def _hits(c: Context) -> int:
    """The number of true elements of Condition, the only value that a binding depends on."""
    return -1 if c.has("X") else int(np.count_nonzero(on_host(c["Condition"])))


def _places_infer(c: Context) -> None:
    c.set("Out", (_hits(c) if c.runtime else -1, c["Condition"].ndim), np.int64)


def _infer(c: Context) -> None:
    if not c.has("X"):
        return _places_infer(c)
    c.require(
        c.has("Y"), "Input(Y) of where is missing.", expected="X and Y, or neither", received=f"X {c.name('X')} alone",
        hint="Y has the elements where the condition does not hold; without X and Y the indices are given.",
    )  # fmt: skip
    x = c["X"]
    for slot in ("Condition", "Y"):
        c.require(
            agree(c[slot].shape, x.shape), f"Input({slot}) of where must have the shape of Input(X).",
            expected=list(x.shape), received=list(c[slot].shape),
        )  # fmt: skip
    return c.set("Out", x.shape, x.dtype)


def places(condition: Array, out: Array) -> None:
    """Write where a condition holds."""
    out[...] = np.argwhere(condition)


def _emit_places(b: Binder) -> None:
    condition, out = b["Condition"], b["Out"]
    if b.on_cuda:
        row_indexing.coordinates(b, row_indexing.places(b, condition, out.shape[0]), condition.shape, out)
    else:
        b(places, condition, out)


@op(
    "where",
    inputs={"Condition: bool": "any shape", "X?": "what is taken where it holds", "Y?": "what is taken elsewhere"},
    outputs={"Out": "int64 [n, rank]: where it holds; with X and Y one of them, element by element"},
    infer=_infer,
    grad=default_grad("Condition", "X", "Y", "Out@GRAD", wrt=["X", "Y"]),
    guard=_hits,
    data_shape=True,
    cuda=True,
)
def where(b: Binder) -> None:
    """Out = the indices at which Condition holds; with X and Y: X where it holds, Y elsewhere.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("where", {"Condition": np.array([False, True, True])})["Out"]
        array([[1],
               [2]])

    Source: Fluid's where_op, and Paddle's of the same name, which takes X and Y.
    """
    if not b.has("X"):
        return _emit_places(b)
    if b.on_cuda:
        return row_indexing.either(b, b["Condition"], b["X"], b["Y"], b["Out"])
    b(np.copyto, b["Out"], b["Y"])
    return b(masked_copy, b["Out"], b["X"], b["Condition"])


@grad_op("where_grad", dtype_slot="Out@GRAD", cuda=True)
def where_grad(b: Binder) -> None:
    """dX = dOut where Condition holds, dY = dOut elsewhere."""
    condition, g = b["Condition"], b["Out@GRAD"]
    for slot, value in (("X@GRAD", True), ("Y@GRAD", False)):
        if b.wants(slot) and b.on_cuda:
            row_indexing.only(b, condition, value, g, b[slot])
        elif b.wants(slot):
            zeros(b, b[slot])
            b(masked_copy, b[slot], g, condition if value else apply(b, np.logical_not, condition))


@c_code("where", "where_grad")
def _where_in_c(c: Context) -> dict[str, Constant]:
    return {"COUNT": c["Condition"].size}


@op(
    "where_index",
    inputs={"Condition": "any shape"},
    outputs={"Out": "int64 [n, rank]: where it holds"},
    infer=_places_infer,
    guard=_hits,
    data_shape=True,
    cuda=True,
)
def where_index(b: Binder) -> None:
    """Out = the indices at which Condition holds.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("where_index", {"Condition": np.array([[True, False]])})["Out"]
        array([[0, 0]])

    Source: Paddle's where_index_op.
    """
    _emit_places(b)


def _diag_infer(c: Context) -> None:
    c.check_inputs()
    d = c["Diagonal"]
    c.set("Out", (d.shape[0], d.shape[0]), d.dtype)


@op("diag", inputs={"Diagonal: any[n]": ""}, outputs={"Out": "[n, n]"}, infer=_diag_infer, cuda=True)
def diag(b: Binder) -> None:
    """Out = a matrix with Diagonal on its diagonal, 0 elsewhere.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("diag", {"Diagonal": [1.0, 2.0]})["Out"]
        array([[1., 0.],
               [0., 2.]])

    Source: Fluid's diag_op.
    """
    verbs.fill(b, b["Out"])
    verbs.copy(b, b["Out"], b["Diagonal"], to=diagonal_view)
